"""Layouts, as they are typed and as modules have them."""

from __future__ import annotations

import pytest

from tritonsmith.core.errors import UsageError
from tritonsmith.inspect.passes import diff
from tritonsmith.ir import layout_types

IR = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 4]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
#loc = loc("a.py":1:0)
module {
    %0 = ttg.local_alloc : () -> !ttg.memdesc<2x64x32xf16, #shared, #smem, mutable>
    %1 = ttg.async_copy_global_to_local %p, %0 mask %m : tensor<64x32x!tt.ptr<f16>, #blocked> -> <64x32xf16, #shared, #smem, mutable>
    %2 = ttg.local_load %1 : !ttg.memdesc<64x16xf16, #shared, #smem, mutable, 64x32> -> tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
    %3 = arith.constant dense<1> : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %4 = arith.addf %a, %b : tensor<64x32xf32>
}
"""  # noqa: E501 - as MLIR prints it


def test_types_of_a_module() -> None:
    found = list(layout_types.within(IR, diff.layout_definitions(IR)))
    assert [(one.name, one.shape, one.element, one.type.shape, one.type.kind) for one in found] == [
        ("#shared", (2, 64, 32), "f16", (2, 64, 32), "shared memory"),
        ("#blocked", (64, 32), "!tt.ptr<f16>", (64, 32), "registers"),
        ("#shared", (64, 32), "f16", (64, 32), "shared memory"),
        ("#shared", (64, 16), "f16", (64, 32), "shared memory"),
        ("#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>", (64, 16), "f16", (64, 16), "registers"),
        ("#ttg.slice<{dim = 0, parent = #blocked}>", (32,), "i32", (32,), "registers"),
    ]
    assert found[-1].type.text == (
        "tensor<32xi32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4]}>}>>"
    )
    assert found[2].type.text == (
        "!ttg.memdesc<64x32xf16, #ttg.swizzled_shared<{vec = 8, order = [1, 0]}>, "
        "#ttg.shared_memory, mutable>"
    )


def test_loads_and_stores_of_a_module() -> None:
    found = list(layout_types.accesses(IR, diff.layout_definitions(IR)))
    assert [(one.line, one.operation, one.memory.shape, one.tensor.shape) for one in found] == [
        (8, "async_copy_global_to_local", (64, 32), (64, 32)),
        (9, "local_load", (64, 16), (64, 16)),
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "#triton_gpu.blocked<{order = [0], CTAsPerCGA = [1], CTASplitNum = [1], CTAOrder = [0]}>",
            "#ttg.blocked<{order = [0]}>",
        ),
        (
            "#triton_gpu.shared<{vec = 8, perPhase = 1, order = [1, 0], hasLeadingOffset = false}>",
            "#ttg.swizzled_shared<{vec = 8, perPhase = 1, order = [1, 0]}>",
        ),
        ("#ttg.blocked<{CTAsPerCGA = [2, 1], CTASplitNum = [2, 1], CTAOrder = [1, 0]}>", ""),  # of two CTAs
        (
            "#triton_nvidia_gpu.tensor_memory_encoding<blockM = 128>",
            "#ttng.tensor_memory_encoding<blockM = 128>",
        ),
    ],
)
def test_older_spellings(old: str, new: str) -> None:
    assert layout_types.respelled(old) == (new or old)


@pytest.mark.parametrize(
    ("dtype", "element", "bits"),
    [("fp16", "f16", 16), ("bf16", "bf16", 16), ("i8", "i8", 8), ("u8", "i8", 8), ("f8E5M2", "f8E5M2", 8)],
)
def test_elements_as_in_signatures(dtype: str, element: str, bits: int) -> None:
    made = layout_types.of("#ttg.padded_shared<[64:+8] {order = [1, 0]}>", "64x64", dtype)
    assert (made.element, made.bits, made.kind) == (element, bits, "shared memory")


@pytest.mark.parametrize(
    ("layout", "shape", "dtype", "said"),
    [
        ("blocked", "4x4", "fp16", "no layout: blocked"),
        ("#blocked", "4x4", "fp16", "no layout: #blocked"),
        ("#ttg.blocked<{}>", "4,4", "fp16", "--shape 4,4"),
        ("#ttg.blocked<{}>", "4x0", "fp16", "--shape 4x0"),
        ("#ttg.blocked<{}>", "4x4", "half", "--dtype half"),
    ],
)
def test_what_makes_no_sense(layout: str, shape: str, dtype: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        layout_types.of(layout, shape, dtype)
    assert said in str(caught.value)
