"""`kernel.compile --resources`: show the resources of compiled kernels, without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import CompileOptions, PoolOptions, folder_of
from tritonsmith.cli.tasks.option_fields import flag
from tritonsmith.cli.tasks.options import CSV, DRY_RUN, JSON, KERNEL, OUT, PLOT
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonsmith.compiler.interpreter import Interpreter
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.compiler.resources.measure import Measured


@task(tables=True, reads_outputs=True)
def resources(
    context: Any,
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
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import UsageError
    from tritonsmith.inspect.resources import from_cache as resources_from_cache
    from tritonsmith.inspect.resources import plot as resources_plot

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
        resources_plot.check(plot)
    if whole:
        found: Measured | None = resources_from_cache.read(from_cache, workspace.default())
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
        _print(found, spills=spills, json=json, csv=csv, cached=whole, picture=plot)


def _compiled_before(folder: Path) -> Measured:
    from dataclasses import replace

    from tritonsmith.compiler import manifest
    from tritonsmith.compiler.resources import measure

    compiled = manifest.read(folder)
    found = measure.of_manifest(compiled)
    more = (*measure.without_text(compiled), *measure.unheard(compiled))
    return replace(found, notes=(*found.notes, *more))


def _compiled_now(
    asked: Sequence[CompileRequest], where: Interpreter, out: Path | None, *, silent: bool, dry_run: bool
) -> Measured | None:
    """Compile the kernels; return None if only the plan was printed."""
    from dataclasses import replace

    from tritonsmith.compiler import run
    from tritonsmith.compiler.resources import measure

    if dry_run:
        for one in run.prepare_all(asked, where, out):
            output.compile_of(one)
        return None
    found = {}
    for wanted, made in zip(asked, run.execute_all(asked, where, out, silent=silent), strict=True):
        measured = measure.of_manifest(made.manifest)
        notes = (*made.notes, *measured.notes, *measure.unheard(made.manifest))
        found[wanted.name] = replace(measured, notes=notes)
    return measure.of_all(found)


def _print(
    found: Measured, *, spills: bool, json: bool, csv: bool, cached: bool, picture: Path | None
) -> None:
    from dataclasses import replace

    from tritonsmith.compiler.resources import table as resources_table
    from tritonsmith.core.errors import SmithError
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.resources import plot as resources_plot
    from tritonsmith.inspect.resources import report

    failed = [row for row in found.rows if row.error]
    if spills:
        found = replace(found, rows=resources_table.spilling(found.rows))
    for text in found.notes:
        console.note(text)
    if json:
        output.json(report.as_json(found))
    elif csv:
        console.write(report.as_csv(found.rows), end="")
    else:
        _print_tables(found, spills=spills, cached=cached)
    if picture:
        resources_plot.write(found.rows, picture)
        console.note(f"the plot is in {picture}")
    if failed:
        why = "\n".join(f"{row.point}: {row.error}" for row in failed)
        hints = ["the manifest in the output folder has the full messages"]
        raise SmithError(f"{len(failed)} of the points did not compile", why=why, hints=hints)


def _print_tables(found: Measured, *, spills: bool, cached: bool) -> None:
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.resources import report

    for table in report.tables_of(found.rows, cached=cached):
        console.out().print(table)
    for text in found.warnings:
        console.warn(text)
    if more := report.left_out(found.rows):
        console.note(f"{more} more kernels: --csv and --json have all of them")
    if not found.rows:
        console.out().print("no kernel spills" if spills else "no kernels")
