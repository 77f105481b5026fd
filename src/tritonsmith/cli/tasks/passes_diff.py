"""`passes.diff`: show what a pass changed, or where two dumps diverge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag, split, word
from tritonsmith.cli.tasks.options import FOLDER, JSON, MAYBE_NUMBER
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import UsageError

if TYPE_CHECKING:
    from tritonsmith.compiler.dump.index import Dump, DumpIndex


@task(tables=True, name="diff")
def diff(
    context: Any,
    folder: Path = FOLDER,
    number: str = MAYBE_NUMBER,
    to: str = word("pass whose input is compared, instead of the first pass's output", ""),
    kernel: str = flag("kernel of the dump; with --against also two: double,double-2", ""),
    ops: bool = flag("compare counts of operations, instead of lines", default=False),
    layouts: bool = flag("compare uses of layouts, ignoring their aliases", default=False),
    against: Path | None = flag("another dump's folder: find the first pass that differs", None),
    json: bool = JSON,
) -> None:
    """Show what a pass changed, or where two dumps diverge."""
    from tritonsmith.compiler.dump import index
    from tritonsmith.inspect.passes import diff as view_diff

    made = index.read(folder)
    if against:
        if number:
            raise UsageError("--against compares whole dumps", hints=[f"omit {number}"])
        other = index.read(against)
        _part(made, other, kernel, ops=ops, layouts=layouts, json=json)
        return
    if not number:
        hints = [f"{command('passes.list', folder)} has the numbers", "--against OTHER compares two dumps"]
        raise UsageError("name a pass by its number", hints=hints)
    name = index.choose_kernel(made, kernel).name
    dump = index.choose_dump(made, name, number)
    one, two = (dump, index.choose_dump(made, name, to)) if to else view_diff.sides(made, dump)
    _print((made, one), (made, two), ops=ops, layouts=layouts, json=json)


def _part(made: DumpIndex, other: DumpIndex, kernel: str, *, ops: bool, layouts: bool, json: bool) -> None:
    from tritonsmith.compiler.dump import index
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.passes import diff as view_diff

    names = split(kernel) or ("",)
    if len(names) > 2:  # noqa: PLR2004 - one for each dump
        raise UsageError("--kernel takes one kernel, or one per dump", hints=["--kernel double,double-2"])
    both = ((made, names[0]), (other, names[-1]))
    first, second = (view_diff.ComparedRun(one, index.choose_kernel(one, name)) for one, name in both)
    found = view_diff.divergence(first, second)
    said = view_diff.said(found)
    numbers = [dump and dump.number for dump in (found.one, found.other)]
    about = {"said": said, "parted": bool(found.one or found.other), "passes": numbers}
    known = found.already or all(dump and view_diff.shows(dump) for dump in (found.one, found.other))
    if not (found.one and found.other and known):
        if json:
            output.json({"schema": 1, **about}, indent=None)
        else:
            console.out().print(said, markup=False)
        return
    one, two = found.one, found.other
    if not found.already:
        one, two = view_diff.left(made, one), view_diff.left(other, two)
    if not json:
        console.out().print(said, markup=False)
    _print((made, one), (other, two), ops=ops, layouts=layouts, json=json, about=about)


def _print(
    one: tuple[DumpIndex, Dump],
    two: tuple[DumpIndex, Dump],
    *,
    ops: bool,
    layouts: bool,
    json: bool,
    about: Mapping[str, object] | None = None,
) -> None:
    from dataclasses import asdict

    from tritonsmith.core.ui import console, tables
    from tritonsmith.core.ui import diff as ui_diff
    from tritonsmith.inspect.passes import diff as view_diff
    from tritonsmith.ir.normalize import diff as normalize_diff

    before, after = one[0].text(one[1]), two[0].text(two[1])
    kind = view_diff.language(one[1])
    counted = {}
    if ops or json:
        counted["operations"] = view_diff.operations(before, after, kind)
    if layouts or json:
        counted["layouts"] = view_diff.layouts(before, after)
    found = normalize_diff.of(before, after, kind) if json or not counted else None
    if json:
        content = {name: [asdict(row) for row in rows] for name, rows in counted.items()}
        output.json(
            {"schema": 1, **(about or {}), **content, "diff": asdict(found) if found else None}, indent=None
        )
        return
    out = console.out()
    for what, rows in counted.items():
        cells = [[row.what, str(row.before), str(row.after), f"{row.after - row.before:+}"] for row in rows]
        table = tables.plain(what, [what, "before", "after", ""], cells, right=["before", "after", ""])
        out.print(table if rows else f"no {what} changed")
    if found:
        lines = ui_diff.coloured(found.lines)
        out.print(lines if found.lines else "nothing changed but locations and names\n", end="")
