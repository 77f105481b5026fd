"""`kernel.*`: compile a kernel for any GPU, and show, lint, profile, capture or change what comes out."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import (
    CompileOptions,
    KernelOptions,
    PoolOptions,
    SweptOptions,
    ToolchainOptions,
    entries_of,
    folder_of,
    listed_kernels,
    parse_stages,
    target_of,
    toolchain,
)
from tritonsmith.cli.tasks.option_fields import CommaLists, OutFile, again, command_line, flag, word
from tritonsmith.cli.tasks.options import (
    ANY_ENV,
    COMPILED_KERNEL,
    CSV,
    DRY_RUN,
    FAIL_ON_CODES,
    FROM_CACHE,
    JOBS,
    JSON,
    KERNEL,
    LISTS,
    MANY_TRITONS,
    OUT,
    OUT_FILE,
    PLOT,
    PYTHON,
    SINCE,
    STRICT,
    TARGET,
    TIMEOUT,
    TRITON,
    WHEEL_ENV,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import manifest, report, run, targets, tritons, user_program
from tritonsmith.compiler.kernels import kernels_file
from tritonsmith.compiler.resources import measure
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError, UndecidedError, UsageError
from tritonsmith.core.plan import digest, files
from tritonsmith.core.ui import console, tables
from tritonsmith.inspect import resources as resource_views
from tritonsmith.wheels import ptxas as wheels_ptxas

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tritonsmith.check.against import Version
    from tritonsmith.compiler.interpreter import Interpreter
    from tritonsmith.compiler.kernels.changed import TouchedKernels
    from tritonsmith.compiler.kernels.kernel_list import ListedKernel
    from tritonsmith.compiler.manifest import Manifest
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.compiler.resources.measure import Measured
    from tritonsmith.compiler.run import CompileResult
    from tritonsmith.inspect.lint.run import LintResult
    from tritonsmith.ir.normalize.diff import Diff
    from tritonsmith.lab.compare.study import StudyPlan
    from tritonsmith.lab.terms import Limit
    from tritonsmith.lab.timing_report import KernelTimes


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
    requests = what.requests(kernel, stages=stages, from_cache=from_cache, by=by)
    where = by.toolchain(*requests, dry_run=dry_run)
    if ptxas:
        where = _with_ptxas(where, ptxas, dry_run=dry_run)
    if dry_run:
        for prepared in run.prepare_all(requests, where, out):
            output.compile_of(prepared, everything=all_)
        return
    results = run.execute_all(requests, where, out)
    _print_notes(results)
    if json:
        output.json(report.as_json_of_all([(result.manifest, result.notes) for result in results]))
    else:
        for result in results:
            output.blocks(report.table(result.manifest))
            console.out().print(f"{result.manifest.folder}", markup=False)
    # After the tables: a config of a sweep that does not compile must not hide those that do.
    points = [point for result in results for point in result.manifest.points]
    if bad := sum(point.status != "ok" for point in points):
        raise SmithError(
            f"{bad} of {len(points)} points did not compile",
            where=out or results[0].manifest.folder,
            why="\n".join(report.failures_of_all([result.manifest for result in results])),
            hints=["the log is in the folder of the point; the manifest has the full message"],
        )


def _print_notes(results: Iterable[CompileResult]) -> None:
    # Each kernel of a kernels file has the same note about its Triton: it is printed once.
    output.notes(dict.fromkeys(note for result in results for note in result.notes))


def _with_ptxas(where: Interpreter, version: str, *, dry_run: bool) -> Interpreter:
    """Return the interpreter with another ptxas, which is installed if necessary."""
    where, ptxas = tritons.with_ptxas(where, version)
    if dry_run and ptxas.plan.steps:
        output.plan(ptxas.plan)
    elif not dry_run:
        wheels_ptxas.install(ptxas, where.space)
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
    # With flags of a compile, an entry of the cache is compiled again. Without, what is in the cache is
    # measured.
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
        resource_views.check_plot(plot)
    if whole:
        measured: Measured | None = resource_views.read_cache(from_cache, workspace.default())
    elif folder:
        measured = measure.of_folder(folder)
    else:
        requests = what.requests(kernel, from_cache=from_cache, by=by)
        if plot and len(requests) > 1:
            hints = ["omit --plot", f"choose one: {kernel}:{requests[0].name}"]
            raise UsageError("--plot draws one kernel", hints=hints)
        where = by.toolchain(*requests, dry_run=dry_run)
        measured = _compile_and_measure(requests, where, out, silent=json or csv, dry_run=dry_run)
    if measured:
        _print_resources(measured, spills=spills, json=json, csv=csv, cached=whole, picture=plot)


def _compile_and_measure(
    requests: Sequence[CompileRequest], where: Interpreter, out: Path | None, *, silent: bool, dry_run: bool
) -> Measured | None:
    """Compile the kernels and measure them; return None if only the plan was printed."""
    if dry_run:
        for prepared in run.prepare_all(requests, where, out):
            output.compile_of(prepared)
        return None
    results = run.execute_all(requests, where, out, silent=silent)
    by_name = {request.name: result for request, result in zip(requests, results, strict=True)}
    return measure.of_all(
        {name: measure.of_compile(result.manifest, result.notes) for name, result in by_name.items()}
    )


def _print_resources(
    measured: Measured, *, spills: bool, json: bool, csv: bool, cached: bool, picture: Path | None
) -> None:
    # Before --spills leaves out rows: a point that failed is an error, whatever is shown.
    failed = [row for row in measured.rows if row.error]
    if spills:
        measured = replace(measured, rows=measure.spilling(measured.rows))
    output.notes(measured.notes)
    if json:
        output.json(resource_views.as_json(measured))
    elif csv:
        console.write(resource_views.as_csv(measured.rows), end="")
    else:
        _print_resource_tables(measured, spills=spills, cached=cached)
    if picture:
        resource_views.plot(measured.rows, picture)
        console.note(f"the plot is in {picture}")
    if failed:
        why = "\n".join(f"{row.point}: {row.error}" for row in failed)
        hints = ["the manifest in the output folder has the full messages"]
        raise SmithError(f"{len(failed)} of the points did not compile", why=why, hints=hints)


def _print_resource_tables(measured: Measured, *, spills: bool, cached: bool) -> None:
    output.blocks(resource_views.tables_of(measured.rows, cached=cached))
    for text in measured.warnings:
        console.warn(text)
    if more := resource_views.left_out(measured.rows):
        console.note(f"{more} more kernels: --csv and --json have all of them")
    if not measured.rows:
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
    json: bool = JSON,
) -> None:
    """Print one stage of a kernel: ttgir, PTX, SASS ..."""
    from tritonsmith.inspect import show

    if link and json:
        raise UsageError("--link and --json contradict each other", hints=["omit one of them"])
    if link and source_lines:
        raise UsageError(
            "--link and --source-lines contradict each other: a link has no lines of Python",
            hints=["omit one of them"],
        )
    (stage,) = parse_stages([stage])
    if folder := folder_of(kernel):
        what.refuse()
        compiled = manifest.read(folder)
    else:
        # One target, by the stage: the usual two, one of each vendor, would give two texts to choose from.
        request = what.request(kernel, target=target_of(stage), from_cache=from_cache, by=by)
        compiled = run.compile_all(request, by.toolchain(request))
    chosen = show.choose(compiled, point)
    content = show.stage_text(compiled, chosen, stage)
    if source_lines:
        content = show.with_source(content, stage, function)
    elif function:
        content = show.function(content, stage, function)
    if link:
        console.note("nothing is sent; whoever opens the link sends the text to godbolt.org")
        console.write(show.link(content, stage, chosen.target))
        return
    if json:
        output.json(show.as_json(compiled, chosen, stage, content))
        return
    out = console.out()
    # Through a pipe verbatim: `> kernel.ttgir` must be what `triton-opt` reads.
    if out.is_terminal:
        out.print(show.highlighted(content, stage), end="")
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
    from tritonsmith.inspect import layouts as converted_layouts
    from tritonsmith.ir import layouts

    if not shape:
        raise UsageError("--shape is missing", hints=["--shape 128x64"])
    # A layout is text of MLIR without its tensor, so its shape and its type have to come from flags.
    types = [layouts.layout_of(text, shape, dtype) for text in (layout, *([by] if by else []))]
    if by and (types[0].kind, types[1].kind) != ("shared memory", "registers"):
        hints = ["LAYOUT must be in shared memory, and that of --by in registers"]
        raise UsageError("--by counts the bank conflicts of threads in shared memory", hints=hints)
    if plot:
        resource_views.check_plot(plot)
    where = toolchain("", env, python, jobs=None)
    converted = converted_layouts.convert(types, where.python, where.space)
    first = converted[0]
    linear, *_ = [converted_layouts.require_linear(row, shape) for row in converted]
    accesses = converted_layouts.accesses(first, converted[1] if by else None)
    if by and not accesses:
        raise FactError("bank conflicts are counted for warps of 32 lanes", hints=["omit --by"])
    if plot:
        converted_layouts.write_picture(first, plot)
        console.record_file(plot)
    if json:
        output.json(converted_layouts.as_json(first, accesses))
        return
    console.out().print(f"{first.type.text}\n{converted_layouts.describe(linear)}", markup=False)
    blocks = [converted_layouts.basis_table(linear), converted_layouts.grid(linear, console.out().width)]
    for block in (*blocks, *([converted_layouts.bank_table(accesses)] if accesses else [])):
        console.out().print()
        console.out().print(block)


@task(tables=True, reads_outputs=True, name="lint")
def lint_(
    context: Context,
    what: CompileOptions,
    by: PoolOptions,
    kernel: str = KERNEL,
    from_cache: str = FROM_CACHE,
    fail_on: str | None = FAIL_ON_CODES,
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Find performance problems in a kernel, and the lines that cause them."""
    from tritonsmith.inspect.lint import run as lint_run

    codes = lint_run.parse_fail_on(fail_on)
    where: Interpreter | None = None
    if folder := folder_of(kernel):
        what.refuse()
        manifests = [manifest.read(folder)]
    else:
        requests = what.requests(kernel, from_cache=from_cache, by=by)
        where = by.toolchain(*requests, dry_run=dry_run)
        if dry_run:
            for prepared in run.prepare_all(requests, where, out):
                output.compile_of(prepared)
            return
        results = run.execute_all(requests, where, out, silent=json)
        _print_notes(results)
        manifests = [result.manifest for result in results]
    result = lint_run.lint(manifests)
    if of_bounds := [code for code in codes if code in lint_run.OF_BOUNDS]:
        result = _with_bounds(result, of_bounds, manifests, where or by.toolchain(), quiet=json)
    _print_findings(result, codes, json=json)


@task(name="lint-changed")
def lint_changed(
    context: Context,
    by: PoolOptions,
    since: str = SINCE,
    kernels: CommaLists = LISTS,
    target: CommaLists = TARGET,
    fail_on: str | None = again(FAIL_ON_CODES, "any"),
    strict: bool = STRICT,
    json: bool = JSON,
) -> None:
    """Find performance problems in the kernels that a change touches."""
    touched, where = _touched(by, since, kernels)
    from tritonsmith.inspect.lint import run as lint_run

    codes = lint_run.parse_fail_on(lint_run.ANY if fail_on is None else fail_on)
    flags = KernelOptions(target=target).flags()
    requests = [
        request
        for kernel in touched.listed
        for request in kernels_file.requests((kernel.entry,), kernel.listed, flags, targets.default())
    ]
    kernels_file.check_folders(requests)
    results = run.execute_all(requests, where, None, silent=True) if where and requests else ()
    result = lint_run.lint([each.manifest for each in results])
    if json:
        output.json({**lint_run.as_json(result), "commit": touched.commit, "left_out": list(touched.notes())})
    else:
        output.lines((*lint_run.compiler_lines(result), *lint_run.notes(result)))
        output.lines(touched.notes())
        output.lines((f"{lint_run.verdict(result)}: {touched.title}",))
    if failure := lint_run.failure(result, codes if strict else lint_run.checked(result, codes)):
        raise failure
    if strict and (left := list(touched.notes())):
        raise UndecidedError(f"--strict: {left[0]}")


@task(name="check-changed")
def check_changed(
    context: Context,
    by: ToolchainOptions,
    since: str = SINCE,
    kernels: CommaLists = LISTS,
    target: CommaLists = TARGET,
    strict: bool = STRICT,
    json: bool = JSON,
) -> None:
    """Check whether kernels that a change touches compute what they did."""
    from tritonsmith.check import when_wrong

    when_wrong.require_packages(command("kernel.check", "--changed"))
    touched, where = _touched(by, since, kernels)
    from tritonsmith.check import against as versions

    flags = KernelOptions(target=target).flags()
    default = targets.parse_all((target_of("ttgir"),))
    options = versions.PairOptions(silent=True)
    rows, lines = [], []
    for kernel in touched.listed if where else ():
        assert where  # noqa: S101 - for the type checker
        if not kernel.old:
            lines.append(f"{kernel.place}: new, so there is nothing to compare it with")
            continue
        new, old = (
            replace(request, targets=request.targets[:1])
            for entry in (kernel.entry, kernel.old_entry)
            for request in kernels_file.requests((entry,), kernel.listed, flags, default)
        )
        row = versions.since_commit(kernel, (new, old), touched.commit, where, options)
        rows.append(row)
        lines += [f"{kernel.place}: {line.strip()}" for line in versions.answer_lines(row)]
    left = list(touched.notes())
    # "same: 3 kernels changed" would claim it of those, too, that are new or in no kernels file.
    whole = not rows or (len(rows) == len(touched.listed) and not touched.unlisted)
    compared = "" if whole else f", {len({row.second for row in rows})} compared"
    if json:
        output.json({**versions.as_json(rows), "commit": touched.commit, "left_out": left})
    else:
        output.lines((*lines, *left, f"{versions.outcome(rows)}: {touched.title}{compared}"))
    undecided = [row for row in rows if row.answer.status == "unknown"]
    if failure := versions.failure([row for row in rows if strict or row not in undecided]):
        raise failure
    if strict and left:
        raise UndecidedError(f"--strict: {left[0]}")


def _touched(
    by: ToolchainOptions, since: str, lists: CommaLists
) -> tuple[TouchedKernels, Interpreter | None]:
    """Return the kernels that a change touches, and the Triton for them; None if there are none."""
    from tritonsmith.compiler.kernels import changed

    _, words = command_line()
    touched = changed.find(words, since, lists)
    # Most commits touch no kernel: a Triton that is missing, or takes seconds to start, does not matter then.
    where = by.toolchain() if touched.listed else None
    if where and any(str(kernel.entry.versions) for kernel in touched.listed):
        touched = touched.fitting(tritons.installed(where.python))
    return touched, where


def _with_bounds(
    result: LintResult,
    codes: Sequence[str],
    manifests: Sequence[Manifest],
    where: Interpreter,
    *,
    quiet: bool,
) -> LintResult:
    from tritonsmith.check import when_wrong

    when_wrong.require_packages(codes[0])
    from tritonsmith.inspect import bounds
    from tritonsmith.inspect.lint import run as lint_run

    answers = bounds.of_manifests(manifests, where.python, where.space, quiet=quiet)
    return lint_run.with_bounds(result, answers, codes)


@task(reads_outputs=True, name="bounds")
def bounds_(
    context: Context,
    what: CompileOptions,
    by: PoolOptions,
    kernel: str = KERNEL,
    size: tuple[str, ...] = flag(
        "size of an argument that is known: n_cols=4096 (repeatable)", (), value="NAME=VALUE"
    ),
    from_cache: str = FROM_CACHE,
    all_: bool = flag("show those, too, that need a stride of millions within one block", default=False),
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Find offsets that overflow 32 bits, and accesses outside of a tensor."""
    from tritonsmith.check import when_wrong

    when_wrong.require_packages(command("kernel.lint", "--bounds"))
    from tritonsmith.inspect import bounds

    sizes = bounds.parse_sizes(size)
    launched: dict[str, bounds.CapturedSizes] = {}
    if folder := folder_of(kernel):
        what.refuse()
        manifests = [manifest.read(folder)]
        where = by.toolchain(dry_run=dry_run)
    else:
        # The ttir is the same for all GPUs of a vendor: one target is enough, unless others are named.
        requests = what.requests(kernel, target=target_of("ttir"), from_cache=from_cache, by=by)
        where = by.toolchain(*requests, dry_run=dry_run)
        if dry_run:
            for prepared in run.prepare_all(requests, where, out):
                output.compile_of(prepared)
            return
        if listed := kernels_file.named(kernel):
            launched = bounds.captured(kernels_file.read(listed[0])[0])
        results = run.execute_all(requests, where, out, silent=json)
        _print_notes(results)
        manifests = [result.manifest for result in results]
    answers = bounds.of_manifests(manifests, where.python, where.space, sizes, launched, quiet=json)
    if json:
        output.json(bounds.as_json(answers))
    else:
        output.lines(bounds.lines(answers, everything=all_))
    if failure := bounds.failure(answers):
        raise failure


def _print_findings(result: LintResult, codes: Sequence[str], *, json: bool) -> None:
    from tritonsmith.inspect.lint import run as lint_run

    output.notes(lint_run.notes(result))
    if json:
        output.json(lint_run.as_json(result))
    else:
        output.blocks(lint_run.blocks(result))
    if failure := lint_run.failure(result, codes):
        raise failure


@task(tables=True)
def check(
    context: Context,
    what: SweptOptions,
    kernel: str = word("FILE[:KERNEL], FILE.py@COMMIT[:KERNEL], or a kernels file"),
    against: str = flag("a kernel; or a Triton or NAME=VALUE, as compare takes them", "", value="B"),
    signature_b: str = flag("signature of B", "", unset="that of A", value="TYPES"),
    grid: str = flag("programs: 'cdiv(n, BLOCK), 1'", "", unset="those that write something"),
    grid_b: str = flag("programs of B", "", unset="the same expression", value="GRID"),
    rename: CommaLists = flag("parameter of A, and its name in B: x=X (repeatable)", (), value="A=B"),
    set_: tuple[str, ...] = flag("value of a parameter: stride=n (repeatable)", (), value="NAME=VALUE"),
    outputs: CommaLists = flag("compare only these arguments (repeatable)", ()),
    finite: bool = flag("put no infinities and NaN into memory", default=False),
    stage: str = flag("stage whose IR runs", "", unset="ttir; ttgir for two Tritons"),
    seeds: int | None = flag("number of random sizes", None, unset="3", least=1),
    timeout: int | None = flag("time limit of one comparison in seconds", None, unset="300", least=1),
    triton: str = TRITON,
    env: str = again(ANY_ENV, "wheel"),
    python: Path | None = PYTHON,
    json: bool = JSON,
) -> None:
    """Check whether two versions of a kernel compute the same, without a GPU."""
    from tritonsmith.check import when_wrong

    with when_wrong.as_undecided():
        when_wrong.require_packages("kernel.check")
    from tritonsmith.check import against as versions

    if bool(against) == bool(what.sweep):
        hints = ["--against FILE:KERNEL, --against 3.6.0, --against BLOCK=128", "--sweep autotune"]
        raise UsageError("give the other version with --against, or configs with --sweep", hints=hints)
    if stage not in ("", "ttir", "ttgir"):
        raise UsageError(f"--stage cannot be {stage!r}", hints=["--stage ttir", "--stage ttgir"])
    if what.sweep and (signature_b or grid_b or rename):
        raise UsageError("--signature-b, --grid-b and --rename are for --against")
    options = versions.PairOptions(
        stage=stage,
        renames=versions.renames_of(rename),
        values=versions.assignments(set_, "--set"),
        outputs=tuple(outputs),
        finite=finite,
        seeds=seeds,
        timeout=timeout,
        silent=json,
    )
    with when_wrong.as_undecided():
        first = _version(kernel, what, toolchain(triton, env, python, jobs=None), grid)
        if what.sweep:
            rows = versions.compare_configs(first, options)
        else:
            second = _other_version(against, first, what, signature_b, grid_b or grid)
            rows = [versions.compare(first, second, options)]
    if json:
        output.json(versions.as_json(rows))
    elif what.sweep:
        console.out().print(versions.configs_table(rows))
    else:
        output.lines(versions.answer_lines(rows[0]))
    if error := versions.failure(rows):
        raise error


def _version(text: str, what: SweptOptions, where: Interpreter, grid: str) -> Version:
    """Return a version of a kernel to compile, with the grids that a kernels file has of it."""
    from tritonsmith.check.against import Version, at_commit

    kernel, commit = at_commit(text, where.space)
    request = what.request(kernel, target=target_of("ttgir"))
    run.check(request)
    captured: tuple[tuple[int, ...], ...] = ()
    if listed := kernels_file.named(kernel):
        path, _ = listed
        captured = listed_kernels(path, request.name)[0].grids
    label = request.name or request.kernel or request.file.stem
    return Version(f"{label}{commit}", request, where, grid, captured)


def _other_version(text: str, first: Version, what: SweptOptions, signature: str, grid: str) -> Version:
    """Return the version that `--against` names: another kernel, or the same by another Triton or config."""
    if re.search(r"\.py(@[^:]+)?(:|$)", text) or kernels_file.named(text):
        signature = signature or what.signature
        if not signature and not kernels_file.named(text):
            signature = first.request.signature
        return _version(text, replace(what, signature=signature), first.where, grid)
    side = tritons.parse(text)
    where = first.where
    if side.folder or side.targets:
        hints = ["--against FILE:KERNEL, --against 3.6.0, --against BLOCK=128"]
        raise UsageError(f"--against cannot be {text!r}: no folder and no target", hints=hints)
    if side.env or side.version or side.python:
        tritons.check([side.version])
        where = tritons.place_of(side, None, None)
    request = tritons.applied(first.request, side)
    return replace(first, label=f"{first.label} with {text}", request=request, where=where, grid=grid)


@task(tables=True, name="profile")
def profile(
    context: Context,
    by: str = flag("profiler: proton, ncu or rocprofv3", "", unset="the first available"),
    kernel: str = flag("only these kernels: comma-separated names", ""),
    times: bool = flag("measure only the time of each kernel, without samples", default=False),
    env: str = again(ANY_ENV, "the Python on PATH"),
    python: Path | None = PYTHON,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Profile a program's kernels on a GPU, per line of Python."""
    from tritonsmith.facts import gpus
    from tritonsmith.inspect import profile as profile_run
    from tritonsmith.inspect import profilers

    _, program = command_line()
    space = workspace.default()
    interpreter = user_program.interpreter(env, python, space)
    # By the Python that runs the program, as proton is a part of its Triton; a command may name its own.
    used = profilers.interpreter_of(program, interpreter)
    profiler = profilers.choose(by, used, gpus.read())
    prepared = profile_run.prepare(
        program, profiler, interpreter, space, kernels=kernel, times=times, quiet=json
    )
    if dry_run:
        output.plan(prepared.plan)
        return
    measured = profile_run.execute(prepared, space, silent=json)
    if json:
        output.json(profile_run.as_json(measured, profiler.name))
    else:
        output.blocks(profile_run.blocks(measured))
    session = f" ({' '.join(filter(None, measured.session.values()))})" if measured.session else ""
    console.note(f"measured by {profiler.name}{session}")
    output.notes(measured.notes)
    # The program's own code: what it launched until then is measured all the same.
    if measured.code:
        raise Exit(code=measured.code)


@task(tables=True, reads_outputs=True, name="time")
def time_(
    context: Context,
    what: SweptOptions,
    kernel: str = word("FILE[:KERNEL], kernels file, or folder of compiled kernels"),
    triton: CommaLists = MANY_TRITONS,
    launches: Path | None = flag("kernels file with the launches of a folder's kernels", None, value="FILE"),
    grid: str = flag("programs of a launch: 'cdiv(n, BLOCK), 1'", "", unset="as captured"),
    size: tuple[str, ...] = flag(
        "scalar, or elements of a tensor: n=4096 (repeatable)", (), value="NAME=VALUE"
    ),
    warm_l2: bool = flag("keep what is in the L2 cache from launch to launch", default=False),
    seconds: int | None = flag("seconds to measure each kernel", None, unset="10", least=1),
    tolerance: str = flag("outputs may differ by this part of the largest: 0.01", "", unset="by type"),
    times: Path | None = flag("times measured on another machine, instead", None, value="FILE"),
    fail_on: str | None = flag("times that fail the command: 'time>+5%'", None, value="LIMITS"),
    out: Path | None = OUT,
    plot: Path | None = PLOT,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Time binaries of any Tritons on the GPU that is here."""
    from tritonsmith.lab import timing
    from tritonsmith.lab import timing_report as report

    limits = report.parse_limits(fail_on)
    if plot:
        resource_views.check_plot(plot)
    space = workspace.default()
    flags = timing.LaunchFlags(grid, timing.parse_sizes(size), launches)
    method = timing.method_of(seconds, tolerance, warm=warm_l2)
    folder = folder_of(kernel)
    if folder and timing.is_plan(folder):
        prepared = timing.reopen(folder, flags)
        method = timing.method_of(seconds, tolerance, warm=warm_l2, before=prepared.job.method)
        prepared = replace(prepared, job=replace(prepared.job, method=method))
    else:
        # A plan may be carried to another machine, which does not need all stages of all compiles.
        name = f"{folder.name}-{digest(folder)}" if folder else Path(kernel).stem
        work = space.root / "timings" / manifest.folder_name(name)
        if folder:
            _refuse_compile(what, triton)
            groups = timing.members(timing.manifests_below(folder), folder, targets.parse_all(what.target))
            entries: Sequence[ListedKernel] = flags.entries()
        else:
            study, listed = _timed_study(kernel, what, triton, work)
            if dry_run:
                output.plan(study.plan())
                return
            groups, entries = timing.compiled(study, jobs, timeout, silent=json), listed
        arguments = {
            name: timing.arguments_of(timing.entry_of(name, group, entries), flags)
            for name, group in groups.items()
        }
        prepared = timing.prepare(groups, arguments, out or work / "time", method)
    if dry_run:
        output.plan(prepared.plan() + prepared.run())
        return
    output.notes(prepared.notes)
    measured = timing.read_times(times) if times else timing.measure_here(prepared, space, silent=json)
    _print_times(report.read(measured, timing.figures(prepared.job)), limits, measured, plot, json=json)


def _refuse_compile(what: SweptOptions, triton: Sequence[str]) -> None:
    """Refuse flags of a compile where everything is compiled; `--target` chooses among what is there."""
    replace(what, target=()).refuse()
    if triton:
        hints = ["omit --triton: all that the folder has is timed", "give FILE[:KERNEL] or a kernels file"]
        raise UsageError("--triton: these kernels are already compiled", hints=hints)


def _timed_study(
    kernel: str, what: SweptOptions, triton: Sequence[str], folder: Path
) -> tuple[StudyPlan, list[ListedKernel]]:
    """Return the compiles of the kernels to time, and the entries of the kernels file."""
    from tritonsmith.lab.compare import study

    if what.sweep not in ((), ("autotune",)):
        hints = [
            "--sweep autotune",
            "invoke kernel.compile FILE --sweep ... --out DIR, then invoke kernel.time DIR",
        ]
        raise UsageError("kernel.time compiles no sweep but the configs of an autotuner", hints=hints)
    entries, path = entries_of(kernel, what)
    chosen = targets.parse_all(what.target)
    # Kernels of a captured list have their target; all others are for the GPU that is here.
    if not chosen and any(not entry.targets for entry in entries):
        chosen = targets.parse_all(("native",))
    tritons_ = study.parse_tritons(triton)
    swept = bool(what.sweep)
    return study.prepare(entries, tritons_, chosen, folder, path.parent, autotune=swept), entries


def _print_times(
    results: Sequence[KernelTimes],
    limits: Sequence[Limit],
    measured: Mapping[str, Any],
    plot: Path | None,
    *,
    json: bool,
) -> None:
    from tritonsmith.lab import timing_report as report

    broken = list(report.violations(results, limits))
    if json:
        output.json(report.as_json(results, broken, measured))
    else:
        output.lines(report.head(measured))
        output.blocks(report.tables_of(results))
        output.notes(dict.fromkeys(f"{each.kernel}: {note}" for each in results for note in each.notes))
    report.require_any(results)
    if plot:
        report.write_plot(results, plot)
        console.note(f"the plot is in {plot}")
    if error := report.failure(results, broken):
        raise error
    if limits and not json:
        console.out().print(report.passed(limits), markup=False)


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
    from tritonsmith.compiler import capture as capture_run

    _, program = command_line()
    space = workspace.default()
    target = targets.parse(device)
    to = (out or OutFile("captured.toml")).path("captured.toml")
    interpreter = user_program.interpreter(env, python, space)
    prepared = capture_run.prepare(program, target, device, to, interpreter, space, stand_in)
    if dry_run:
        output.plan(prepared.plan)
        return
    captured = capture_run.execute(prepared, space)
    notes = list(captured.recording.notes)
    if json:
        output.json(capture_run.as_json(captured.kernels, notes, to, captured.code))
    elif captured.kernels:
        launches = sum(kernel.count for kernel in captured.recording.kernels)
        console.out().print(
            capture_run.launch_table(
                captured.kernels, f"{launches} {'launch' if launches == 1 else 'launches'} for {target}"
            )
        )
        console.out().print(f"{to}", markup=False)
    if captured.kernels:  # without any, the error below has the notes
        output.notes(notes)
    # A program that fails after its launches, as without a GPU many do, has its own exit code.
    if captured.code == 0 or not captured.kernels:
        capture_run.check(captured, prepared)
    if captured.code:
        raise Exit(code=captured.code)


@task(tables=True, name="override")
def ir_override(
    context: Context,
    what: KernelOptions,
    by: ToolchainOptions,
    kernel: str = word("FILE[:KERNEL] or kernels file; or a command after --", ""),
    name: str = flag("kernel to change, if there are several: its name, or a hash prefix", ""),
    stage: str = flag("stage to change: ttir, ttgir, llir, ptx, amdgcn", "ttgir"),
    edited: Path | None = flag("edited file to use, instead of opening $EDITOR", None),
    diff: bool = flag("print the changed lines, not only their number", default=False),
    out: Path | None = OUT,
) -> None:
    """Edit one stage of a kernel, compile from there, and compare."""
    from tritonsmith.inspect import override

    _, program = command_line()
    if bool(program) == bool(kernel):
        hints = [
            "invoke kernel.override matmul.py --signature ... --stage ttgir",
            "invoke kernel.override -- python script.py",
        ]
        raise UsageError("name a kernel's file, or a command after --", hints=hints)
    (stage,) = parse_stages([stage])
    if edited and not edited.is_file():
        raise UsageError(f"--edited: no file {edited}")
    editor = (
        # Chosen before anything compiles, so that a missing editor does not cost a compile.
        () if edited else override.editor(os.environ, terminal=sys.stdin.isatty() and sys.stdout.isatty())
    )
    if program:
        runs = override.of_command(program, by.python, out)
    else:
        request = what.request(kernel, target=target_of(stage), by=by)
        runs = override.of_kernel(request, by.toolchain(request), out)
    # The unchanged compile gives the text to edit, and is what the changed one is compared with.
    chosen = override.choose(override.run_unchanged(runs), name, stage)
    place = override.copy_for_editing(runs, chosen)
    if edited:
        files.copy(edited, place)
    else:
        override.edit(place, editor)
    print_stages(override.run_changed(runs, chosen, place), runs.out, whole=diff)


def print_stages(diffs: tuple[Diff, ...], out: Path, *, whole: bool) -> None:
    """Print how many lines of each stage an override changed; with `whole` also the lines."""
    rows = [[diff.stage, str(diff.removed), str(diff.added)] for diff in diffs]
    title = "changed lines, without locations and value numbers; the first stage is your change"
    console.out().print(tables.plain(title, ["stage", "removed", "added"], rows, right=["removed", "added"]))
    if whole:
        for diff in diffs:
            console.out().print("\n".join(diff.lines), markup=False, highlight=False)
    console.out().print(f"{out}", markup=False)
