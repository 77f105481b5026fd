"""Write kernels files as TOML that a person can read and edit: the inverse of `kernels.kernel_list.read`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tomlkit
from tomlkit.items import Table

_LINES = ("configs", "notes")  # one line for each part


def render(
    rows: Iterable[Mapping[str, Any]], head: str = "", captured: Mapping[str, Any] | None = None
) -> str:
    """Return the text of a file that lists kernels.

    Args:
        rows: keys and values of each kernel, in the order of the file.
        head: a comment for the reader.
        captured: origin of the list, if it was captured from a program.
    """
    document = tomlkit.document()
    for line in head.splitlines():
        document.add(tomlkit.comment(line))
    document.add("schema", tomlkit.item(1))
    if captured is not None:
        document.add("captured", _table(captured))
    every = tomlkit.aot()
    for row in rows:
        every.append(_table(row))
    document.add("kernel", every)
    return tomlkit.dumps(document)


def _table(content: Mapping[str, Any]) -> Table:
    table = tomlkit.table()
    for key, value in content.items():
        table.add(key, tomlkit.item(_inline(value, lines=key in _LINES)))
    table.add(tomlkit.nl())
    return table


def _inline(value: Any, *, lines: bool = False) -> Any:
    """Spell tables and lists in one line; with `lines`, a list gets one line per part."""
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update({key: _inline(part) for key, part in value.items()})
        return table
    if isinstance(value, (list, tuple)):
        array = tomlkit.array()
        array.extend(_inline(part) for part in value)
        return array.multiline(multiline=lines and bool(value))
    return value
