"""Show layouts as tables and as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.inspect.layouts import banks
from tritonsmith.inspect.layouts.banks import BankAccess
from tritonsmith.inspect.layouts.converted import ConvertedLayout
from tritonsmith.ir.layout_types import LayoutType, MemoryAccess, WrittenType
from tritonsmith.ir.linear import LinearLayout

_MOST = 16  # elements that the grid shows in each direction
_CONFLICTS = "Bank conflicts of one warp, by plain loads and stores"


def sentence(linear: LinearLayout) -> str:
    """Describe how the elements are distributed, and how often each is held."""
    copies = linear.copies
    held = "each element is held once" if copies == 1 else f"each element is held {copies} times"
    if not linear.distributed:
        sizes = " x ".join(f"{linear.size(name)} {name}s" for name in linear.inputs if linear.size(name) > 1)
        return f"{sizes}; {held}"
    parts = [f"{linear.size(name)} {name}s" for name in ("block", "warp") if linear.size(name) > 1]
    parts += [f"{linear.size('lane')} lanes", f"{linear.size('register')} registers of each"]
    return f"{' x '.join(parts)}; {held}"


def basis_table(linear: LinearLayout) -> Grid:
    """Return a table of what each bit of a register's, lane's or warp's number adds to the element."""
    heads = ["input", "bit", *(f"dim{at}" for at in range(len(linear.shape)))]
    rows = [
        [name, str(1 << bit), *map(str, basis)]
        for name in reversed(linear.inputs)
        for bit, basis in enumerate(linear.bases[name])
    ]
    return tables.plain("Bases (combined by XOR)", heads, rows, right=heads[1:], keys=2)


def grid(linear: LinearLayout, width: int) -> Grid:
    """Return a grid of the first elements with their holders; of more than two dimensions, the last two.

    Args:
        linear: the layout.
        width: of the screen; as many columns are shown as fit, a power of two.
    """
    leading = (0,) * (len(linear.shape) - 2)
    *_, rows, columns = (1, *linear.shape)
    shown = [
        [
            linear.spelled(((*leading, row) if len(linear.shape) > 1 else ()) + (column,))
            for column in range(min(columns, _MOST))
        ]
        for row in range(min(rows, _MOST))
    ]
    cell = max(map(len, chain.from_iterable(shown))) + 2
    fitting = min(len(shown[0]), 1 << max(1, (width - 4) // cell).bit_length() - 1)
    what = "row:column" if "row" in linear.bases else "thread:register" if linear.distributed else "offset"
    title = f"Who holds which element ({what})"
    if rows > len(shown) or columns > fitting:
        title += f": rows 0 to {len(shown) - 1} of {rows}, columns 0 to {fitting - 1} of {columns}"
    heads = ["", *map(str, range(fitting))]
    cells = [[str(row), *places[:fitting]] for row, places in enumerate(shown)]
    return tables.plain(title, heads, cells, right=heads)


def bank_table(accesses: Iterable[BankAccess]) -> Grid:
    """Return a table of the wavefronts that accesses take, and need."""
    rows = [[access.what, *_figures(access)] for access in accesses]
    heads = ["access", "bytes per lane", "wavefronts", "at least", "conflict"]
    return tables.plain(_CONFLICTS, heads, rows, right=heads[1:4])


def along(one: ConvertedLayout, threads: ConvertedLayout | None) -> list[BankAccess]:
    """Return the accesses to a layout of shared memory, by other threads if they are given."""
    if one.linear is None or one.type.kind != "shared memory":
        return []
    if threads and threads.linear:
        return (
            [banks.by(one.linear, threads.linear, one.type.bits, "by these threads")]
            if _nvidia(threads.linear)
            else []
        )
    return list(banks.along(one.linear, one.type.bits))


def layout_table(written: Iterable[WrittenType], made: Mapping[LayoutType, ConvertedLayout]) -> Grid:
    """Return a table of the layouts of a module."""
    elements: dict[tuple[str, LayoutType], dict[str, None]] = {}
    for entry in written:
        elements.setdefault((entry.name, entry.type), {})[entry.element] = None
    rows = []
    for (name, where), held in elements.items():
        converted = made[where]
        head = [name, "x".join(map(str, where.shape)), ", ".join(held), where.kind]
        if linear := converted.linear:
            counts = [str(linear.size(of)) if linear.distributed else "" for of in ("warp", "register")]
            rows.append([*head, *counts, str(linear.copies), ""])
        else:
            rows.append([*head, "", "", "", converted.error.splitlines()[0]])
    heads = ["layout", "shape", "of", "where", "warps", "per thread", "copies"]
    if any(row[-1] for row in rows):
        heads.append("not converted")
    return tables.plain("Layouts", heads, [row[: len(heads)] for row in rows], right=heads[4:7], keys=2)


def access_table(
    accesses: Sequence[MemoryAccess], made: Mapping[LayoutType, ConvertedLayout]
) -> tuple[Grid | None, tuple[str, ...]]:
    """Count the bank conflicts of a module's loads and stores.

    Returns:
        A table, None if nothing is counted; and the reasons why other accesses are not counted.
    """
    rows, others = [], Counter[str]()
    for access in accesses:
        if why := _uncounted(access, made):
            others[why] += 1
        else:
            counts = _by(access, made)
            rows.append(
                [
                    str(access.line),
                    access.operation,
                    access.memory.name,
                    access.tensor.name,
                    *_figures(counts),
                ]
            )
    heads = ["line", "operation", "memory", "threads", "bytes per lane", "wavefronts", "at least", "conflict"]
    right = [heads[0], *heads[4:7]]
    table = tables.plain(_CONFLICTS, heads, rows, right=right, keys=2) if rows else None
    total = len(accesses)
    return table, tuple(
        f"{_CONFLICTS}: {few} of {total} accesses not counted: {why}" for why, few in others.items()
    )


def access_json(one: MemoryAccess, made: Mapping[LayoutType, ConvertedLayout]) -> dict[str, Any]:
    """Return a load or store as JSON data; `uncounted` is the reason if there are no figures."""
    row: dict[str, Any] = {"line": one.line, "operation": one.operation}
    row |= {"memory": one.memory.type.text, "tensor": one.tensor.type.text}
    if why := _uncounted(one, made):
        return {**row, "uncounted": why}
    return {**row, **_banks(_by(one, made))}


def _uncounted(access: MemoryAccess, made: Mapping[LayoutType, ConvertedLayout]) -> str:
    """Return the reason why bank conflicts of an access are not counted; empty if they are."""
    memory, tensor = made[access.memory.type].linear, made[access.tensor.type].linear
    if memory is None or tensor is None:
        return "a layout is not converted"
    for row in configs.load("layouts")["banks"]["other"]:
        if re.match(row["threads"], access.tensor.type.layout) and access.memory.type.bits <= row["bits"]:
            return str(row["why"])
    if not _nvidia(tensor):
        return "banks and warps are counted as NVIDIA has them"
    if len(memory.shape) != len(tensor.shape):
        return "memory and threads have layouts of different shapes"
    return ""


def _by(access: MemoryAccess, made: Mapping[LayoutType, ConvertedLayout]) -> BankAccess:
    memory, tensor = made[access.memory.type].linear, made[access.tensor.type].linear
    assert memory is not None  # noqa: S101 - `_uncounted` was asked before
    assert tensor is not None  # noqa: S101
    return banks.by(memory, tensor, access.memory.type.bits, f"{access.operation} of line {access.line}")


def as_json(one: ConvertedLayout, accesses: Iterable[BankAccess] = ()) -> dict[str, Any]:
    """Return a layout as JSON data."""
    head: dict[str, Any] = {
        "layout": one.type.layout,
        "type": one.type.text,
        "where": one.type.kind,
        "error": one.error,
    }
    if one.linear is None:
        return head
    linear = one.linear
    rest = {"shape": linear.shape, "bases": linear.bases, "padding": linear.padding, "copies": linear.copies}
    return {**head, **rest, "banks": [_banks(access) for access in accesses]}


def _banks(access: BankAccess) -> dict[str, Any]:
    return {**vars(access), "ways": access.ways}


def _figures(access: BankAccess) -> Iterator[str]:
    yield from (str(access.width), str(access.wavefronts), str(access.least))
    yield "none" if access.wavefronts == access.least else f"{access.ways:.3g}-way"


def _nvidia(threads: LinearLayout) -> bool:
    return bool(threads.size("lane") == configs.load("layouts")["banks"]["lanes"])
