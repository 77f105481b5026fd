"""`passes.find`: in which pass a text was born, multiplied, and died."""

from __future__ import annotations

from typing import Any

from tritonsmith.tasks.task import task


@task(
    tables=True,
    name="find",
    positional=["folder", "text"],
    help={
        "folder": "a folder that passes.dump or passes.import wrote",
        "text": "what to look for: convert_layout",
        "kernel": "which one, where the dump has several",
        "regex": "it is a regular expression",
        "json": "print JSON",
    },
)
def find(
    context: Any, folder: str, text: str, kernel: str = "", regex: bool = False, json: bool = False
) -> None:
    """Show which passes add, duplicate or remove a text."""
    from json import dumps
    from pathlib import Path

    from tritonsmith.errors import SmithError
    from tritonsmith.passes.dump import index, select
    from tritonsmith.passes.view import find_text
    from tritonsmith.ui import console

    made = index.read(Path(folder).expanduser())
    chosen = select.kernel(made, kernel)
    found = find_text.find(made, chosen.name, text, regex=regex)
    if json:
        console.write(dumps(find_text.as_json(found)))
        return
    if not found.dumps:
        hints = ["locations are not searched"] if "loc" in text or "dbg" in text else []
        raise SmithError(f"no pass of {chosen.name} was given {text!r}", where=made.folder, hints=hints)
    console.out().print(find_text.table(found, text))
