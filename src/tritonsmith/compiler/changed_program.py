"""Run a program with some passes of its compiles skipped, repeated or made the last."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler import call, watched_program
from tritonsmith.compiler.request import Surgery
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import MakeDir, Plan, Remove
from tritonsmith.core.plan.steps.run import AttachedRun
from tritonsmith.worker.messages import OperatedRow, OperateRequest

_TASK = "passes.run"


@dataclass(frozen=True)
class PreparedProgram:
    """A program that is ready to run.

    Attributes:
        before: steps that make the scratch folder.
        step: the program.
        after: steps that clear up.
        work: the scratch folder.
        surgery: on each compile.
    """

    before: Plan
    step: AttachedRun
    after: Plan
    work: Path
    surgery: Surgery

    @property
    def plan(self) -> Plan:
        """The whole plan, in order."""
        return self.before + Plan("run", (self.step,)) + self.after


@dataclass(frozen=True)
class ProgramRun:
    """The result of the program.

    Attributes:
        compiles: one row per compile.
        code: the program's exit code, as a shell would report it.
    """

    compiles: tuple[OperatedRow, ...]
    code: int


def prepare(argv: Sequence[str], surgery: Surgery, python: Path | None, space: Workspace) -> PreparedProgram:
    """Make the plan.

    Raises:
        SmithError: there is no such program.
    """
    work = space.root / "passes" / ".run" / str(os.getpid())
    request = OperateRequest(str(work / "results"), surgery.request())
    step, site = watched_program.prepare(argv, python, request, work, command("passes.replay"))
    before = (
        Remove((work,), space.root, phase="prepare"),
        MakeDir(work / "results", phase="prepare"),
        *site,
    )
    clear = (Remove((work,), space.root, phase="clear"),)
    return PreparedProgram(Plan("run", before), step, Plan("clear up", clear), work, surgery)


def execute(prepared: PreparedProgram, space: Workspace) -> ProgramRun:
    """Run the program, with its output on the terminal.

    Raises:
        SmithError: its Python has no Triton.
    """
    space.claim()
    log = space.log(_TASK)
    space.run(prepared.before, _TASK, quiet=True, log=log)
    try:
        code = watched_program.run(prepared.step, space, _TASK, log)
        if code:
            watched_program.check_triton(prepared.step, command("passes.replay", env="wheel"))
        return ProgramRun(tuple(call.noted(prepared.work / "results", OperatedRow)), code)
    finally:
        space.run(prepared.after, _TASK, quiet=True, log=log)


def changed(row: OperatedRow, surgery: Surgery) -> list[str]:
    """Describe in words the changes that the surgery made to a compile."""
    words = [
        f"{'without' if not run['times'] else 'twice'} {run['pass']}#{run['number']}"
        for run in row.passes
        if run["times"] != 1
    ]
    return [
        *words,
        *(f"LLVM {option}" for option in surgery.llvm),
        *(f"ptxas {flag}" for flag in surgery.ptxas),
    ]


def check(program_run: ProgramRun) -> None:
    """Check that the program was compiled as asked for.

    Raises:
        SmithError: nothing was compiled, or something asked for had no effect on any kernel.
    """
    compiled = [row for row in program_run.compiles if row.passes]
    if not compiled:
        hints = [
            "check that it launches a Triton kernel, and that its Python is not started with -I or -E",
            f"or name the interpreter: {command('passes.replay', env='wheel')}{watched_program.EXAMPLE}",
        ]
        raise SmithError("the program compiled no kernel with this surgery", hints=hints)
    if all(row.unmet for row in compiled):
        raise SmithError("no kernel was compiled as requested", why=compiled[0].unmet)
