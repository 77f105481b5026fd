"""The text of an issue: its form, what is in it, what may not be, and its size."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.lab import issue
from tritonsmith.lab.evidence import BisectCulprit, Blamed, BugEvidence, IssueIr, IssueKernel
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.issue import Issue

pytestmark = pytest.mark.unit

SOURCE = "import triton\n\n\n@triton.jit\ndef k(x):\n    pass\n"
ASKED = CompileRequest(Path("/home/anna/k.py"), "k", "*fp32:16", (Target("cuda", 90, 32),))
KERNEL = IssueKernel("k.py", SOURCE, ASKED)
CRASH = BugEvidence(
    kind="crash",
    observed="fatal error: it fell over",
    failure=Failure("fatal error", "it fell over"),
    failed_in="some-pass",
    log="LLVM ERROR: it fell over\n",
    function="k",
    target="cuda:90",
    triton="3.9.0",
    kernel=KERNEL,
    ir=IssueIr("module {\n}", "builtin.module(some-pass)"),
    blamed=(Blamed("triton", "the pass some-pass", "it fails alone on its input", proven=True),),
)


def written(evidence: BugEvidence, tmp_path: Path, owner: str = "") -> Issue:
    return issue.write(evidence, owner, None, Workspace(tmp_path / "space"), run=False, timeout=1)


@pytest.mark.parametrize("owner", ["triton", "llvm", "pytorch", "ptxas"])
@pytest.mark.parametrize("kind", ["crash", "wrong", "regression"])
def test_every_kind_has_the_fields_of_each_form(owner: str, kind: str, tmp_path: Path) -> None:
    evidence = replace(CRASH, kind=kind, failure=CRASH.failure if kind == "crash" else None)  # type: ignore[arg-type]
    result = written(evidence, tmp_path, owner)
    table = configs.load("issue-forms")
    assert result.repository == table["owners"][owner]["repository"]
    forms = [
        form
        for form in table["form"]
        if kind in form["kinds"] and table["owners"][form["owner"]]["repository"] == result.repository
    ]
    assert len(forms) == 1
    labels = [row["label"] for row in forms[0]["fields"] if row["required"] and row["label"]]
    assert [text for text in re.findall(r"^### (.*)$", result.body, re.MULTILINE) if text in labels] == labels
    assert forms[0]["source"].startswith("https://github.com/")


def test_the_body_has_what_a_reader_needs(tmp_path: Path) -> None:
    result = written(CRASH, tmp_path)
    for text in (
        "python k.py",
        "pip install triton==3.9.0",
        "some-pass",
        "it fell over",
        "def k(x):",
        "cuda:90",
    ):
        assert text in result.body
    assert "(It was not run: `--not-run`.)" in result.body
    assert result.title == "some-pass: LLVM ERROR: it fell over (3.9.0, cuda:90)"
    # The script is made by the tool: it compiles without it.
    assert "tritonsmith" not in result.files["k.py"]
    assert "triton.compile(" in result.files["k.py"]
    compile(result.files["k.py"], "k.py", "exec")


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    result = written(
        BugEvidence(kind="crash", observed="failure: x", failure=Failure("failure", "x")), tmp_path
    )
    for text in ("LLVM in it", "ptxas", "Python:", "pip install", "None", "unknown"):
        assert text not in result.body
    left_out = {row.what: row.hint for row in result.unknown}
    assert {"the kernel", "the version of Triton", "the commit of LLVM"} <= left_out.keys()
    assert left_out["the version or commit that brought it"].startswith("invoke bisect")
    assert "The faulty component is not known." in result.body


def test_a_message_alone_decides_nothing(tmp_path: Path) -> None:
    said = Blamed("llvm", "the instruction selection of LLVM", "the message is its own: x", proven=False)
    result = written(replace(CRASH, blamed=(said,), ir=None), tmp_path)
    assert result.repository == "triton-lang/triton"
    assert "component is not known. The message only shows which one gave up:" in result.body
    proven = replace(said, proven=True)
    assert written(replace(CRASH, blamed=(proven,)), tmp_path).repository == "llvm/llvm-project"
    with pytest.raises(UsageError, match="--for cannot be 'gcc'"):
        written(CRASH, tmp_path, "gcc")


def test_foreign_text_cannot_break_out_of_its_code(tmp_path: Path) -> None:
    nasty = "```\n@everyone look at #123 <details>\n````\n`x` | y"
    evil = replace(
        CRASH,
        log=f"LLVM ERROR: {nasty}",
        observed=f"fatal error: {nasty}",
        details=(nasty,),
        function="k`@all",
        kernel=replace(KERNEL, text=f"{SOURCE}# {nasty.replace(chr(10), ' ')}\n"),
        culprit=BisectCulprit(
            "3.8.0", "3.9.0", False, ("a" * 40,), "a" * 40, "Fix #9 by @bob `x`", "2026-01-02"
        ),
        tested=(("3.8.0", "good", "a | b @carol"),),
    )
    body = written(evil, tmp_path).body
    assert _outside_code(body).isdisjoint({"@everyone", "@all", "@bob", "@carol", "#123", "#9"})
    # The bar of a cell does not end it.
    assert "a \\| b @carol" in body


def _outside_code(body: str) -> set[str]:
    """Return the mentions and numbers that GitHub would link: those in no fence and in no code span."""
    outside, fence = [], ""
    for line in body.splitlines():
        ticks = re.match(r"`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif ticks:
            fence = ticks[0]
        else:
            outside.append(re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", line))
    assert not fence  # each block ends
    return set(re.findall(r"[@#]\w+", "\n".join(outside)))


def test_no_folder_name_or_secret_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/annabel")
    monkeypatch.setenv("LOGNAME", "annabel")
    token = "ghp_" + "a1" * 18
    personal = replace(
        CRASH,
        log=f"/home/annabel/secret-project/k.py:3: error: x\nHF_TOKEN={token}\nLLVM ERROR: it fell over\n",
        observed="fatal error: /home/annabel/secret-project/k.py",
        kernel=replace(KERNEL, text=f"{SOURCE}# by annabel, /home/annabel/x, token {token}\n"),
    )
    result = written(personal, tmp_path)
    for text in (result.title, result.body, *result.files.values()):
        assert "annabel" not in text
        assert "secret-project" not in text
        assert token not in text


def test_a_body_that_is_too_long_has_its_files_attached(tmp_path: Path) -> None:
    limits = configs.load("issue-forms")["limits"]
    long = replace(
        CRASH,
        kernel=replace(KERNEL, text=SOURCE + "# long\n" * 20_000),
        ir=IssueIr("module {\n" + "  // x\n" * 20_000 + "}", "builtin.module(some-pass)"),
        log="LLVM ERROR: it fell over\n" + "frame\n" * 20_000,
        details=("y" * 3000,),
        tested=tuple((f"3.{number}.0", "good", "z" * 400) for number in range(400)),
    )
    result = written(long, tmp_path)
    assert len(result.body) <= limits["body"]
    assert {"k.py", "input.mlir", "error.txt"} <= set(result.attachments)
    assert "`k.py` is attached" in result.body
    assert len(result.title) <= limits["title"]


REJECTED = replace(
    CRASH,
    observed="exception: NameError: y is not defined",
    failure=Failure("exception", "NameError: y is not defined"),
    failed_in="",
    rejected="NameError('y is not defined') (/home/anna/k.py:6)",
    log="at 3:4:\n    y\n    ^\nNameError('y is not defined')\n",
    ir=None,
    blamed=(),
)


def test_an_error_in_the_kernel_is_an_issue_only_for_whoever_says_so(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="looks like an error in the kernel: NameError") as caught:
        written(REJECTED, tmp_path)
    assert "--for triton" in str(caught.value)
    body = written(REJECTED, tmp_path, "triton").body
    assert "Triton's front end rejects the program: `NameError('y is not defined') (k.py:6)`." in body
    assert "The reporter believes that it should be accepted." in body
    # What an older Triton accepts was broken since.
    regressed = replace(REJECTED, tested=(("3.8.0", "good", ""), ("3.9.0", "bad", "")))
    body = written(regressed, tmp_path).body
    assert "front end rejects the program" in body
    assert "believes" not in body


def test_a_title_does_not_blame_one_of_several_passes(tmp_path: Path) -> None:
    wrong = replace(CRASH, kind="wrong", failure=None, failed_in="", log="", change="changes the result")
    for suspects, who in (
        (("a",), "a"),
        (("a", "b"), "one of a, b"),
        (tuple("abcdx"), "one of 5 passes from a to x"),
    ):
        result = written(replace(wrong, suspects=suspects, blamed=()), tmp_path)
        assert result.title == f"{who} changes the result of a kernel (3.9.0, cuda:90)"
        assert f"`{who} changes the result`." in result.body
    several = replace(CRASH.blamed[0], proven=False)
    body = written(replace(wrong, suspects=("a", "b"), ir=None, blamed=(several,)), tmp_path).body
    assert "**To blame** is one of several passes" in body
    assert "message" not in body
    race = replace(wrong, suspects=("a",), change="makes a race: the result depends on x")
    assert written(race, tmp_path).title.startswith("a makes a race: the result depends on x (")


@pytest.mark.parametrize("program", ["invoke", "tritonsmith"])
def test_hints_name_the_program_that_runs(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [program])
    printed = list(issue.lines(written(CRASH, tmp_path), tmp_path))
    assert any(f"{program} bisect" in line for line in printed)
    assert "source of the kernel" in printed[-1]
    assert (
        "source of the kernel"
        not in list(issue.lines(written(replace(CRASH, kernel=None), tmp_path), tmp_path))[-1]
    )


def test_a_regression_names_both_sides(tmp_path: Path) -> None:
    worse = replace(
        CRASH,
        kind="regression",
        failure=None,
        log="",
        observed="registers 64 -> 72 from 3.6.0 to 3.7.0",
        metric="registers",
        blamed=(),
        ir=None,
        tested=(("3.6.0", "good", "registers 64"), ("3.7.0", "bad", "registers 72")),
    )
    result = written(worse, tmp_path)
    assert result.title == "k: registers 64 -> 72 from 3.6.0 to 3.7.0 (3.9.0, cuda:90)"
    assert "as with 3.6.0" in result.body
    assert "TRITON_DUMP_PTXAS_LOG" in result.files["k.py"]
    hints = " ".join(row.hint for row in result.unknown)
    assert "--when 'registers>64'" in hints
    assert "invoke blame " in hints


def test_a_script_shows_the_registers_of_amds_code_by_its_assembly(tmp_path: Path) -> None:
    request = replace(ASKED, targets=(Target("hip", "gfx942", 64),))
    worse = replace(
        CRASH, kind="regression", failure=None, metric="spills>0", kernel=replace(KERNEL, request=request)
    )
    text = written(worse, tmp_path).files["k.py"]
    assert 'compiled.asm["amdgcn"]' in text
    assert "TRITON_DUMP_PTXAS_LOG" not in text


def test_the_culprit_is_linked(tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    found = BisectCulprit(
        "3.8.0", commit, False, (commit,), commit, "[OPTIMIZER] Do it", "2026-01-02T03:04", 77
    )
    body = written(replace(CRASH, culprit=found), tmp_path).body
    assert f"[0123456789ab](https://github.com/triton-lang/triton/commit/{commit})" in body
    assert "https://github.com/triton-lang/triton/pull/77" in body
    several = replace(found, suspects=("a", "b"), commit="")
    assert "not all could be tested" in written(replace(CRASH, culprit=several), tmp_path).body


@pytest.mark.parametrize("name", ["thesis.tex", "issue.md"])
def test_a_folder_with_files_is_not_written_to(name: str, tmp_path: Path) -> None:
    """Also not that of an earlier run: the user may have edited the issue since then."""
    result = written(CRASH, tmp_path)
    (tmp_path / "mine").mkdir()
    issue.plan(result, tmp_path / "mine")
    (tmp_path / "mine" / name).touch()
    with pytest.raises(UsageError, match="exists, and is not empty") as caught:
        issue.plan(result, tmp_path / "mine")
    assert "--out DIR" in str(caught.value)
    names = {step.path.name for step in issue.plan(result, tmp_path / "new").steps if hasattr(step, "path")}
    assert {"issue.md", "title.txt", "k.py", "input.mlir", "error.txt"} <= names
