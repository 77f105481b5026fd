"""`passes.list`, `passes.show` and `passes.diff`: read the dump of a compile."""

from __future__ import annotations

import webbrowser
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import OutFile, again, flag, split, word
from tritonsmith.cli.tasks.options import (
    ANY_ENV,
    DUMPED_KERNEL,
    FOLDER,
    JSON,
    MAYBE_NUMBER,
    NUMBER,
    OUT_FILE,
    PYTHON,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler.dump import index
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui import diff as ui_diff
from tritonsmith.core.ui import units as formats
from tritonsmith.inspect.layouts import converted
from tritonsmith.inspect.layouts import report as layouts_report
from tritonsmith.inspect.passes import diff as view_diff
from tritonsmith.inspect.passes import pipeline_table
from tritonsmith.inspect.passes import show as view_show
from tritonsmith.inspect.report import write
from tritonsmith.ir.layouts import memory_accesses, types_in
from tritonsmith.ir.normalize import diff as normalize_diff

if TYPE_CHECKING:
    from tritonsmith.compiler.dump.index import Dump, DumpIndex


@task(tables=True, name="list")
def listing(
    context: Context,
    folder: Path = FOLDER,
    kernel: str = DUMPED_KERNEL,
    changed: bool = flag("only passes that changed something", default=False),
    summary: bool = flag("describe each pass in one line (needs --source)", default=False),
    source: tuple[str, ...] = flag("checkout of Triton or LLVM with the descriptions (repeatable)", ()),
    json: bool = JSON,
) -> None:
    """List the passes of a dump with what each changed, and its time."""
    made = index.read(folder)
    chosen = index.choose_kernel(made, kernel)
    counted = pipeline_table.rows(made, chosen.name)
    if json:
        output.json(pipeline_table.as_json(made, chosen, counted), indent=None)
        return
    said = pipeline_table.pass_at(source, wanted=summary)
    console.out().print(pipeline_table.table(made, chosen, counted, said, changed=changed))
    if chosen.failed:
        console.warn(
            f"{chosen.failed} failed" + (f": {chosen.error.splitlines()[0]}" if chosen.error else "")
        )


@task(tables=True, name="show")
def show(
    context: Context,
    folder: Path = FOLDER,
    number: str = NUMBER,
    kernel: str = DUMPED_KERNEL,
    after: bool = flag("print the output of the pass, not its input", default=False),
    normal: bool = flag("renumber values, and omit locations", default=False),
    path: bool = flag("print the path of the file, instead of its text", default=False),
    layouts: bool = flag("print layouts and bank conflicts, instead of the text", default=False),
    env: str = again(ANY_ENV, "wheel"),
    python: Path | None = PYTHON,
    json: bool = JSON,
) -> None:
    """Print the IR before or after a pass."""
    if not layouts and (env or python or json):
        raise UsageError("--env, --python and --json require --layouts", hints=["omit them"])
    if layouts and (normal or path):
        raise UsageError("--layouts prints no text: --normal and --path have no effect", hints=["omit them"])
    made = index.read(folder)
    dump = index.choose_dump(made, index.choose_kernel(made, kernel).name, number)
    shown = view_diff.left(made, dump) if after else dump
    out = console.out()
    if layouts:
        _layouts(view_show.text(made, shown), env or "wheel", str(python or ""), json=json)
    elif path:
        console.write(made.path(shown))
    elif out.is_terminal:
        out.print(view_show.highlighted(made, shown, plain=normal), end="")
    else:
        console.write(view_show.text(made, shown, plain=normal), end="")


def _layouts(ir: str, env: str, python: str, *, json: bool) -> None:
    """Print the layouts of a module, and the bank conflicts of its loads and stores of shared memory."""
    definitions = view_diff.layout_definitions(ir)
    written = tuple(types_in(ir, definitions))
    accesses = tuple(memory_accesses(ir, definitions))
    if not written:
        raise FactError("this IR has no layouts", hints=["layouts come with the stage ttgir"])
    where = choose_interpreter(env, python)
    types = tuple(dict.fromkeys(one.type for one in written))
    made = {one.type: one for one in converted.convert(types, where.python, where.space)}
    if json:
        rows = [layouts_report.access_json(one, made) for one in accesses]
        output.json({"layouts": [layouts_report.as_json(one) for one in made.values()], "accesses": rows})
        return
    console.out().print(layouts_report.layout_table(written, made))
    table, uncounted = layouts_report.access_table(accesses, made)
    if table:
        console.out().print()
        console.out().print(table)
    output.notes(uncounted)


@task(tables=True, name="find")
def find(
    context: Context,
    folder: Path = FOLDER,
    text: str = word("what to look for: convert_layout"),
    kernel: str = DUMPED_KERNEL,
    regex: bool = flag("the text is a regular expression", default=False),
    json: bool = JSON,
) -> None:
    """Show which passes add, duplicate or remove a text."""
    made = index.read(folder)
    chosen = index.choose_kernel(made, kernel)
    found = view_show.find_text(made, chosen.name, text, regex=regex)
    if json:
        output.json(view_show.events_as_json(found), indent=None)
        return
    if not found.dumps:
        hints = ["locations are not searched"] if "loc" in text or "dbg" in text else []
        raise SmithError(f"{text!r} is in no pass's input of {chosen.name}", where=made.folder, hints=hints)
    console.out().print(view_show.events_table(found, text))


@task(name="report")
def report(
    context: Context,
    folder: Path = FOLDER,
    out: OutFile | None = again(OUT_FILE, "report.html in DIR"),
    against: Path | None = flag("another dump's folder, to compare with", None),
    open: bool = flag("open the page in the browser", default=False),  # noqa: A002 - a flag
) -> None:
    """Write one self-contained HTML page of all passes."""
    file = out.path("report.html") if out else folder / "report.html"
    write.check(file)
    made = write.make(index.read(folder), file, index.read(against) if against else None)
    console.out().print(str(made.path), markup=False)
    console.note(
        f"{made.passes} passes, {formats.size(made.dumped)} of IR in {formats.size(made.size)}, "
        f"{formats.duration(made.seconds)}"
    )
    if open and not webbrowser.open(made.path.as_uri()):
        console.warn("no browser found: open the file in your browser")


@task(tables=True, name="diff")
def diff(
    context: Context,
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
    made = index.read(folder)
    if against:
        if number:
            raise UsageError("--against compares whole dumps", hints=[f"omit {number}"])
        other = index.read(against)
        _part_of_diff(made, other, kernel, ops=ops, layouts=layouts, json=json)
        return
    if not number:
        hints = [f"{command('passes.list', folder)} has the numbers", "--against OTHER compares two dumps"]
        raise UsageError("name a pass by its number", hints=hints)
    name = index.choose_kernel(made, kernel).name
    dump = index.choose_dump(made, name, number)
    one, two = (dump, index.choose_dump(made, name, to)) if to else view_diff.sides(made, dump)
    _print_diff((made, one), (made, two), ops=ops, layouts=layouts, json=json)


def _part_of_diff(
    made: DumpIndex, other: DumpIndex, kernel: str, *, ops: bool, layouts: bool, json: bool
) -> None:
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
    _print_diff((made, one), (other, two), ops=ops, layouts=layouts, json=json, about=about)


def _print_diff(
    one: tuple[DumpIndex, Dump],
    two: tuple[DumpIndex, Dump],
    *,
    ops: bool,
    layouts: bool,
    json: bool,
    about: Mapping[str, object] | None = None,
) -> None:
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
