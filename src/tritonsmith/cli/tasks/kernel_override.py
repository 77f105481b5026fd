"""`kernel.override`: change a stage of a kernel by hand, and compile on from there."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.cli.tasks.kernel_options import KernelOptions, ToolchainOptions, parse_stages, target_of
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.option_task import command_line
from tritonsmith.cli.tasks.options import OUT
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import report, run
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.plan import files, programs
from tritonsmith.core.ui import console, tables
from tritonsmith.facts import installed_tritons
from tritonsmith.inspect import override

if TYPE_CHECKING:
    from tritonsmith.compiler.interpreter import Interpreter
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.inspect.override import OverrideRun
    from tritonsmith.ir.normalize.diff import Diff


@task(tables=True, name="override")
def ir_override(
    context: Context,
    what: KernelOptions,
    by: ToolchainOptions,
    kernel: str = word("FILE[:KERNEL] or kernels file; or a command after --", ""),
    name: str = flag("kernel to change, if there are several: its name, or a hash prefix", ""),
    stage: str = flag("stage to change: ttir, ttgir, llir, ptx, amdgcn", "ttgir"),
    edited: Path | None = flag("changed file to use, instead of opening $EDITOR", None),
    diff: bool = flag("print the changed lines, not only their number", default=False),
    out: Path | None = OUT,
) -> None:
    """Edit one stage of a kernel, compile from there, and compare."""
    _, program = command_line()
    if bool(program) == bool(kernel):
        hints = [
            "invoke kernel.override matmul.py --signature ... --stage ttgir",
            "invoke kernel.override -- python script.py",
        ]
        raise UsageError("name a kernel's file, or a command after --", hints=hints)
    (wanted,) = parse_stages([stage])
    if edited and not edited.is_file():
        raise UsageError(f"--edited: no file {edited}")
    editor = (
        () if edited else override.editor(os.environ, terminal=sys.stdin.isatty() and sys.stdout.isatty())
    )
    if program:
        bench = _of_command(program, by.python, out)
    else:
        target = target_of(wanted)
        asked = what.request(kernel, target=target, by=by)
        bench = _of_kernel(asked, by.toolchain(asked), out)
    chosen = override.choose(override.first(bench), name, wanted)
    place = override.put(bench, chosen)
    if edited:
        files.copy(edited, place)
    else:
        override.edit(place, editor)
    _print(override.second(bench, chosen, place), bench.out, whole=diff)


def _of_kernel(asked: CompileRequest, where: Interpreter, out: Path | None) -> OverrideRun:
    if len(asked.targets) > 1:
        raise UsageError("a stage is changed for one target", hints=["--target h100"])
    found = installed_tritons.of_python(where.python)
    folder = override.prepared(out, where.space)
    launch = partial(_compile, asked, where, folder / "stages")
    return override.OverrideRun(folder, found.version if found else "", launch)


def _of_command(program: list[str], python: Path | None, out: Path | None) -> OverrideRun:
    found = installed_tritons.of_python(python) if python else installed_tritons.here(os.environ)
    folder = override.prepared(out, workspace.default())
    return override.OverrideRun(folder, found.version if found else "", partial(_run, program))


def _compile(asked: CompileRequest, where: Interpreter, out: Path, change: Mapping[str, str]) -> None:
    prepared = run.prepare(asked, where, out).under(change)
    made = run.execute(prepared, where, silent=True).manifest
    if said := "\n".join(report.failures(made)):
        hints = ["the changed file is kept", f"{command('kernel.show', out)} shows the stages"]
        raise SmithError("Triton did not compile it", where=out, why=said, hints=hints)


def _run(program: list[str], change: Mapping[str, str]) -> None:
    code = programs.run_attached(program, change=change)
    if code:
        raise SmithError(f"{program[0]} ended with exit code {code}")


def _print(found: tuple[Diff, ...], out: Path, *, whole: bool) -> None:
    rows = [[one.stage, str(one.removed), str(one.added)] for one in found]
    title = "changed lines, without locations and value numbers; the first stage is your change"
    console.out().print(tables.plain(title, ["stage", "removed", "added"], rows, right=["removed", "added"]))
    if whole:
        for one in found:
            console.out().print("\n".join(one.lines), markup=False, highlight=False)
    console.out().print(f"{out}", markup=False)
