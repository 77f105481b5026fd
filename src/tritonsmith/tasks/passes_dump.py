"""`passes.dump`: what each pass of the compiler was given, from a kernel or from any program."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from tritonsmith.tasks.options import ASKING, REPEATED
from tritonsmith.tasks.task import Words, command_line, given, task


@task(
    tables=True,
    name="dump",
    klass=Words,
    positional=["kernel"],
    iterable=list(REPEATED),
    help={
        **{name: text for name, text in ASKING.items() if name != "jobs"},  # one after the other
        "kernel": "FILE or FILE:KERNEL; or nothing, and after the flags: -- python script.py",
        "target": "cuda:90, hip:gfx942:64, h100, mi300x (default: h100)",
        "from_cache": "compile what a JIT run left instead: a folder of Triton's cache, or its name",
        "llvm": "LLVM's passes too",
        "backend": "PTX and AMD's assembly too",
        "no_line_info": "without locations: smaller dumps",
        "reproducers": "a reproducer of each pipeline, in the folder reproducers",
        "out": "folder for the dump (default: one in the workspace)",
        "json": "print the index as JSON",
        "dry_run": "print what would be run, and do nothing",
    },
)
def dump(
    context: Any,
    kernel: str = "",
    signature: str = "",
    target: Iterable[str] | None = None,
    num_warps: str = "",
    num_stages: str = "",
    option: Iterable[str] | None = None,
    sweep: Iterable[str] | None = None,
    from_cache: str = "",
    llvm: bool = False,
    backend: bool = False,
    no_line_info: bool = False,
    reproducers: bool = False,
    out: str = "",
    env: str = "wheel",
    python: str = "",
    timeout: str = "",
    json: bool = False,
    dry_run: bool = False,
) -> None:
    """Record the IR before every pass: one file per pass, plus an index."""
    from pathlib import Path

    from invoke.exceptions import Exit

    from tritonsmith.envs import workspace
    from tritonsmith.errors import SmithError, UsageError
    from tritonsmith.passes.dump import import_log, run, summary
    from tritonsmith.passes.dump.options import Choices
    from tritonsmith.tasks import options, output

    choices = Choices(llvm, backend, not no_line_info, reproducers)
    folder = Path(out).expanduser().absolute() if given(out) else None
    _, command = command_line()
    if command:
        if kernel or signature or from_cache:
            raise UsageError(
                "a kernel and a program: one of them", hints=["leave out what comes after --, or the kernel"]
            )
        space = workspace.default()
        prepared, step = run.of_program(command, space, choices, folder)
        if dry_run:
            output.plan(prepared.plan)
            return
        with import_log.full_disk_told(prepared.out):
            index, code = run.dump_program(prepared, step, space)
        summary.show(index, json=json, aside=True)
        if code:
            raise Exit(code=code)
        run.check(index)
        return
    targets = list(target or ()) or ([] if from_cache else [options.target_of("ttgir")])
    asked = options.parse_request(
        kernel,
        signature,
        targets,
        option,
        sweep,
        num_warps=num_warps,
        num_stages=num_stages,
        from_cache=from_cache,
        env=env,
        python=python,
    )
    where = options.toolchain(env, python, "1", timeout, asked)
    what = run.of_kernel(asked, where, choices, folder)
    if dry_run:
        output.plan(what.prepared.plan)
        return
    with import_log.full_disk_told(what.prepared.out):
        index, manifest = run.dump_kernel(what)
    summary.show(index, json=json)
    bad = [point for point in manifest.points if point.status != "ok"]
    if bad:
        again = shlex.join(("invoke", "passes.show", str(index.folder), "last"))
        raise SmithError(
            f"{len(bad)} of {len(manifest.points)} compiles failed",
            where=index.folder,
            why="\n".join(run.failures(index)) or bad[0].error,
            hints=[f"{again} prints what the failing pass was given"] if index.dumps else [],
        )
    run.check(index)
