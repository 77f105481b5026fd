"""Types of a signature as Triton takes them."""

from __future__ import annotations

import pytest

from tritonsmith.worker.border import nested


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("i32", "i32"),
        ("(i32,)", ("i32",)),
        ("(i32,*fp32)", ("i32", "*fp32")),
        (
            "(i32,(constexpr,i64),tensordesc<fp16[64,64]>)",
            ("i32", ("constexpr", "i64"), "tensordesc<fp16[64,64]>"),
        ),
    ],
)
def test_tuples_of_types(kind: str, types: object) -> None:
    assert nested(kind) == types
