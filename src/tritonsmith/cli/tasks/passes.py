"""`passes.*`: record the IR before every pass of a compile, and list, show, compare and search it."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import BackendOptions, CompileOptions, ToolchainOptions, target_of
from tritonsmith.cli.tasks.option_fields import (
    CommaList,
    CommaLists,
    OutFile,
    again,
    command_line,
    flag,
    split,
    word,
)
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
    TARGET,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import env_profiles, targets, tritons
from tritonsmith.compiler.dump import import_log, index, pass_runs, run
from tritonsmith.compiler.dump.run import Choices
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.compiler.replay import bindings
from tritonsmith.core.command_line import command, flag_of
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import files, programs
from tritonsmith.core.text import byte_size, duration
from tritonsmith.core.ui import console, tables
from tritonsmith.inspect import layouts, pipeline_table
from tritonsmith.inspect import show_passes as view
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
    dumps = index.read(folder)
    chosen = index.choose_kernel(dumps, kernel)
    rows = pipeline_table.pass_changes(dumps, chosen.name)
    # In one line, as all JSON of dumps: one dump has hundreds of passes.
    if json:
        output.json(pipeline_table.as_json(dumps, chosen, rows, changed=changed), indent=None)
        return
    summaries = pipeline_table.requested_summaries(source, requested=summary)
    console.out().print(pipeline_table.table(dumps, chosen, rows, summaries, changed=changed))
    if chosen.failed:
        console.warn(
            f"{chosen.failed} failed" + (f": {chosen.error.splitlines()[0]}" if chosen.error else "")
        )


@task(tables=True, name="show")
def show(
    context: Context,
    folder: Path = FOLDER,
    number: str = MAYBE_NUMBER,
    kernel: str = DUMPED_KERNEL,
    after: bool = flag("print the output of the pass, not its input", default=False),
    normal: bool = flag("renumber values, and omit locations", default=False),
    path: bool = flag("print the path of the file, instead of its text", default=False),
    layouts: bool = flag("print layouts and bank conflicts, instead of the text", default=False),
    env: str = again(ANY_ENV, "wheel"),
    python: Path | None = PYTHON,
    no_tui: bool = flag("print, even where a viewer could open", default=False),
    json: bool = JSON,
) -> None:
    """Print the IR before or after a pass, or look around in all of them."""
    # Only layouts need a Triton, which computes them; text is printed from the dump alone.
    if not layouts and (env or python):
        raise UsageError("--env and --python require --layouts", hints=["omit them"])
    if path and json:
        raise UsageError("--path and --json contradict each other", hints=["omit one: JSON has the path"])
    if layouts and (normal or path):
        raise UsageError("--layouts prints no text: --normal and --path have no effect", hints=["omit them"])
    if not number:
        _view(folder, kernel, able=not (no_tui or after or normal or path or layouts))
        return
    dumps = index.read(folder)
    dump = index.choose_dump(dumps, index.choose_kernel(dumps, kernel).name, number)
    shown = view.after_pass(dumps, dump) if after else dump
    out = console.out()
    if layouts:
        _print_layouts(view.dump_text(dumps, shown), env or "wheel", str(python or ""), json=json)
    elif json:
        output.json(view.as_json(dumps, shown, plain=normal))
    elif path:
        console.write(dumps.path(shown))
    elif out.is_terminal:
        out.print(view.highlighted(dumps, shown, plain=normal), end="")
    else:
        console.write(view.dump_text(dumps, shown, plain=normal), end="")


def _view(folder: Path, kernel: str, *, able: bool) -> None:
    """Open the viewer in the terminal; `able`: no flag asks for something to print.

    Raises:
        Exit: the viewer ended otherwise than by `q`.
        UsageError: there is no terminal, or no viewer for it.
    """
    # Textual reads the keys from standard input and draws on standard error.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    terminal = able and all(stream and stream.isatty() for stream in streams)
    if not terminal or find_spec("textual") is None:
        install = ["a viewer of all passes needs Textual: pip install 'tritonsmith[tui]'"] if terminal else []
        about, page = NUMBER.metadata["about"], f"its options: {command('--help', 'passes.show')}"
        raise UsageError("passes.show needs PASS", hints=[f"PASS: {about}", *install, page])
    dumps = index.read(folder)
    first = index.choose_kernel(dumps, kernel or next((entry.name for entry in dumps.kernels), ""))
    from tritonsmith.inspect import view_passes

    if code := view_passes.view_dump(dumps, first.name):
        raise Exit(code=code)


def _print_layouts(ir: str, env: str, python: str, *, json: bool) -> None:
    """Print the layouts of a module, and the bank conflicts of its loads and stores of shared memory."""
    definitions = view.layout_definitions(ir)
    written = tuple(types_in(ir, definitions))
    accesses = tuple(memory_accesses(ir, definitions))
    if not written:
        raise FactError("this IR has no layouts", hints=["layouts appear in the stage ttgir"])
    where = choose_interpreter(env, python)
    types = tuple(dict.fromkeys(use.type for use in written))
    converted = {row.type: row for row in layouts.convert(types, where.python, where.space)}
    if json:
        rows = [layouts.access_json(access, converted) for access in accesses]
        output.json({"layouts": [layouts.as_json(row) for row in converted.values()], "accesses": rows})
        return
    console.out().print(layouts.layout_table(written, converted))
    table, uncounted = layouts.access_table(accesses, converted)
    if table:
        console.out().print()
        console.out().print(table)
    output.notes(uncounted)


@task(tables=True, name="find")
def find(
    context: Context,
    folder: Path = FOLDER,
    text: str = word("text to look for: convert_layout"),
    kernel: str = DUMPED_KERNEL,
    regex: bool = flag("the text is a regular expression", default=False),
    json: bool = JSON,
) -> None:
    """Show which passes add, duplicate or remove a text."""
    dumps = index.read(folder)
    chosen = index.choose_kernel(dumps, kernel)
    events = view.find_text(dumps, chosen.name, text, regex=regex)
    if json:
        output.json(view.events_as_json(events), indent=None)
        return
    # After --json, which a script reads: no event is an answer there, and an error for a person.
    if not events.dumps:
        hints = ["locations are not searched"] if "loc" in text or "dbg" in text else []
        raise SmithError(
            f"no pass of {chosen.name} has {text!r} in its input", where=dumps.folder, hints=hints
        )
    console.out().print(view.events_table(events, text))


@task(name="report")
def report(
    context: Context,
    folder: Path = FOLDER,
    out: OutFile | None = again(OUT_FILE, "report.html in DIR"),
    against: Path | None = flag("another dump's folder, to compare with", None),
    open: bool = flag("open the page in the browser", default=False),  # noqa: A002 - a flag
    json: bool = JSON,
) -> None:
    """Write one self-contained HTML page of all passes."""
    file = out.path("report.html") if out else folder / "report.html"
    # A name that will not do is refused first, as the page of a large dump takes a while.
    write.check_name(file)
    page = write.write_report(index.read(folder), file, index.read(against) if against else None)
    if json:
        output.json({"schema": 1, "page": str(page.path), "passes": page.passes, "bytes": page.size})
    else:
        console.out().print(str(page.path), markup=False)
    console.note(
        f"{page.passes} passes, {byte_size(page.dumped)} of IR in {byte_size(page.size)}, "
        f"{duration(page.seconds)}"
    )
    # On a machine without a screen, as most with GPUs are, the page itself is still of use.
    if open and not webbrowser.open(page.path.as_uri()):
        console.warn("no browser found: open the file in your browser")


@task(tables=True, name="diff")
def diff(
    context: Context,
    folder: Path = FOLDER,
    number: str = MAYBE_NUMBER,
    to: str = word("compare with the input of this pass, not with the first one's output", ""),
    kernel: str = flag("kernel of the dump; with --against, one per dump: double,double-2", ""),
    ops: bool = flag("compare counts of operations, instead of lines", default=False),
    layouts: bool = flag("compare uses of layouts, ignoring their aliases", default=False),
    against: Path | None = flag("another dump's folder: find the first pass that differs", None),
    json: bool = JSON,
) -> None:
    """Show what a pass changed, or where two dumps diverge."""
    dumps = index.read(folder)
    if against:
        if number:
            raise UsageError("--against compares whole dumps", hints=[f"omit {number}"])
        _print_divergence(dumps, index.read(against), kernel, ops=ops, layouts=layouts, json=json)
        return
    if not number:
        hints = [f"{command('passes.list', folder)} has the numbers", "--against OTHER compares two dumps"]
        raise UsageError("name a pass by its number", hints=hints)
    name = index.choose_kernel(dumps, kernel).name
    dump = index.choose_dump(dumps, name, number)
    first, second = (dump, index.choose_dump(dumps, name, to)) if to else view.before_and_after(dumps, dump)
    _print_diff((dumps, first), (dumps, second), ops=ops, layouts=layouts, json=json)


def _print_divergence(
    dumps: DumpIndex, others: DumpIndex, kernel: str, *, ops: bool, layouts: bool, json: bool
) -> None:
    """Print the first pass in which two dumps differ, and the difference."""
    names = split(kernel) or ("",)
    if len(names) > 2:  # noqa: PLR2004 - one for each dump
        raise UsageError("--kernel takes one kernel, or one per dump", hints=["--kernel double,double-2"])
    both = ((dumps, names[0]), (others, names[-1]))
    first_run, second_run = (view.ComparedRun(side, index.choose_kernel(side, name)) for side, name in both)
    parting = view.divergence(first_run, second_run)
    sentence = view.describe(parting)
    numbers = [dump and dump.number for dump in (parting.mine, parting.theirs)]
    about = {"said": sentence, "parted": bool(parting.mine or parting.theirs), "passes": numbers}
    known = parting.already or all(dump and view.shows(dump) for dump in (parting.mine, parting.theirs))
    if not (parting.mine and parting.theirs and known):
        if json:
            output.json({"schema": 1, **about}, indent=None)
        else:
            console.out().print(sentence, markup=False)
        return
    first, second = parting.mine, parting.theirs
    # Where the inputs are still equal, the difference is in what the passes leave.
    if not parting.already:
        first, second = view.after_pass(dumps, first), view.after_pass(others, second)
    if not json:
        console.out().print(sentence, markup=False)
    _print_diff((dumps, first), (others, second), ops=ops, layouts=layouts, json=json, about=about)


def _print_diff(
    first: tuple[DumpIndex, Dump],
    second: tuple[DumpIndex, Dump],
    *,
    ops: bool,
    layouts: bool,
    json: bool,
    about: Mapping[str, object] | None = None,
) -> None:
    before, after = first[0].text(first[1]), second[0].text(second[1])
    kind = view.language(first[1])
    counts = {}
    if ops or json:
        counts["operations"] = view.operations(before, after, kind)
    if layouts or json:
        counts["layouts"] = view.layouts(before, after)
    # --ops and --layouts stand in for the lines on a screen; JSON has all of them.
    lines_changed = normalize_diff.of(before, after, kind) if json or not counts else None
    if json:
        content = {name: [asdict(row) for row in rows] for name, rows in counts.items()}
        difference = asdict(lines_changed) if lines_changed else None
        output.json({"schema": 1, **(about or {}), **content, "diff": difference}, indent=None)
        return
    out = console.out()
    for what, rows in counts.items():
        cells = [[row.what, str(row.before), str(row.after), f"{row.after - row.before:+}"] for row in rows]
        table = tables.plain(what, [what, "before", "after", ""], cells, right=["before", "after", ""])
        out.print(table if rows else f"no {what} changed")
    if lines_changed:
        lines = console.coloured_diff(lines_changed.lines)
        out.print(lines if lines_changed.lines else "nothing changed but locations and names\n", end="")


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
        _dump_program(program, choices, out, json=json, dry_run=dry_run)
        return
    request = what.request(kernel, target=target_of("ttgir"), from_cache=from_cache, by=by)
    dumping = run.of_kernel(request, by.toolchain(request, dry_run=dry_run), choices, out)
    if dry_run:
        output.plan(dumping.prepared.plan)
        return
    with import_log.explaining_full_disk(dumping.prepared.out):
        dumps, manifest = run.dump_kernel(dumping)
    pass_runs.show_summary(dumps, json=json)
    if failed := [point for point in manifest.points if point.status != "ok"]:
        again = command("passes.show", dumps.folder, "last")
        raise SmithError(
            f"{len(failed)} of {len(manifest.points)} compiles failed",
            where=dumps.folder,
            why="\n".join(run.failures(dumps)) or failed[0].error,
            hints=[f"{again} prints the input of the failing pass"] if dumps.dumps else [],
        )
    run.check(dumps)


def _dump_program(
    program: list[str], choices: Choices, out: Path | None, *, json: bool, dry_run: bool
) -> None:
    space = workspace.default()
    prepared, step = run.of_program(program, space, choices, out)
    if dry_run:
        output.plan(prepared.plan)
        return
    with import_log.explaining_full_disk(prepared.out):
        dumps, code = run.dump_program(prepared, step, space)
    # On stderr, as stdout is the program's.
    pass_runs.show_summary(dumps, json=json, aside=True)
    # The program's failure comes first: an empty dump is no news if it ended before its first kernel.
    if code:
        raise Exit(code=code)
    run.check(dumps)


@task(tables=True, name="import")
def import_(
    context: Context,
    file: str = word("log: plain, gzip or zstd; - for standard input"),
    out: Path | None = OUT,
    python: Path | None = flag("interpreter with the Triton that printed it, for passes.replay", None),
    json: bool = JSON,
) -> None:
    """Import a saved MLIR_ENABLE_DUMP log."""
    # A log does not say which Python printed it, and `passes.replay` needs the same Triton.
    dumps = import_log.read_with_progress(file, out or import_log.place(file), python=str(python or ""))
    pass_runs.show_summary(dumps, json=json)
    import_log.check(dumps)


@task(tables=True, name="ir-env")
def ir_env(
    context: Context,
    profile: CommaList = word("sets of variables: nvidia,timing (omit to list them)", ()),
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
        _list_profiles(json=json, idle=not command)
        return
    chosen = env_profiles.chosen(profile)
    if triton:
        version = env_profiles.version_of(triton)
    else:
        version, note = env_profiles.installed_version(env, python)
        console.note(note)
    environment = env_profiles.environment(chosen, version, kernel=kernel, out=out)
    output.notes(environment.notes)
    if command:
        # The values name files in these folders, and nothing in Triton creates a folder for them.
        for folder in environment.folders:
            try:
                files.make_folder(folder)
            except OSError as error:
                raise UsageError("cannot create --out", where=folder, why=error.strerror) from None
        # In our place, so that the command has the terminal, ^C and the exit code to itself.
        programs.exec_(command, environment.set)
    elif json:
        notes = list(environment.notes)
        output.json({"schema": 1, "triton": version, "set": dict(environment.set), "notes": notes})
    elif unset:
        console.write("".join(f"unset {name}\n" for name in environment.set), end="")
    else:
        console.write(environment.exports(), end="")


def _list_profiles(*, json: bool, idle: bool) -> None:
    if not idle:
        hints = [
            "invoke passes.dump --print-env nvidia -- python script.py",
            "invoke passes.dump --print-env lists them",
        ]
        raise UsageError("no profile is given", hints=hints)
    profiles = env_profiles.known().values()
    if json:
        rows = [
            {"name": profile.name, "what": profile.what, "set": dict(profile.set)} for profile in profiles
        ]
        output.json({"schema": 1, "profiles": rows})
        return
    cells = [[profile.name, profile.what, " ".join(profile.set)] for profile in profiles]
    console.out().print(tables.plain("sets of debug variables", ["name", "shows", "sets"], cells))


@task(tables=True)
def pipeline(
    context: Context,
    options: BackendOptions,
    target: CommaLists = TARGET,
    backend: str = flag("nvidia or amd, for its usual target instead of --target", ""),
    triton: CommaLists = flag("Tritons side by side: versions, environments, interpreters (repeatable)", ()),
    env: str = again(ANY_ENV, "wheel"),
    python: Path | None = PYTHON,
    taken: bool = flag("only passes that run for a target", default=False),
    json: bool = JSON,
) -> None:
    """Show the passes of all stages, when they run, and which a target uses."""
    usual = dict(zip(("nvidia", "amd"), targets.default(), strict=True))
    if backend and (target or backend not in usual):
        why = "--target names a GPU already" if target else f"--backend {backend}: nvidia or amd"
        raise UsageError(why, hints=["--backend amd", "--target mi300x"])
    targets_shown = targets.parse_all(target) if target else (usual[backend or "nvidia"],)
    if triton and (env or python):
        raise UsageError("--triton names all of them", hints=["omit --env and --python"])
    # One column without --triton: an environment or an interpreter is a name of a Triton as well.
    chosen = str(python) if python else env or "wheel"
    compilers = [tritons.parse(text) for text in triton or (chosen,)]
    sides, columns = [], []
    for compiler in compilers:
        if compiler.targets or compiler.options or compiler.folder:
            hints = ["--triton 3.4.0,3.9.0 --target h100,a100"]
            raise UsageError(f"--triton {compiler.label} must name a Triton, and nothing else", hints=hints)
        where = tritons.place_of(compiler)
        known = bindings.known_bindings(where.python, where.space)
        for shown in targets_shown:
            # The stages run on a nearly empty module, and one may end early where it looks for more.
            calls, ended = bindings.backend_calls(where.python, where.space, shown, options.of_backend())
            output.notes(
                f"{compiler.label}, {shown}: {stage} is incomplete, as it ended early: {why}"
                for stage, why in ended.items()
            )
            columns.append(pipeline_table.target_passes(calls, known))
            # The title of a column names only what differs between the columns.
            names = [compiler.label] if len(compilers) > 1 else []
            sides.append(" ".join([*names, *([str(shown)] if len(targets_shown) > 1 or not names else [])]))
    rows = pipeline_table.side_by_side(columns)
    if taken:
        rows = [row for row in rows if any(step and step.calls for step in row)]
    if json:
        output.json(pipeline_table.target_as_json(rows, sides))
        return
    console.out().print(pipeline_table.target_table(rows, sides))
