"""Bank conflicts, against cases that are known."""

from __future__ import annotations

import pytest

from tritonsmith.inspect import layouts
from tritonsmith.ir.layouts import LinearLayout


def rows(
    count: int, length: int, padding: tuple[tuple[int, int], ...] = (), swizzle: int = 0
) -> LinearLayout:
    """Shared memory of rows one after the other; `swizzle`: columns change with the row."""
    down, along = count.bit_length() - 1, length.bit_length() - 1
    bases = [(0, 1 << bit) for bit in range(along)] + [(1 << bit, 0) for bit in range(down)]
    if swizzle:
        bases = [(row, column or swizzle * row) for row, column in bases]
    return LinearLayout((count, length), {"offset": tuple(bases), "block": ()}, padding)


@pytest.mark.parametrize(
    ("shared", "bits", "down", "along"),
    [
        (rows(32, 32), 32, 32, 1),  # a column of 32 words: all in one bank
        (rows(32, 32, ((32, 1),)), 32, 1, 1),  # one word more in each row
        (rows(32, 32, swizzle=1), 32, 1, 1),  # the column is the XOR of column and row
        (rows(32, 64), 16, 32, 1),
        (rows(32, 32), 16, 16, 1),  # two rows fill the banks
        (rows(32, 32), 64, 32, 2),  # 256 bytes take two wavefronts, and need them
        (rows(32, 128), 8, 32, 1),
    ],
)
def test_along_each_dimension(shared: LinearLayout, bits: int, down: int, along: int) -> None:
    assert [one.wavefronts for one in layouts.accesses_along(shared, bits)] == [down, along]


def test_without_conflicts_nothing_is_lost() -> None:
    down, along = layouts.accesses_along(rows(32, 32), 64)
    assert (down.wavefronts, down.least, down.ways) == (32, 2, 16)
    assert along.ways == 1


def test_a_short_dimension_is_no_access() -> None:
    assert [one.what for one in layouts.accesses_along(rows(16, 32), 32)] == ["32 elements along dim1"]


def threads(register: list[tuple[int, int]], lane: list[tuple[int, int]]) -> LinearLayout:
    shape = (32, 64)
    return LinearLayout(shape, {"register": register, "lane": lane, "warp": (), "block": ()})


def test_lanes_read_the_widest_vectors() -> None:
    lanes = [(0, 8), (0, 16), (0, 32), (1, 0), (2, 0)]
    one = layouts.access_by(
        rows(32, 64), threads([(0, 1), (0, 2), (0, 4), (4, 0), (8, 0), (16, 0)], lanes), 16, "by all"
    )
    assert (one.what, one.width, one.instructions) == ("by all", 16, 8)
    assert (one.wavefronts, one.least) == (32, 32)  # 8 lanes of 16 bytes each time


def test_registers_of_a_vector_may_stand_anywhere() -> None:
    lanes = [(0, 8), (0, 16), (0, 32), (1, 0), (2, 0)]
    one = layouts.access_by(rows(32, 64), threads([(4, 0), (0, 4), (0, 2), (8, 0), (0, 1)], lanes), 16, "")
    assert one.width == 16


def test_copies_are_not_loaded_again() -> None:
    lanes = [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16)]
    once = layouts.access_by(rows(32, 64), threads([(0, 32)], lanes), 32, "")
    again = layouts.access_by(rows(32, 64), threads([(0, 0), (0, 32)], lanes), 32, "")
    assert once == again


def test_lanes_of_one_column_conflict() -> None:
    lanes = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)]
    one = layouts.access_by(rows(32, 64), threads([(0, 1)], lanes), 32, "")
    assert (one.width, one.wavefronts, one.least) == (8, 32, 2)  # half a warp each time
