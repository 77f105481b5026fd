# ruff: noqa: E501 - as it is printed
"""The dialect nvvm, and inline assembly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.unit.check.llvm.blocks import assembly, contents, number, ran
from tritonsmith.check.llvm.intrinsics import ldmatrix, mma
from tritonsmith.check.llvm.threads import SharedMemory
from tritonsmith.check.module import UnsupportedIrError

pytestmark = pytest.mark.unit
TID = np.arange(32)
ADDRESS = '    %from = "llvm.getelementptr"(%x, %tid) <{elem_type = f32, rawConstantIndices = array<i32: -2147483648>}> : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>\n'
ODD = '    %two = "llvm.mlir.constant"() <{value = 2 : i32}> : () -> i32\n    %bit = "llvm.urem"(%tid, %two) : (i32, i32) -> i32\n    %odd = "llvm.trunc"(%bit) : (i32) -> i1\n'
SHARED = '    %shared = "llvm.mlir.addressof"() <{global_name = @global_smem}> : () -> !llvm.ptr<3>\n    %to_s = "llvm.getelementptr"(%shared, %tid) <{elem_type = i32, rawConstantIndices = array<i32: -2147483648>}> : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>\n'


@pytest.mark.parametrize(
    ("kind", "by", "clamp", "expected"),
    [
        ("bfly", 8, 31, TID ^ 8),
        ("idx", 0, 31, np.zeros(32, int)),
        ("up", 3, 0, np.where(TID >= 3, TID - 3, TID)),
        ("down", 3, 31, np.where(TID + 3 < 32, TID + 3, TID)),
        ("idx", 3, 0x1C1F, TID // 4 * 4 + 3),  # segments of four lanes
    ],
)
def test_lanes_are_exchanged(kind: str, by: int, clamp: int, expected: Any) -> None:
    body = number("all", -1) + number("by", by) + number("clamp", clamp)
    shuffled = f'    %r = "nvvm.shfl.sync"(%all, %tid, %by, %clamp) <{{kind = #nvvm<shfl_kind {kind}>}}> : (i32, i32, i32, i32) -> i32\n'
    assert np.array_equal(ran(body + shuffled, warps=2)[:32], expected)


def test_a_masked_load_leaves_what_was_moved_before() -> None:
    code = "mov.u32 $0, 0x7;\n@$2 ld.global.L1::evict_last.b32 { $0 }, [ $1 + 4 ];"
    loaded = "    %r = " + assembly(code, "=r,l,b", "%from, %odd", "(!llvm.ptr<1>, i1) -> i32")
    expected = np.where(TID % 2, contents(33)[1:].view(np.int32), 7)
    assert np.array_equal(ran(ADDRESS + ODD + loaded), expected)


def test_a_vector_is_stored_and_loaded_through_shared_memory() -> None:
    store = "    " + assembly(
        "@!$2 st.shared::cta.b32 [ $0 + 0 ], $1;",
        "r,r,b",
        "%to_s, %tid, %odd",
        "(!llvm.ptr<3>, i32, i1) -> !llvm.void",
    )
    load = "    %r = " + assembly("ld.shared.b32 $0, [ $1 + 0 ];", "=r,r", "%to_s", "(!llvm.ptr<3>) -> i32")
    assert np.array_equal(ran(ODD + SHARED + "    %v =" + store + load), np.where(TID % 2, 0, TID))


def test_an_asynchronous_copy_fills_with_zeros() -> None:
    size = number("four", 4) + number("none", 0)
    size += '    %size = "llvm.select"(%odd, %four, %none) : (i1, i32, i32) -> i32\n'
    copy = "    %v = " + assembly(
        "cp.async.ca.shared.global [ $0 + 0 ], [ $1 + 0 ], 0x4, $2;",
        "r,l,r",
        "%to_s, %from, %size",
        "(!llvm.ptr<3>, !llvm.ptr<1>, i32) -> !llvm.void",
    )
    load = '    %r = "llvm.load"(%to_s) <{ordering = 0 : i64}> : (!llvm.ptr<3>) -> f32\n'
    found = ran(ADDRESS + ODD + SHARED + size + copy + load, "float32")
    assert np.array_equal(found, np.where(TID % 2, contents(32), 0))


def test_an_atomic_addition_sees_what_was_added_before() -> None:
    added = "    %r = " + assembly(
        "atom.global.gpu.acq_rel.add.u32 $0, [ $1 + 0 ], $2;",
        "=r,l,r",
        "%x, %one",
        "(!llvm.ptr<1>, i32) -> i32",
    )
    found = ran(number("one", 1) + added)
    assert np.array_equal(found - found[0], TID)


@pytest.mark.parametrize(
    "code",
    [
        "popc.b32 $0, $1;",
        "mov.b32 $0, 0f3F800000;",
        "ld.global.b32 $0, [ $1 + 0 ], $1;",
        "{ .reg .b32 t; mov.b32 $0, t; }",
    ],
)
def test_an_instruction_that_is_not_known_is_named(code: str) -> None:
    with pytest.raises(UnsupportedIrError, match=r"popc|mov\.b32|ld\.global|reg"):
        ran("    %r = " + assembly(code, "=r,r", "%tid", "(i32) -> i32"))


def warp(shared: Any = None) -> Any:
    """What the functions of whole warps need of a run."""

    def read(memory: Any, at: Any, width: int, wanted: Any) -> Any:
        found = np.zeros((32, width), np.uint8)
        found[wanted] = memory.load(at[wanted], width)
        return found

    return SimpleNamespace(
        threads=32, spread=lambda value: np.broadcast_to(value, 32), warps=int, read=read, shared=shared
    )


@pytest.mark.parametrize(
    ("dtype", "depth"), [("float16", 16), ("bfloat16", 16), ("float16", 8), ("int8", 32), ("float32", 8)]
)
def test_mma_multiplies_matrices(dtype: str, depth: int) -> None:
    """The registers as the PTX ISA lists them, element by element."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rule = np.random.default_rng(1)
    left, right = (
        rule.integers(-4, 5, size).astype(np.float32).astype(kind) for size in ((16, depth), (depth, 8))
    )
    wide = np.dtype(np.int32 if kind.kind == "i" else np.float32)
    more = rule.integers(-4, 5, (16, 8)).astype(wide)
    each = 4 // kind.itemsize
    a = np.zeros((depth * kind.itemsize // 8, 32, each), kind)
    b = np.zeros((len(a) // 2, 32, each), kind)
    c = np.zeros((4, 32), wide)
    for lane in range(32):
        for number_, register in enumerate(a):
            for element in range(each):
                row = lane // 4 + 8 * (number_ % 2)
                register[lane, element] = left[row, lane % 4 * each + element + number_ // 2 * 4 * each]
        for number_, register in enumerate(b):
            for element in range(each):
                register[lane, element] = right[lane % 4 * each + element + number_ * 4 * each, lane // 4]
        for number_ in range(4):
            c[number_, lane] = more[lane // 4 + 8 * (number_ // 2), lane % 4 * 2 + number_ % 2]
    parts = tuple(
        tuple(np.ascontiguousarray(one).view(np.uint32).reshape(32) for one in part) for part in (a, b, c)
    )
    found = np.zeros((16, 8), wide)
    for number_, register in enumerate(mma(warp(), (parts[0], parts[1], parts[2]), depth, kind, wide)):
        for lane in range(32):
            at = lane // 4 + 8 * (number_ // 2), lane % 4 * 2 + number_ % 2
            found[at] = register.view(wide)[lane]
    expected = left.astype(np.float64) @ right.astype(np.float64) + more
    assert np.array_equal(found, expected)


def test_mma_of_tf32_rounds_where_the_kernel_does_not_ask_for_it() -> None:
    one, none = np.full(32, 1 + 2.0**-12, np.float32), np.zeros(32, np.float32)
    parts = tuple((part.view(np.uint32),) * count for part, count in ((one, 4), (one, 2), (none, 4)))
    for rounds, expected in ((True, 8.0), (False, 8 * (1 + 2.0**-12) ** 2)):
        single = np.dtype(np.float32)
        found = mma(warp(), (parts[0], parts[1], parts[2]), 8, single, single, rounds=rounds)
        assert all((register.view(np.float32) == np.float32(expected)).all() for register in found)


@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_gives_each_lane_two_elements_of_a_row(*, transposed: bool) -> None:
    values = np.arange(256, dtype=np.int16)
    shared = SharedMemory(512)
    shared.store(np.arange(512), values.view(np.uint8)[:, None])
    found = ldmatrix(warp(shared), np.arange(32) * 16, 4, transposed=transposed)
    for number_, register in enumerate(found):
        matrix = values.reshape(4, 8, 8)[number_]
        matrix = matrix.T if transposed else matrix
        assert np.array_equal(register.view(np.int16).reshape(8, 8), matrix)
