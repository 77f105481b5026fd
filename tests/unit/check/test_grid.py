# ruff: noqa: E501 - as it is printed
"""All programs of a launch together: work that goes from one to another, and memory that none of them reads."""

from __future__ import annotations

import pytest

from tests.unit.check.texts import ADD, checked
from tritonsmith.check.answer import ResultChange, answer_lines
from tritonsmith.check.boundaries import find_grid
from tritonsmith.check.runs import parsed

pytestmark = pytest.mark.unit

_I, _M, _P, _F = "tensor<16xi32>", "tensor<16xi1>", "tensor<16x!tt.ptr<f32>>", "tensor<16xf32>"
_ID = '    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32\n'
# The program `id` has the tile `tiles - 1 - id`; those without one keep theirs, which nobody has.
_OTHER_WAY = """\
    %id = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %once = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %block = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %less = "arith.subi"(%n, %once) : (i32, i32) -> i32
    %final = "arith.divsi"(%less, %block) : (i32, i32) -> i32
    %other = "arith.subi"(%final, %id) : (i32, i32) -> i32
    %has = "arith.cmpi"(%id, %final) <{predicate = 3 : i64}> : (i32, i32) -> i1
    %pid = "arith.select"(%has, %other, %id) : (i1, i32, i32) -> i32
"""
REVERSED = ADD.replace(_ID, _OTHER_WAY)
# x[100000...] is added as well, so that there are elements behind those that a mask keeps out.
_LOAD = '"tt.load"(%xp, %mask) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x!tt.ptr<f32>>, tensor<16xi1>) -> tensor<16xf32>'
_FAR = f"""\
    %away = "arith.constant"() <{{value = dense<100000> : {_I}}}> : () -> {_I}
    %fp = "tt.addptr"(%xs, %away) : ({_P}, {_I}) -> {_P}
    %far = "tt.load"(%fp) <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : ({_P}) -> {_F}
"""
_SUM = '    %sum = "arith.addf"(%product, %a)'
GAP = ADD.replace(_SUM, _FAR + _SUM.replace("%a)", "%far)"))


def test_programs_that_change_places_leave_the_same() -> None:
    answer = checked(ADD, REVERSED)
    assert answer.culprit is None
    row = answer.passes[-1]
    assert (row.status, row.why) == (
        "equal",
        "other programs do the work of some; the whole grid's writes are the same",
    )
    assert answer.open == ()


# Every program writes its number to one place as well.
_STORE = '    "tt.store"(%op'
_ONE_PLACE = f"""\
    %behind = "arith.constant"() <{{value = 100000 : i32}}> : () -> i32
    %one = "tt.addptr"(%out, %behind) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %number = "arith.sitofp"(%start) : (i32) -> f32
    %works = "arith.cmpi"(%start, %n) <{{predicate = 2 : i64}}> : (i32, i32) -> i1
    "tt.store"(%one, %number, %works) : (!tt.ptr<f32>, f32, i1) -> ()
{_STORE}"""


def test_a_place_that_all_programs_write_leaves_it_open() -> None:
    """Only the last one decides about it, and which that is nothing says: not by the order of this check."""
    first, second = (text.replace(_STORE, _ONE_PLACE) for text in (ADD, REVERSED))
    answer = checked(first, second)
    assert answer.culprit is None
    assert [row.why for row in answer.open] == ["argument 2[100000] depends on which program comes last"]
    lost = second.replace('"arith.addf"(%product, %a)', '"arith.addf"(%product, %product)')
    assert checked(first, lost).culprit


def test_work_that_no_program_does_is_found() -> None:
    """Program 1 does that of program 0, whose own nobody does."""
    most = '    %kept = "arith.maxsi"(%other, %once) : (i32, i32) -> i32\n'
    lost = REVERSED.replace("    %has =", f"{most}    %has =").replace(
        "(%has, %other, %id)", "(%has, %kept, %id)"
    )
    found = checked(ADD, lost).culprit
    assert found
    assert found.change is ResultChange.RESULT


def test_programs_that_change_places_and_compute_something_else_are_found() -> None:
    assert checked(ADD, REVERSED.replace('"arith.mulf"', '"arith.addf"')).culprit


def test_a_grid_ends_where_programs_write_nothing() -> None:
    kernel = parsed(ADD)
    assert kernel
    functions = kernel.functions.values()
    assert find_grid(functions, (5, 3, 2), (1, 7, 0), lambda ids: ids[0] < 4, 99) == [
        (number, 7, 0) for number in range(4)
    ]
    assert len(find_grid(functions, (5, 3, 2), (20, 0, 0), lambda ids: ids[0] < 4, 99)) == 21
    # Where there is no end, the program is alone, and too large a grid is none.
    assert find_grid(functions, (5, 3, 2), (2, 0, 0), lambda _: True, 99) == [(2, 0, 0)]
    assert find_grid(functions, (5, 3, 2), (2, 0, 0), lambda ids: ids[0] < 100, 99) == []
    counted = parsed(
        ADD.replace(_ID, _ID + _ID.replace("pid", "all").replace("get_program_id", "get_num_programs"))
    )
    assert counted
    assert len(find_grid(counted.functions.values(), (5, 3, 2), (1, 0, 0), lambda _: True, 99)) == 5


def test_a_load_without_its_mask_that_others_lie_behind() -> None:
    """The loaded elements are masked later, and far ones are read anyway: only their own places tell."""
    later = f"{_LOAD.replace('(%xp, %mask)', '(%xp)').replace('1, 1, 0', '1, 0, 0').replace(f', {_M}', '')}"
    kept = f"""
    %none = "arith.constant"() <{{value = dense<0.000000e+00> : {_F}}}> : () -> {_F}
    %a = "arith.select"(%mask, %raw, %none) : ({_M}, {_F}, {_F}) -> {_F}"""
    answer = checked(GAP, GAP.replace(f"%a = {_LOAD}", f"%raw = {later}{kept}"))
    found = answer.culprit
    assert found
    assert found.difference
    assert (found.change, found.store, found.difference.offset) == (
        ResultChange.OUTSIDE,
        "x",
        found.arguments["n"],
    )
    assert next(answer_lines(answer)) == "k: pass-0 makes the kernel read memory that it did not reach before"


def test_what_a_program_reads_that_did_not_run_is_not_outside() -> None:
    """The next tile, where there is one: the second program reads it, which no input runs beside these."""
    more = f"""\
    %step = "arith.constant"() <{{value = dense<16> : {_I}}}> : () -> {_I}
    %next = "arith.addi"(%at, %step) : ({_I}, {_I}) -> {_I}
    %there = "arith.cmpi"(%next, %ns) <{{predicate = 2 : i64}}> : ({_I}, {_I}) -> {_M}
    %np = "tt.addptr"(%xs, %next) : ({_P}, {_I}) -> {_P}
    %unused = {_LOAD.replace("(%xp, %mask)", "(%np, %there)")}
"""
    assert checked(GAP, GAP.replace(_SUM, more + _SUM)).culprit is None
