"""`passes.show`: the IR that one pass was given."""

from __future__ import annotations

from typing import Any

from tritonsmith.tasks.task import task


@task(
    name="show",
    positional=["folder", "number"],
    help={
        "folder": "a folder that passes.dump or passes.import wrote",
        "number": "of the pass, as passes.list has it; or its name, if it ran once",
        "kernel": "which one, where the dump has several",
        "after": "what the pass left, not what it was given",
        "normal": "values renumbered, locations taken out",
        "path": "print the name of its file",
    },
)
def show(
    context: Any,
    folder: str,
    number: str,
    kernel: str = "",
    after: bool = False,
    normal: bool = False,
    path: bool = False,
) -> None:
    """Print the IR before a pass, or after it."""
    from pathlib import Path

    from tritonsmith.passes.dump import index, select
    from tritonsmith.passes.view import show as view_show
    from tritonsmith.ui import console

    made = index.read(Path(folder).expanduser())
    dump = select.dump(made, select.kernel(made, kernel).name, number)
    shown = view_show.after(made, dump) if after else dump
    out = console.out()
    if path:
        console.write(made.path(shown))
    elif out.is_terminal:
        out.print(view_show.highlighted(made, shown, plain=normal), end="")
    else:
        console.write(view_show.text(made, shown, plain=normal), end="")
