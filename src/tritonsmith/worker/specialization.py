"""Read a kernel's specialization from the source object that Triton hands to its compiler.

Up to 3.2 that has names, positions and an AttrsDescriptor; since 3.3 paths, so that parts of tuples have them
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .border import RequestRefusedError
from .values import encoded

if TYPE_CHECKING:
    from .json_types import Table

ALIGNED = 16
_DIVISIBLE, _RANGE = "tt.divisibility", "tt.pointer_range"


def specialization(src: Any, note: Callable[[str], None]) -> Table:
    """Return types, constants and hints of a kernel's parameters.

    Returns:
        `signature`: name to a type, or to a list of them for a tuple; `constexprs`: name, or `x.1` for a part
        of a tuple, to a value; `hints` likewise to 16; `ranges`: pointers whose memory has less than 2 GiB
        (AMD); `unwritten`: parameters that a signature cannot express.
    """
    names = list(src.fn.arg_names)
    found: Table = {"signature": {}, "constexprs": {}, "hints": {}, "ranges": [], "unwritten": []}
    for name in names:
        found["signature"][name] = _plain(src.signature.get(name, "constexpr"))
    for key, value in src.constants.items():
        path = _dotted(key, names)
        try:
            found["constexprs"][path] = encoded(_value(value))
        except (TypeError, RequestRefusedError):
            what = getattr(_value(value), "__name__", "")
            kind = f"{type(_value(value)).__name__}{what and f' ({what})'}"
            note(f"{path} of {src.fn.__name__} is a {kind}, which no signature can say")
            found["unwritten"].append(path)
    for key, name, value in _attributes(src.attrs):
        path = _dotted(key, names)
        if path in found["constexprs"]:  # up to 3.2 constants have attributes
            continue
        if name == _DIVISIBLE and value == ALIGNED:
            found["hints"][path] = value
        elif name == _RANGE:
            found["ranges"].append(path)
        else:
            note(f"{path} of {src.fn.__name__} has {name} = {value}, which no signature can say")
    found["ranges"].sort()
    return found


def _attributes(attrs: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield path or position, name and value of each attribute."""
    if isinstance(attrs, dict):
        for path, pairs in attrs.items():
            for name, value in pairs:
                yield path, name, value
    elif hasattr(attrs, "arg_properties"):  # 3.2
        for name, positions in attrs.arg_properties.items():
            if name != "tt.equal_to":
                for position in positions:
                    yield position, name, attrs.property_values.get(name, ALIGNED)
    else:
        for position in attrs.divisible_by_16:
            yield position, _DIVISIBLE, ALIGNED


def _dotted(key: Any, names: list[str]) -> str:
    if isinstance(key, str):
        return key
    head, *rest = key if isinstance(key, tuple) else (key,)
    return ".".join([names[head], *map(str, rest)])


def _plain(kind: Any) -> Any:
    return [_plain(part) for part in kind] if isinstance(kind, (list, tuple)) else str(kind)


def _value(value: Any) -> Any:
    while type(value).__name__ == "constexpr":
        value = value.value
    if isinstance(value, (list, tuple)):
        return tuple(_value(part) for part in value)
    return value
