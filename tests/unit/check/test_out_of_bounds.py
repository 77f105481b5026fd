# ruff: noqa: E501 - as it is printed
"""Shared memory outside of its allocation: a pass that makes a kernel access it is named."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.check.test_in_flight import PIPELINED
from tests.unit.check.test_places import SHARED
from tests.unit.check.test_scaled import constant
from tests.unit.check.test_triton import EIGHT, stored
from tests.unit.check.texts import checked
from tritonsmith.check.answer import ResultChange, answer_lines, as_json
from tritonsmith.check.evaluate import AccessError
from tritonsmith.check.in_flight import OutOfBoundsError, OutsideMemory
from tritonsmith.core.errors import UndecidedError

pytestmark = pytest.mark.unit

WRITTEN = '%slot = "arith.remsi"(%next, %two)'
READ = '%mine = "arith.remsi"(%i, %two)'


@pytest.mark.parametrize("line", [WRITTEN, READ])
@pytest.mark.parametrize(("operation", "operand", "index"), [("remsi", "%eight", 2), ("subi", "%eight", -8)])
def test_an_index_beyond_the_buffers_is_named_with_its_place(
    line: str, operation: str, operand: str, index: int
) -> None:
    assert PIPELINED.count(line) == 1
    wrong = line.replace("arith.remsi", f"arith.{operation}").replace("%two", operand)
    answer = checked(PIPELINED, PIPELINED.replace(line, wrong))
    assert answer.culprit
    assert answer.culprit.change is ResultChange.BEYOND
    assert answer.culprit.suspects == ("pass-0",)
    verdict, place, *_ = answer_lines(answer)
    assert verdict == "k: pass-0 makes the kernel access shared memory outside of its allocation"
    if operation == "remsi":
        assert place == f"  ttg.memdesc_index: [1, 8] at [{index}, 0] of [2, 8]"
    assert as_json(answer)["culprit"]["place"] == place.strip()


def test_a_place_outside_that_nobody_uses_is_no_finding() -> None:
    """The last turn of a pipelined loop computes such places."""
    unused = '%far = "ttg.memdesc_index"(%buffer, %eight) : (!ttg.memdesc<2x8xf32, mutable>, i32) -> !ttg.memdesc<8xf32, mutable>'
    view = '%seen = "ttg.memdesc_trans"(%far) <{order = array<i32: 0>}> : (!ttg.memdesc<8xf32, mutable>) -> !ttg.memdesc<8xf32, mutable>'
    more = PIPELINED.replace(READ, f"{unused}\n{view}\n{READ}")
    assert more != PIPELINED
    answer = checked(PIPELINED, more)
    assert answer.culprit is None
    assert [one.status for one in answer.passes] == ["reference", "equal"]


def test_a_kernel_that_does_so_itself_blames_no_pass() -> None:
    wrong = PIPELINED.replace(WRITTEN, WRITTEN.replace("%two", "%eight"))
    with pytest.raises(UndecidedError) as caught:
        checked(wrong, wrong.replace("%slot", "%place"))
    assert "the kernel itself accesses shared memory outside of its allocation" in (caught.value.why or "")


GATHER = f'%v = "ttg.local_gather"(%m, %at) <{{axis = 0 : i32}}> : ({SHARED}, {EIGHT}) -> {EIGHT}'
SCATTER = f'"ttg.local_scatter"(%m, %r, %at) <{{axis = 0 : i32}}> : ({SHARED}, {EIGHT}, {EIGHT}) -> ()'
SUBSLICE = f'%n = "ttg.memdesc_subslice"(%m) <{{offsets = array<i32: 4>}}> : ({SHARED}) -> {SHARED}'
WHOLE = f'%v = "ttg.local_load"(%m) : ({SHARED}) -> {EIGHT}'
LOAD = f'%v = "ttg.local_load"(%n) : ({SHARED}) -> {EIGHT}'


@pytest.mark.parametrize("lines", [(GATHER,), (SCATTER, WHOLE), (SUBSLICE, LOAD)])
def test_other_ways_outside(lines: tuple[str, ...]) -> None:
    alloc = f'%m = "ttg.local_alloc"(%r) : ({EIGHT}) -> {SHARED}'
    at = constant("%at", "[0, 1, 2, 3, 4, 5, 6, 8]", EIGHT)
    with pytest.raises(AccessError, match=r"8 of 8|of \[8\]"):
        stored("\n".join((alloc, at, *lines)))


def test_views_of_what_lies_outside_are_no_access_and_uses_of_them_are() -> None:
    nowhere = OutsideMemory((2, 8), np.dtype(np.float32), "there")
    assert nowhere.transpose(1, 0).reshape(16).shape == (16,)
    assert nowhere.nbytes == 64
    for use in (np.array, np.asarray, int, list, lambda one: one[0], lambda one: one.astype(int)):
        with pytest.raises(OutOfBoundsError, match="there"):
            use(nowhere)
