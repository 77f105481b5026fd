"""`passes.show`: print the input or output of a pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.tasks.option_fields import flag
from tritonsmith.tasks.options import DUMPED_KERNEL, FOLDER, NUMBER
from tritonsmith.tasks.task import task


@task(name="show")
def show(
    context: Any,
    folder: Path = FOLDER,
    number: str = NUMBER,
    kernel: str = DUMPED_KERNEL,
    after: bool = flag("print the output of the pass, not its input", default=False),
    normal: bool = flag("renumber values, and omit locations", default=False),
    path: bool = flag("print the path of the file, instead of its text", default=False),
) -> None:
    """Print the IR before or after a pass."""
    from tritonsmith.passes.dump import index, select
    from tritonsmith.passes.view import diff as view_diff
    from tritonsmith.passes.view import show as view_show
    from tritonsmith.ui import console

    made = index.read(folder)
    dump = select.dump(made, select.kernel(made, kernel).name, number)
    shown = view_diff.left(made, dump) if after else dump
    out = console.out()
    if path:
        console.write(made.path(shown))
    elif out.is_terminal:
        out.print(view_show.highlighted(made, shown, plain=normal), end="")
    else:
        console.write(view_show.text(made, shown, plain=normal), end="")
