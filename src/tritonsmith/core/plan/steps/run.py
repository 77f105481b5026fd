"""Run a program."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core.plan.steps.base import Step, StepTools, quote


@dataclass(frozen=True)
class Run(Step):
    """Run a program, without a shell.

    Attributes:
        argv: program and arguments.
        cwd: working directory; created by an earlier step if need be.
        env: change of the environment, name to value; None removes a variable.
        path: folders put before PATH.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: tuple[tuple[str, str | None], ...] = ()
    path: tuple[Path, ...] = ()

    def shell(self) -> list[str]:
        prefix = [f"-u {name}" for name, value in self.env if value is None]
        prefix += [f"{name}={shlex.quote(value)}" for name, value in self.env if value is not None]
        if self.path:
            prefix.append(f'PATH={quote(":".join(map(str, self.path)))}:"$PATH"')
        command = shlex.join(self.argv)
        if prefix:
            command = f"env {' '.join(prefix)} {command}"
        return [f"(cd {quote(self.cwd)} && {command})"]

    def act(self, tools: StepTools) -> None:
        change = dict(self.env)
        if self.path:
            change["PATH"] = os.pathsep.join((*map(str, self.path), tools.environ.get("PATH", os.defpath)))
        tools.run(self, self.argv, self.cwd, change)

    @property
    def title(self) -> str:
        return Path(self.argv[0]).name

    @property
    def goes_on(self) -> bool:
        return self.title.startswith("ninja")
