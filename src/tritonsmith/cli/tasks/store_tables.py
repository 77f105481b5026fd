"""The tables of `store` and `store.gc`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonsmith.core.ui import console
from tritonsmith.core.ui import units as formats

if TYPE_CHECKING:
    from tritonsmith.build.store.gc import PreparedGc
    from tritonsmith.build.store.list_ import StoreListing, StoreRow


def listed(found: StoreListing) -> None:
    """Return the table of entries and their problems."""
    from tritonsmith.core.ui import tables

    if found.rows:
        rows = [_cells(row, found.now) for row in found.rows]
        head, right = ["entry", "size", "age"], ["size", "age"]
        console.out().print(tables.plain(str(found.store.root), head, rows, right=right))
        total = f"{formats.entries(len(found.rows))}, {formats.size(found.bytes)}"
    else:
        total = f"nothing in {found.store.root} yet: `invoke setup-mlir` fills it"
    console.out().print(console.typed(total), markup=False)
    for row in found.rows:
        if row.entry.problem:
            console.note(f"{row.entry.name}: {row.entry.problem}")
        for use in row.uses:
            if "cannot be checked" in use.why:
                console.note(f"{row.entry.name}, kept for {use.in_words} of {use.user.user}: {use.why}")


def _cells(row: StoreRow, now: float) -> list[str]:
    """Return the cells of an entry: its name alone in a line, for copying; below it description and users."""
    lines = [row.entry.name]
    if have := row.entry.manifest:
        commit = f" {have.commit[:12]}{'+' if have.diff else ''}" if have.commit else ""
        asserts = " + asserts" if have.assertions else ""
        part = "" if have.scope == "all" or have.closures else ", in part"
        built = have.scope if have.kind == "built" else f"{have.kind}{part}"
        lines.append(f"  {have.version}{commit}, {have.build_type}{asserts}, {built}")
    if row.entry.status != "ready":
        lines.append(f"  {row.entry.status}")
    lines += [f"  used by {name}" for name in dict.fromkeys(use.in_words for use in row.uses)]
    size = "" if row.bytes is None else formats.size(row.bytes)
    return ["\n".join(lines), size, formats.age(now - row.made)]


def to_delete(prepared: PreparedGc, found: StoreListing) -> None:
    """Return the table of entries to delete and to keep, and the space that is freed."""
    from tritonsmith.core.ui import tables

    def cells(row: StoreRow, more: str) -> list[str]:
        size = "" if row.bytes is None else formats.size(row.bytes)
        state = "" if row.entry.status == "ready" else f" ({row.entry.status})"
        return [f"{row.entry.name}{state}{more}", size, formats.age(found.now - row.used)]

    head, right = ["entry", "size", "last used"], ["size", "last used"]
    if prepared.going:
        rows = [cells(row, "") for row in prepared.going]
        console.out().print(tables.plain("to delete", head, rows, right=right))
    if prepared.staying:
        rows = [cells(row, f"\n  {reason}") for row, reason in prepared.staying]
        console.out().print(tables.plain("kept", head, rows, right=right))
    if prepared.leftovers:
        console.out().print(f"left by stopped runs: {formats.size(prepared.leftovers)}", markup=False)
    if not prepared.plan.steps:
        console.out().print("nothing to delete", markup=False)
        return
    after = formats.size(prepared.before + prepared.leftovers - prepared.freed)
    before = formats.size(prepared.before + prepared.leftovers)
    console.out().print(f"{before} -> {after}", markup=False)
