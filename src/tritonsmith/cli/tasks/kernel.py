"""`kernel.*`: compile a kernel for any GPU, and show, lint, profile, capture or measure what comes out.

`kernel.override`: change a stage of a kernel by hand, and compile on from there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import (
    CompileOptions,
    KernelOptions,
    PoolOptions,
    ToolchainOptions,
    folder_of,
    parse_stages,
    target_of,
)
from tritonsmith.cli.tasks.option_fields import CommaLists, OutFile, again, command_line, flag, word
from tritonsmith.cli.tasks.options import (
    ANY_ENV,
    COMPILED_KERNEL,
    CSV,
    DRY_RUN,
    FROM_CACHE,
    JSON,
    KERNEL,
    OUT,
    OUT_FILE,
    PLOT,
    PYTHON,
    WHEEL_ENV,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import capture as capture_run
from tritonsmith.compiler import manifest, report, run, targets, tritons, user_program
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources import measure as resources_table
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import files, programs
from tritonsmith.core.ui import console, tables
from tritonsmith.facts import gpus, installed_tritons
from tritonsmith.inspect import layouts as layouts_report
from tritonsmith.inspect import override
from tritonsmith.inspect import resources as resources_from_cache
from tritonsmith.inspect import resources as resources_plot
from tritonsmith.inspect import resources as resources_report
from tritonsmith.inspect import show as show_stage
from tritonsmith.inspect.layouts import convert
from tritonsmith.inspect.lint import run as lint_report
from tritonsmith.inspect.lint import run as lint_run
from tritonsmith.inspect.profile import profilers
from tritonsmith.inspect.profile import run as profile_report
from tritonsmith.inspect.profile import run as profile_run
from tritonsmith.ir import layouts
from tritonsmith.wheels import ptxas as wheels_ptxas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonsmith.compiler.interpreter import Interpreter
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.compiler.resources.measure import Measured
    from tritonsmith.inspect.lint.run import LintResult

if TYPE_CHECKING:
    from tritonsmith.compiler.interpreter import Interpreter
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.inspect.override import OverrideRun
    from tritonsmith.ir.normalize.diff import Diff


@task(tables=True, reads_outputs=True, name="compile")
def compile_(
    context: Context,
    what: CompileOptions,
    by: PoolOptions,
    kernel: str = again(COMPILED_KERNEL, default=""),
    stage: CommaLists = flag("keep only this stage: ttgir, ptx, sass ... (repeatable)", ()),
    from_cache: str = FROM_CACHE,
    ptxas: str = flag("CUDA release of the ptxas to use: 12.9, 13.0.88", "", unset="Triton's own"),
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
    all_: bool = flag("with --dry-run: print all points, however many", default=False),
) -> None:
    """Compile a kernel for any GPU (none required) and keep every stage."""
    stages = parse_stages(stage)
    wanted = what.requests(kernel, stages=stages, from_cache=from_cache, by=by)
    where = by.toolchain(*wanted, dry_run=dry_run)
    if ptxas:
        where = _with_ptxas(where, ptxas, dry_run=dry_run)
    if dry_run:
        for prepared in run.prepare_all(wanted, where, out):
            output.compile_of(prepared, everything=all_)
        return
    made = run.execute_all(wanted, where, out)
    for text in dict.fromkeys(text for one in made for text in one.notes):
        console.note(text)
    if json:
        output.json(report.as_json_of_all([(one.manifest, one.notes) for one in made]))
    else:
        for one in made:
            for table in report.table(one.manifest):
                console.out().print(table)
            console.out().print(f"{one.manifest.folder}", markup=False)
    points = [point for one in made for point in one.manifest.points]
    if bad := sum(point.status != "ok" for point in points):
        raise SmithError(
            f"{bad} of {len(points)} points did not compile",
            where=out or made[0].manifest.folder,
            why="\n".join(report.failures_of_all([one.manifest for one in made])),
            hints=["the log is in the folder of the point; the manifest has the full message"],
        )


def _with_ptxas(where: Interpreter, wanted: str, *, dry_run: bool) -> Interpreter:
    """Return the interpreter with another ptxas, which is installed if necessary."""
    where, found = tritons.with_ptxas(where, wanted)
    if dry_run and found.plan.steps:
        output.plan(found.plan)
    elif not dry_run:
        wheels_ptxas.install(found, where.space)
    return where


@task(tables=True, reads_outputs=True)
def resources(
    context: Context,
    what: CompileOptions,
    by: PoolOptions,
    kernel: str = KERNEL,
    from_cache: str = flag("all, the folder of a Triton cache, or one of its entries", ""),
    spills: bool = flag("only kernels that spill, the worst first", default=False),
    out: Path | None = OUT,
    json: bool = JSON,
    csv: bool = CSV,
    plot: Path | None = PLOT,
    dry_run: bool = DRY_RUN,
) -> None:
    """Show registers, spills, shared memory and occupancy of kernels."""
    compiles = what != CompileOptions() or out is not None
    whole = bool(from_cache) and not compiles
    folder = folder_of(kernel)
    compiled = f"{kernel} is already compiled: flags of a compile have no effect"
    for wrong, error, hint in (
        (json and csv, "--json and --csv contradict each other", "omit one of them"),
        (compiles and folder, compiled, "these flags require FILE[:KERNEL]"),
        (whole and plot, "--plot requires a sweep, not a cache", "omit --plot"),
        (whole and kernel, "--from-cache takes no kernel", "omit one of them"),
    ):
        if wrong:
            raise UsageError(error, hints=[hint])
    if plot:
        resources_plot.check_plot(plot)
    if whole:
        found: Measured | None = resources_from_cache.read_cache(from_cache, workspace.default())
    elif folder:
        found = _compiled_before(folder)
    else:
        asked = what.requests(kernel, from_cache=from_cache, by=by)
        if plot and len(asked) > 1:
            hints = ["omit --plot", f"choose one: {kernel}:{asked[0].name}"]
            raise UsageError("--plot draws one kernel", hints=hints)
        where = by.toolchain(*asked, dry_run=dry_run)
        found = _compiled_now(asked, where, out, silent=json or csv, dry_run=dry_run)
    if found:
        _print_resources(found, spills=spills, json=json, csv=csv, cached=whole, picture=plot)


def _compiled_before(folder: Path) -> Measured:
    compiled = manifest.read(folder)
    found = measure.of_manifest(compiled)
    more = (*measure.without_disassembly(compiled), *measure.without_remarks(compiled))
    return replace(found, notes=(*found.notes, *more))


def _compiled_now(
    asked: Sequence[CompileRequest], where: Interpreter, out: Path | None, *, silent: bool, dry_run: bool
) -> Measured | None:
    """Compile the kernels; return None if only the plan was printed."""
    if dry_run:
        for one in run.prepare_all(asked, where, out):
            output.compile_of(one)
        return None
    found = {}
    for wanted, made in zip(asked, run.execute_all(asked, where, out, silent=silent), strict=True):
        measured = measure.of_manifest(made.manifest)
        notes = (*made.notes, *measured.notes, *measure.without_remarks(made.manifest))
        found[wanted.name] = replace(measured, notes=notes)
    return measure.of_all(found)


def _print_resources(
    found: Measured, *, spills: bool, json: bool, csv: bool, cached: bool, picture: Path | None
) -> None:
    failed = [row for row in found.rows if row.error]
    if spills:
        found = replace(found, rows=resources_table.spilling(found.rows))
    for text in found.notes:
        console.note(text)
    if json:
        output.json(resources_report.as_json(found))
    elif csv:
        console.write(resources_report.as_csv(found.rows), end="")
    else:
        _print_resource_tables(found, spills=spills, cached=cached)
    if picture:
        resources_plot.plot(found.rows, picture)
        console.note(f"the plot is in {picture}")
    if failed:
        why = "\n".join(f"{row.point}: {row.error}" for row in failed)
        hints = ["the manifest in the output folder has the full messages"]
        raise SmithError(f"{len(failed)} of the points did not compile", why=why, hints=hints)


def _print_resource_tables(found: Measured, *, spills: bool, cached: bool) -> None:
    for table in resources_report.tables_of(found.rows, cached=cached):
        console.out().print(table)
    for text in found.warnings:
        console.warn(text)
    if more := resources_report.left_out(found.rows):
        console.note(f"{more} more kernels: --csv and --json have all of them")
    if not found.rows:
        console.out().print("no kernel spills" if spills else "no kernels")


@task(name="show", reads_outputs=True)
def show_(
    context: Context,
    what: CompileOptions,
    by: PoolOptions,
    kernel: str = KERNEL,
    stage: str = flag("stage to print: ttir, llir, ptx, sass, amdgcn, gcnasm", "ttgir"),
    function: str = flag("print only this function", ""),
    source_lines: bool = flag("show the Python lines that the code comes from", default=False),
    point: str = flag("compiled point, if there are several: its id, or its target", ""),
    link: bool = flag("print a link that opens the stage in Compiler Explorer", default=False),
    from_cache: str = FROM_CACHE,
) -> None:
    """Print one stage of a kernel: ttgir, PTX, SASS ..."""
    if link and source_lines:
        raise UsageError(
            "--link and --source-lines contradict each other: a link has no lines of Python",
            hints=["omit one of them"],
        )
    (wanted,) = parse_stages([stage])
    if folder := folder_of(kernel):
        what.refuse()
        made = manifest.read(folder)
    else:
        target = target_of(wanted)
        asked = what.request(kernel, target=target, from_cache=from_cache, by=by)
        made = run.compile_all(asked, by.toolchain(asked))
    chosen = show_stage.choose(made, point)
    content = show_stage.stage_text(made, chosen, wanted)
    if source_lines:
        content = show_stage.with_source(content, wanted, function)
    elif function:
        content = show_stage.function(content, wanted, function)
    if link:
        console.note("nothing is sent; whoever opens the link sends the text to godbolt.org")
        console.write(show_stage.link(content, wanted, chosen.target))
        return
    out = console.out()
    if out.is_terminal:
        out.print(show_stage.highlighted(content, wanted), end="")
    else:
        console.write(content, end="")


@task(tables=True)
def layout(
    context: Context,
    layout: str = word("a layout, as in the IR: '#ttg.blocked<{...}>'"),
    shape: str = flag("shape of the tensor: 128x64", ""),
    dtype: str = flag("type of an element, as in a signature: fp16, i8", "fp32"),
    by: str = flag("the layout of the threads that read or write shared memory", ""),
    env: str = WHEEL_ENV,
    python: Path | None = PYTHON,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Show which thread and register holds each element of a tensor."""
    if not shape:
        raise UsageError("--shape is missing", hints=["--shape 128x64"])
    types = [layouts.layout_of(one, shape, dtype) for one in (layout, *([by] if by else []))]
    if by and (types[0].kind, types[1].kind) != ("shared memory", "registers"):
        hints = ["LAYOUT must be in shared memory, and that of --by in registers"]
        raise UsageError("--by counts the bank conflicts of threads in shared memory", hints=hints)
    if plot:
        resources_plot.check_plot(plot)
    where = choose_interpreter(env, str(python or ""))
    made = convert(types, where.python, where.space)
    for one in made:
        if one.linear is None:
            hints = [f"--shape {shape} must have as many dimensions as the layout"]
            hints += ["another Triton may take it: --env, --python"]
            raise FactError(f"Triton does not convert {one.type.layout}", why=one.error, hints=hints)
    first = made[0]
    assert first.linear is not None  # noqa: S101 - for the type checker
    accesses = layouts_report.accesses(first, made[1] if by else None)
    if by and not accesses:
        raise FactError("bank conflicts are counted for warps of 32 lanes", hints=["omit --by"])
    if plot:
        layouts_report.write_picture(first, plot)
        console.record_file(plot)
    if json:
        output.json(layouts_report.as_json(first, accesses))
        return
    console.out().print(f"{first.type.text}\n{layouts_report.describe(first.linear)}", markup=False)
    blocks = [
        layouts_report.basis_table(first.linear),
        layouts_report.grid(first.linear, console.out().width),
    ]
    for block in (*blocks, *([layouts_report.bank_table(accesses)] if accesses else [])):
        console.out().print()
        console.out().print(block)


@task(tables=True, reads_outputs=True, name="lint")
def lint_(
    context: Context,
    what: CompileOptions,
    by: PoolOptions,
    kernel: str = KERNEL,
    from_cache: str = FROM_CACHE,
    fail_on: str | None = flag("findings that make it fail: any, or codes separated by commas", None),
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Find performance problems in a kernel, and the lines that cause them."""
    codes = lint_run.parse_fail_on(fail_on)
    if folder := folder_of(kernel):
        what.refuse()
        made = [manifest.read(folder)]
    else:
        wanted = what.requests(kernel, from_cache=from_cache, by=by)
        where = by.toolchain(*wanted, dry_run=dry_run)
        if dry_run:
            for prepared in run.prepare_all(wanted, where, out):
                output.compile_of(prepared)
            return
        compiled = run.execute_all(wanted, where, out, silent=json)
        for text in dict.fromkeys(text for one in compiled for text in one.notes):
            console.note(text)
        made = [one.manifest for one in compiled]
    _print_findings(lint_run.lint(made), codes, json=json)


def _print_findings(found: LintResult, codes: Sequence[str], *, json: bool) -> None:
    for text in lint_report.notes(found):
        console.note(text)
    if json:
        output.json(lint_report.as_json(found))
    else:
        for block in lint_report.blocks(found):
            console.out().print(block)
    if found.failed:
        raise SmithError(
            f"{len(found.failed)} of the points did not compile",
            why="\n".join(f"{point}: {why}" for point, why in found.failed.items()),
            hints=["the manifest in the output folder has the full messages"],
        )
    if bad := [one for one in found.findings if one.rule.code in codes]:
        why = "\n".join(lint_report.one_line(one) for one in bad)
        raise SmithError(
            f"--fail-on: {len(bad)} findings", why=why, hints=["--json has all lines of evidence"]
        )
    if missed := [one for one in found.unchecked if one.code in codes]:
        why = "\n".join(f"{one.kernel} {one.point}: {one.code}: {one.why}" for one in missed)
        hints = ["a check of nothing does not pass: name the codes that can be checked"]
        raise FactError("--fail-on names rules that were not checked", why=why, hints=hints)


@task(tables=True, name="profile")
def profile(
    context: Context,
    by: str = flag("profiler: proton, ncu or rocprofv3", "", unset="the first that is there"),
    kernel: str = flag("only these kernels: names separated by commas", ""),
    times: bool = flag("measure only the time of each kernel, without samples", default=False),
    env: str = again(ANY_ENV, "the Python on PATH"),
    python: Path | None = PYTHON,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Profile a program's kernels on a GPU, per line of Python."""
    _, program = command_line()
    space = workspace.default()
    interpreter = user_program.interpreter(env, python, space)
    used = profilers.interpreter_of(program, interpreter)
    profiler = profilers.choose(by, used, gpus.read())
    prepared = profile_run.prepare(
        program, profiler, interpreter, space, kernels=kernel, times=times, quiet=json
    )
    if dry_run:
        output.plan(prepared.plan)
        return
    made = profile_run.execute(prepared, space, silent=json)
    if json:
        output.json(profile_report.as_json(made, profiler.name))
    else:
        for block in profile_report.blocks(made):
            console.out().print(block)
    session = f" ({' '.join(filter(None, made.session.values()))})" if made.session else ""
    console.note(f"measured by {profiler.name}{session}")
    for text in made.notes:
        console.note(text)
    if made.code:
        raise Exit(code=made.code)


@task(tables=True, name="capture")
def capture(
    context: Context,
    device: str = flag("GPU that the program sees: h100, mi300x, cuda:90", "h100"),
    env: str = again(ANY_ENV, "the Python on PATH"),
    python: Path | None = PYTHON,
    stand_in: CommaLists = flag(
        "module that the program imports but does not need (repeatable)", (), example="flash_attn_2_cuda"
    ),
    out: OutFile | None = again(OUT_FILE, "captured.toml"),
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Record the kernels that a program launches, without a GPU."""
    _, program = command_line()
    space = workspace.default()
    target = targets.parse(device)
    to = (out or OutFile("captured.toml")).path("captured.toml")
    interpreter = user_program.interpreter(env, python, space)
    prepared = capture_run.prepare(program, target, device, to, interpreter, space, stand_in)
    if dry_run:
        output.plan(prepared.plan)
        return
    made = capture_run.execute(prepared, space)
    notes = list(made.recording.notes)
    if json:
        output.json(capture_run.as_json(made.kernels, notes, to, made.code))
    elif made.kernels:
        launches = sum(one.count for one in made.recording.kernels)
        console.out().print(capture_run.launch_table(made.kernels, f"{launches} launches for {target}"))
        console.out().print(f"{to}", markup=False)
    for text in notes if made.kernels else ():  # without one, the error below has them
        console.note(text)
    if made.code == 0 or not made.kernels:
        capture_run.check(made, prepared)
    if made.code:
        raise Exit(code=made.code)


@task(tables=True, name="override")
def ir_override(
    context: Context,
    what: KernelOptions,
    by: ToolchainOptions,
    kernel: str = word("FILE[:KERNEL] or kernels file; or a command after --", ""),
    name: str = flag("kernel to change, if there are several: its name, or a hash prefix", ""),
    stage: str = flag("stage to change: ttir, ttgir, llir, ptx, amdgcn", "ttgir"),
    edited: Path | None = flag("changed file to use, instead of opening $EDITOR", None),
    diff: bool = flag("print the changed lines, not only their number", default=False),
    out: Path | None = OUT,
) -> None:
    """Edit one stage of a kernel, compile from there, and compare."""
    _, program = command_line()
    if bool(program) == bool(kernel):
        hints = [
            "invoke kernel.override matmul.py --signature ... --stage ttgir",
            "invoke kernel.override -- python script.py",
        ]
        raise UsageError("name a kernel's file, or a command after --", hints=hints)
    (wanted,) = parse_stages([stage])
    if edited and not edited.is_file():
        raise UsageError(f"--edited: no file {edited}")
    editor = (
        () if edited else override.editor(os.environ, terminal=sys.stdin.isatty() and sys.stdout.isatty())
    )
    if program:
        bench = _of_command(program, by.python, out)
    else:
        target = target_of(wanted)
        asked = what.request(kernel, target=target, by=by)
        bench = _of_kernel(asked, by.toolchain(asked), out)
    chosen = override.choose(override.run_unchanged(bench), name, wanted)
    place = override.copy_for_editing(bench, chosen)
    if edited:
        files.copy(edited, place)
    else:
        override.edit(place, editor)
    _print(override.run_changed(bench, chosen, place), bench.out, whole=diff)


def _of_kernel(asked: CompileRequest, where: Interpreter, out: Path | None) -> OverrideRun:
    if len(asked.targets) > 1:
        raise UsageError("a stage is changed for one target", hints=["--target h100"])
    found = installed_tritons.of_python(where.python)
    folder = override.prepare_folder(out, where.space)
    launch = partial(_compile, asked, where, folder / "stages")
    return override.OverrideRun(folder, found.version if found else "", launch)


def _of_command(program: list[str], python: Path | None, out: Path | None) -> OverrideRun:
    found = installed_tritons.of_python(python) if python else installed_tritons.here(os.environ)
    folder = override.prepare_folder(out, workspace.default())
    return override.OverrideRun(folder, found.version if found else "", partial(_run, program))


def _compile(asked: CompileRequest, where: Interpreter, out: Path, change: Mapping[str, str]) -> None:
    prepared = run.prepare(asked, where, out).under(change)
    made = run.execute(prepared, where, silent=True).manifest
    if said := "\n".join(report.failures(made)):
        hints = ["the changed file is kept", f"{command('kernel.show', out)} shows the stages"]
        raise SmithError("Triton did not compile it", where=out, why=said, hints=hints)


def _run(program: list[str], change: Mapping[str, str]) -> None:
    code = programs.run_attached(program, change=change)
    if code:
        raise SmithError(f"{program[0]} ended with exit code {code}")


def _print(found: tuple[Diff, ...], out: Path, *, whole: bool) -> None:
    rows = [[one.stage, str(one.removed), str(one.added)] for one in found]
    title = "changed lines, without locations and value numbers; the first stage is your change"
    console.out().print(tables.plain(title, ["stage", "removed", "added"], rows, right=["removed", "added"]))
    if whole:
        for one in found:
            console.out().print("\n".join(one.lines), markup=False, highlight=False)
    console.out().print(f"{out}", markup=False)
