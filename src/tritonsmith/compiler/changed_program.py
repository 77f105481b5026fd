"""Run a program with some passes of its compiles skipped, repeated or made the last."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.compiler import watched_program
from tritonsmith.compiler.surgery import Surgery
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Write
from tritonsmith.core.plan.steps.run_attached import AttachedRun

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
        compiles: one row per compile: kernel, passes, unmet, error.
        code: the program's exit code, as a shell would report it.
    """

    compiles: tuple[Mapping[str, Any], ...]
    code: int


def prepare(argv: Sequence[str], surgery: Surgery, python: Path | None, space: Workspace) -> PreparedProgram:
    """Make the plan.

    Raises:
        SmithError: there is no such program.
    """
    work = space.root / "passes" / ".run" / str(os.getpid())
    request = work / "request.json"
    asked_by = command("passes.replay")
    step, site = watched_program.prepare(argv, python, "operate", request, work, asked_by)
    content = {"schema": 1, "results": str(work / "results"), "surgery": surgery.request()}
    before = (
        Remove((work,), space.root, phase="prepare"),
        MakeDir(work / "results", phase="prepare"),
        Write(request, json.dumps(content, indent=2) + "\n", phase="prepare"),
        site,
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
        texts = [untrusted.read_text(path) for path in sorted((prepared.work / "results").glob("*.jsonl"))]
        return ProgramRun(tuple(json.loads(line) for text in texts for line in text.splitlines()), code)
    finally:
        space.run(prepared.after, _TASK, quiet=True, log=log)


def changed(row: Mapping[str, Any], surgery: Surgery) -> list[str]:
    """Describe in words the changes that the surgery made to a compile."""
    words = [
        f"{'without' if not run['times'] else 'twice'} {run['pass']}#{run['number']}"
        for run in row["passes"]
        if run["times"] != 1
    ]
    return [
        *words,
        *(f"LLVM {option}" for option in surgery.llvm),
        *(f"ptxas {flag}" for flag in surgery.ptxas),
    ]


def check(made: ProgramRun) -> None:
    """Check that the program was compiled as asked for.

    Raises:
        SmithError: nothing was compiled, or something asked for had no effect on any kernel.
    """
    compiled = [row for row in made.compiles if row["passes"]]
    if not compiled:
        hints = [
            "check that it launches a Triton kernel, and that its Python is not started with -I or -E",
            f"or name the interpreter: {command('passes.replay', env='wheel')}{watched_program.EXAMPLE}",
        ]
        raise SmithError("the program compiled no kernel with this surgery", hints=hints)
    if all(row["unmet"] for row in compiled):
        raise SmithError("no kernel was compiled as asked for", why=compiled[0]["unmet"])
