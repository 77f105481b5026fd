"""Lists of kernels as TOML: the inverse of `kernel_list.read`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tomlkit
from tomlkit.items import Table

from tritonsmith.kernels.batch.kernel_list import ListedKernel


def render(kernels: Iterable[ListedKernel], head: str) -> str:
    """The text of a file that lists these kernels.

    Args:
        kernels: in the order of the file.
        head: a comment for who reads it.
    """
    document = tomlkit.document()
    for line in head.splitlines():
        document.add(tomlkit.comment(line))
    document.add("schema", tomlkit.item(1))
    rows = tomlkit.aot()
    for kernel in kernels:
        rows.append(_row(kernel))
    document.add("kernel", rows)
    return tomlkit.dumps(document)


def _row(kernel: ListedKernel) -> Table:
    keys = {
        "name": kernel.name,
        "file": kernel.file,
        "kernel": kernel.kernel,
        "module": kernel.module,
        "signature": kernel.signature,
        "arguments": None if kernel.signature else kernel.arguments,
        "targets": [target.asked_again() for target in kernel.targets],
        "options": kernel.options,
        "versions": str(kernel.versions),
        "configs": kernel.configs,
        "count": kernel.count,
        "grid": [list(grid) for grid in kernel.grids],
        "where": list(kernel.launched_from),
        "sha256": kernel.sha256,
    }
    table = tomlkit.table()
    for key, value in keys.items():
        if value or (key == "signature" and not kernel.arguments):
            table.add(key, tomlkit.item(_inline(value)))
    table.add(tomlkit.nl())
    return table


def _inline(value: Any) -> Any:
    """Tables in one line; a list of them with one in each."""
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update({key: _inline(one) for key, one in value.items()})
        return table
    if isinstance(value, (list, tuple)):
        array = tomlkit.array()
        array.extend(_inline(one) for one in value)
        return array.multiline(multiline=any(isinstance(one, Mapping) for one in value))
    return value
