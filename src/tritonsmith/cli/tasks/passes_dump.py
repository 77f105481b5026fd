"""`passes.dump`: record the input of every pass of the compiler, for a kernel or any program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tritonsmith.cli.tasks.kernel_options import CompileOptions, ToolchainOptions, target_of
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.option_task import command_line
from tritonsmith.cli.tasks.options import DRY_RUN, FROM_CACHE, JSON, OUT
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.command_line import command, flag_of


@task(tables=True, name="dump")
def dump(
    context: Any,
    what: CompileOptions,
    by: ToolchainOptions,
    kernel: str = word("FILE[:KERNEL] or kernels file; or after the flags: -- python script.py", ""),
    from_cache: str = FROM_CACHE,
    llvm: bool = flag("also dump LLVM's passes", default=False),
    backend: bool = flag("also dump PTX and AMD's assembly", default=False),
    no_line_info: bool = flag("omit locations, for smaller dumps", default=False),
    reproducers: bool = flag("write a reproducer of each pipeline, in the folder reproducers", default=False),
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Record the IR before every pass: one file per pass, plus an index."""
    from invoke.exceptions import Exit

    from tritonsmith.cli.tasks import output
    from tritonsmith.compiler.dump import import_log, pass_runs, run
    from tritonsmith.compiler.dump.run import Choices
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import SmithError, UsageError

    choices = Choices(llvm, backend, not no_line_info, reproducers)
    _, program = command_line()
    if program:
        if kernel or from_cache:
            raise UsageError("give either a kernel or a command", hints=["omit one of them"])
        if wrong := [flag_of(name) for name, value in vars(what).items() if value not in (None, "", ())]:
            hints = ["omit them", f"{command('passes.replay')} leaves passes out in a command"]
            raise UsageError(f"{', '.join(wrong)}: for a kernel, not for a command", hints=hints)
        space = workspace.default()
        prepared, step = run.of_program(program, space, choices, out)
        if dry_run:
            output.plan(prepared.plan)
            return
        with import_log.full_disk_told(prepared.out):
            index, code = run.dump_program(prepared, step, space)
        pass_runs.show_summary(index, json=json, aside=True)
        if code:
            raise Exit(code=code)
        run.check(index)
        return
    target = target_of("ttgir")
    asked = what.request(kernel, target=target, from_cache=from_cache, by=by)
    made = run.of_kernel(asked, by.toolchain(asked, dry_run=dry_run), choices, out)
    if dry_run:
        output.plan(made.prepared.plan)
        return
    with import_log.full_disk_told(made.prepared.out):
        index, manifest = run.dump_kernel(made)
    pass_runs.show_summary(index, json=json)
    bad = [point for point in manifest.points if point.status != "ok"]
    if bad:
        again = command("passes.show", index.folder, "last")
        raise SmithError(
            f"{len(bad)} of {len(manifest.points)} compiles failed",
            where=index.folder,
            why="\n".join(run.failures(index)) or bad[0].error,
            hints=[f"{again} prints the input of the failing pass"] if index.dumps else [],
        )
    run.check(index)
