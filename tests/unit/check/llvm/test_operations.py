# ruff: noqa: E501 - as it is printed
"""Operations of LLVM's dialect, and threads that part and meet again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.check.llvm.blocks import contents, number, ran
from tritonsmith.check.llvm.threads import RaceError, SharedMemory
from tritonsmith.check.module import UnsupportedIrError

pytestmark = pytest.mark.unit
TID = np.arange(32)
VECTOR = """\
    %u = "llvm.mlir.undef"() : () -> vector<2xf32>
    %v = "llvm.insertelement"(%u, %a, %zero) : (vector<2xf32>, f32, i32) -> vector<2xf32>
    %w = "llvm.insertelement"(%v, %b, %one) : (vector<2xf32>, f32, i32) -> vector<2xf32>
    %sum = "llvm.fadd"(%w, %w) : (vector<2xf32>, vector<2xf32>) -> vector<2xf32>
    %bits = "llvm.bitcast"(%sum) : (vector<2xf32>) -> vector<4xi16>
    %three = "llvm.mlir.constant"() <{value = 3 : i32}> : () -> i32
    %h = "llvm.extractelement"(%bits, %three) : (vector<4xi16>, i32) -> i16
    %r = "llvm.zext"(%h) : (i16) -> i32
"""
PARTED = """\
    "llvm.cond_br"(%small)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
  ^bb1:
    %twice = "llvm.add"(%tid, %tid) : (i32, i32) -> i32
    "llvm.br"(%twice)[^bb3] : (i32) -> ()
  ^bb2:
    %square = "llvm.mul"(%tid, %tid) : (i32, i32) -> i32
    "llvm.br"(%square)[^bb3] : (i32) -> ()
  ^bb3(%r: i32):
"""
LOOP = """\
    "llvm.br"(%zero, %zero)[^bb1] : (i32, i32) -> ()
  ^bb1(%i: i32, %so: i32):
    %more = "llvm.icmp"(%i, %tid) <{predicate = 2 : i64}> : (i32, i32) -> i1
    "llvm.cond_br"(%more)[^bb2, ^bb3] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
  ^bb2:
    %next = "llvm.add"(%i, %one) : (i32, i32) -> i32
    %sum = "llvm.add"(%so, %i) : (i32, i32) -> i32
    "llvm.br"(%next, %sum)[^bb1] : (i32, i32) -> ()
  ^bb3:
    %r = "llvm.add"(%so, %zero) : (i32, i32) -> i32
"""
SMALL = '    %small = "llvm.icmp"(%tid, %five) <{predicate = 6 : i64}> : (i32, i32) -> i1\n'
EXCHANGE = """\
    %shared = "llvm.mlir.addressof"() <{global_name = @global_smem}> : () -> !llvm.ptr<3>
    %to_s = "llvm.getelementptr"(%shared, %tid) <{elem_type = i32, rawConstantIndices = array<i32: -2147483648>}> : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>
    "llvm.store"(%tid, %to_s) <{ordering = 0 : i64}> : (i32, !llvm.ptr<3>) -> ()
    "nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()
    %other = "llvm.xor"(%tid, %five) : (i32, i32) -> i32
    %from = "llvm.getelementptr"(%shared, %other) <{elem_type = i32, rawConstantIndices = array<i32: -2147483648>}> : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>
    %r = "llvm.load"(%from) <{ordering = 0 : i64}> : (!llvm.ptr<3>) -> i32
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", TID + 5),
        ("sub", TID - 5),
        ("mul", TID * 5),
        ("udiv", TID // 5),
        ("srem", TID % 5),
        ("xor", TID ^ 5),
        ("shl", TID << 5),
        ("intr.smin", np.minimum(TID, 5)),
    ],
)
def test_integers(name: str, expected: Any) -> None:
    body = number("five", 5) + f'    %r = "llvm.{name}"(%tid, %five) : (i32, i32) -> i32\n'
    assert np.array_equal(ran(body), expected)


def test_a_vector_and_its_bits() -> None:
    body = "".join((number("zero", 0), number("one", 1), number("a", 1.5, "f32"), number("b", -2.5, "f32")))
    assert (ran(body + VECTOR) == 0xC0A0).all()  # -5.0 is 0xC0A00000


def test_a_struct_keeps_its_members() -> None:
    body = """\
    %u = "llvm.mlir.undef"() : () -> !llvm.struct<(i32, struct<(ptr<3>, i32)>)>
    %s = "llvm.insertvalue"(%u, %tid) <{position = array<i64: 1, 1>}> : (!llvm.struct<(i32, struct<(ptr<3>, i32)>)>, i32) -> !llvm.struct<(i32, struct<(ptr<3>, i32)>)>
    %r = "llvm.extractvalue"(%s) <{position = array<i64: 1, 1>}> : (!llvm.struct<(i32, struct<(ptr<3>, i32)>)>) -> i32
"""
    assert np.array_equal(ran(body), TID)


def test_global_memory_that_the_reference_did_not_read_is_of_the_arguments_type() -> None:
    body = """\
    %from = "llvm.getelementptr"(%x, %tid) <{elem_type = f32, rawConstantIndices = array<i32: -2147483648>}> : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>
    %r = "llvm.load"(%from) <{ordering = 0 : i64}> : (!llvm.ptr<1>) -> f32
"""
    assert np.array_equal(ran(body, "float32"), contents(32))


def test_threads_that_part_meet_again() -> None:
    found = ran(number("five", 5) + SMALL + PARTED)
    assert np.array_equal(found, np.where(TID < 5, 2 * TID, TID * TID))


def test_a_loop_that_each_thread_leaves_when_it_likes() -> None:
    assert np.array_equal(ran(number("zero", 0) + number("one", 1) + LOOP), TID * (TID - 1) // 2)


def test_shared_memory() -> None:
    found = ran(number("five", 5) + EXCHANGE, warps=2)
    assert np.array_equal(found, np.arange(64) ^ 5)


_BARRIER = '    "nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()\n'


def test_shared_memory_of_other_warps_needs_a_barrier() -> None:
    """Within a warp none is needed, as Triton's own code has it."""
    assert np.array_equal(ran(number("five", 5) + EXCHANGE.replace(_BARRIER, ""), warps=2), np.arange(64) ^ 5)
    far = number("five", 37) + EXCHANGE
    assert np.array_equal(ran(far, warps=2), np.arange(64) ^ 37)
    with pytest.raises(
        RaceError, match="warp 0 reads byte 148 of shared memory, written by warp 1 since the last"
    ):
        ran(far.replace(_BARRIER, ""), warps=2)
    again = '    "llvm.store"(%other, %to_s) <{ordering = 0 : i64}> : (i32, !llvm.ptr<3>) -> ()\n'
    with pytest.raises(RaceError, match="warp 0 writes byte 0 of shared memory, read by warp 1"):
        ran(far + again, warps=2)
    assert np.array_equal(ran(far + _BARRIER + again, warps=2), np.arange(64) ^ 37)


def test_warps_that_write_the_same_need_no_barrier() -> None:
    shared = SharedMemory(8)
    raw, at, warps = np.full((2, 4), 7, np.uint8), np.zeros(2, np.int64), np.arange(2)
    shared.store(at, raw, warps)
    assert (shared.load(at, 4, warps) == raw).all()
    with pytest.raises(RaceError, match="read by warps 0 and others"):
        shared.store(at[:1], raw[:1], np.asarray([2]))
    shared.synchronize()
    shared.store(at[:1], raw[:1] + 1, warps[:1])
    with pytest.raises(RaceError, match="warp 1 writes byte 0 of shared memory, written by warp 0"):
        shared.store(at[:1], raw[:1], warps[1:])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            number("five", 5)
            + SMALL
            + PARTED.replace(
                "    %twice",
                '    "nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()\n    %twice',
            ),
            "nvvm.barrier while only a part of the threads runs",
        ),
        ('    %r = "llvm.intr.ctpop"(%tid) : (i32) -> i32\n', "llvm.intr.ctpop"),
        (
            '    %r = "llvm.call"(%tid) <{callee = @__nv_popc}> : (i32) -> i32\n',
            "the function __nv_popc",
        ),
        (number("five", 4000) + EXCHANGE, "shared memory of 2048 bytes"),
    ],
)
def test_what_is_not_known_is_named(body: str, why: str) -> None:
    with pytest.raises(UnsupportedIrError, match=why):
        ran(body)


@pytest.mark.parametrize(
    ("callee", "function"),
    [
        ("__nv_exp2f", np.exp2),
        ("__ocml_log2_f32", np.log2),
        ("llvm.exp2.f32", np.exp2),
        ("__nv_asinf", np.arcsin),
    ],
)
def test_functions_of_libraries(callee: str, function: np.ufunc) -> None:
    body = (
        number("half", 0.5, "f32")
        + f'    %r = "llvm.call"(%half) <{{callee = @"{callee}"}}> : (f32) -> f32\n'
    )
    assert np.allclose(ran(body, "float32"), function(0.5), rtol=1e-7)


def test_an_intrinsic_is_the_register_that_it_names() -> None:
    called = '    %r = "llvm.call_intrinsic"() <{intrin = "llvm.nvvm.read.ptx.sreg.ctaid.x"}> : () -> i32\n'
    assert (ran(called) == 1).all()
