"""The first text beside answers that are written down, in place of those of Triton's process."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Operation

from tests.unit.check.texts import ADD
from tritonsmith.check.answer import Difference
from tritonsmith.check.check import inputs_of
from tritonsmith.check.interpreter import TritonInterpreter, excuse, missing_operations
from tritonsmith.check.memory import Contents
from tritonsmith.check.runs import ReferenceRuns, parsed
from tritonsmith.compiler import targets
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.request import CompilePoint, CompileRequest
from tritonsmith.compiler.run import PreparedCompile
from tritonsmith.compiler.signature import BoundSignature
from tritonsmith.core.plan import Plan
from tritonsmith.worker.interpreted_memory import InterpretedMemory, MemoryModule
from tritonsmith.worker.messages import InterpretedProgram, InterpretedRow

pytestmark = pytest.mark.unit

KINDS = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "MORE": "constexpr"}
Answer = Callable[[InterpretedProgram], InterpretedRow | None]


@dataclass(frozen=True)
class WrittenDown(TritonInterpreter):
    """Answers by a function of a run, and not by a process."""

    answer: Answer = field(default=lambda _: None)

    def _run(self, runs: tuple[InterpretedProgram, ...]) -> list[InterpretedRow]:
        rows: list[InterpretedRow] = []
        for one in runs:
            row = self.answer(one)
            if row is None:
                return rows
            rows.append(row)
        return rows


def added(run: InterpretedProgram, more: float = 0.0, elsewhere: int = 0) -> InterpretedRow:
    """x * y + x of 16 elements, by the memory that the worker has."""
    memory = InterpretedMemory(run.memory)
    module = MemoryModule(None, memory)
    x, y, out, n = run.arguments
    at = run.program[0] * 16 + np.arange(16)
    mask = at < n
    places = [(base + 4 * (at + elsewhere)).astype(np.uint64) for base in (x, y)]
    one, other = (module.load(place, mask, np.float32(0), np.float32) for place in places)
    with np.errstate(invalid="ignore"):  # infinity times 0
        found = one * other + one + np.float32(more)
    module.store((out + 4 * at).astype(np.uint64), found, mask)
    return InterpretedRow("ok", "", 0.0, tuple(memory.written()), memory.outside)


def compared(answer: Answer, text: str = ADD, kinds: dict[str, str] | None = None) -> Any:
    kernel = parsed(text)
    assert kernel
    reference = ReferenceRuns(inputs_of(3))
    reference.refer(kernel)
    target = targets.parse("cuda:80")
    bound = BoundSignature(kinds or KINDS, {"MORE": 1})
    asked = CompileRequest(Path("k.py"), "add", "", (target,))
    made = PreparedCompile(Plan("", ()), asked, "add", (CompilePoint("p", target, bound),), Path(), Path())
    where: Interpreter = None  # type: ignore[assignment] # no process is started
    return WrittenDown(made, where, answer=answer).compare(reference)


def test_the_same_is_equal() -> None:
    assert compared(added).status == "equal"


def test_another_sum_differs_and_is_named() -> None:
    found = compared(lambda run: added(run, more=0.5))
    assert (found.status, found.store) == ("differs", "out")
    assert found.difference
    assert found.difference.after == found.difference.before + 0.5


def test_memory_that_the_first_text_does_not_read_differs() -> None:
    assert compared(lambda run: added(run, elsewhere=1 << 20)).status == "differs"


def test_nothing_written_differs() -> None:
    empty = InterpretedRow("ok", "", 0.0)
    assert compared(lambda _: empty).status == "differs"


def test_an_error_is_no_verdict() -> None:
    found = compared(lambda _: InterpretedRow("failed", "InterpreterError: no\nKeyError: 'tt'", 0.0))
    assert (found.status, found.why) == ("unknown", "KeyError: 'tt'")
    known = compared(lambda _: InterpretedRow("failed", "AssertionError: base must be 16-byte aligned", 0.0))
    assert "i32:16" in known.hints[0]


def test_fewer_runs_are_no_verdict() -> None:
    left = iter(range(3))
    found = compared(lambda run: added(run) if next(left, None) is not None else None)
    assert (found.status, found.why) == ("unknown", "the interpreter ended after 3 of 14 runs")


def test_inputs_under_which_the_text_does_not_end_are_no_verdict() -> None:
    """A loop for larger sizes."""
    endless = ADD.replace(
        '    %pid = "tt.get',
        '    %many = "arith.constant"() <{value = 20 : i32}> : () -> i32\n'
        '    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32\n'
        '    %step = "arith.cmpi"(%n, %many) <{predicate = 2 : i64}> : (i32, i32) -> i1\n'
        '    %by = "arith.extui"(%step) : (i1) -> i32\n'
        '    "scf.for"(%zero, %many, %by) ({\n    ^bb0(%i: i32):\n      "scf.yield"() : () -> ()\n'
        '    }) : (i32, i32, i32) -> ()\n    %pid = "tt.get',
    )
    found = compared(added, endless)
    assert found.status == "unknown"
    assert found.why.startswith("under 8 inputs the first text does not end")


@pytest.mark.parametrize(
    ("kinds", "why"),
    [
        ({**KINDS, "more": "i32"}, "other parameters"),
        ({"x": "*fp32", "y": "*fp32", "n": "i32"}, "other parameters"),
        ({**KINDS, "n": "(i32,i32)"}, "a tuple"),
    ],
)
def test_other_parameters_are_no_verdict(kinds: dict[str, str], why: str) -> None:
    found = compared(added, kinds=kinds)
    assert found.status == "unknown"
    assert why in found.why


# What explains a difference from Triton's interpreter, and what does not.

OTHER = Difference(0, 0, 1.0, 2.0, 1, 1, 0)
NAN = Difference(0, 0, 1.0, math.nan, 1, 1, 0)


def function(text: str) -> Operation:
    kernel = parsed(text)
    assert kernel
    return kernel.function


def test_nothing_explains_another_number() -> None:
    assert excuse(function(ADD), OTHER, Contents.EDGES) == ""


def test_bf16_is_computed_by_its_bits() -> None:
    assert "bf16" in excuse(function(ADD.replace("f32", "bf16")), OTHER, Contents.PLAIN)


@pytest.mark.parametrize("name", ["arith.extf", "arith.truncf", "arith.select", "tt.fp_to_fp"])
def test_conversions_of_bf16_are_right(name: str) -> None:
    moved = ADD.replace("f32", "bf16").replace("arith.mulf", "tt.join").replace("arith.addf", name)
    assert excuse(function(moved), OTHER, Contents.PLAIN) == ""


def test_a_sum_in_fp16_is_rounded_in_another_order() -> None:
    assert "fp16" in excuse(
        function(ADD.replace("f32", "f16").replace("arith.addf", "tt.dot")), OTHER, Contents.PLAIN
    )


def test_what_the_interpreter_lacks_is_named() -> None:
    assert missing_operations(function(ADD)) == ""
    assert (
        missing_operations(function(ADD.replace("arith.mulf", "tt.extern_elementwise")))
        == "functions of libdevice"
    )


def test_nan_where_no_number_is_right() -> None:
    """An index of a maximum among NaN, and an integer of one; not without NaN in memory."""
    reduced = function(ADD.replace('"arith.mulf"', '"tt.reduce"'))
    integer = function(ADD.replace('"arith.mulf"(%a, %b)', '"arith.fptosi"(%a, %b)'))
    for one, why in ((reduced, "NaN in another order"), (integer, "no integer")):
        assert why in excuse(one, OTHER, Contents.EDGES)
        for without in (Contents.PLAIN, Contents.PRECISE):
            assert excuse(one, OTHER, without) == ""


def test_nan_in_a_maximum() -> None:
    maximum = function(ADD.replace("arith.mulf", "arith.maxnumf"))
    assert "NaN" in excuse(maximum, NAN, Contents.EDGES)
    assert excuse(maximum, NAN, Contents.PLAIN) == ""
    assert excuse(maximum, OTHER, Contents.EDGES) == ""
    assert excuse(function(ADD), NAN, Contents.EDGES) == ""
