# ruff: noqa: E501 - as it is printed
"""The dialect rocdl."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.check.llvm.blocks import contents, number, ran
from tritonsmith.check.module import UnsupportedIrError

pytestmark = pytest.mark.unit
LANE = np.arange(64)
ROW = LANE % 16


def dpp(control: int, rows: int = 15) -> str:
    """Lanes that are moved; the old value is -1."""
    return (
        number("old", -1)
        + f'    %r = "rocdl.update.dpp"(%old, %tid) <{{bankMask = 15 : i32, boundCtrl = false, dppCtrl = {control} : i32, rowMask = {rows} : i32}}> : (i32, i32) -> i32\n'
    )


@pytest.mark.parametrize(
    ("control", "expected"),
    [
        (0b00_01_10_11, LANE ^ 3),  # quad_perm
        (0x111, np.where(ROW >= 1, LANE - 1, -1)),
        (0x108, np.where(ROW < 8, LANE + 8, -1)),
        (0x124, LANE // 16 * 16 + (ROW - 4) % 16),
        (0x140, LANE // 16 * 16 + 15 - ROW),
        (0x141, LANE ^ 7),
        (0x142, np.where(LANE >= 16, LANE // 16 * 16 - 1, -1)),
        (0x143, np.where(LANE >= 32, 31, -1)),
    ],
)
def test_lanes_of_a_row_are_moved(control: int, expected: Any) -> None:
    assert np.array_equal(ran(dpp(control), warp=64), expected)


def test_rows_that_are_masked_keep_the_old_value() -> None:
    assert np.array_equal(ran(dpp(0x141, rows=0b0010), warp=64), np.where(LANE // 16 == 1, LANE ^ 7, -1))


def test_another_control_is_named() -> None:
    with pytest.raises(UnsupportedIrError, match="dpp 0x130"):
        ran(dpp(0x130), warp=64)


def test_a_lane_is_read() -> None:
    body = number("nine", 9) + '    %r = "rocdl.readlane"(%tid, %nine) : (i32, i32) -> i32\n'
    assert np.array_equal(ran(body, warps=2, warp=64), np.repeat([9, 73], 64))


def test_lanes_are_permuted() -> None:
    body = number("first", 252)
    body += '    %four = "llvm.mlir.constant"() <{value = 4 : i32}> : () -> i32\n    %by = "llvm.mul"(%tid, %four) : (i32, i32) -> i32\n    %at = "llvm.sub"(%first, %by) : (i32, i32) -> i32\n'
    body += '    %r = "rocdl.ds_bpermute"(%at, %tid) : (i32, i32) -> i32\n'
    assert np.array_equal(ran(body, warp=64), 63 - LANE)


def test_beyond_a_buffer_is_zero() -> None:
    body = number("stride", 0, "i16") + number("size", 128, "i64") + number("flags", 0) + number("none", 0)
    body += number("two", 2) + '    %at = "llvm.shl"(%tid, %two) : (i32, i32) -> i32\n'
    body += '    %b = "rocdl.make.buffer.rsrc"(%x, %stride, %size, %flags) : (!llvm.ptr<1>, i16, i64, i32) -> !llvm.ptr<8>\n'
    body += '    %r = "rocdl.raw.ptr.buffer.load"(%b, %at, %none) <{aux = 0 : i32}> : (!llvm.ptr<8>, i32, i32) -> f32\n'
    assert np.array_equal(ran(body, "float32", warp=64), np.where(LANE < 32, contents(64), 0))


@pytest.mark.parametrize(("size", "depth", "results", "newer"), [(32, 8, 16, False), (16, 16, 4, True)])
def test_mfma_multiplies_matrices(size: int, depth: int, results: int, *, newer: bool) -> None:
    """A[i, k] = i + k and B[k, j] = j - k, by lane; each result of a lane is looked at."""
    each, kinds = size * depth // 64, (f"vector<{size * depth // 64}xf16>", f"vector<{results}xf32>")
    body = number("size", size)
    body += '    %across = "llvm.urem"(%tid, %size) : (i32, i32) -> i32\n    %group = "llvm.udiv"(%tid, %size) : (i32, i32) -> i32\n'
    body += number("each", each) + '    %first = "llvm.mul"(%group, %each) : (i32, i32) -> i32\n'
    body += f'    %a = "llvm.mlir.undef"() : () -> {kinds[0]}\n    %b = "llvm.mlir.undef"() : () -> {kinds[0]}\n    %c = "llvm.mlir.undef"() : () -> {kinds[1]}\n'
    last = ""
    for lane in range(each):
        body += (
            number(f"n{lane}", lane) + f'    %k{lane} = "llvm.add"(%first, %n{lane}) : (i32, i32) -> i32\n'
        )
        for name, operation in (("a", "add"), ("b", "sub")):
            body += f'    %{name}i{lane} = "llvm.{operation}"(%across, %k{lane}) : (i32, i32) -> i32\n'
            body += f'    %{name}f{lane} = "llvm.sitofp"(%{name}i{lane}) : (i32) -> f16\n'
            body += f'    %{name}{lane} = "llvm.insertelement"(%{name}{last}, %{name}f{lane}, %n{lane}) : ({kinds[0]}, f16, i32) -> {kinds[0]}\n'
        last = str(lane)
    operands, types = f"%a{last}, %b{last}, %c", f"{kinds[0]}, {kinds[0]}, {kinds[1]}"
    modifiers = "<{abid = 0 : i32, blgp = #rocdl<mfma_perm_b none>, cbsz = 0 : i32}>"
    if newer:  # as 3.6 prints them
        body += number("zero", 0)
        operands, types, modifiers = f"{operands}, %zero, %zero, %zero", f"{types}, i32, i32, i32", ""
    body += f'    %d = "rocdl.mfma.f32.{size}x{size}x{depth}f16"({operands}) {modifiers} : ({types}) -> {kinds[1]}\n'
    inner = np.arange(depth)
    expected = (np.arange(size)[:, None] + inner) @ (np.arange(size) - inner[:, None])
    for result in range(results):
        row = result // 4 * 8 + LANE // size * 4 + result % 4
        shown = (
            number("which", result)
            + f'    %r = "llvm.extractelement"(%d, %which) : ({kinds[1]}, i32) -> f32\n'
        )
        assert np.array_equal(ran(body + shown, "float32", warp=64), expected[row, LANE % size])
