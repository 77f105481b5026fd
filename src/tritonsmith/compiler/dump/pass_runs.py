"""Pair dumps into passes: the one definition for `passes.dump`, `passes.list` and `passes.show`.

A dump is one text that was printed. A pass is one run of a pass: on three functions it runs three times.
Texts printed before and after it are two dumps of one pass; texts that a pass prints while it runs, and
assembly, are dumps of no pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tritonsmith.compiler.dump.index import Dump, DumpIndex
from tritonsmith.core.command_line import command
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui import units as formats
from tritonsmith.core.ui.tables import Grid


@dataclass(frozen=True)
class PassRun:
    """A row of the pipeline.

    Attributes:
        dump: the dump that represents it; if IR was printed before and after it, the first.
        before: the pass's input; None if it was not printed.
        after: the pass's output; None if it was not printed.
    """

    dump: Dump
    before: Dump | None
    after: Dump | None

    @property
    def counts(self) -> bool:
        """True for a pass; False for text that the previous pass printed while it ran, and for assembly."""
        return not self.dump.inside and self.dump.kind not in ("ptx", "amdgcn")


@dataclass(frozen=True)
class PassTotals:
    """The counts of one kernel.

    Attributes:
        passes: passes that ran.
        changed: passes that changed their IR, locations aside.
        unknown: passes of which this is unknown: no later dump was printed, or other passes ran in between.
        dumps: texts that were printed.
    """

    passes: int
    changed: int
    unknown: int
    dumps: int

    def __str__(self) -> str:
        """Return the counts in words, as every report of a dump shows them."""
        unknown = f" ({self.unknown} may have)" if self.unknown else ""
        return (
            f"{_many(self.passes, 'pass', 'passes')}, {self.changed} changed something{unknown}; "
            f"{_many(self.dumps, 'dump', 'dumps')}"
        )


def of(index: DumpIndex, kernel: str) -> Iterator[PassRun]:
    """Yield the rows of one kernel, in order."""
    for dump in index.of(kernel):
        other = None if dump.against is None else index.dumps[dump.against]
        if dump.when == "before":
            yield PassRun(dump, dump, other)
        elif other is None or not _same_pass(index, other, dump):
            yield PassRun(dump, other, dump)


def totals(index: DumpIndex, kernel: str) -> PassTotals:
    """Count the passes and dumps of one kernel."""
    passes = [row.dump for row in of(index, kernel) if row.counts]
    return PassTotals(
        passes=len(passes),
        changed=sum(dump.changed is True for dump in passes),
        unknown=sum(dump.changed is None for dump in passes),
        dumps=len(index.of(kernel)),
    )


def _same_pass(index: DumpIndex, before: Dump, after: Dump) -> bool:
    """Report whether both dumps show one pass, so that one row is enough."""
    followed = None if before.against is None else index.dumps[before.against]
    return before.when == "before" and followed == after and before.name == after.name


def _many(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}"


def summary_table(index: DumpIndex) -> Grid:
    """Return a table with one row per kernel."""
    failed = any(kernel.failed for kernel in index.kernels)
    rows = []
    for kernel in index.kernels:
        mine = index.of(kernel.name)
        counted = totals(index, kernel.name)
        size = formats.size(sum(dump.size for dump in mine))
        seconds = sum(dump.seconds or 0.0 for dump in mine)
        took = formats.duration(seconds) if seconds else ""
        counts = [str(counted.passes), str(counted.changed), str(counted.dumps)]
        rows.append([kernel.name, kernel.target, *counts, size, took, *([kernel.failed] if failed else [])])
    right = ["passes", "changed", "dumps", "size"]
    heads = ["kernel", "target", *right, "in passes", *(["failed"] if failed else [])]
    by = f" by Triton {index.triton}" if index.triton else ""
    title = f"{len(index.dumps)} dumps{by}, {formats.size(index.size)}"
    return tables.plain(title, heads, rows, right=right)


def show_summary(index: DumpIndex, *, json: bool = False, aside: bool = False) -> None:
    """Print the table, or the index as JSON; `aside` prints to standard error."""
    # Standard output may belong to the program that was run.
    to = console.err() if aside else console.out()
    if json:
        text = index.render()
        to.print(text, markup=False, end="") if aside else console.write(text, end="")
        return
    if index.kernels:
        to.print(summary_table(index))
    to.print(f"{index.folder}", markup=False)
    if index.dumps:
        to.print(console.typed(f"next: {command('passes.list', index.folder)}"), markup=False)
    if torn := sum(not dump.whole for dump in index.dumps[:-1]):
        why = "threads or processes printed at the same time; use only one"
        console.warn(f"{torn} dumps are interleaved: {why}")
