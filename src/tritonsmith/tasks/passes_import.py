"""`passes.import`: a saved log, taken apart."""

from __future__ import annotations

from typing import Any

from tritonsmith.tasks.kit import given, task


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

    from tritonsmith.passes import importing, overview

    folder = Path(out).expanduser().absolute() if given(out) else importing.place(file)
    interpreter = str(Path(python).expanduser().absolute()) if python else ""
    index = importing.shown(file, folder, python=interpreter)
    overview.show(index, json=json)
    importing.check(index)
