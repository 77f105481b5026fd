"""`passes.list`: the pipeline as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritonsmith.tasks.task import some, task


@task(
    tables=True,
    name="list",
    positional=["folder"],
    iterable=["source"],
    help={
        "folder": "a folder that passes.dump or passes.import wrote",
        "kernel": "which one, where the dump has several",
        "changed": "only passes that changed something",
        "summary": "one line on what each pass does; needs --source",
        "source": "a checkout of Triton or LLVM, whose tablegen says what passes do (repeat it)",
        "json": "print JSON",
    },
)
def listing(
    context: Any,
    folder: str,
    kernel: str = "",
    changed: bool = False,
    summary: bool = False,
    source: Iterable[str] | None = None,
    json: bool = False,
) -> None:
    """List what each pass did: lines, operations, bytes, time."""
    from json import dumps
    from pathlib import Path

    from tritonsmith.passes.dump import index, select
    from tritonsmith.passes.view import pass_summaries, pipeline_table
    from tritonsmith.ui import console

    made = index.read(Path(folder).expanduser())
    chosen = select.kernel(made, kernel)
    counted = pipeline_table.rows(made, chosen.name)
    if json:
        console.write(dumps(pipeline_table.as_json(made, chosen, counted)))
        return
    said = pass_summaries.asked(some(source or ()), wanted=summary)
    console.out().print(pipeline_table.table(made, chosen, counted, said, changed=changed))
    if chosen.failed:
        console.warn(
            f"{chosen.failed} failed" + (f": {chosen.error.splitlines()[0]}" if chosen.error else "")
        )
