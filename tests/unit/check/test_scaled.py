# ruff: noqa: E501 - as it is printed
"""Products with scales, numbers of four bits, and what passes make of them, against the Microscaling formats."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.check.test_triton import stored
from tritonsmith.check import tensor_memory
from tritonsmith.check.module import UnsupportedIrError

pytestmark = pytest.mark.unit


def constant(name: str, values: str, of: str) -> str:
    return f'{name} = "arith.constant"() <{{value = dense<{values}> : {of}}}> : () -> {of}'


def test_two_numbers_of_four_bits_lie_in_a_byte_the_lower_one_first() -> None:
    lines = (
        constant("%x", "[33, -97]", "tensor<2xi8>"),  # 0x21, 0x9f
        '%v = "ttg.fp4_to_fp"(%x) <{axis = 0 : i32}> : (tensor<2xi8>) -> tensor<4xf32>',
    )
    assert stored("\n".join(lines), "f32", 4) == [0.5, 1.0, -6.0, -0.5]
    every = tensor_memory.unpacked(np.arange(16, dtype=np.int8), 0)[::2]
    assert every.tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]


def test_along_another_axis() -> None:
    found = tensor_memory.unpacked(np.asarray([[0x21], [0x43]], np.int8), 0)
    assert found.tolist() == [[0.5], [1.0], [1.5], [2.0]]


def test_scales_are_powers_of_two() -> None:
    bits = np.asarray([0, 1, 126, 127, 128, 254], np.uint8).view(np.int8)
    assert tensor_memory.scale_factors(bits).tolist() == [2.0**-127, 2.0**-126, 0.5, 1, 2, 2.0**127]
    assert np.isnan(tensor_memory.scale_factors(np.asarray([-1], np.int8)))[0]
    assert tensor_memory.scale_factors(np.asarray([3.5], np.float16)).tolist() == [3.5]


PRODUCT = (
    constant("%a", "BITS", "tensor<2x32xi8>"),
    constant("%b", "34", "tensor<16x4xi8>"),  # 0x22: twice 1
    constant("%c", "1.0", "tensor<2x4xf32>"),
    constant("%as", "[[-128], [126]]", "tensor<2x1xi8>"),  # 2 and 1/2
    constant("%bs", "[[127], [127], [125], [127]]", "tensor<4x1xi8>"),  # a row for each column: 1, but 1/4
    (
        '%d = "tt.dot_scaled"(%a, %b, %c, %as, %bs) <{a_elem_type = KIND : i32, b_elem_type = 4 : i32, '
        "fastMath = false, lhs_k_pack = true, rhs_k_pack = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>}> : "
        "(tensor<2x32xi8>, tensor<16x4xi8>, tensor<2x4xf32>, tensor<2x1xi8>, tensor<4x1xi8>) -> tensor<2x4xf32>"
    ),
    '%v = "tt.reshape"(%d) : (tensor<2x4xf32>) -> tensor<8xf32>',
)


@pytest.mark.parametrize(("kind", "one"), [(0, 0x38), (1, 0x3C)])
def test_a_product_with_scales(kind: int, one: int) -> None:
    """32 times 1 times 1, with the scales of row and column, and 1 more."""
    body = "\n".join(PRODUCT).replace("BITS", str(one)).replace("KIND", str(kind))
    assert stored(body, "f32") == [65, 65, 17, 65, 17, 17, 5, 17]


def test_a_product_in_tensor_memory() -> None:
    """The same numbers, from shared memory, with the scales in tensor memory."""
    inputs = (line for line in PRODUCT if line.startswith(("%a ", "%b ", "%c ", "%as ", "%bs ")))
    a, b, c = (
        "!ttg.memdesc<2x32xi8, #s, #smem>",
        "!ttg.memdesc<16x4xi8, #s, #smem>",
        "!ttg.memdesc<2x4xf32, #t, #tm, mutable>",
    )
    row, column = "!ttg.memdesc<2x1xi8, #t, #tm>", "!ttg.memdesc<4x1xi8, #t, #tm>"
    lines = (
        *inputs,
        '%yes = "arith.constant"() <{value = true}> : () -> i1',
        f'%am = "ttg.local_alloc"(%a) : (tensor<2x32xi8>) -> {a}',
        f'%bm = "ttg.local_alloc"(%b) : (tensor<16x4xi8>) -> {b}',
        f'%cm = "ttng.tmem_alloc"(%c) : (tensor<2x4xf32>) -> {c}',
        f'%asm = "ttng.tmem_alloc"(%as) : (tensor<2x1xi8>) -> {row}',
        f'%bsm = "ttng.tmem_alloc"(%bs) : (tensor<4x1xi8>) -> {column}',
        (
            '"ttng.tc_gen5_mma_scaled"(%am, %bm, %cm, %asm, %bsm, %yes, %yes) <{a_type = 0 : i32, b_type = 4 : i32, '
            f"operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1, 1, 1, 0, 0>}}> : ({a}, {b}, {c}, {row}, {column}, i1, i1) -> ()"
        ),
        f'%d = "ttng.tmem_load"(%cm) : ({c}) -> tensor<2x4xf32>',
        PRODUCT[-1],
    )
    assert stored("\n".join(lines).replace("BITS", "56"), "f32") == [65, 65, 17, 65, 17, 17, 5, 17]


def test_without_a_scale_there_is_none() -> None:
    body = "\n".join(PRODUCT).replace("BITS", "56").replace("KIND", "0")
    body = body.replace("%as, %bs)", "%bs)").replace("array<i32: 1, 1, 1, 1, 1>", "array<i32: 1, 1, 1, 0, 1>")
    body = body.replace("tensor<2x1xi8>, tensor<4x1xi8>)", "tensor<4x1xi8>)")
    assert stored(body, "f32") == [33, 33, 9, 33, 33, 33, 9, 33]


def test_another_format_is_not_known() -> None:
    body = "\n".join(PRODUCT).replace("BITS", "56").replace("KIND", "2")
    with pytest.raises(UnsupportedIrError, match="another format"):
        stored(body, "f32")


def test_an_upcast_with_scales() -> None:
    lines = (
        constant("%x", "[33, -97]", "tensor<2xi8>"),
        constant("%s", "[-128, 127, 126, 127]", "tensor<4xi8>"),
        '%v = "amdg.scaled_upcast_fp4"(%x, %s) <{axis = 0 : i32}> : (tensor<2xi8>, tensor<4xi8>) -> tensor<4xf16>',
    )
    assert stored("\n".join(lines), "f16", 4) == [1.0, 1.0, -3.0, -0.5]
    short = (
        "\n".join(lines)
        .replace("[-128, 127, 126, 127]", "[127, 127]")
        .replace("tensor<4xi8>", "tensor<2xi8>")
    )
    with pytest.raises(UnsupportedIrError, match="another shape"):
        stored(short, "f16", 4)
