"""Stand-ins for the arguments of a launch: what the JIT looks at when it specialises."""

from __future__ import annotations

from typing import Any

import pytest

from tritonsmith.worker import fill
from tritonsmith.worker.fill import DifferentKeyError, stand_in
from tritonsmith.worker.messages import PointRequest, RecordedParameter, SpecializedKernel

H100 = ("cuda", 90, 32)


def point(**more: Any) -> PointRequest:
    """A compile with these hints and ranges."""
    return PointRequest(H100, **more)


@pytest.mark.parametrize(
    ("kind", "hint", "value"),
    [
        ("i32", 16, 16),
        ("i32", 1, 1),
        ("i64", 16, 1 << 40),
        ("u64", 16, 1 << 63),
        ("u1", None, True),
        ("i1", None, True),
        ("fp32", None, 1.5),
        ("bf16", None, 1.5),
    ],
)
def test_a_number_has_the_type_and_the_hint_of_its_parameter(
    kind: str, hint: int | None, value: object
) -> None:
    hints = {"n": hint} if hint else {}
    assert stand_in(kind, "n", point(hints=hints), {}) == value


@pytest.mark.parametrize("kind", ["i8", "i32", "i64", "u64"])
def test_a_number_without_a_hint_is_neither_1_nor_a_multiple_of_16(kind: str) -> None:
    value = stand_in(kind, "n", point(), {})
    assert value > 1
    assert value % 16


def test_a_pointer_is_aligned_and_near_as_it_was_recorded() -> None:
    given = point(hints={"x": 16}, ranges=("x",))
    aligned, other = stand_in("*fp16", "x", given, {}), stand_in("*kfp8e4nv", "y", given, {})
    assert (aligned.data_ptr() % 16, other.data_ptr() % 16) == (0, 1)
    assert (str(aligned.dtype), str(other.dtype)) == ("fp16", "fp8e4nv")
    assert aligned.ptr_range() < 1 << 31 < other.ptr_range()
    assert (aligned.dtype.itemsize, other.dtype.itemsize) == (2, 1)


def test_a_tuple_has_a_stand_in_for_each_part() -> None:
    kinds = ("i32", ("*fp32", "constexpr"), "i32")
    first, (pointer, constant), last = stand_in(
        kinds, "t", point(hints={"t.0": 16, "t.1.0": 16}), {"t.1.1": [1, 2], "t.2": None}
    )
    assert (first, pointer.data_ptr(), constant, last) == (16, 16, (1, 2), None)


@pytest.mark.parametrize("kind", ["tensordesc<fp16[64,64],#layout>", "nvTmaDesc", "void"])
def test_a_type_without_a_stand_in_is_an_error(kind: str) -> None:
    with pytest.raises(DifferentKeyError, match="no argument of the type"):
        stand_in(kind, "x", point(), {})


def kernel(**more: Any) -> SpecializedKernel:
    """A kernel with one parameter."""
    return SpecializedKernel("k.py", 1, "k", "k", "k", (RecordedParameter("x", False),), H100, {}, **more)


@pytest.mark.parametrize(
    ("recorded", "resolved", "difference"),
    [
        ({"signature": {"x": "i32"}}, {"signature": {"x": "i32"}}, ""),
        (
            {"signature": {"x": "i32"}},
            {"signature": {"x": "i64"}},
            "signature of x: recorded i32, but the JIT makes i64 of it",
        ),
        ({"hints": {"x": 16}}, {}, "hints of x: recorded 16, but the JIT makes nothing of it"),
        ({"ranges": ("x",)}, {}, "ranges: recorded ['x'], but the JIT makes [] of it"),
        # As 3.2 and 3.3 spell a bool, and None.
        ({"signature": {"x": "u1"}}, {"signature": {"x": "i1"}}, ""),
        (
            {"signature": {"x": "constexpr"}, "constexprs": {"x": None}},
            {"signature": {"x": "*i8"}, "constexprs": {"x": None}},
            "",
        ),
    ],
)
def test_what_the_jit_makes_of_an_argument_is_compared_with_the_record(
    recorded: dict[str, Any], resolved: dict[str, Any], difference: str
) -> None:
    assert fill._difference(kernel(**recorded), kernel(**resolved)) == difference
