"""`passes.knockout`: compile a kernel without each of its passes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.tasks.kernel_options import KernelOptions, PoolOptions
from tritonsmith.tasks.option_fields import flag
from tritonsmith.tasks.options import COMPILED_KERNEL, DRY_RUN, JSON, OUT
from tritonsmith.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.ui.tables import Grid


@task(tables=True)
def knockout(
    context: Any,
    what: KernelOptions,
    by: PoolOptions,
    kernel: str = COMPILED_KERNEL,
    llvm: bool = flag("LLVM's passes: stop after each in turn, not Triton's left out", default=False),
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Leave out each pass in turn: is it needed, and what does it change."""
    from tritonsmith.passes.knockout import knockout as passes_knockout
    from tritonsmith.passes.knockout import llvm_passes, report
    from tritonsmith.tasks import output
    from tritonsmith.ui import console

    wanted = what.requests(kernel, by=by)
    where = by.toolchain(*wanted)
    if dry_run:
        for one in wanted:
            output.compile_of((llvm_passes if llvm else passes_knockout).first(one, where, out))
        each = "for each number of LLVM's passes" if llvm else "without each pass"
        console.note(f"and one compile {each} that this one counts")
        return
    if llvm:
        limited = [made for one in wanted for made in llvm_passes.execute(one, where, out, silent=json)]
        _print(report.llvm_as_json(limited), report.tables_of_llvm(limited), json=json)
        return
    found = [made for one in wanted for made in passes_knockout.execute(one, where, out, silent=json)]
    tables = itertools.chain(report.tables_of(found), [report.summary(found)] if len(wanted) > 1 else [])
    _print(report.as_json(found), tables, json=json)
    if not json:
        console.note("whether the code without a pass is right, only a run on its GPU tells")


def _print(made: dict[str, Any], tables: Iterable[Grid], *, json: bool) -> None:
    from tritonsmith.tasks import output
    from tritonsmith.ui import console

    if json:
        output.json(made)
        return
    for table in tables:
        console.out().print(table)
