"""`kernel.compile`: any kernel, for any GPU, with none here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritonsmith.tasks.options import ASKING, REPEATED
from tritonsmith.tasks.task import Words, given, some, split, task


@task(
    tables=True,
    name="compile",
    klass=Words,
    positional=["kernel"],
    iterable=[*REPEATED, "stage"],
    help={
        **ASKING,
        "kernel": "FILE, FILE:KERNEL or MODULE:KERNEL",
        "from_cache": "compile what a JIT run left instead: a folder of Triton's cache, or its name",
        "stage": "keep this stage only: ttgir, ptx, sass ... (repeat it)",
        "out": "folder for the outputs (default: one in the workspace)",
        "json": "print the manifest as JSON",
        "dry_run": "print the plan as a shell script, and do nothing",
        "all_": "with --dry-run: the script with all points, however many there are",
    },
)
def compile_(
    context: Any,
    kernel: str = "",
    signature: str = "",
    target: Iterable[str] | None = None,
    num_warps: str = "",
    num_stages: str = "",
    option: Iterable[str] | None = None,
    sweep: Iterable[str] | None = None,
    stage: Iterable[str] | None = None,
    from_cache: str = "",
    out: str = "",
    env: str = "wheel",
    python: str = "",
    jobs: str = "",
    timeout: str = "",
    json: bool = False,
    dry_run: bool = False,
    all_: bool = False,
) -> None:
    """Compile a kernel for any GPUs, without one, and keep every stage."""
    from json import dumps
    from pathlib import Path

    from tritonsmith.errors import SmithError
    from tritonsmith.kernels.compile import report, run
    from tritonsmith.tasks import options, output
    from tritonsmith.ui import console

    wanted = options.parse_request(
        kernel,
        signature,
        target,
        option,
        sweep,
        num_warps=num_warps,
        num_stages=num_stages,
        stages=options.stages(word for text in stage or () for word in split(text) or ()),
        from_cache=from_cache,
        env=env,
        python=python,
    )
    where = options.toolchain(env, python, jobs, timeout, wanted)
    folder = Path(out).expanduser().absolute() if given(out) else None
    prepared = run.prepare(wanted, where, folder)
    if dry_run:
        output.compile_of(prepared, everything=all_)
        return
    made = run.execute(prepared, where)
    for text in made.notes:
        console.note(text)
    if json:
        console.write(dumps(report.as_json(made.manifest, made.notes), indent=2))
    else:
        for table in report.table(made.manifest):
            console.out().print(table)
        console.out().print(f"{made.manifest.folder}", markup=False)
    failed = some(report.failures(made.manifest))
    if failed:
        bad = sum(point.status != "ok" for point in made.manifest.points)
        raise SmithError(
            f"{bad} of {len(made.manifest.points)} points did not compile",
            where=made.manifest.folder,
            why="\n".join(failed),
            hints=["the folder of a point has its log; the manifest has the whole message"],
        )
