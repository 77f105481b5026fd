"""Linear layouts: who holds what."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tritonsmith.ir.linear import Element, LinearLayout, Place

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
def layouts(draw: st.DrawFn) -> LinearLayout:
    """Bits of a shape in any order over registers, lanes and warps, with copies among them."""
    bits = (draw(st.integers(0, 3)), draw(st.integers(0, 3)))
    bases = [(1 << bit, 0) for bit in range(bits[0])] + [(0, 1 << bit) for bit in range(bits[1])]
    bases = draw(st.permutations([*bases, *[(0, 0)] * draw(st.integers(0, 2))]))
    first, second = sorted(draw(st.tuples(st.integers(0, len(bases)), st.integers(0, len(bases)))))
    parts = {"register": bases[:first], "lane": bases[first:second], "warp": bases[second:], "block": ()}
    return LinearLayout((1 << bits[0], 1 << bits[1]), parts)


@given(layouts())
def test_every_element_is_held_where_it_is_said(layout: LinearLayout) -> None:
    held: dict[Element, tuple[Place, ...]] = dict.fromkeys(product(*map(range, layout.shape)), ())
    for place in product(*(range(layout.size(name)) for name in layout.inputs)):
        held[layout.element(place)] += (place,)
    assert {element: layout.holders(element) for element in held} == held
    assert {len(places) for places in held.values()} == {layout.copies}


def test_what_no_place_has_is_held_nowhere() -> None:
    assert LinearLayout((4,), {"register": ((1,),), "lane": (), "warp": (), "block": ()}).holders((2,)) == ()
