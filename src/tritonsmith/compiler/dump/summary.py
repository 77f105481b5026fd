"""The summary of a dump, shown after `passes.dump`."""

from __future__ import annotations

from tritonsmith.compiler.dump import pass_runs
from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.core.command_line import command
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui import units as formats
from tritonsmith.core.ui.tables import Grid


def table(index: DumpIndex) -> Grid:
    """Return a table with one row per kernel."""
    failed = any(kernel.failed for kernel in index.kernels)
    rows = []
    for kernel in index.kernels:
        mine = index.of(kernel.name)
        totals = pass_runs.totals(index, kernel.name)
        size = formats.size(sum(dump.size for dump in mine))
        seconds = sum(dump.seconds or 0.0 for dump in mine)
        took = formats.duration(seconds) if seconds else ""
        counts = [str(totals.passes), str(totals.changed), str(totals.dumps)]
        rows.append([kernel.name, kernel.target, *counts, size, took, *([kernel.failed] if failed else [])])
    right = ["passes", "changed", "dumps", "size"]
    heads = ["kernel", "target", *right, "in passes", *(["failed"] if failed else [])]
    by = f" by Triton {index.triton}" if index.triton else ""
    title = f"{len(index.dumps)} dumps{by}, {formats.size(index.size)}"
    return tables.plain(title, heads, rows, right=right)


def show(index: DumpIndex, *, json: bool = False, aside: bool = False) -> None:
    """Print the table, or the index as JSON; `aside` prints to standard error."""
    # Standard output may belong to the program that was run.
    to = console.err() if aside else console.out()
    if json:
        text = index.render()
        to.print(text, markup=False, end="") if aside else console.write(text, end="")
        return
    if index.kernels:
        to.print(table(index))
    to.print(f"{index.folder}", markup=False)
    if index.dumps:
        to.print(console.typed(f"next: {command('passes.list', index.folder)}"), markup=False)
    if torn := sum(not dump.whole for dump in index.dumps[:-1]):
        why = "threads or processes printed at the same time; use only one"
        console.warn(f"{torn} dumps are interleaved: {why}")
