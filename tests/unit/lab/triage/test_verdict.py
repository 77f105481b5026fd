"""The verdict: sure where one cause is left, and only there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest

from tests.unit.lab.fake_subject import FakeSubject, quiet
from tritonsmith.core import configs
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.triage import variant as variants
from tritonsmith.lab.triage import verdict
from tritonsmith.lab.triage.variant import Meaning, TriageChange
from tritonsmith.lab.triage.verdict import Conclusion, TriageResult, Tried

SHOWS = Observation(Verdict.BAD, "error: wrong", failure=Failure("error", "wrong"))
GONE = Observation(Verdict.GOOD, "exit code 0")


@dataclass
class FakeTriage(FakeSubject[Observation]):
    """A kernel or a command; with nothing changed, it does what is listed, and then shows the symptom."""

    runs: list[Observation] = field(default_factory=list)
    is_command: bool = False
    has_check: bool = False
    triton: str = "3.6.0"
    kind: str = "failure"
    backends: frozenset[str] = frozenset(("cuda",))
    failed_in: str = ""
    key: str = "key"

    def resume(self, known: Iterable[Observation]) -> None:
        """It has no state."""

    def baseline(self, _name: str = "") -> Observation:
        return self.runs.pop(0) if self.runs else replace(SHOWS, failed_in=self.failed_in)

    def lines(self, line: Mapping[str, str]) -> tuple[str, ...]:
        return (f"k.py:3 ({line['stage']})",)

    def bisect(self, other: str) -> str:
        return f"invoke bisect --good {other}"


def judged(
    *gone: str,
    otherwise: Iterable[str] = (),
    code: str = "",
    swaps: Mapping[str, tuple[str, ...]] | None = None,
    **more: Any,
) -> tuple[TriageResult, list[str]]:
    """The verdict on a symptom that is gone under these variants, and what was tested."""
    table = {name: Observation(Verdict.GOOD, code=code, swapped=(swaps or {}).get(name, ())) for name in gone}
    table |= {name: Observation(Verdict.OTHER, "error: needs 4 warps") for name in otherwise}
    subject = FakeTriage(lambda _: Observation(Verdict.BAD, code=code), table, **more)
    return verdict.run(subject, Journal(), quiet), subject.tested


def test_one_cause_is_decided_with_its_lines() -> None:
    found, _ = judged("float32 dots in full precision")
    assert found.conclusion is Conclusion.DECIDED
    assert found.text == "tf32: the input precision of tl.dot, k.py:3 (ttir)"
    assert 'input_precision="ieee"' in found.next[0]


def test_what_a_sanitizer_finds_is_not_blamed_on_a_change_that_hides_it() -> None:
    found, _ = judged("ptxas not optimizing", otherwise=["memcheck"], is_command=True)
    assert found.conclusion is Conclusion.SEVERAL
    assert "accesses outside of memory" in found.text


def test_what_an_assertion_says_does_not_contradict_a_cause() -> None:
    found, _ = judged("num_stages=1", otherwise=["an assertions build"])
    assert found.conclusion is Conclusion.DECIDED
    assert found.text.startswith("software pipelining")
    assert "an assertions build says: error: needs 4 warps" in found.reasons


def test_a_memory_error_of_the_compiler_does() -> None:
    found, _ = judged("num_stages=1", otherwise=["an ASan build"])
    assert found.conclusion is Conclusion.SEVERAL
    assert "memory errors of the compiler" in found.text


def test_all_passes_are_tried_though_one_helps() -> None:
    """A pass that feeds the wrong one helps too, as on triton#11836."""
    names = ("tritongpu-remove-layout-conversions", "tritongpu-optimize-thread-locality")
    found, tested = judged(*(f"without {name}" for name in names))
    assert found.conclusion is Conclusion.SEVERAL
    assert all(name in found.text for name in names)
    assert "without triton-loop-aware-cse" in tested


def test_another_ptxas_agrees_with_no_optimizations_by_its_own() -> None:
    names = ("ptxas not optimizing", "a newer ptxas", "an older ptxas")
    found, _ = judged(*names, swaps={names[1]: ("12.9.86", "13.5.37"), names[2]: ("12.9.86", "12.8.93")})
    assert found.conclusion is Conclusion.DECIDED
    assert found.text == "ptxas, 13.5.37 instead of 12.9.86, 12.8.93 instead of 12.9.86"
    said = "a newer ptxas: 13.5.37 instead of 12.9.86: the same PTX"
    assert any(one.startswith(said) for one in found.reasons)
    assert "up --ptxas 13.5.37 prints the variables that make this Triton run it" in found.next


def test_two_causes_are_not_decided() -> None:
    found, _ = judged("float32 dots in full precision", "num_stages=1")
    assert found.conclusion is Conclusion.SEVERAL
    assert "tf32" in found.text
    assert "software pipelining" in found.text


def test_no_cause_is_not_decided() -> None:
    found, tested = judged()
    assert found.conclusion is Conclusion.NONE
    assert "num_warps=1" in tested


def test_narrower_variants_are_tried_only_below_what_helps() -> None:
    found, tested = judged()
    assert "no loop strength reduction" not in tested
    found, tested = judged("LLVM not optimizing", "no loop strength reduction")
    assert found.conclusion is Conclusion.DECIDED
    assert found.reasons[0].startswith("no loop strength reduction: ")
    assert not any(one.startswith("LLVM not optimizing") for one in found.reasons)


def test_another_release_is_no_cause() -> None:
    found, _ = judged("the release before")
    assert found.conclusion is Conclusion.NONE
    assert "in this Triton" in found.text
    assert found.next == ("invoke bisect --good 3.5.1",)


def test_where_it_fails_and_what_a_newer_release_says() -> None:
    first = Observation(
        Verdict.BAD, "assertion: !empty()", notes=("it fails in the pass TritonGPUAllocateWarpGroups",)
    )
    found, _ = judged(runs=[first], otherwise=["the newest release"])
    assert found.conclusion is Conclusion.NONE
    assert found.reasons == (
        "it fails in the pass TritonGPUAllocateWarpGroups",
        "the newest release says: error: needs 4 warps",
    )


def test_the_interpreter_shows_it_too() -> None:
    found, _ = judged(is_command=True)
    assert found.conclusion is Conclusion.DECIDED
    assert found.text.startswith("decided: the interpreter shows it, too")
    found, _ = judged("float32 dots in full precision", is_command=True)
    assert found.conclusion is Conclusion.SEVERAL


def test_the_interpreter_is_right_and_one_change_helps() -> None:
    found, _ = judged("interpreter", "float32 dots in full precision", is_command=True)
    assert found.conclusion is Conclusion.DECIDED
    assert found.text.startswith("tf32")


def test_what_the_interpreter_shows_is_no_work_of_a_pass() -> None:
    """A missing mask: leaving out twenty passes tells nothing more."""
    found, tested = judged(is_command=True)
    assert found.conclusion is Conclusion.DECIDED
    assert not any(name.startswith("without ") for name in tested)


def test_the_pass_in_which_it_fails_is_left_out_first() -> None:
    name = "without TritonGPUFuseNestedLoops"
    found, tested = judged(name, failed_in="TritonGPUFuseNestedLoops")
    assert tested[0] == name
    assert found.text == "the pass TritonGPUFuseNestedLoops"
    assert not any(other.startswith("without ") for other in tested[1:])


def test_a_failed_in_that_has_a_row_is_of_its_family_and_tried_once() -> None:
    names = ("without tritongpu-pipeline", "num_stages=1")
    found, tested = judged(*names, failed_in="TritonGPUPipeline")
    assert (tested[0], tested.count(names[0])) == (names[0], 1)
    assert found.text.startswith("software pipelining")


def test_a_row_is_one_line_and_repeats_nothing() -> None:
    """A trace of five lines in each row hides the table."""
    trace = "exit code 1: Traceback\n  File\n    store\n" + "x" * 200
    found, _ = judged(runs=[replace(SHOWS, figures=trace)])
    rows = [[str(cell) for cell in row] for row in verdict.rows(found)]
    assert all("\n" not in cell and len(cell) <= 72 for row in rows for cell in row)
    assert rows[0][2].startswith("exit code 1: Traceback File store xxx")
    found = replace(found, tried=(Tried(found.tried[0].variant, found.baseline),))
    assert verdict.rows(found)[1][2] == "the same"
    longer = replace(found.baseline, figures=trace + "y")  # differs only where it is cut off
    found = replace(found, tried=(Tried(found.tried[0].variant, longer),))
    assert verdict.rows(found)[1][2].startswith("exit code 1: Traceback")


def test_nothing_is_wrong() -> None:
    found, tested = judged(runs=[GONE])
    assert found.conclusion is Conclusion.NOTHING
    assert tested == []


def test_what_comes_and_goes_is_not_decided() -> None:
    for runs in ([GONE, SHOWS], [SHOWS, GONE]):
        found, tested = judged(runs=runs, is_command=True)
        assert found.conclusion is Conclusion.FLAKY
        assert tested == []


def test_a_slow_compile_is_timed_twice() -> None:
    found, tested = judged(runs=[SHOWS, GONE], kind="slow")
    assert found.conclusion is Conclusion.FLAKY
    assert tested == []
    found, tested = judged("num_warps=8", kind="slow")
    assert found.text.startswith("few warps for the block")
    assert "ptxas at -O1" in tested
    assert "float32 dots in full precision" not in tested


def test_the_same_machine_code_cannot_mend_anything() -> None:
    first = Observation(Verdict.BAD, code="1")
    found, _ = judged("num_stages=1", runs=[first], code="1")
    assert found.conclusion is Conclusion.FLAKY


def test_what_cannot_be_tested_at_all() -> None:
    found, tested = judged(runs=[Observation(Verdict.SKIP, why="no such file")])
    assert not found.decided
    assert "no such file" in found.text
    assert tested == []


def test_rows_are_sound() -> None:
    every = list(variants.every())
    names = [one.name for one in every]
    told = [(one.name, symptom) for one in every for symptom in one.meaning.symptoms or ("any",)]
    assert len(set(told)) == len(told)
    for number, one in enumerate(every):
        change, meaning = one.change, one.meaning
        assert not meaning.after or meaning.after in names[:number], one.name
        changed = change.options or change.variables or change.skip or change.tool
        changed = changed or change.assembler or change.build or change.launcher
        assert changed or change.release or change.ptxas, one.name
        assert meaning.role == "side" or (meaning.gone and meaning.next), one.name
        assert changed or not meaning.commands, one.name


@pytest.mark.parametrize(
    ("name", "triton", "fits"),
    [
        ("no tcgen05", "3.2.0", False),  # DISABLE_MMA_V5 came with 3.3
        ("no tcgen05", "3.3.1", True),
        ("denormals kept", "3.5.1", False),
        ("denormals kept", "3.6.0", True),
        ("no buffer instructions", "3.6.0", False),  # AMD's
    ],
)
def test_only_what_a_release_has(name: str, triton: str, fits: bool) -> None:
    [one] = [row for row in variants.every() if row.name == name]
    assert one.fits(triton, frozenset(("cuda",)), command=False, symptom="failure") is fits


@pytest.mark.parametrize(("symptom", "said"), [("failure", True), ("slow", False), ("limit", False)])
def test_warp_specialization_is_no_reason_of_slow_compiles(symptom: str, said: bool) -> None:
    [one] = [
        row
        for row in variants.every()
        if row.name == "num_warps=8"
        and row.fits("3.9.0", frozenset(("cuda",)), command=False, symptom=symptom)
    ]
    assert ("warp specialization" in one.meaning.gone) is said


def test_other_releases() -> None:
    [newest] = [row.change for row in variants.every() if row.change.release == "newest"]
    [before] = [row.change for row in variants.every() if row.change.release == "before"]
    assert newest.version("3.4.0") == "3.9.0"
    assert newest.version("3.9.0") == ""
    assert before.version("3.6.0") == "3.5.1"
    assert before.version("2.0.0") == ""


def test_every_key_of_a_row_is_a_field() -> None:
    """A key without a field would be left out in silence."""
    known = {one.name for kind in (TriageChange, Meaning) for one in fields(kind)}
    for row in (*configs.load("triage")["variant"], configs.load("triage")["failing-pass"]):
        assert {key.replace("-", "_") for key in row} <= known, row
