"""Linear layouts: who holds what."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonsmith.core.errors import UsageError
from tritonsmith.inspect import show_passes as show
from tritonsmith.ir import layouts
from tritonsmith.ir.layouts import Element, LinearLayout, Place

# #blocked<{sizePerThread = [1, 2], threadsPerWarp = [2, 2], warpsPerCTA = [2, 1], order = [1, 0]}> of 8x4
BLOCKED = LinearLayout(
    (8, 4), {"register": ((0, 1), (4, 0)), "lane": ((0, 2), (1, 0)), "warp": ((2, 0),), "block": ()}
)
# #swizzled_shared<{vec = 2, perPhase = 1, maxPhase = 2, order = [1, 0]}> of 4x8
SHARED = LinearLayout((4, 8), {"offset": ((0, 1), (0, 2), (0, 4), (1, 2), (2, 0)), "block": ()})


def test_threads_are_counted_over_all_warps() -> None:
    rows = [[BLOCKED.spelled((row, column)) for column in range(4)] for row in (0, 3, 7)]
    assert rows == [
        ["T0:0", "T0:1", "T1:0", "T1:1"],
        ["T6:0", "T6:1", "T7:0", "T7:1"],
        ["T6:2", "T6:3", "T7:2", "T7:3"],
    ]
    assert BLOCKED.copies == 1


def test_copies_are_all_named() -> None:
    twice = LinearLayout((2,), {"register": ((1,),), "lane": ((0,),), "warp": (), "block": ()})
    assert twice.copies == 2
    assert twice.spelled((1,)) == "T0:1|T1:1"


def test_blocks_come_first() -> None:
    split = LinearLayout((2,), {"register": (), "lane": (), "warp": (), "block": ((1,),)})
    assert [split.spelled((0,)), split.spelled((1,))] == ["B0:T0:0", "B1:T0:0"]


def test_memory_has_offsets_and_padding() -> None:
    assert [SHARED.spelled((1, column)) for column in range(4)] == ["10", "11", "8", "9"]
    padded = LinearLayout(SHARED.shape, SHARED.bases, ((8, 2), (16, 1)))
    assert [padded.offset((row, 0)) for row in range(4)] == [0, 12, 21, 33]


@st.composite
def linear_layouts(draw: st.DrawFn) -> LinearLayout:
    """Bits of a shape in any order over registers, lanes and warps, with copies among them."""
    bits = (draw(st.integers(0, 3)), draw(st.integers(0, 3)))
    bases = [(1 << bit, 0) for bit in range(bits[0])] + [(0, 1 << bit) for bit in range(bits[1])]
    bases = draw(st.permutations([*bases, *[(0, 0)] * draw(st.integers(0, 2))]))
    first, second = sorted(draw(st.tuples(st.integers(0, len(bases)), st.integers(0, len(bases)))))
    parts = {"register": bases[:first], "lane": bases[first:second], "warp": bases[second:], "block": ()}
    return LinearLayout((1 << bits[0], 1 << bits[1]), parts)


@given(linear_layouts())
def test_every_element_is_held_where_it_is_said(layout: LinearLayout) -> None:
    held: dict[Element, tuple[Place, ...]] = dict.fromkeys(product(*map(range, layout.shape)), ())
    for place in product(*(range(layout.size(name)) for name in layout.inputs)):
        held[layout.element(place)] += (place,)
    assert {element: layout.holders(element) for element in held} == held
    assert {len(places) for places in held.values()} == {layout.copies}


def test_what_no_place_has_is_held_nowhere() -> None:
    assert LinearLayout((4,), {"register": ((1,),), "lane": (), "warp": (), "block": ()}).holders((2,)) == ()


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
    found = list(layouts.types_in(IR, show.layout_definitions(IR)))
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
    found = list(layouts.memory_accesses(IR, show.layout_definitions(IR)))
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
    assert layouts.respelled(old) == (new or old)


@pytest.mark.parametrize(
    ("dtype", "element", "bits"),
    [("fp16", "f16", 16), ("bf16", "bf16", 16), ("i8", "i8", 8), ("u8", "i8", 8), ("f8E5M2", "f8E5M2", 8)],
)
def test_elements_as_in_signatures(dtype: str, element: str, bits: int) -> None:
    made = layouts.layout_of("#ttg.padded_shared<[64:+8] {order = [1, 0]}>", "64x64", dtype)
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
        layouts.layout_of(layout, shape, dtype)
    assert said in str(caught.value)
