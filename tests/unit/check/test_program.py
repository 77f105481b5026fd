"""Operands get the names that the .td files of Triton give them."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.ir import Operation

from tritonsmith.check.module import parse
from tritonsmith.check.program import OperationTable, bind

LOAD = ("ptr", "mask?", "other?")
WAIT = ("alloc", "phase", "pred?", "deps*")


def operation(sizes: str = "") -> Operation:
    attributes = f"<{{operandSegmentSizes = array<i32: {sizes}>}}>" if sizes else ""
    module = parse(f'"builtin.module"() ({{ "tt.load"() {attributes} : () -> () }}) : () -> ()')
    only: Operation = next(iter(module.ops))
    return only


@pytest.mark.parametrize(
    ("names", "sizes", "values", "bound"),
    [
        (LOAD, "1, 0, 1", "pv", ("p", None, "v")),
        (LOAD, "", "pm", ("p", "m", None)),
        (LOAD, "", "pmv", ("p", "m", "v")),
        (("dst", "dep?", "src", "pred"), "", "dsp", ("d", None, "s", "p")),
        (("dst", "dep?", "src", "pred"), "", "dtsp", ("d", "t", "s", "p")),
        (WAIT, "1, 1, 1, 2", "apqxy", ("a", "p", "q", ("x", "y"))),
        (WAIT, "1, 1, 1", "apq", ("a", "p", "q", ())),  # an older release: it had no dependencies
        (WAIT, "", "ap", ("a", "p", None, ())),
        (("desc", "coord*", "src"), "", "dxys", ("d", ("x", "y"), "s")),
        (("base", "shape*", "strides*"), "", "bmnst", ("b", ("m", "n"), ("s", "t"))),  # equally long
    ],
)
def test_operands_are_bound_to_their_names(
    names: tuple[str, ...], sizes: str, values: str, bound: tuple[Any, ...]
) -> None:
    assert bind(operation(sizes), tuple(values), names) == bound


@pytest.mark.parametrize(
    ("names", "sizes", "values"),
    [
        (LOAD, "", ""),
        (LOAD, "", "pmvx"),
        (LOAD, "1, 2, 0", "pmm"),
        (LOAD, "1, 1, 1, 1", "pmvx"),  # a later release, with an operand that is not known
        (("base", "shape*", "strides*"), "", "bmns"),
    ],
)
def test_other_operands_are_refused(names: tuple[str, ...], sizes: str, values: str) -> None:
    with pytest.raises(ValueError, match="operands"):
        bind(operation(sizes), tuple(values), names)


def test_a_function_gets_one_argument_for_each_name() -> None:
    table = OperationTable()

    @table.known("tt.load", "tt.old_load", operands=LOAD)
    def load(_run: None, _operation: Operation, ptr: str, mask: str | None, other: str | None) -> tuple[Any]:
        return ((ptr, mask, other),)

    assert table["tt.old_load"](None, operation("1, 0, 1"), "p", "v") == (("p", None, "v"),)
