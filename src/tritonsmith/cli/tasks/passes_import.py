"""`passes.dump --from-log`: import a saved log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.options import JSON, OUT
from tritonsmith.cli.tasks.task import task


@task(tables=True, name="import")
def import_(
    context: Any,
    file: str = word("log: plain, gzip or zstd; - for standard input"),
    out: Path | None = OUT,
    python: Path | None = flag("interpreter with the Triton that printed it, for passes.replay", None),
    json: bool = JSON,
) -> None:
    """Import a saved MLIR_ENABLE_DUMP log."""
    from tritonsmith.compiler.dump import import_log, pass_runs

    index = import_log.shown(file, out or import_log.place(file), python=str(python or ""))
    pass_runs.show_summary(index, json=json)
    import_log.check(index)
