"""Write a kernel's specialization the way `--signature` takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tritonsmith.compiler import values


def signature(about: Mapping[str, Any]) -> str:
    """Return a kernel's signature: entries by name, in the order of its parameters.

    Args:
        about: the worker's record: see worker/specialization.py.
    """
    return ",".join(
        f"{row['name']}={_entry(about, row['name'], about['signature'][row['name']], row['constexpr'])}"
        for row in about["parameters"]
    )


def _entry(about: Mapping[str, Any], path: str, kind: Any, constexpr: bool) -> str:
    if path in about["constexprs"]:
        value = about["constexprs"][path]
        specialised = type(value) is int and value == 1 and not constexpr
        return f"{'i32' if kind == 'constexpr' else kind}:1" if specialised else spelled(value)
    if isinstance(kind, list):
        parts = [_entry(about, f"{path}.{number}", part, constexpr) for number, part in enumerate(kind)]
        return f"({','.join(parts)}{',' if len(parts) == 1 else ''})"
    hint = about["hints"].get(path)
    return f"{kind}{f':{hint}' if hint else ''}{':r32' if path in about['ranges'] else ''}"


def spelled(value: Any) -> str:
    """Spell a constant; strings are quoted, so that none is taken for a type or a number.

    Raises:
        ValueError: a signature cannot express the value.
    """
    text = "".join(_spelling(value))
    if values.parse(text) != (list_free := _tuples(value)):
        raise ValueError(f"{list_free!r} cannot be written in a signature")
    return text


def _spelling(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield repr(value)
    elif isinstance(value, list):
        yield f"({','.join(map(spelled, value))}{',' if len(value) == 1 else ''})"
    elif isinstance(value, dict):
        yield values.spell(value)
    else:
        yield repr(value)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
