"""`kernel.compile`: compile a kernel for any GPU, without one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import CompileOptions, PoolOptions, parse_stages
from tritonsmith.cli.tasks.option_fields import CommaLists, again, flag
from tritonsmith.cli.tasks.options import COMPILED_KERNEL, DRY_RUN, FROM_CACHE, JSON, OUT
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.compiler.interpreter import Interpreter


@task(tables=True, reads_outputs=True, name="compile")
def compile_(
    context: Any,
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
    from tritonsmith.compiler import report, run
    from tritonsmith.core.errors import SmithError
    from tritonsmith.core.ui import console

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
    from tritonsmith.compiler import tritons
    from tritonsmith.wheels import ptxas

    where, found = tritons.with_ptxas(where, wanted)
    if dry_run and found.plan.steps:
        output.plan(found.plan)
    elif not dry_run:
        ptxas.install(found, where.space)
    return where
