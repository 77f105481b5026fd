"""What the page of a bisect is made of."""

from __future__ import annotations

from pathlib import Path

from tests.unit.lab.bisect.findings import CULPRIT, MLIR
from tritonsmith.lab.bisect import report
from tritonsmith.lab.bisect.session import BisectQuestion, BisectSession
from tritonsmith.lab.bisect.stages import BisectResult, BisectStep
from tritonsmith.lab.isolate.first_pass_with import Level, PartingPass
from tritonsmith.lab.journal import Journal, Observation, Verdict

GOOD, BAD = Observation(Verdict.GOOD, "spills 980"), Observation(Verdict.BAD, "spills 4472")
JOURNAL = Journal()
for tested, seen in (("3.6.0", GOOD), ("3.9.0", BAD), (CULPRIT.commit, BAD)):
    JOURNAL.add(tested, seen)
SESSION = BisectSession(
    Path("bisects/one"),
    BisectQuestion(good="3.6.0", bad="3.9.0", kernel="/k.py:k", when=("spills>0",)),
    JOURNAL,
)
STEP = BisectStep("3.6.0", CULPRIT.commit, (CULPRIT.commit,), ("3.8.0",))


def test_a_culprit_is_a_commit_and_its_pass_is_beside(tmp_path: Path) -> None:
    parted = PartingPass(
        Level.PASSES, "passes: cse is the first", "cse", "lib/A.cpp", MLIR, MLIR.replace("k", "j")
    )
    answer = BisectResult(None, STEP, (CULPRIT,), CULPRIT, ("a note",))
    made = report.page_of(SESSION, answer, parted, (tmp_path / "good", tmp_path / "bad"))
    assert made.suspects == (CULPRIT,)
    assert made.question == "spills>0"
    assert "--when 'spills>0'" in made.command
    assert made.notes == ("a note", "good again: 3.8.0", "passes: cse is the first")
    assert [point.name for point in made.points] == ["3.6.0", CULPRIT.commit, "3.9.0"]
    assert made.by_pass is not None
    assert (made.by_pass.what, made.by_pass.stage, made.by_pass.file) == ("cse", "mlir", "lib/A.cpp")
    assert made.stage is None, "nothing was kept of either compile"


def test_llvms_passes_are_compared_as_llvms() -> None:
    parted = PartingPass(Level.LLVM, "passes: licm is the first", "licm", "", "good", "bad")
    made = report.page_of(SESSION, BisectResult(STEP), parted)
    assert made.by_pass is not None
    assert made.by_pass.stage == "llvm"


def test_a_pass_that_is_not_known_is_a_note_only() -> None:
    parted = PartingPass(Level.UNKNOWN, "passes: not comparable: no compiler")
    made = report.page_of(SESSION, BisectResult(STEP), parted)
    assert made.by_pass is None
    assert made.notes[-1] == parted.sentence
