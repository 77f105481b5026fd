"""`passes.list`, `passes.show` and `passes.diff`: read the dump of a compile.

`passes.dump`: record the IR before every pass, also from a log or with variables that Triton reads.
"""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import CompileOptions, ToolchainOptions, target_of
from tritonsmith.cli.tasks.option_fields import CommaList, OutFile, again, command_line, flag, split, word
from tritonsmith.cli.tasks.options import (
    ANY_ENV,
    DRY_RUN,
    DUMPED_KERNEL,
    FOLDER,
    FROM_CACHE,
    JSON,
    MAYBE_NUMBER,
    NUMBER,
    OUT,
    OUT_FILE,
    PYTHON,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import env_profiles
from tritonsmith.compiler.dump import import_log, index, pass_runs, run
from tritonsmith.compiler.dump.run import Choices
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.core.command_line import command, flag_of
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import files, programs
from tritonsmith.core.text import byte_size, duration
from tritonsmith.core.ui import console, tables
from tritonsmith.facts import checkout, installed_tritons
from tritonsmith.inspect import layouts
from tritonsmith.inspect import layouts as layouts_report
from tritonsmith.inspect.passes import pipeline_table
from tritonsmith.inspect.passes import show as view_diff
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
    counted = pipeline_table.pass_changes(made, chosen.name)
    if json:
        output.json(pipeline_table.as_json(made, chosen, counted), indent=None)
        return
    said = pipeline_table.requested_summaries(source, requested=summary)
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
    shown = view_diff.after_pass(made, dump) if after else dump
    out = console.out()
    if layouts:
        _layouts(view_show.dump_text(made, shown), env or "wheel", str(python or ""), json=json)
    elif path:
        console.write(made.path(shown))
    elif out.is_terminal:
        out.print(view_show.highlighted(made, shown, plain=normal), end="")
    else:
        console.write(view_show.dump_text(made, shown, plain=normal), end="")


def _layouts(ir: str, env: str, python: str, *, json: bool) -> None:
    """Print the layouts of a module, and the bank conflicts of its loads and stores of shared memory."""
    definitions = view_diff.layout_definitions(ir)
    written = tuple(types_in(ir, definitions))
    accesses = tuple(memory_accesses(ir, definitions))
    if not written:
        raise FactError("this IR has no layouts", hints=["layouts come with the stage ttgir"])
    where = choose_interpreter(env, python)
    types = tuple(dict.fromkeys(one.type for one in written))
    made = {one.type: one for one in layouts.convert(types, where.python, where.space)}
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
    write.check_name(file)
    made = write.write_report(index.read(folder), file, index.read(against) if against else None)
    console.out().print(str(made.path), markup=False)
    console.note(
        f"{made.passes} passes, {byte_size(made.dumped)} of IR in {byte_size(made.size)}, "
        f"{duration(made.seconds)}"
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
    one, two = (dump, index.choose_dump(made, name, to)) if to else view_diff.before_and_after(made, dump)
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
    said = view_diff.describe(found)
    numbers = [dump and dump.number for dump in (found.mine, found.theirs)]
    about = {"said": said, "parted": bool(found.mine or found.theirs), "passes": numbers}
    known = found.already or all(dump and view_diff.shows(dump) for dump in (found.mine, found.theirs))
    if not (found.mine and found.theirs and known):
        if json:
            output.json({"schema": 1, **about}, indent=None)
        else:
            console.out().print(said, markup=False)
        return
    one, two = found.mine, found.theirs
    if not found.already:
        one, two = view_diff.after_pass(made, one), view_diff.after_pass(other, two)
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
        lines = console.coloured_diff(found.lines)
        out.print(lines if found.lines else "nothing changed but locations and names\n", end="")


@task(tables=True, name="dump")
def dump(
    context: Context,
    what: CompileOptions,
    by: ToolchainOptions,
    kernel: str = word("FILE[:KERNEL] or kernels file; or after the flags: -- python script.py", ""),
    from_cache: str = FROM_CACHE,
    llvm: bool = flag("also dump LLVM's passes", default=False),
    backend: bool = flag("also dump PTX and AMD's assembly", default=False),
    no_line_info: bool = flag("omit locations, for smaller dumps", default=False),
    reproducers: bool = flag("write a reproducer of each pipeline, in the folder reproducers", default=False),
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Record the IR before every pass: one file per pass, plus an index."""
    choices = Choices(llvm, backend, not no_line_info, reproducers)
    _, program = command_line()
    if program:
        if kernel or from_cache:
            raise UsageError("give either a kernel or a command", hints=["omit one of them"])
        if wrong := [flag_of(name) for name, value in vars(what).items() if value not in (None, "", ())]:
            hints = ["omit them", f"{command('passes.replay')} skips passes in a command"]
            raise UsageError(f"{', '.join(wrong)}: for a kernel, not for a command", hints=hints)
        space = workspace.default()
        prepared, step = run.of_program(program, space, choices, out)
        if dry_run:
            output.plan(prepared.plan)
            return
        with import_log.explaining_full_disk(prepared.out):
            index, code = run.dump_program(prepared, step, space)
        pass_runs.show_summary(index, json=json, aside=True)
        if code:
            raise Exit(code=code)
        run.check(index)
        return
    target = target_of("ttgir")
    asked = what.request(kernel, target=target, from_cache=from_cache, by=by)
    made = run.of_kernel(asked, by.toolchain(asked, dry_run=dry_run), choices, out)
    if dry_run:
        output.plan(made.prepared.plan)
        return
    with import_log.explaining_full_disk(made.prepared.out):
        index, manifest = run.dump_kernel(made)
    pass_runs.show_summary(index, json=json)
    bad = [point for point in manifest.points if point.status != "ok"]
    if bad:
        again = command("passes.show", index.folder, "last")
        raise SmithError(
            f"{len(bad)} of {len(manifest.points)} compiles failed",
            where=index.folder,
            why="\n".join(run.failures(index)) or bad[0].error,
            hints=[f"{again} prints the input of the failing pass"] if index.dumps else [],
        )
    run.check(index)


@task(tables=True, name="import")
def import_(
    context: Context,
    file: str = word("log: plain, gzip or zstd; - for standard input"),
    out: Path | None = OUT,
    python: Path | None = flag("interpreter with the Triton that printed it, for passes.replay", None),
    json: bool = JSON,
) -> None:
    """Import a saved MLIR_ENABLE_DUMP log."""
    index = import_log.read_with_progress(file, out or import_log.place(file), python=str(python or ""))
    pass_runs.show_summary(index, json=json)
    import_log.check(index)


@task(tables=True, name="ir-env")
def ir_env(
    context: Context,
    profile: CommaList = word("sets of variables: nvidia,timing (none: list them)", ()),
    kernel: str = flag("only this kernel (Triton 3.2 and later)", ""),
    out: Path = again(OUT, default="triton-ir"),
    env: str = again(ANY_ENV, "current Triton, or wheel"),
    python: Path | None = PYTHON,
    triton: str = flag("version of Triton, instead of an environment's", ""),
    unset: bool = flag("print commands that unset the variables", default=False),
    json: bool = JSON,
) -> None:
    """Print Triton's debug variables for `eval`, or set them for a command."""
    _, command = command_line()
    if sum(map(bool, (command, json, unset))) > 1:
        raise UsageError("--unset, --json and a command contradict each other", hints=["give one of them"])
    if sum(map(bool, (env, python, triton))) > 1:
        raise UsageError("--env, --python and --triton contradict each other", hints=["give one of them"])
    if not profile:
        _list(json=json, idle=not command)
        return
    chosen = env_profiles.chosen(profile)
    version = env_profiles.version_of(triton) if triton else _version(env, python)
    made = env_profiles.environment(chosen, version, kernel=kernel, out=out)
    for text in made.notes:
        console.note(text)
    if command:
        for folder in made.folders:
            try:
                files.make_folder(folder)
            except OSError as error:
                raise UsageError("cannot create --out", where=folder, why=error.strerror) from None
        programs.exec_(command, made.set)
    elif json:
        content = {"schema": 1, "triton": version, "set": dict(made.set), "notes": list(made.notes)}
        output.json(content)
    else:
        console.write("".join(f"unset {name}\n" for name in made.set) if unset else made.exports(), end="")


def _list(*, json: bool, idle: bool) -> None:
    if not idle:
        hints = [
            "invoke passes.dump --print-env nvidia -- python script.py",
            "invoke passes.dump --print-env lists them",
        ]
        raise UsageError("no profile is given", hints=hints)
    every = env_profiles.known().values()
    if json:
        rows = [{"name": one.name, "what": one.what, "set": dict(one.set)} for one in every]
        output.json({"schema": 1, "profiles": rows})
        return
    lines = [[one.name, one.what, " ".join(one.set)] for one in every]
    console.out().print(tables.plain("sets of debug variables", ["name", "shows", "sets"], lines))


def _version(env: str, python: Path | None) -> str:
    """Return the version of the selected Triton; without one, the newest release, and print a note."""
    space = workspace.default()
    hints = ["--triton 3.9.0 names a version"]
    if python:
        found = installed_tritons.of_python(python)
        if not found:
            raise FactError("this Python has no Triton", where=python, hints=hints)
    elif env:
        found = installed_tritons.of_env(space.env(settings.load(env).name))
        if not found:
            raise FactError(
                f"the environment {env} has no Triton yet", where=space.env(env).path, hints=hints
            )
    else:
        found = installed_tritons.here(os.environ) or installed_tritons.of_env(space.env("wheel"))
    if not found:
        newest = checkout.triton_releases()[-1].version
        console.note(f"no Triton is installed: these are the variables of {newest}, the newest known version")
        return newest
    console.note(f"for Triton {found.version} in {found.where}")
    return found.version
