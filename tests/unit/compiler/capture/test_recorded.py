"""What a launch was specialised for, as a signature that binds to the same."""

from __future__ import annotations

from typing import Any

import pytest

from tritonsmith.compiler import signature
from tritonsmith.compiler.capture import recorded
from tritonsmith.compiler.source import KernelParameter, KernelSource


def about(**more: Any) -> dict[str, Any]:
    """What the worker writes of a kernel with these parameters: (type, value) or (type, hint)."""
    found: dict[str, Any] = {"parameters": [], "signature": {}, "constexprs": {}, "hints": {}, "ranges": []}
    return found | more


@pytest.mark.parametrize(
    "value",
    [
        *(1, 1.5, True, None, "relu", "a,b", "16", "it's", {"dtype": "float16"}, [1, [2, "x,y"]], [True]),
        *([{"dtype": "float16"}], [{"dtype": "float16"}, -8]),
    ],
)
def test_constants_come_back(value: Any) -> None:
    text = recorded.signature_text(
        about(
            parameters=[{"name": "C", "constexpr": True}],
            signature={"C": "constexpr"},
            constexprs={"C": value},
        )
    )
    kernel = KernelSource("k", (KernelParameter("C", constexpr=True),))
    bound = signature.bind(text, kernel, {}, {})
    expected = (1, (2, "x,y")) if value == [1, [2, "x,y"]] else tuple(value) if type(value) is list else value
    assert bound.constexprs == {"C": expected}


def test_types_hints_and_ones() -> None:
    text = recorded.signature_text(
        about(
            parameters=[{"name": name, "constexpr": False} for name in ("x", "n", "one", "t", "b")],
            signature={
                "x": "*fp16",
                "n": "i64",
                "one": "constexpr",
                "t": ["i32", "*fp32", "constexpr"],
                "b": "u1",
            },
            constexprs={"one": 1, "t.2": 8},
            hints={"x": 16, "t.1": 16},
            ranges=["x", "t.1"],
        )
    )
    assert text == "x=*fp16:16:r32,n=i64,one=i32:1,t=(i32,*fp32:16:r32,8),b=u1"


def test_what_no_signature_can_say() -> None:
    with pytest.raises(ValueError, match="cannot be written in a signature"):
        recorded.spell_constant([{"dtype": "float16"}, 1.5])
