"""`pipeline`: the passes of a backend, and which of them a target takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import BackendOptions
from tritonsmith.cli.tasks.option_fields import CommaLists, again, flag
from tritonsmith.cli.tasks.options import ANY_ENV, JSON, PYTHON, TARGET
from tritonsmith.cli.tasks.task import task


@task(tables=True)
def pipeline(
    context: Any,
    options: BackendOptions,
    target: CommaLists = TARGET,
    backend: str = flag("nvidia or amd: a usual target of its own, where --target is not given", ""),
    triton: CommaLists = flag("Tritons side by side: versions, environments, interpreters (repeatable)", ()),
    env: str = again(ANY_ENV, "wheel"),
    python: Path | None = PYTHON,
    taken: bool = flag("only passes that a target takes", default=False),
    json: bool = JSON,
) -> None:
    """Show the passes of all stages, conditions, and which a target takes."""
    from tritonsmith.compiler import targets, tritons
    from tritonsmith.compiler.replay import bindings
    from tritonsmith.core.errors import UsageError
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.passes import target_pipeline

    usual = dict(zip(("nvidia", "amd"), targets.default(), strict=True))
    if backend and (target or backend not in usual):
        why = "--target names a GPU already" if target else f"--backend {backend}: nvidia or amd"
        raise UsageError(why, hints=["--backend amd", "--target mi300x"])
    wanted = targets.parse_all(target) if target else (usual[backend or "nvidia"],)
    if triton and (env or python):
        raise UsageError("--triton names all of them", hints=["omit --env and --python"])
    chosen = str(python) if python else env or "wheel"
    compilers = [tritons.parse(one) for one in triton or (chosen,)]
    sides, columns = [], []
    for compiler in compilers:
        if compiler.targets or compiler.options or compiler.folder:
            hints = ["--triton 3.4.0,3.9.0 --target h100,a100"]
            raise UsageError(f"--triton {compiler.label} names no Triton only", hints=hints)
        where = tritons.place_of(compiler)
        known = bindings.known_bindings(where.python, where.space)
        for one in wanted:
            calls, ended = bindings.backend_calls(where.python, where.space, one, options.of_backend())
            for stage, why in ended.items():
                console.note(f"{compiler.label}, {one}: {stage} is known up to where it ended: {why}")
            columns.append(target_pipeline.passes(calls, known))
            names = [compiler.label] if len(compilers) > 1 else []
            sides.append(" ".join([*names, *([str(one)] if len(wanted) > 1 or not names else [])]))
    rows = target_pipeline.side_by_side(columns)
    if taken:
        rows = [row for row in rows if any(one and one.made for one in row)]
    if json:
        output.json(target_pipeline.as_json(rows, sides))
        return
    console.out().print(target_pipeline.table(rows, sides))
