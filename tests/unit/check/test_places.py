# ruff: noqa: E501 - as it is printed
"""Operations that read and write at places of their own: rows of a tensor, shared memory, buffers, slices."""

from __future__ import annotations

import pytest

from tests.unit.check.test_scaled import constant
from tests.unit.check.test_triton import EIGHT, FLOATS, stored
from tritonsmith.check.module import UnsupportedIrError

pytestmark = pytest.mark.unit

# A tensor of 3 by 4 at %out, in blocks of one row of 2, or of 2 by 2.
ROWS = "!tt.tensordesc<tensor<1x2xi32>>"
BLOCK = "!tt.tensordesc<tensor<2x2xi32>>"
TENSOR = (
    '%three = "arith.constant"() <{value = 3 : i32}> : () -> i32',
    '%four = "arith.constant"() <{value = 4 : i32}> : () -> i32',
    '%zero = "arith.constant"() <{value = 0 : i32}> : () -> i32',
    '%once = "arith.constant"() <{value = 1 : i32}> : () -> i32',
    '%wide = "arith.constant"() <{value = 4 : i64}> : () -> i64',
    '%unit = "arith.constant"() <{value = 1 : i64}> : () -> i64',
    (
        '%desc = "tt.make_tensor_descriptor"(%out, %three, %four, %wide, %unit) : '
        "(!tt.ptr<i32>, i32, i32, i64, i64) -> TYPE"
    ),
    constant("%x", "[[1, 2], [3, 4], [5, 6]]", "tensor<3x2xi32>"),
    constant("%at", "[2, 0, 7]", "tensor<3xi32>"),
    constant("%b", "[[1, 2], [3, 4]]", "tensor<2x2xi32>"),
)
MEMORY = "!ttg.memdesc<3x2xi32, #s, #smem, mutable>"


def by_rows(*lines: str, of: str = ROWS) -> str:
    return "\n".join((*TENSOR, *lines)).replace("TYPE", of)


def at_end(*lines: str) -> list[int]:
    """The tensor after these lines, stored once more from its memory."""
    read = '%v = "tt.load"(%ep) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (PS) -> tensor<12xi32>'
    every = (
        constant("%none", "0", "tensor<12xi32>"),
        '%e = "tt.make_range"() <{end = 12 : i32, start = 0 : i32}> : () -> tensor<12xi32>',
        '%ez = "tt.splat"(%out) : (!tt.ptr<i32>) -> PS',
        '%ep = "tt.addptr"(%ez, %e) : (PS, tensor<12xi32>) -> PS',
        '"tt.store"(%ep, %none) : (PS, tensor<12xi32>) -> ()',
        *lines,
        read,
    )
    return stored("\n".join(every).replace("PS", "tensor<12x!tt.ptr<i32>>"), size=12)


def test_rows_are_scattered_and_gathered() -> None:
    """Row 7 is outside."""
    scatter = f'"tt.descriptor_scatter"(%desc, %at, %once, %x) : ({ROWS}, tensor<3xi32>, i32, tensor<3x2xi32>) -> ()'
    assert at_end(by_rows(scatter)) == [0, 3, 4, 0, 0, 0, 0, 0, 0, 1, 2, 0]
    gather = (
        f'%g = "tt.descriptor_gather"(%desc, %at, %once) : ({ROWS}, tensor<3xi32>, i32) -> tensor<3x2xi32>',
        f'"tt.descriptor_scatter"(%desc, %at, %zero, %g) : ({ROWS}, tensor<3xi32>, i32, tensor<3x2xi32>) -> ()',
    )
    assert at_end(by_rows(scatter, *gather)) == [3, 4, 4, 0, 0, 0, 0, 0, 1, 2, 2, 0]


def test_rows_by_tma() -> None:
    lines = (
        f'%m = "ttg.local_alloc"(%x) : (tensor<3x2xi32>) -> {MEMORY}',
        f'"ttng.async_tma_scatter"(%desc, %at, %once, %m) : ({ROWS}, tensor<3xi32>, i32, {MEMORY}) -> ()',
        f'%n = "ttg.local_alloc"() : () -> {MEMORY}',
        '%bar = "ttg.local_alloc"() : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>',
        '%yes = "arith.constant"() <{value = true}> : () -> i1',
        (
            '"ttng.async_tma_gather"(%desc, %at, %once, %bar, %n, %yes) : '
            f"({ROWS}, tensor<3xi32>, i32, !ttg.memdesc<1xi64, #s, #smem, mutable>, {MEMORY}, i1) -> ()"
        ),
        f'"ttng.async_tma_scatter"(%desc, %at, %zero, %n) : ({ROWS}, tensor<3xi32>, i32, {MEMORY}) -> ()',
    )
    assert at_end(by_rows(*lines)) == [3, 4, 4, 0, 0, 0, 0, 0, 1, 2, 2, 0]


@pytest.mark.parametrize(("kind", "corner"), [(1, [2, 4, 6, 8]), (7, [1, 2, 3, 4]), (8, [0, 0, 0, 0])])
def test_a_block_is_combined_twice_with_what_is_there(kind: int, corner: list[int]) -> None:
    types = f"({BLOCK}, tensor<2x2xi32>, i32, i32) -> ()"
    line = f'"tt.descriptor_reduce"(%desc, %b, %zero, %zero) <{{kind = {kind} : i32}}> : {types}'
    found = at_end(by_rows(line, line, of=BLOCK))
    assert [*found[:2], *found[4:6]] == corner
    assert sum(found) == sum(corner)


def test_the_smaller_of_two_integers_depends_on_a_sign_that_is_not_known() -> None:
    types = f"({BLOCK}, tensor<2x2xi32>, i32, i32) -> ()"
    line = f'"tt.descriptor_reduce"(%desc, %b, %zero, %zero) <{{kind = 2 : i32}}> : {types}'
    with pytest.raises(UnsupportedIrError, match="kind 2"):
        at_end(by_rows(line, of=BLOCK))


SHARED = "!ttg.memdesc<8xi32, #s, #smem, mutable>"


def test_shared_memory_is_gathered_and_scattered() -> None:
    lines = (
        f'%m = "ttg.local_alloc"(%r) : ({EIGHT}) -> {SHARED}',
        constant("%at", "[7, 0, 3]", "tensor<3xi32>"),
        f'%g = "ttg.local_gather"(%m, %at) <{{axis = 0 : i32}}> : ({SHARED}, tensor<3xi32>) -> tensor<3xi32>',
        constant("%to", "[1, 2, 0]", "tensor<3xi32>"),
        f'"ttg.local_scatter"(%m, %g, %to) <{{axis = 0 : i32}}> : ({SHARED}, tensor<3xi32>, tensor<3xi32>) -> ()',
        f'%v = "ttg.local_load"(%m) : ({SHARED}) -> {EIGHT}',
    )
    assert stored("\n".join(lines)) == [3, 7, 0, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(("shape", "known"), [("1x8", True), ("2x4", False)])
def test_memory_by_another_layout(shape: str, *, known: bool) -> None:
    other = SHARED.replace("<8x", f"<{shape}x")
    lines = (
        f'%m = "ttg.local_alloc"(%r) : ({EIGHT}) -> {SHARED}',
        f'%n = "ttg.memdesc_reinterpret"(%m) : ({SHARED}) -> {other}',
        f'%w = "ttg.local_load"(%n) : ({other}) -> tensor<{shape}xi32>',
        f'%v = "tt.reshape"(%w) : (tensor<{shape}xi32>) -> {EIGHT}',
    )
    if known:
        assert stored("\n".join(lines)) == list(range(8))
        return
    with pytest.raises(UnsupportedIrError, match="memdesc_reinterpret"):
        stored("\n".join(lines))


@pytest.mark.parametrize(("value", "found"), [("true", [2] * 8), ("false", [0] * 8)])
def test_a_region_under_a_mask(value: str, found: list[int]) -> None:
    lines = (
        f'%p = "arith.constant"() <{{value = {value}}}> : () -> i1',
        '%v = "ttg.mask"(%p) ({',
        f'  "ttg.mask.return"(%two) : ({EIGHT}) -> ()',
        f"}}) : (i1) -> {EIGHT}",
    )
    assert stored("\n".join(lines)) == found


POINTERS = (
    '%ps = "tt.splat"(%out) : (!tt.ptr<i32>) -> tensor<8x!tt.ptr<i32>>',
    f'%pa = "tt.addptr"(%ps, %r) : (tensor<8x!tt.ptr<i32>>, {EIGHT}) -> tensor<8x!tt.ptr<i32>>',
)
LOAD = f'"tt.load"(%pa) <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (tensor<8x!tt.ptr<i32>>) -> {EIGHT}'


def store(value: str) -> str:
    return f'"tt.store"(%pa, {value}) : (tensor<8x!tt.ptr<i32>>, {EIGHT}) -> ()'


@pytest.mark.parametrize(
    ("shown", "found"), [("%w", [0, 0, 5, 5, 5, 5, 5, 5]), ("%o", [0, 0, 1, 1, 1, 1, 1, 1])]
)
def test_atomics_on_a_buffer(shown: str, found: list[int]) -> None:
    """The first two elements are masked; what is there afterwards, and what was there before."""
    lines = (
        *POINTERS,
        constant("%none", "[0, 0, 1, 1, 1, 1, 1, 1]", EIGHT),
        constant("%four", "4", EIGHT),
        store("%none"),
        f'%m = "arith.cmpi"(%r, %two) <{{predicate = 5 : i64}}> : ({EIGHT}, {EIGHT}) -> tensor<8xi1>',
        (
            f'%o = "amdg.buffer_atomic_rmw"(%out, %r, %four, %m) <{{atomic_rmw_op = 4 : i32, '
            f"operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>}}> : (!tt.ptr<i32>, {EIGHT}, {EIGHT}, tensor<8xi1>) -> {EIGHT}"
        ),
        f"%w = {LOAD}",
        f'%v = "arith.addi"({shown}, %zeros) : ({EIGHT}, {EIGHT}) -> {EIGHT}',
    )
    assert stored("\n".join((constant("%zeros", "0", EIGHT), *lines))) == found


def test_an_offset_below_0_is_outside_of_a_buffer() -> None:
    """A load of it gives 0, and a store is dropped, as for what is masked."""
    lines = (
        *POINTERS,
        store("%five"),
        constant("%at", "[-1, 0, 1, -2, 4, 5, 6, 7]", EIGHT),
        f'%b = "amdg.buffer_load"(%out, %at) <{{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}}> : (!tt.ptr<i32>, {EIGHT}) -> {EIGHT}',
        (
            '"amdg.buffer_store"(%two, %out, %at) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : '
            f"({EIGHT}, !tt.ptr<i32>, {EIGHT}) -> ()"
        ),
        f"%w = {LOAD}",
        f'%v = "arith.addi"(%w, %b) : ({EIGHT}, {EIGHT}) -> {EIGHT}',
    )
    # loaded: 0 5 5 0 5 5 5 5; stored: 2 2 5 5 2 2 2 2
    assert stored("\n".join(lines)) == [2, 7, 10, 5, 7, 7, 7, 7]


@pytest.mark.parametrize(
    ("places", "shown", "found"),
    [
        ("[0, 1, 2, 3, 4, 5, 6, 7]", "%w", [9, 1, 9, 1, 9, 1, 9, 1]),
        ("[0, 1, 2, 3, 4, 5, 6, 7]", "%o", [0, 1, 0, 1, 0, 1, 0, 1]),
        ("[0, 0, 0, 0, 0, 0, 0, 0]", "%o", [0, 9, 9, 9, 9, 9, 9, 9]),
    ],
)
def test_of_those_that_compare_and_swap_the_first_one_does(places: str, shown: str, found: list[int]) -> None:
    lines = (
        *POINTERS,
        constant("%mixed", "[0, 1, 0, 1, 0, 1, 0, 1]", EIGHT),
        constant("%zeros", "0", EIGHT),
        constant("%nine", "9", EIGHT),
        constant("%at", places, EIGHT),
        store("%mixed"),
        f'%pc = "tt.addptr"(%ps, %at) : (tensor<8x!tt.ptr<i32>>, {EIGHT}) -> tensor<8x!tt.ptr<i32>>',
        f'%o = "tt.atomic_cas"(%pc, %zeros, %nine) : (tensor<8x!tt.ptr<i32>>, {EIGHT}, {EIGHT}) -> {EIGHT}',
        f"%w = {LOAD}",
        f'%v = "arith.addi"({shown}, %zeros) : ({EIGHT}, {EIGHT}) -> {EIGHT}',
    )
    assert stored("\n".join(lines)) == found


def test_a_result_of_another_shape_than_its_type_is_not_known() -> None:
    lines = (
        f'%m = "ttg.local_alloc"(%r) : ({EIGHT}) -> {SHARED}',
        f'%v = "ttg.local_load"(%m) : ({SHARED}) -> tensor<4xi32>',
    )
    with pytest.raises(UnsupportedIrError, match="shape"):
        stored("\n".join(lines), size=4)


def test_a_copy_from_a_buffer_into_shared_memory() -> None:
    lines = (
        '%ps = "tt.splat"(%out) : (!tt.ptr<i32>) -> tensor<8x!tt.ptr<i32>>',
        f'%pa = "tt.addptr"(%ps, %r) : (tensor<8x!tt.ptr<i32>>, {EIGHT}) -> tensor<8x!tt.ptr<i32>>',
        f'"tt.store"(%pa, %five) : (tensor<8x!tt.ptr<i32>>, {EIGHT}) -> ()',
        f'%m = "ttg.local_alloc"() : () -> {SHARED}',
        f'%k = "arith.cmpi"(%r, %two) <{{predicate = 5 : i64}}> : ({EIGHT}, {EIGHT}) -> tensor<8xi1>',
        (
            f'%t = "amdg.buffer_load_to_local"(%m, %out, %r, %k, %two) <{{operandSegmentSizes = '
            f"array<i32: 1, 1, 1, 1, 1, 0>}}> : ({SHARED}, !tt.ptr<i32>, {EIGHT}, tensor<8xi1>, {EIGHT}) -> !ttg.async.token"
        ),
        f'%v = "ttg.local_load"(%m, %t) : ({SHARED}, !ttg.async.token) -> {EIGHT}',
    )
    assert stored("\n".join(lines)) == [2, 2, 5, 5, 5, 5, 5, 5]


def test_slices_and_grids_of_tensors() -> None:
    lines = (
        FLOATS,
        '%m = "tt.reshape"(%r) : (tensor<8xi32>) -> tensor<2x4xi32>',
        '%a = "amdg.extract_slice"(%m) <{static_offsets = array<i64: 0, 0>}> : (tensor<2x4xi32>) -> tensor<1x2xi32>',
        '%b = "amdg.extract_slice"(%m) <{static_offsets = array<i64: 1, 2>}> : (tensor<2x4xi32>) -> tensor<1x2xi32>',
        (
            '%g = "amdg.concat"(%a, %b, %b, %a) : '
            "(tensor<1x2xi32>, tensor<1x2xi32>, tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<2x4xi32>"
        ),
        '%v = "tt.reshape"(%g) : (tensor<2x4xi32>) -> tensor<8xi32>',
    )
    assert stored("\n".join(lines)) == [0, 1, 6, 7, 6, 7, 0, 1]
