"""What the folders and answers of other commands say about a bug, and how it is merged."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.lab import evidence, failure, issue, issue_sources
from tritonsmith.lab.evidence import Blamed, BugEvidence, IssueKernel
from tritonsmith.lab.failure import Failure

pytestmark = pytest.mark.unit

CHECKED = {
    "schema": 1,
    "verdict": "k: some-pass changes the result",
    "outcome": "changed",
    "kernel": "k",
    "target": "cuda:90",
    "passes": [],
    "culprit": {
        "checked": {"number": 3, "name": "some-pass"},
        "change": "result",
        "difference": {"offset": 16, "before": 6.5, "after": "NaN", "count": 2, "written": 4},
        "seed": 1,
        "program": [0, 0, 0],
        "arguments": {"n": 3},
        "store": "OUT",
        "operation": "arith.addi",
        "suspects": ["some-pass"],
    },
}
STEP = {"good": "3.6.0", "bad": "3.7.0", "suspects": ["3.7.0"], "later_good": [], "fix": False}
BISECTED = {
    "release": STEP,
    "nightly": None,
    "commit": None,
    "culprit": None,
    "passes": None,
    "notes": ["a note"],
    "tested": [{"triton": "3.7.0", "verdict": "bad", "figures": "registers 72", "why": ""}],
    "when": ["registers>+0"],
    "repeat": "invoke bisect ...",
}
BLAMED = {
    "kernel": "k",
    "from": "3.6.0",
    "to": "3.7.0",
    "points": [
        {
            "target": "cuda:90:32",
            "verdicts": [
                {"metric": "code", "decided": False, "words": "code 1 -> 2: not decided: x", "culprits": []},
                {
                    "metric": "registers",
                    "decided": True,
                    "words": "registers 64 -> 72: LLVM (llir to ptx)",
                    "culprits": [["ptx"]],
                },
            ],
        }
    ],
}
FARMED = {
    "from": "3.6.0",
    "to": "3.7.0",
    "groups": [],
    "findings": [
        {
            "finding": "spills more",
            "kernel": "k",
            "point": "p",
            "target": "cuda:90:32",
            "why": "spills 0 -> 8",
        }
    ],
    "kernels": [{"kernel": "k", "point": "p", "from": {"folder": "/nowhere"}, "to": {"folder": "/nowhere"}}],
}
TRIAGED = {
    "kernel": "k.py:k",
    "command": [],
    "triton": "3.9.0",
    "when": ["spills>0"],
    "answer": "several",
    "verdict": "not decided",
    "reasons": ["because"],
    "baseline": {"symptom": "shows", "figures": "spills 8"},
    "tried": [{"variant": "num_warps=8", "symptom": "gone", "figures": "spills 0"}],
}


def collected(tmp_path: Path, *contents: dict[str, Any]) -> BugEvidence:
    paths = []
    for number, content in enumerate(contents):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(content))
    return issue_sources.collect(paths, lambda _: None, Workspace(tmp_path / "space"))


def test_a_check(tmp_path: Path) -> None:
    found = collected(tmp_path, CHECKED)
    assert (found.kind, found.suspects, found.function) == ("wrong", ("some-pass",), "k")
    assert found.change == "changes the result"
    assert "OUT[16]: 6.5 before the pass, NaN after it" in found.details
    assert "arguments: n=3" in found.details
    assert [row.proven for row in found.blamed] == [True]


def test_a_check_that_could_not_run_the_texts_in_between_blames_no_single_pass(tmp_path: Path) -> None:
    culprit = {**CHECKED["culprit"], "suspects": ["inline", "cse", "some-pass"]}  # type: ignore[dict-item]
    verdict = "k: one of inline, cse, some-pass makes a race: the result depends on when copies land"
    found = collected(tmp_path, {**CHECKED, "verdict": verdict, "culprit": culprit})
    assert found.suspects == ("inline", "cse", "some-pass")
    assert found.change == "makes a race: the result depends on when copies land"
    assert found.failed_in == ""
    assert [row.proven for row in found.blamed] == [False]


def test_a_bisect_and_a_blame_are_merged(tmp_path: Path) -> None:
    found = collected(tmp_path, BLAMED, {**BISECTED, "tested": []})
    assert found.observed == "registers 64 -> 72 from 3.6.0 to 3.7.0"
    assert [(row.owner, row.proven) for row in found.blamed] == [("llvm", True)]
    assert found.culprit is not None
    assert (found.culprit.good, found.culprit.bad, found.culprit.commit) == ("3.6.0", "3.7.0", "")
    assert found.triton == "3.7.0"


def test_a_farm_and_a_triage(tmp_path: Path) -> None:
    found = collected(tmp_path, FARMED, TRIAGED)
    assert found.observed == "spills 0 -> 8 from 3.6.0 to 3.7.0"
    assert ("num_warps=8", "gone", "spills 0") in found.tested
    assert "triage: not decided" in found.details
    # A change that helps is no proof.
    assert found.blamed == ()


def test_nothing_wrong_is_no_issue(tmp_path: Path) -> None:
    fine = {**CHECKED, "outcome": "unchanged", "culprit": None}
    with pytest.raises(FactError, match="nothing here has failed"):
        collected(tmp_path, fine)
    with pytest.raises(FactError, match="nothing here has failed"):
        collected(tmp_path, {**TRIAGED, "answer": "nothing", "baseline": {"symptom": "gone", "figures": ""}})
    with pytest.raises(FactError, match="nothing here has failed"):
        collected(tmp_path, {**FARMED, "findings": []})


def test_other_bugs_are_not_mixed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="different kinds of bugs"):
        collected(tmp_path, CHECKED, FARMED)
    other = {**CHECKED, "kernel": "another"}
    with pytest.raises(UsageError, match="different kernels"):
        collected(tmp_path, CHECKED, other)


@pytest.mark.parametrize("content", [{}, {"schema": 1}, [], {"points": 3}])
def test_other_files_are_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(UsageError, match="not the JSON of a command"):
        collected(tmp_path, content)
    with pytest.raises(UsageError, match="no result of a command"):
        issue_sources.collect([tmp_path], lambda _: None, Workspace(tmp_path / "space"))
    with pytest.raises(UsageError, match="no such file or folder"):
        issue_sources.collect([tmp_path / "nothing.py"], lambda _: None, Workspace(tmp_path / "space"))


@pytest.mark.parametrize(
    "broken",
    [
        {**CHECKED, "culprit": {"checked": 3}},
        {**BLAMED, "points": [{"target": 3}]},
        {**BISECTED, "release": {"good": []}},
        {**TRIAGED, "tried": "all"},
        {**FARMED, "findings": [{"kernel": "k"}]},
    ],
)
def test_a_damaged_answer_is_refused(tmp_path: Path, broken: dict[str, Any]) -> None:
    with pytest.raises(FactError, match="this answer is malformed"):
        collected(tmp_path, broken)


def test_of_two_kernels_the_smaller_one_is_taken() -> None:
    long, short = (IssueKernel(f"{size}.py", "x" * size, None) for size in (9, 3))
    parts = [
        BugEvidence(kernel=long, triton="3.8.0"),
        BugEvidence(kernel=short, triton="3.9.0", python="3.12"),
    ]
    whole = evidence.merged(parts)
    assert whole.kernel == short
    # Of everything else, the first one that is known.
    assert (whole.triton, whole.python) == ("3.8.0", "3.12")


def test_what_is_proven_comes_first() -> None:
    said, shown = (Blamed("llvm", "x", "y", proven=proven) for proven in (False, True))
    assert evidence.merged([BugEvidence(blamed=(said,)), BugEvidence(blamed=(shown, said))]).blamed == (
        shown,
        said,
    )


@pytest.mark.parametrize(
    ("log", "owner"),
    [
        ("ptxas fatal   : Unresolved extern function", "ptxas"),
        ("LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.x", "llvm"),
        ("/src/llvm/lib/CodeGen/SelectionDAG.cpp:3: void f(): Assertion `x' failed.", "llvm"),
        ("LLVM ERROR: operation destroyed but still has uses", "triton"),
    ],
)
def test_messages_tell_whose_they_are(log: str, owner: str) -> None:
    assert [row.owner for row in evidence.by_message(f"first\n{log}\n", "SomePass")] == [owner]
    assert not any(row.proven for row in evidence.by_message(log, "SomePass"))


def test_a_file_of_reduce(tmp_path: Path) -> None:
    path = tmp_path / "k.reduced.py"
    path.write_text(
        "# Reduced by tritonsmith from k.py, 9 lines.\n"
        "# Triton 3.6.0, hip:gfx1100:32, num_stages=4; no GPU is needed.\n"
        "# Expected: fatal error: it fell over\n#\n"
        "#   invoke kernel.compile k.reduced.py:k --signature x --target hip:gfx1100:32\n"
        "#   python k.reduced.py\ndef k():\n    pass\n"
    )
    asked: list[str] = []

    def parse(text: str) -> None:
        asked.append(text)

    found = issue_sources.collect([path], parse, Workspace(tmp_path / "space"))
    assert asked == [f"{path}:k --signature x --target hip:gfx1100:32"]
    assert found.failure == Failure("fatal error", "it fell over")
    assert (found.kind, found.triton, found.target) == ("crash", "3.6.0", "hip:gfx1100")
    assert found.kernel is not None
    assert found.kernel.alone
    path.write_text("print('hello')\n")
    with pytest.raises(UsageError, match="`reduce` did not write this file"):
        issue_sources.collect([path], parse, Workspace(tmp_path / "space"))


def test_ir_with_a_run_line(tmp_path: Path) -> None:
    path = tmp_path / "x.mlir"
    path.write_text("// RUN: triton-opt %s --pass-pipeline='builtin.module(cse)'\n\nmodule {\n}\n")
    reader = issue_sources.EvidenceReader(lambda _: None, Workspace(tmp_path / "space"))
    (found,) = reader.read(path)
    assert found.ir is not None
    assert (found.ir.text, found.ir.pipeline) == ("module {\n}", "builtin.module(cse)")
    path.write_text("module {}\n")
    with pytest.raises(UsageError, match="has no RUN line"):
        reader.read(path)


def test_a_source_is_taken_only_as_it_was_compiled(tmp_path: Path) -> None:
    """A stranger's manifest may name any file of this machine."""
    folder, file = compiled(tmp_path)
    space = Workspace(tmp_path / "space")
    found = issue_sources.collect([folder], lambda _: None, space)
    assert found.failure == Failure("fatal error", "it fell over")
    assert found.kernel is not None
    assert found.llvm == ""  # that Triton is gone
    file.write_text("secret = 1\n")
    assert issue_sources.collect([folder], lambda _: None, space).kernel is None


def compiled(tmp_path: Path, **changes: str) -> tuple[Path, Path]:
    """Return a folder of `kernel.compile` with one point that failed, and its source."""
    file = tmp_path / "k.py"
    file.write_text("import triton\n\n@triton.jit\ndef k(x):\n    pass\n")
    point = {
        "id": "p",
        "target": "cuda:90:32",
        "signature": {},
        "constexprs": {},
        "hints": {},
        "options": {},
        "status": "crashed",
        "seconds": 1.0,
        "stages": {},
        "log": "LLVM ERROR: it fell over\n",
        "error": "the compiler died: SIGABRT",
        **changes,
    }
    content = {
        "schema": 1,
        "kernel": "k",
        "file": str(file),
        "file_sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "triton": "3.9.0",
        "origin": "/nowhere",
        "python": "3.12",
        "command": "tritonsmith kernel.compile k.py:k",
        "points": [point],
    }
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(content))
    return folder, file


UNEQUAL = (
    "at 5:8:\ndef k(x):\n    y = tl.dot(a, b)\n        ^\n"
    "input and other must have equal ranks >= 2\nat /home/anna/k.py:5"
)


@pytest.mark.parametrize(
    ("status", "error", "rejected"),
    [
        ("failed", UNEQUAL, "input and other must have equal ranks >= 2 (/home/anna/k.py:5)"),
        # The function that another one calls comes last, with the reason.
        (
            "failed",
            "at 2:4:\ndef k(x):\n    f(x)\n    ^\nat 3:4:\ndef f(x):\n    y\n    ^\nNameError('y')",
            "NameError('y')",
        ),
        ("failed", "RuntimeError: PassManager::run failed", ""),
        ("failed", "at 3:4:\nx\n^\nLLVM ERROR: it fell over", ""),
        ("crashed", UNEQUAL, ""),
    ],
)
def test_what_the_front_end_rejects(status: str, error: str, rejected: str, tmp_path: Path) -> None:
    log = "LLVM ERROR: it fell over\n" if status == "crashed" else ""
    folder, _ = compiled(tmp_path, status=status, log=log, error=error)
    found = issue_sources.collect([folder], lambda _: None, Workspace(tmp_path / "space"))
    assert found.rejected == rejected


class Recorder:
    """A pattern that remembers the longest line that it was run on."""

    longest = 0

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._pattern, name)

        def run(*words: Any) -> Any:
            for line in (line for word in words if isinstance(word, str) for line in word.split("\n")):
                Recorder.longest = max(Recorder.longest, len(line))
            return method(*words)

        return run


def test_no_pattern_is_run_on_a_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search takes quadratic time in the length of a line, so lines are cut before."""
    monkeypatch.setattr(Recorder, "longest", 0)
    for module in (failure, evidence, issue):
        for name, value in list(vars(module).items()):
            if isinstance(value, re.Pattern):
                monkeypatch.setattr(module, name, Recorder(value))
    folder, _ = compiled(
        tmp_path, error="x" * 300_000, log=f"{'a:1: ' * 100_000}\nLLVM ERROR: it fell over\n"
    )
    space = Workspace(tmp_path / "space")
    found = issue_sources.collect([folder], lambda _: None, space)
    assert found.failure == Failure("fatal error", "it fell over")
    result = issue.write(found, "", None, space, run=False, timeout=1)
    assert result.title == "LLVM ERROR: it fell over (3.9.0, cuda:90)"
    assert "more characters" in result.files["error.txt"]
    assert 0 < Recorder.longest <= failure.LINE
    # Many lines are searched, but not all of them are kept.
    assert len(evidence.bounded("short\n" * 1_000_000)) < 1_100_000
