"""`passes.list`: print the pipeline as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag
from tritonsmith.cli.tasks.options import DUMPED_KERNEL, FOLDER, JSON
from tritonsmith.cli.tasks.task import task


@task(tables=True, name="list")
def listing(
    context: Any,
    folder: Path = FOLDER,
    kernel: str = DUMPED_KERNEL,
    changed: bool = flag("only passes that changed something", default=False),
    summary: bool = flag("describe each pass in one line; needs --source", default=False),
    source: tuple[str, ...] = flag("checkout of Triton or LLVM with the descriptions (repeatable)", ()),
    json: bool = JSON,
) -> None:
    """List the passes of a dump with what each changed, and its time."""
    from tritonsmith.compiler.dump import index
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.passes import pipeline_table

    made = index.read(folder)
    chosen = index.choose_kernel(made, kernel)
    counted = pipeline_table.rows(made, chosen.name)
    if json:
        output.json(pipeline_table.as_json(made, chosen, counted), indent=None)
        return
    said = pipeline_table.pass_at(source, wanted=summary)
    console.out().print(pipeline_table.table(made, chosen, counted, said, changed=changed))
    if chosen.failed:
        console.warn(
            f"{chosen.failed} failed" + (f": {chosen.error.splitlines()[0]}" if chosen.error else "")
        )
