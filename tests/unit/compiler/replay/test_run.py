"""What is counted, and what is only said."""

from __future__ import annotations

from pathlib import Path

from tests.unit.compiler.replay.dumps import dump
from tritonsmith.compiler.replay import run
from tritonsmith.compiler.replay.pass_chain import PassLink
from tritonsmith.compiler.replay.run import ReplayJob, ReplayResult, ReplayStatus

HERE = Path("here")


def outcome(verdict: ReplayStatus, *, last: bool = False) -> ReplayResult:
    link = PassLink(dump(3, "cse"), None if last else dump(4, "next"))
    return ReplayResult(ReplayJob((link,), HERE, None if last else HERE, HERE, HERE), verdict, "", 0.1)


def test_what_cannot_be_compared_is_not_counted() -> None:
    found = [
        outcome("exact"),
        outcome("same"),
        outcome("differs"),
        outcome("no binding"),
        outcome("inside", last=True),
        outcome("alone", last=True),
        outcome("crashed", last=True),
    ]
    assert run.summary(found) == (
        "2 of 4 passes replay exactly (1 of them except for locations and value names); 1 differs; "
        "1 no binding; 1 crashed; 1 more run inside another pass; 2 more with no dump after it"
    )
    assert run.summary(found[:1]) == "1 of 1 passes replay exactly"


def test_equal_the_same_and_different(tmp_path: Path) -> None:
    text = (
        'module {\n  %0 = "a.b"() : () -> i32 loc(#loc)\n  "c.d"(%0) : (i32) -> ()\n}\n#loc = loc("x":1:2)\n'
    )
    made = tmp_path / "made"
    made.write_text(text)
    other = tmp_path / "other"
    other.write_text(text + "\n")
    assert run.compare_with_dump(made, other) == "exact"
    other.write_text(text.replace("%0", "%value").replace('"x":1:2', '"y":3:4'))
    assert run.compare_with_dump(made, other) == "same"
    other.write_text(text.replace("c.d", "c.e"))
    assert run.compare_with_dump(made, other) == "differs"
    assert run.compare_with_dump(made, None) == "alone"
