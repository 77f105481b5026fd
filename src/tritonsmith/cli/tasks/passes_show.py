"""`passes.show`: print the input or output of a pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import again, flag
from tritonsmith.cli.tasks.options import ANY_ENV, DUMPED_KERNEL, FOLDER, JSON, NUMBER, PYTHON
from tritonsmith.cli.tasks.task import task


@task(tables=True, name="show")
def show(
    context: Any,
    folder: Path = FOLDER,
    number: str = NUMBER,
    kernel: str = DUMPED_KERNEL,
    after: bool = flag("print the output of the pass, not its input", default=False),
    normal: bool = flag("renumber values, and omit locations", default=False),
    path: bool = flag("print the path of the file, instead of its text", default=False),
    layouts: bool = flag("print layouts and bank conflicts, instead of the text", default=False),
    env: str = again(ANY_ENV, "wheel"),
    python: Path | None = PYTHON,
    json: bool = JSON,
) -> None:
    """Print the IR before or after a pass."""
    from tritonsmith.compiler.dump import index
    from tritonsmith.core.errors import UsageError
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.passes import diff as view_diff
    from tritonsmith.inspect.passes import show as view_show

    if not layouts and (env or python or json):
        raise UsageError("--env, --python and --json require --layouts", hints=["omit them"])
    if layouts and (normal or path):
        raise UsageError("--layouts prints no text: --normal and --path have no effect", hints=["omit them"])
    made = index.read(folder)
    dump = index.choose_dump(made, index.choose_kernel(made, kernel).name, number)
    shown = view_diff.left(made, dump) if after else dump
    out = console.out()
    if layouts:
        _layouts(view_show.text(made, shown), env or "wheel", str(python or ""), json=json)
    elif path:
        console.write(made.path(shown))
    elif out.is_terminal:
        out.print(view_show.highlighted(made, shown, plain=normal), end="")
    else:
        console.write(view_show.text(made, shown, plain=normal), end="")


def _layouts(ir: str, env: str, python: str, *, json: bool) -> None:
    """Print the layouts of a module, and the bank conflicts of its loads and stores of shared memory."""
    from tritonsmith.compiler.interpreter import choose_interpreter
    from tritonsmith.core.errors import FactError
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.layouts import converted, report
    from tritonsmith.inspect.passes import diff as view_diff
    from tritonsmith.ir import layout_types

    definitions = view_diff.layout_definitions(ir)
    written = tuple(layout_types.within(ir, definitions))
    accesses = tuple(layout_types.accesses(ir, definitions))
    if not written:
        raise FactError("this IR has no layouts", hints=["layouts come with the stage ttgir"])
    where = choose_interpreter(env, python)
    types = tuple(dict.fromkeys(one.type for one in written))
    made = {one.type: one for one in converted.convert(types, where.python, where.space)}
    if json:
        rows = [report.access_json(one, made) for one in accesses]
        output.json({"layouts": [report.as_json(one) for one in made.values()], "accesses": rows})
        return
    console.out().print(report.layout_table(written, made))
    table, uncounted = report.access_table(accesses, made)
    if table:
        console.out().print()
        console.out().print(table)
    output.notes(uncounted)
