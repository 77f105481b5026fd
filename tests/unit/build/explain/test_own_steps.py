"""What the tool itself would do before Ninja."""

from __future__ import annotations

from pathlib import Path

from tests.unit.build import made
from tritonsmith.build import explain
from tritonsmith.core.plan import Link, Plan, Stamp


def test_two_steps_with_one_reason_are_one_line(tmp_path: Path) -> None:
    stamps = [Stamp(tmp_path / name, "new", result=tmp_path) for name in ("bin.done", "include.done")]
    for stamp in stamps:
        stamp.path.write_text("that of another environment")
    steps = tuple(
        Link(tmp_path / "from", tmp_path / stamp.path.stem, stamp=stamp, phase="CUDA headers and tools")
        for stamp in stamps
    )
    inputs = made.inputs()
    told = explain.own_steps(Plan("build", steps), inputs.env, None, inputs)
    assert told == ("CUDA headers and tools: an input changed",)
