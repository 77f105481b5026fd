"""`passes.show --find`: show which passes add, duplicate or remove a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.options import DUMPED_KERNEL, FOLDER, JSON
from tritonsmith.cli.tasks.task import task


@task(tables=True, name="find")
def find(
    context: Any,
    folder: Path = FOLDER,
    text: str = word("what to look for: convert_layout"),
    kernel: str = DUMPED_KERNEL,
    regex: bool = flag("the text is a regular expression", default=False),
    json: bool = JSON,
) -> None:
    """Show which passes add, duplicate or remove a text."""
    from tritonsmith.compiler.dump import index
    from tritonsmith.core.errors import SmithError
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.passes import show

    made = index.read(folder)
    chosen = index.choose_kernel(made, kernel)
    found = show.find_text(made, chosen.name, text, regex=regex)
    if json:
        output.json(show.events_as_json(found), indent=None)
        return
    if not found.dumps:
        hints = ["locations are not searched"] if "loc" in text or "dbg" in text else []
        raise SmithError(f"{text!r} is in no pass's input of {chosen.name}", where=made.folder, hints=hints)
    console.out().print(show.events_table(found, text))
