"""`passes.check`: run the IR after each pass, and name the first pass that changes the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.errors import UndecidedError
from tritonsmith.tasks.option_fields import again, flag
from tritonsmith.tasks.options import ANY_ENV, DUMPED_KERNEL, FOLDER, JSON, PYTHON
from tritonsmith.tasks.task import task


@task(tables=True, name="check")
def check(
    context: Any,
    folder: Path = FOLDER,
    kernel: str = DUMPED_KERNEL,
    seeds: int | None = flag("how many inputs; of several the last has edge cases", None, unset="3", least=1),
    through_llvm: bool = flag("also run the IR in LLVM's dialect, by the threads of a block", default=False),
    env: str = ANY_ENV,
    python: Path | None = again(PYTHON, "the dump's"),
    json: bool = JSON,
) -> None:
    """Run the IR after each pass: which is the first to change the result."""
    from importlib.util import find_spec

    from tritonsmith.command_line import command
    from tritonsmith.envs import workspace
    from tritonsmith.errors import FactError, SmithError
    from tritonsmith.passes.dump import index, select
    from tritonsmith.passes.replay import replayer
    from tritonsmith.tasks import output
    from tritonsmith.ui import console

    made = index.read(folder)
    one = select.kernel(made, kernel)
    if missing := [name for name in ("xdsl", "ml_dtypes", "numpy") if find_spec(name) is None]:
        hints = ["pip install 'tritonsmith[check]', into the Python that runs the tool"]
        raise FactError(f"passes.check needs {' and '.join(missing)}", hints=hints)
    from tritonsmith.passes.check import check as passes_check
    from tritonsmith.passes.check import report

    space = workspace.default()
    chosen = replayer.choose(made, space, env=env, python=python, triton_opt=None)
    if chosen.python is None:
        raise FactError("only an interpreter with Triton prints the generic form", hints=["--python PATH"])
    answer = passes_check.check(
        made, one, chosen.python, space, seeds, silent=json, through_llvm=through_llvm
    )
    if json:
        output.json(report.as_json(answer))
    else:
        console.out().print(report.table(answer))
        for line in report.lines(answer):
            console.out().print(line, markup=False)
    if answer.culprit:
        hints = [
            command("passes.diff", folder, answer.culprit.checked.name),
            "docs/passes-check.md says what is compared",
        ]
        raise SmithError(report.verdict(answer), hints=hints)
    if answer.open:
        raise UndecidedError(report.verdict(answer), hints=sorted({one.why for one in answer.open}))
