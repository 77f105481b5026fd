"""Convert values and types between JSON and Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .border import unknown
from .stubs import name_of

if TYPE_CHECKING:
    from .foreign import JsonValue


def decoded(value: JsonValue) -> Any:
    """Convert a value of JSON for Triton: lists become tuples, {"dtype": "float16"} becomes tl.float16."""
    if isinstance(value, list):
        return tuple(map(decoded, value))
    if isinstance(value, dict):
        import triton.language as tl

        return getattr(tl, value["dtype"])
    return value


def encoded(value: JsonValue) -> Any:
    """Convert a value of Triton to JSON: the inverse of `decoded`.

    Raises:
        RequestRefusedError: the value is a stand-in.
        TypeError: JSON cannot represent the value.
    """
    if name_of(value):
        stood = name_of(value)
        raise unknown(
            f"a value of the kernel is {stood}, but {stood.partition('.')[0]} is not installed", stood
        )
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [encoded(part) for part in value]
    import triton.language as tl

    for name, known in vars(tl).items():
        if known is value and isinstance(known, tl.dtype):
            return {"dtype": name}
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def nested(kind: str) -> Any:
    """Parse `(i32,*fp32)` into a tuple of types; a plain type is returned as it is."""
    if not kind.startswith("("):
        return kind
    parts, depth, begin = [], 0, 1
    for position, char in enumerate(kind):
        depth += (char in "([<") - (char in ")]>")
        if (char == "," and depth == 1) or depth == 0:
            parts.append(kind[begin:position])
            begin = position + 1
    return tuple(nested(part) for part in parts if part)
