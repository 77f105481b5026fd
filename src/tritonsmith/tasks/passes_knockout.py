"""`passes.knockout`: compile a kernel without each of its passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.tasks.kernel_options import KernelOptions, PoolOptions
from tritonsmith.tasks.options import COMPILED_KERNEL, DRY_RUN, JSON, OUT
from tritonsmith.tasks.task import task


@task(tables=True)
def knockout(
    context: Any,
    what: KernelOptions,
    by: PoolOptions,
    kernel: str = COMPILED_KERNEL,
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Leave out each pass in turn: is it needed, and what does it change."""
    from tritonsmith.passes.knockout import knockout as passes_knockout
    from tritonsmith.passes.knockout import report
    from tritonsmith.tasks import output
    from tritonsmith.ui import console

    wanted = what.requests(kernel, by=by)
    where = by.toolchain(*wanted)
    if dry_run:
        for one in wanted:
            output.compile_of(passes_knockout.first(one, where, out))
        console.note("and one compile without each pass that this one counts")
        return
    found = [made for one in wanted for made in passes_knockout.execute(one, where, out, silent=json)]
    if json:
        output.json(report.as_json(found))
        return
    for table in report.tables_of(found):
        console.out().print(table)
    if len(wanted) > 1:
        console.out().print(report.summary(found))
    console.note("whether the code without a pass is right, only a run on its GPU tells")
