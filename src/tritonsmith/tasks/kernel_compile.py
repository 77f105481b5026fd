"""`kernel.compile`: compile a kernel for any GPU, without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.tasks import output
from tritonsmith.tasks.kernel_options import CompileOptions, PoolOptions, parse_stages
from tritonsmith.tasks.option_fields import CommaLists, flag, word
from tritonsmith.tasks.options import DRY_RUN, FROM_CACHE, JSON, OUT
from tritonsmith.tasks.task import task


@task(tables=True, name="compile")
def compile_(
    context: Any,
    what: CompileOptions,
    by: PoolOptions,
    kernel: str = word("FILE, FILE:KERNEL or MODULE:KERNEL", ""),
    stage: CommaLists = flag("keep only this stage: ttgir, ptx, sass ... (repeatable)", ()),
    from_cache: str = FROM_CACHE,
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
    all_: bool = flag("with --dry-run: print all points, however many", default=False),
) -> None:
    """Compile a kernel for any GPUs, without one, and keep every stage."""
    from tritonsmith.errors import SmithError
    from tritonsmith.kernels.compile import report, run
    from tritonsmith.ui import console

    stages = parse_stages(stage)
    wanted = what.request(kernel, stages=stages, from_cache=from_cache, by=by)
    where = by.toolchain(wanted)
    prepared = run.prepare(wanted, where, out)
    if dry_run:
        output.compile_of(prepared, everything=all_)
        return
    made = run.execute(prepared, where)
    for text in made.notes:
        console.note(text)
    if json:
        output.json(report.as_json(made.manifest, made.notes))
    else:
        for table in report.table(made.manifest):
            console.out().print(table)
        console.out().print(f"{made.manifest.folder}", markup=False)
    failed = list(report.failures(made.manifest))
    if failed:
        bad = sum(point.status != "ok" for point in made.manifest.points)
        raise SmithError(
            f"{bad} of {len(made.manifest.points)} points did not compile",
            where=made.manifest.folder,
            why="\n".join(failed),
            hints=["the log is in the folder of the point; the manifest has the full message"],
        )
