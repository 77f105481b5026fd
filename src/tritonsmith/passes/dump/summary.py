"""The summary of a dump, shown after `passes.dump` and `passes.import`."""

from __future__ import annotations

from tritonsmith.passes.dump import pass_runs
from tritonsmith.passes.dump.index import DumpIndex
from tritonsmith.ui import console, tables
from tritonsmith.ui import units as formats
from tritonsmith.ui.tables import Grid


def table(index: DumpIndex) -> Grid:
    """One line for each kernel."""
    rows = []
    for kernel in index.kernels:
        mine = index.of(kernel.name)
        totals = pass_runs.totals(index, kernel.name)
        size = formats.size(sum(dump.size for dump in mine))
        seconds = sum(dump.seconds or 0.0 for dump in mine)
        took = formats.duration(seconds) if seconds else ""
        counts = [str(totals.passes), str(totals.changed), str(totals.dumps)]
        rows.append([kernel.name, kernel.target, *counts, size, took, kernel.failed])
    failed = any(kernel.failed for kernel in index.kernels)
    columns = ["kernel", "target", "passes", "changed", "dumps", "size", "in passes", "failed"]
    by = f" by Triton {index.triton}" if index.triton else ""
    kept = [row if failed else row[:-1] for row in rows]
    heads = columns if failed else columns[:-1]
    return tables.plain(
        f"{len(index.dumps)} dumps{by}, {formats.size(index.size)}",
        heads,
        kept,
        right=["passes", "changed", "dumps", "size"],
    )


def show(index: DumpIndex, *, json: bool = False, aside: bool = False) -> None:
    """Print it.

    Args:
        index: of the folder.
        json: print the index instead.
        aside: standard output is another program's: print to standard error.
    """
    to = console.err() if aside else console.out()
    if json:
        text = index.render()
        to.print(text, markup=False, end="") if aside else console.write(text, end="")
        return
    if index.kernels:
        to.print(table(index))
    to.print(f"{index.folder}", markup=False)
    torn = sum(not dump.whole for dump in index.dumps[:-1])
    if torn:
        console.warn(
            f"{torn} dumps are interleaved: threads or processes printed at the same time; use only one"
        )
