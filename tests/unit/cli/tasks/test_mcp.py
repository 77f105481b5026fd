"""`mcp` without its server: what the table declares, command lines, results and how they are cut."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support import REPOSITORY
from tests.unit.cli.tasks.conftest import Smith, smith
from tests.unit.compiler.resources.test_measure import manifest, point
from tritonsmith.cli import commands, modes
from tritonsmith.cli.tasks import mcp, mcp_server, namespace
from tritonsmith.cli.tasks.mcp import AgentTool, Json, ResultCutter
from tritonsmith.cli.tasks.option_fields import from_argv
from tritonsmith.core import configs
from tritonsmith.core.errors import SmithError, UsageError

__all__ = ["smith"]

TOOLS = mcp.declared()
NAMES = [tool.name for tool in TOOLS]
CONTROL = "\0"


def tool(name: str) -> AgentTool:
    return next(tool for tool in TOOLS if tool.name == name)


@pytest.mark.parametrize("each", TOOLS, ids=NAMES)
def test_a_tool_is_a_command_with_options_that_it_has(each: AgentTool) -> None:
    flags = {option.flag[2:] for option in namespace.every[each.command].options}
    assert set(each.options) | set(each.flags) <= flags
    assert not {"json", "python", "open", "fix", "yes", *each.flags} & set(each.options)
    assert re.fullmatch(r"[a-z_]{1,64}", each.name)
    assert each.effect in ("read", "write", "install", "delete")
    # What it answers is typed; only what a person would read as it installs or deletes has no --json.
    assert "json" in flags or each.allowance
    Draft202012Validator.check_schema(each.schema)


def test_names_differ_and_the_schema_of_results_is_valid() -> None:
    assert len(set(NAMES)) == len(NAMES)
    Draft202012Validator.check_schema(mcp.result_schema())


def test_the_list_of_tools_leaves_room_in_a_context() -> None:
    listed = [{"name": each.name, "description": each.purpose, "in": each.schema} for each in mcp.tools()]
    assert len(json.dumps(listed)) < 25_000


def test_only_what_is_allowed_installs_or_deletes() -> None:
    assert all(each.effect in ("read", "write") for each in mcp.tools())
    extra = set(mcp.tools(["up", "clear-cache"])) - set(mcp.tools())
    assert {each.name for each in extra} == {"up", "clear_cache"}
    assert mcp.tools([mcp.INSTALL]) == mcp.tools()
    with pytest.raises(UsageError, match="--allow cannot name 'purge'") as error:
        mcp.tools(["purge"])
    assert "did you mean 'purge-wheels'?" in error.value.hints


def test_types_of_parameters() -> None:
    compiling = tool("kernel_compile").schema["properties"]
    assert isinstance(compiling, dict)
    assert compiling["num_warps"] == {"type": "integer", "minimum": 1, "description": "warps per program"}
    assert compiling["target"] == {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "description": "target: cuda:90, hip:gfx942:64, h100, native or all",
    }
    assert tool("passes_show").schema["required"] == ["folder"]


# Whatever an agent gives, be it a flag, a command or the end of the flags.
TEXTS = st.one_of(
    st.sampled_from(
        ["-", "--", "--python=/bin/sh", "-h", "--help", "up", "doctor", "compare", "--compare", "a\nb"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters=CONTROL), min_size=1, max_size=20),
)


@given(
    kernel=TEXTS,
    target=st.lists(TEXTS, max_size=3),
    option=st.lists(TEXTS, max_size=2),
    warps=st.integers(1, 99),
)
def test_no_argument_becomes_a_flag_or_a_command(
    kernel: str, target: list[str], option: list[str], warps: int
) -> None:
    arguments: dict[str, Json] = {
        "kernel": kernel, "target": [*target], "option": [*option], "num_warps": warps,
    }  # fmt: skip
    command, *words = line = tool("kernel_lint").words(arguments)
    assert command == "kernel.lint"
    assert modes.resolved(line) == line
    assert all(
        word.startswith(("--kernel=", "--target=", "--option=", "--num-warps=", "--json")) for word in words
    )
    try:
        values = from_argv(namespace.every[command], words)
    except UsageError:  # a target that has no word in it: ", "
        assert not all(re.search(r"[^\s,;]", text) for text in target)
        return
    assert values["kernel"] == kernel
    assert values["what"].option == tuple(option)
    assert (values["what"].num_warps, values["json"]) == (warps, True)
    assert values["by"].python is None


@pytest.mark.parametrize("each", TOOLS, ids=NAMES)
def test_no_option_selects_another_mode_of_the_command(each: AgentTool) -> None:
    line = [each.command, *(f"--{name}" for name in each.flags), *(f"--{name}=x" for name in each.options)]
    assert modes.resolved(line) == line


def test_words_of_switches_and_lists() -> None:
    assert tool("passes_show").words({"folder": "d", "number": "3", "after": True, "normal": False}) == [
        "passes.show", "--folder=d", "--number=3", "--after", "--json",
    ]  # fmt: skip
    assert tool("clear_cache").words({"stale": True, "dry_run": True}) == [
        "clear-cache", "--yes", "--stale", "--dry-run",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_cannot_be_an_argument(text: str) -> None:
    with pytest.raises(UsageError, match="not a text"):
        tool("explain").words({"thing": text})


def test_arguments_that_are_too_long() -> None:
    with pytest.raises(UsageError, match=r"more than 20,000"):
        tool("explain").words({"thing": "x" * 30_000})
    error = mcp.invalid("explain", ["thing"], [("thing", "x" * 5000)])
    assert len(str(error)) < 500


@pytest.mark.parametrize(
    ("code", "printed", "errors", "expected"),
    [
        (0, '{"a": 1}', ["note: n"], {"verdict": "ok", "answer": {"a": 1}, "notes": ["n"]}),
        (1, '{"a": 1}', ["error: two", "  why: x"], {"verdict": "findings", "message": "two\n  why: x"}),
        (1, "", ["error: no such file"], {"verdict": "failed", "message": "no such file"}),
        (2, "", ["error: usage"], {"verdict": "failed"}),
        (3, "", ["error: a bug of tritonsmith: E"], {"verdict": "failed"}),
        (4, '{"a": 1}', ["error: an end"], {"verdict": "failed", "answer": {"a": 1}}),
        (5, '{"a": 1}', ["error: not decided"], {"verdict": "undecided", "message": "not decided"}),
        (130, "", ["interrupted"], {"verdict": "stopped", "notes": ["interrupted"]}),
        (-9, "", [], {"verdict": "failed", "message": "the command was ended by signal 9"}),
        (0, "a script\n", [], {"verdict": "ok", "text": "a script\n"}),
        (0, "5\n", [], {"verdict": "ok", "text": "5\n"}),
        (0, "[" * 100_000, [], {"verdict": "ok", "text": "[" * 100_000}),
    ],
)  # fmt: skip
def test_an_exit_code_is_a_verdict(
    code: int, printed: str, errors: list[str], expected: dict[str, Json]
) -> None:
    result = mcp.outcome(tool("kernel_lint"), code, printed, errors)
    assert result["exit_code"] == code
    assert expected.items() <= result.items()
    assert "answer" in expected or "answer" in result or "text" in result or code
    Draft202012Validator(mcp.result_schema()).validate({**result, "command": ""})


def test_a_mode_is_not_called_an_old_name() -> None:
    lines = ["note: kernel.resources is now: invoke kernel.compile --resources", "note: other"]
    assert mcp.outcome(tool("kernel_resources"), 0, "{}", lines)["notes"] == ["other"]


def kept() -> tuple[ResultCutter, list[str]]:
    texts: list[str] = []

    def keep(text: str) -> str:
        texts.append(text)
        return f"tritonsmith://text/{len(texts)}"

    return ResultCutter(keep), texts


def test_a_long_text_keeps_whole_lines_of_its_ends() -> None:
    cutter, texts = kept()
    text = "".join(f"line {number}\n" for number in range(1000))
    cut = cutter.fit({"answer": {"text": text, "stage": "ttgir"}}, 1000)
    assert isinstance(cut, dict)
    assert isinstance(cut["answer"], dict)
    shown = cut["answer"]["text"]
    assert isinstance(shown, str)
    assert shown.startswith("line 0\nline 1\n")
    assert shown.endswith("line 998\nline 999\n")
    head, _, tail = shown.partition("[... ")
    left_out = 1000 - head.count("\n") - tail.partition("...]\n")[2].count("\n")
    assert f"[... {left_out} of 1,001 lines left out: tritonsmith://text/1 ...]\n" in shown
    assert cutter.cuts == [
        {"at": "/answer/text", "left_out": f"{left_out} of 1,001 lines", "uri": "tritonsmith://text/1"}
    ]
    assert texts == [text]
    assert cut["answer"]["stage"] == "ttgir"


def test_a_long_list_keeps_its_first_items() -> None:
    cutter, texts = kept()
    rows: list[Json] = [{"number": number, "name": "x" * 50} for number in range(200)]
    cut = cutter.fit({"a/b": rows, "few": [1, 2]}, 1000)
    assert isinstance(cut, dict)
    first = cut["a/b"]
    assert isinstance(first, list)
    assert 0 < len(first) < 200
    assert first == rows[: len(first)]
    assert cutter.cuts == [
        {"at": "/a~1b", "left_out": f"{200 - len(first)} items", "uri": "tritonsmith://text/1"}
    ]
    assert json.loads(texts[0]) == rows
    assert cut["few"] == [1, 2]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=10), inner, max_size=30),
    max_leaves=60,
)


@given(JSON, st.integers(500, 3000))
def test_what_is_cut_is_near_the_size_and_says_what_is_missing(value: Json, room: int) -> None:
    cutter, texts = kept()
    cut = cutter.fit({"answer": value}, room)
    if len(mcp.dumps({"answer": value})) <= room:
        assert cut == {"answer": value}
        assert not cutter.cuts
    # An object of many small values has nothing to cut; the last line limits how far it may go beyond.
    elif cut != {"answer": value}:
        assert len(texts) == len(cutter.cuts) > 0
    # Each text keeps its beginning, however many there are.
    assert len(mcp.dumps(cut)) <= room + 600 * (1 + len(cutter.cuts))


@given(st.text(max_size=300), st.integers(1, 50))
def test_pages_are_the_whole_text(text: str, size: int) -> None:
    pages = mcp.pages(text, size)
    assert "".join(pages) == text
    assert all(0 < len(page) <= size for page in pages) or pages == [""]


def test_pages_end_with_lines() -> None:
    assert mcp.pages("one\ntwo\nthree\n", 9) == ["one\ntwo\n", "three\n"]
    assert mcp.pages("x" * 10, 4) == ["xxxx", "xxxx", "xx"]


def test_the_skill_names_tools_and_parameters_that_there_are(smith: Smith) -> None:
    text = smith("mcp", "--skill").out
    assert text == mcp.instructions()
    own = mcp.own_tools()
    for name, arguments in re.findall(
        r"\b([a-z]+(?:_[a-z]+)+|triage|bisect|explain|read)\b(?:\((.*?)\))?", text
    ):
        if name in own or name not in NAMES:
            assert name in own, name
            continue
        named = re.findall(r"\b(\w+)=", re.sub(r'"[^"]*"', "", arguments)) or re.findall(
            r"\b[a-z]+\b", arguments
        )
        assert set(named) <= set(tool(name).parameters), (name, arguments)


def test_the_page_lists_every_tool_as_it_is() -> None:
    page = (REPOSITORY / "docs" / "agents.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)`", page, re.MULTILINE))
    assert rows == {each.name: each.command for each in TOOLS}
    limits = configs.load("mcp")["limits"]
    assert f"{limits['characters']:,} characters" in page
    assert f"{limits['patience']} seconds" in page
    for each in TOOLS:
        needs = re.search(rf"^\| `{each.name}` \|.*$", page, re.MULTILINE)
        assert needs
        assert (f"`--allow {each.allowance}`" in needs[0]) == bool(each.allowance)
        assert ("a job" in needs[0]) == each.job


def test_a_missing_sdk_is_one_line(smith: Smith, monkeypatch: pytest.MonkeyPatch) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(mcp, "find_spec", lambda name: None if name == "mcp" else there(name))
    answer = smith("mcp")
    assert answer.code == 1
    assert "pip install 'tritonsmith[mcp]'" in answer.err
    assert answer.out == ""


def test_a_wrong_name_is_refused_before_anything_is_served(smith: Smith) -> None:
    answer = smith("mcp", "--allow", "everything")
    assert answer.code == 2
    assert "--allow cannot name 'everything'" in answer.err
    assert "mcp" in commands.COMMANDS


@pytest.fixture
def resources(tmp_path: Path) -> mcp_server._Resources:
    """Those of a server whose pages have ten characters."""
    (tmp_path / "scratch").mkdir()
    return mcp_server._Resources(tmp_path / "scratch", replace(mcp.limits(), characters=10))


def test_a_uri_may_name_the_page(resources: mcp_server._Resources) -> None:
    uri = resources.keep("one\ntwo\nthree\nfour\n")
    assert resources.page(uri, None) == ("one\ntwo\n", 1, 3)
    assert resources.page(uri, 2) == resources.page(f"{uri}?page=2", None) == ("three\n", 2, 3)
    assert resources.page(f"{uri}?page=2", 2) == resources.page(uri, 2)
    assert resources.whole(f"{uri}?page=3") == "four\n"
    for number in (0, 4):
        for read in (resources.whole, partial(resources.page, number=None)):
            with pytest.raises(UsageError, match=f"has 3 pages, and no page {number}"):
                read(f"{uri}?page={number}")
    with pytest.raises(UsageError, match="contradict"):
        resources.page(f"{uri}?page=2", 3)
    for wrong in ("", "x", "-1", "2.0", "9" * 30):
        with pytest.raises(UsageError, match="not a page"):
            resources.page(f"{uri}?page={wrong}", None)


def test_a_resource_that_has_become_a_link_is_not_read(
    resources: mcp_server._Resources, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    compiled = manifest(out, point(out, "cuda:90:32", {}, {"ptx": ".version 8.0\n"}))
    (out / "manifest.json").write_text(compiled.render(), encoding="utf-8")
    (tmp_path / "link").symlink_to(out)
    (listed,) = resources.add(tmp_path / "link")
    path = compiled.points[0].stages["ptx"].path
    uri = str(listed["uri"] if isinstance(listed, dict) else "").replace("manifest.json", quote(path))
    assert resources.whole(uri) == ".version 8.0\n"
    (out / path).unlink()
    (out / path).symlink_to(__file__)
    for read in (resources.whole, partial(resources.page, number=None)):
        with pytest.raises(SmithError, match="outside its folder"):
            read(uri)
    # The rest of such a folder can be read, and it may be written again.
    assert resources.add(tmp_path / "link") == [listed]
    assert resources.whole(str(listed["uri"] if isinstance(listed, dict) else "")).startswith("{")
