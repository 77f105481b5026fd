"""`kernel.resources`: what compiled kernels take of a GPU, with none here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tritonsmith.tasks.options import ASKING, REPEATED
from tritonsmith.tasks.task import Words, given, task

if TYPE_CHECKING:
    from pathlib import Path

    from tritonsmith.kernels.compile.request import CompileRequest
    from tritonsmith.kernels.compile.run import Toolchain
    from tritonsmith.kernels.resources.measure import Measured


@task(
    tables=True,
    klass=Words,
    positional=["kernel"],
    iterable=list(REPEATED),
    help={
        **ASKING,
        "kernel": "folder of kernel.compile, FILE[:KERNEL] or MODULE:KERNEL",
        "from_cache": "all, the folder of a Triton cache, or one of its entries",
        "spills": "only kernels that spill, the worst first",
        "out": "folder for what is compiled (default: one in the workspace)",
        "json": "print JSON",
        "csv": "print CSV",
        "plot": "write a heat map of a sweep: FILE.png or FILE.svg",
        "dry_run": "print the plan as a shell script, and do nothing",
    },
)
def resources(
    context: Any,
    kernel: str = "",
    signature: str = "",
    target: Iterable[str] | None = None,
    num_warps: str = "",
    num_stages: str = "",
    option: Iterable[str] | None = None,
    sweep: Iterable[str] | None = None,
    from_cache: str = "",
    spills: bool = False,
    out: str = "",
    env: str = "wheel",
    python: str = "",
    jobs: str = "",
    timeout: str = "",
    json: bool = False,
    csv: bool = False,
    plot: str = "",
    dry_run: bool = False,
) -> None:
    """Show registers, spills, shared memory and occupancy of kernels."""
    from pathlib import Path

    from tritonsmith.envs import workspace
    from tritonsmith.kernels.resources import from_cache as resources_from_cache
    from tritonsmith.kernels.resources import plot as resources_plot
    from tritonsmith.tasks import options

    compiles = bool(signature or target or num_warps or num_stages or option or sweep or out)
    whole = bool(from_cache) and not compiles
    folder = Path(kernel).expanduser() if kernel and Path(kernel).expanduser().is_dir() else None
    _refuse(kernel, whole=whole, compiled=compiles and folder is not None, json=json, csv=csv, plot=plot)
    picture = Path(plot).expanduser().absolute() if given(plot) else None
    if picture:
        resources_plot.check(picture)
    if whole:
        found: Measured | None = resources_from_cache.read(from_cache, workspace.default())
    elif folder:
        found = _compiled_before(folder.absolute())
    else:
        asked = options.parse_request(
            kernel,
            signature,
            target,
            option,
            sweep,
            num_warps=num_warps,
            num_stages=num_stages,
            from_cache=from_cache,
            env=env,
            python=python,
        )
        where = options.toolchain(env, python, jobs, timeout, asked)
        place = Path(out).expanduser().absolute() if given(out) else None
        found = _compiled_now(asked, where, place, silent=json or csv, dry_run=dry_run)
    if found:
        _print(found, spills=spills, json=json, csv=csv, cached=whole, picture=picture)


def _refuse(kernel: str, *, whole: bool, compiled: bool, json: bool, csv: bool, plot: str) -> None:
    from tritonsmith.errors import UsageError

    if json and csv:
        raise UsageError("--json and --csv contradict each other", hints=["leave one of them out"])
    if compiled:
        what = f"{kernel} is compiled already: flags of a compile change nothing"
        raise UsageError(what, hints=["they go with FILE[:KERNEL]"])
    if whole and plot:
        raise UsageError("--plot draws a sweep, and a cache is none", hints=["leave --plot out"])
    if whole and kernel:
        raise UsageError("--from-cache takes no kernel", hints=["leave one of them out"])


def _compiled_before(folder: Path) -> Measured:
    from dataclasses import replace

    from tritonsmith.kernels.compile import manifest
    from tritonsmith.kernels.resources import measure

    compiled = manifest.read(folder)
    found = measure.of_manifest(compiled)
    more = (*measure.without_text(compiled), *measure.unheard(compiled))
    return replace(found, notes=(*found.notes, *more))


def _compiled_now(
    asked: CompileRequest, where: Toolchain, out: Path | None, *, silent: bool, dry_run: bool
) -> Measured | None:
    """Compile first; None where the plan was shown instead."""
    from dataclasses import replace

    from tritonsmith.kernels.compile import run
    from tritonsmith.kernels.resources import measure
    from tritonsmith.tasks import output

    prepared = run.prepare(asked, where, out)
    if dry_run:
        output.compile_of(prepared)
        return None
    made = run.execute(prepared, where, silent=silent)
    found = measure.of_manifest(made.manifest)
    return replace(found, notes=(*made.notes, *found.notes, *measure.unheard(made.manifest)))


def _print(
    found: Measured, *, spills: bool, json: bool, csv: bool, cached: bool, picture: Path | None
) -> None:
    from dataclasses import replace
    from json import dumps

    from tritonsmith.errors import SmithError
    from tritonsmith.kernels.resources import plot as resources_plot
    from tritonsmith.kernels.resources import report
    from tritonsmith.kernels.resources import table as resources_table
    from tritonsmith.ui import console

    failed = [row for row in found.rows if row.error]
    if spills:
        found = replace(found, rows=resources_table.spilling(found.rows))
    for text in found.notes:
        console.note(text)
    if json:
        console.write(dumps(report.as_json(found), indent=2))
    elif csv:
        console.write(report.as_csv(found.rows), end="")
    else:
        _print_tables(found, spills=spills, cached=cached)
    if picture:
        resources_plot.write(found.rows, picture)
        console.note(f"the plot is in {picture}")
    if failed:
        why = "\n".join(f"{row.point}: {row.error}" for row in failed)
        hints = ["the manifest in the output folder has the whole messages"]
        raise SmithError(f"{len(failed)} of the points did not compile", why=why, hints=hints)


def _print_tables(found: Measured, *, spills: bool, cached: bool) -> None:
    from tritonsmith.kernels.resources import report
    from tritonsmith.ui import console

    for table in report.tables_of(found.rows, cached=cached):
        console.out().print(table)
    for text in found.warnings:
        console.warn(text)
    if more := report.left_out(found.rows):
        console.note(f"{more} more kernels: --csv and --json have all of them")
    if not found.rows:
        console.out().print("no kernel spills" if spills else "no kernels")
