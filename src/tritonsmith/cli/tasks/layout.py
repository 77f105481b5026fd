"""`layout`: who holds which element of a tensor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.options import JSON, PLOT, PYTHON, WHEEL_ENV
from tritonsmith.cli.tasks.task import task


@task(tables=True)
def layout(
    context: Any,
    layout: str = word("a layout, as IR has it: '#ttg.blocked<{...}>'"),
    shape: str = flag("shape of the tensor: 128x64", ""),
    dtype: str = flag("type of an element, as in a signature: fp16, i8", "fp32"),
    by: str = flag("the layout of the threads that read or write shared memory", ""),
    env: str = WHEEL_ENV,
    python: Path | None = PYTHON,
    plot: Path | None = PLOT,
    json: bool = JSON,
) -> None:
    """Show which thread and register holds each element of a tensor."""
    from tritonsmith.compiler.interpreter import choose_interpreter
    from tritonsmith.core.errors import FactError, UsageError
    from tritonsmith.core.ui import console, recording
    from tritonsmith.inspect.layouts import converted, report
    from tritonsmith.inspect.resources import plot as resources_plot
    from tritonsmith.ir import layout_types

    if not shape:
        raise UsageError("--shape is missing", hints=["--shape 128x64"])
    types = [layout_types.of(one, shape, dtype) for one in (layout, *([by] if by else []))]
    if by and (types[0].kind, types[1].kind) != ("shared memory", "registers"):
        hints = ["the first layout is of shared memory, that of --by of registers"]
        raise UsageError("--by counts the bank conflicts of threads in shared memory", hints=hints)
    if plot:
        resources_plot.check(plot)
    where = choose_interpreter(env, str(python or ""))
    made = converted.convert(types, where.python, where.space)
    for one in made:
        if one.linear is None:
            hints = [f"--shape {shape} must have as many dimensions as the layout"]
            hints += ["another Triton may take it: --env, --python"]
            raise FactError(f"Triton does not convert {one.type.layout}", why=one.error, hints=hints)
    first = made[0]
    assert first.linear is not None  # noqa: S101 - for the type checker
    accesses = report.along(first, made[1] if by else None)
    if by and not accesses:
        raise FactError("bank conflicts are counted for warps of 32 lanes", hints=["omit --by"])
    if plot:
        report.write_picture(first, plot)
        recording.made(plot)
    if json:
        output.json(report.as_json(first, accesses))
        return
    console.out().print(f"{first.type.text}\n{report.sentence(first.linear)}", markup=False)
    blocks = [report.basis_table(first.linear), report.grid(first.linear, console.out().width)]
    for block in (*blocks, *([report.bank_table(accesses)] if accesses else [])):
        console.out().print()
        console.out().print(block)
