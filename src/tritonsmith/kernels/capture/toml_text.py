"""The list of kernels as TOML that a person can read and edit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tomlkit

from tritonsmith.kernels.compile import values

_INLINE = ("options",)
_LINES = ("configs", "notes")  # one line for each part


def render(captured: Mapping[str, Any], kernels: Iterable[Mapping[str, Any]]) -> str:
    """The text.

    Args:
        captured: how it came to be.
        kernels: entries of the list.
    """
    document = tomlkit.document()
    document.add("schema", tomlkit.item(1))
    document.add("captured", _table(captured))
    every = tomlkit.aot()
    for one in kernels:
        every.append(_table(one))
    document.add("kernel", every)
    return tomlkit.dumps(document)


def _table(content: Mapping[str, Any]) -> tomlkit.items.Table:
    table = tomlkit.table()
    for name, value in content.items():
        if name in _INLINE:
            table.add(name, _inline(value))
        elif name in _LINES:
            lines = tomlkit.array()
            lines.extend(_inline(part) if isinstance(part, Mapping) else part for part in value)
            table.add(name, lines.multiline(multiline=bool(value)))
        else:
            table.add(name, value)
    return table


def _inline(content: Mapping[str, Any]) -> tomlkit.items.InlineTable:
    table = tomlkit.inline_table()
    for name, value in content.items():
        table.add(name, _plain(value))
    return table


def _plain(value: Any) -> Any:
    """A value as `values.parse` takes it, where it is a text."""
    if value is None or isinstance(value, (dict, str)):
        return values.spell(value)
    return value
