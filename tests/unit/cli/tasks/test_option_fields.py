"""Flags: how a text is read, what a wrong one is told, and that each help text is written once."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks import namespace, option_fields
from tritonsmith.cli.tasks.option_fields import (
    WIDE,
    CommaList,
    CommaLists,
    Option,
    OutFile,
    bind,
    flag,
    options_of,
    split,
    word,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import UsageError

_WIDTH = 72
_FEW = 4  # tasks
_MEANINGS = {  # of flags with several, those of few tasks; tasks in one text mean the same
    "--against": ["kernel.check", "passes.check", "passes.diff", "passes.report"],
    "--by": ["kernel.profile", "layout"],
    "--check": ["farm rehearse", "kernel.export", "knockout triage"],
    "--at": ["cache.fill container", "pins"],
    "--all": ["clear-cache", "explain", "kernel.bounds", "kernel.compile", "passes.replay"],
    "--backend": ["passes.dump", "pipeline"],
    "--base": ["build-triton", "farm", "test-triton"],
    "--changed": ["passes.list", "test-triton"],
    "--build-type": ["build-triton install-triton", "setup-mlir"],
    "--debug": ["build-triton install-triton", "passes.replay"],
    "--dest": ["farm.export", "store.export"],
    "--diff": ["compare", "kernel.override"],
    "--explain": ["bisect bisect.resume", "doctor"],
    "--wheel": ["build-triton", "pass.new plugin.check"],
    "--folder": ["passes.check"],
    "--nightlies": ["bisect", "pins"],
    "--file": ["debug-library", "env.allow", "passes.import", "passes.reduce"],
    "--fail-on": ["compare farm rehearse", "kernel.lint kernel.lint-changed", "kernel.time"],
    "--force": ["build-triton install-triton setup-mlir", "editor", "store.import"],
    "--from-cache": ["kernel.resources"],
    "--for": ["build-triton build.explain debug-library", "issue.new"],
    "--from": ["blame rehearse", "passes.replay"],
    "--function": ["kernel.inline-ptx", "kernel.show"],
    "--jobs": ["passes.reduce"],
    "--grid": ["kernel.check", "kernel.export", "kernel.time"],
    "--json": ["store.gc"],
    "--kernel": [
        "blame",
        "cache.list clear-cache",
        "compare",
        "corpus.remove",
        "ir-env",
        "kernel.check",
        "kernel.compile knockout reduce",
        "kernel.override",
        "kernel.profile",
        "kernel.time",
        "passes.diff",
        "passes.dump",
    ],
    "--kernels": [
        "cache.fill corpus.add",
        "farm farm.site rehearse",
        "kernel.check-changed kernel.lint-changed",
        "kernel.study",
    ],
    "--lit": ["test-triton", "watch"],
    "--layouts": ["passes.diff", "passes.show"],
    "--list": ["ci-replay", "debug-library", "doctor", "explain", "passes.check", "toolchain.ptxas"],
    "--open": ["explain", "passes.report"],
    "--llvm": ["build.explain", "knockout", "passes.dump", "system.packages"],
    "--name": [
        "benchmark",
        "kernel.override",
        "pass.new",
        "store.adopt",
        "store.export store.forget",
        "store.gc store.verify",
        "worktree.add",
        "worktree.remove",
    ],
    "--older-than": ["cache.list clear-cache", "store.gc"],
    "--only": ["doctor", "test"],
    "--option": ["passes.isolate passes.reduce passes.replay"],
    "--out": [],  # a folder or a file, of many tasks each
    "--pass": ["debug-library", "editor", "passes.reduce"],
    "--path": ["passes.show", "store.adopt", "watch", "worktree.add"],
    "--point": ["kernel.export", "kernel.inline-ptx", "kernel.show"],
    "--python": ["passes.import"],
    "--plugin": ["pass.new", "plugin.check"],
    "--ref": ["pins", "worktree.add"],
    "--regex": ["passes.find", "passes.isolate"],
    "--report": ["doctor", "doctor.compare"],
    "--root": ["cache.list clear-cache", "cache.show"],
    "--sanitizer": ["build-triton", "run"],
    "--seeds": ["kernel.check", "passes.check"],
    "--signature": ["kernel.export"],
    "--since": ["doctor", "kernel.check-changed kernel.lint-changed"],
    "--source": [
        "bisect",
        "farm farm.site",
        "farm.import",
        "kernel.export",
        "kernel.inline-ptx",
        "kernel.study",
        "passes.isolate passes.replay",
        "passes.list",
        "pins",
        "rehearse",
        "store.import",
        "watch",
    ],
    "--package": ["corpus.make", "pins"],
    "--size": ["kernel.bounds", "kernel.time"],
    "--stage": ["compare", "kernel.check", "kernel.compile", "kernel.override", "kernel.show"],
    "--target": [
        "build-triton build.explain debug-library setup-mlir",
        "cache.list clear-cache",
    ],
    "--timeout": ["issue.new", "kernel.check", "passes.check", "passes.isolate passes.reduce"],
    "--times": ["kernel.profile", "kernel.time"],
    "--to": ["blame rehearse", "passes.diff"],
    "--triton": ["farm.site", "ir-env", "kernel.study kernel.time", "pins", "pipeline"],
    "--llvm-source": ["bisect bisect.resume", "debug-library setup-mlir"],
    "--when": ["bisect reduce triage", "passes.isolate", "passes.reduce"],
}


def _declared() -> Iterator[tuple[str, Option]]:
    for name in namespace.every:
        for option in (*namespace.every[name].options, WIDE):
            yield name, option


def test_each_help_text_is_written_once() -> None:
    tasks: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, option in _declared():
        tasks[option.flag][option.about].append(name)
    several = {
        name: sorted(" ".join(sorted(each)) for each in texts.values() if len(each) <= _FEW)
        for name, texts in tasks.items()
        if len(texts) > 1
    }
    assert several == _MEANINGS


@pytest.mark.parametrize("name", sorted(namespace.every))
def test_a_help_text_is_one_short_line(name: str) -> None:
    for option in namespace.every[name].options:
        assert 0 < len(option.help) <= _WIDTH, option
        assert "\n" not in option.help
        assert not option.help.endswith("."), option
        assert option.help.endswith(" (repeatable)") == option.repeated, option
        assert not option.help.startswith(("The ", "A ", "It ", "or ", "of ")), option


def test_no_help_text_is_written_twice_in_the_sources() -> None:
    calls = (
        node
        for path in sorted(Path(option_fields.__file__).parent.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("flag", "word")
    )
    texts = Counter(ast.literal_eval(call.args[0]) for call in calls)
    assert len(texts) > 100
    assert [text for text, number in texts.items() if number > 1] == []


def body(
    context: object,
    text: str = word("a"),
    maybe: str | None = flag("b", None),
    switch: bool = flag("c", default=False),
    pair: bool | None = flag("d", None),
    number: int | None = flag("e", None, least=1, example="--number 4 or so"),
    seconds: float | None = flag("f", None),
    path: Path | None = flag("g", None),
    file: OutFile | None = flag("h", None),
    commas: CommaList = flag("i", ()),
    each: tuple[str, ...] = flag("j", ()),
    both: CommaLists = flag("k", ()),
) -> None:
    """Nothing."""


def _read(**given: object) -> dict[str, Any]:
    return bind(options_of(body), {"text": "t", **given})


@pytest.mark.parametrize("texts", [[""], ["a", " "], [","]])
def test_an_empty_list_is_not_the_same_as_none(texts: list[str]) -> None:
    """A variable of CI that is not set would otherwise mean everything."""
    with pytest.raises(UsageError, match="--both is empty"):
        _read(both=texts)


def test_what_is_not_given() -> None:
    assert _read() == {
        "text": "t",
        "maybe": None,
        "switch": False,
        "pair": None,
        "number": None,
        "seconds": None,
        "path": None,
        "file": None,
        "commas": (),
        "each": (),
        "both": (),
    }


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("maybe", "", ""),
        ("number", "", None),
        ("number", "12", 12),
        ("number", "007", 7),
        ("seconds", "0.5", 0.5),
        ("seconds", "600", 600.0),
        ("path", "", None),
        ("path", "~/x", Path.home() / "x"),
        ("path", "x/../y", Path.cwd() / "x/../y"),
        ("commas", "a, b;c,,", ("a", "b", "c")),
        ("commas", ",; ", ()),
        ("each", ["a,b", "c"], ("a,b", "c")),
        ("both", ["a,b", "c"], ("a", "b", "c")),
    ],
)
def test_a_value(name: str, given: object, value: object) -> None:
    if isinstance(value, Path):
        value = Path.cwd() / "x/../y" if value.name == "y" else Path.home() / "x"
    assert _read(**{name: given})[name] == value


@pytest.mark.parametrize("name", ["number", "seconds"])
@pytest.mark.parametrize("text", ["0", "-1", "x", " 1", "1e400", "9" * 5000, "\N{SUPERSCRIPT TWO}", "nan"])
def test_what_is_no_number(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"--{name} cannot be") as caught:
        _read(**{name: text})
    hint = "a whole number: --number 4 or so" if name == "number" else "a number: --seconds 4"
    assert caught.value.hints == (hint,)


@pytest.mark.parametrize(
    ("yes", "no", "value"), [(True, False, True), (False, True, False), (False, False, None)]
)
def test_a_pair(yes: bool, no: bool, value: bool | None) -> None:
    assert _read(pair=yes, no_pair=no)["pair"] is value


def test_both_of_a_pair() -> None:
    with pytest.raises(UsageError, match="--pair and --no-pair contradict each other"):
        _read(pair=True, no_pair=True)


def test_split() -> None:
    assert split("a, b;c,,") == ("a", "b", "c")


def test_out_may_name_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    assert OutFile("there").path("add.cuh") == tmp_path / "there" / "add.cuh"
    assert OutFile("new/").path("add.cuh") == tmp_path / "new" / "add.cuh"
    assert OutFile("new").path("add.cuh") == tmp_path / "new"


@dataclass(frozen=True, kw_only=True)
class Group:
    one: str = flag("a", "x")
    two: int | None = flag("b", None)


def test_a_group_is_made_of_its_fields() -> None:
    seen: list[object] = []

    @task()
    def grouped(_context: object, group: Group, three: str = flag("c", "")) -> None:
        """Nothing."""
        seen.append((group, three))

    grouped(Context(), two="2", three="3")
    assert seen == [(Group(one="x", two=2), "3")]
    assert [one.name for one in grouped.get_arguments()] == ["one", "two", "three"]


def _numeric() -> list[tuple[str, Option]]:
    return [(name, one) for name, one in _declared() if one.kind in ("int | None", "float | None")]


@pytest.mark.parametrize(("name", "option"), _numeric(), ids=lambda one: getattr(one, "name", one))
def test_no_task_takes_a_word_for_a_number(name: str, option: Option) -> None:
    """Told before the task looks at anything else: the body is called as Invoke calls it."""
    for text in ("abc", "-1", "1e400", "9" * 400):
        with pytest.raises(Exit) as caught:
            namespace.every[name].body(None, **{option.name: text})
        assert caught.value.code == 2
        assert f"{option.flag} cannot be" in str(caught.value.message)
        assert "number: " in str(caught.value.message)


def test_no_flag_is_converted_by_invoke() -> None:
    """Its own conversion ends in a traceback."""
    kinds = {
        (name, one.name): one.kind
        for name in namespace.every
        for one in namespace.every[name].get_arguments()
    }
    assert {place: kind for place, kind in kinds.items() if kind in (int, float)} == {}
