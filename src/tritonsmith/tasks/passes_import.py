"""`passes.import`: a saved log, taken apart."""

from __future__ import annotations

from typing import Any

from tritonsmith.tasks.task import given, task


@task(
    tables=True,
    name="import",
    positional=["file"],
    help={
        "file": "the log: plain, by gzip or by zstd; - for standard input",
        "out": "folder for the dump (default: one in the workspace)",
        "python": "an interpreter that has the Triton that printed it, for passes.replay",
        "json": "print the index as JSON",
    },
)
def import_(context: Any, file: str, out: str = "", python: str = "", json: bool = False) -> None:
    """Import a saved MLIR_ENABLE_DUMP log."""
    from pathlib import Path

    from tritonsmith.passes.dump import import_log, summary

    folder = Path(out).expanduser().absolute() if given(out) else import_log.place(file)
    interpreter = str(Path(python).expanduser().absolute()) if python else ""
    index = import_log.shown(file, folder, python=interpreter)
    summary.show(index, json=json)
    import_log.check(index)
