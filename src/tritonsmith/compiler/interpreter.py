"""An interpreter that is ready to compile: its Triton, its limits, and this machine's programs that it uses.

The wheel has no disassembler of AMD's binaries, and its AMD backend runs a linker of the machine up to 3.4.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from tritonsmith.compiler.manifest import folder_name
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import configs, process
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.text import version_key
from tritonsmith.facts import installed_tritons, machine
from tritonsmith.worker.messages import DisassemblerRequest

_MIB = 1 << 20
_PATIENCE = 120.0  # seconds for one binary


@dataclass(frozen=True)
class Disassembler:
    """A way to turn one binary stage into text.

    Attributes:
        binary: the stage that it reads, such as `cubin`.
        stage: the stage that it writes, such as `sass`.
        program: its usual name.
        programs: paths to try in order; `{triton}` stands for the folder that holds Triton's package.
        flags: arguments before the file.
        remedy: advice where no program is found.
    """

    binary: str
    stage: str
    program: str
    programs: tuple[str, ...]
    flags: tuple[str, ...]
    remedy: str

    def request(self) -> DisassemblerRequest:
        """Return the disassembler as the worker's request spells it."""
        return DisassemblerRequest(self.stage, self.programs, self.flags)

    def text(self, binary: Path, origin: Path) -> str | None:
        """Disassemble a binary with the first of the programs that exists and can read it.

        Args:
            binary: the file.
            origin: folder of Triton's package, if known.

        Returns:
            The text; None if no program could produce it.
        """
        for name in self.programs:
            program = Path(name.replace("{triton}", str(origin)))
            if os.access(program, os.X_OK):
                text = process.capture((str(program), *self.flags, str(binary)), timeout=_PATIENCE)
                if text is not None:
                    return text + "\n"
        return None


@dataclass(frozen=True)
class HostPrograms:
    """Programs of this machine that a compile uses besides Triton's own, found before the plan is made.

    Attributes:
        disassemblers: in the order of configs/kernels.toml.
        linker: variables that let AMD's backend of Triton 3.4 and older find a linker; empty if not needed.
        lent: packages of this tool's environment for an interpreter that lacks them, each with its folder.
    """

    disassemblers: tuple[Disassembler, ...] = ()
    linker: tuple[tuple[str, str], ...] = ()
    lent: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Interpreter:
    """The interpreter that compiles, and its limits.

    Attributes:
        python: an interpreter that has Triton.
        space: the workspace: scratch folders, logs, and outputs without a given folder.
        folder: parent folder of outputs without a given folder.
        jobs: compiles at once.
        timeout: seconds for one point.
        flags: flags that select the same interpreter again, for a shell.
        programs: programs of this machine that Triton does not include.
        variables: environment variables for the compiler.
    """

    python: Path
    space: Workspace
    folder: Path
    jobs: int
    timeout: int
    flags: Mapping[str, str] = field(default_factory=dict)
    programs: HostPrograms = field(default_factory=HostPrograms)
    variables: Mapping[str, str] = field(default_factory=dict)

    def output(self, request: CompileRequest, kernel: str) -> Path:
        """Return the default output folder of a kernel."""
        own = folder_name(f"{request.listed.stem}.{request.name}") if request.listed else ""
        return self.folder / (own or f"{request.file.stem}.{kernel}")


def choose_interpreter(
    env: str, python: str = "", *, jobs: int | None = None, timeout: int | None = None
) -> Interpreter:
    """Choose the interpreter with Triton by its environment or its path, and the limits of its compiles.

    Args:
        env: an environment, by name or file.
        python: an interpreter to use instead.
        jobs: compiles at once; None or 0 for as many as cores and memory allow.
        timeout: seconds for one point; None or 0 for the default.

    Raises:
        FactError: the interpreter does not exist.
    """
    space = workspace.default()
    table = configs.load("kernels")["jobs"]
    if python:
        path, folder, flags = (
            Path(python).expanduser().absolute(),
            space.root / "kernels",
            {"python": python},
        )
        hints = ["give an interpreter that has Triton: --python .venv/bin/python"]
    else:
        chosen = settings.load(env)
        environment = space.env(chosen.name)
        path, folder, flags = environment.python, environment.path / "kernels", {"env": env}
        if chosen.triton.wheel:
            hints = [f"{command('up', env=env)} creates it"]
        else:
            hints = [
                f"{command('install-triton', env=env)} creates it, after build-triton",
                "or use a release: --env wheel",
            ]
    if not (path.is_file() and os.access(path, os.X_OK)):
        hints += [f"or use one that is there: --env {name}" for name in installed_tritons.environments(space)]
        raise FactError("no Python interpreter with Triton yet", where=path, hints=hints)
    here = machine.read()
    # Each job is a process with LLVM in it: on a small machine memory ends before the cores do.
    fitting = max(1, min(here.cores, here.memory // (table["memory"] * _MIB)))
    programs = locate_programs(space)
    return Interpreter(path, space, folder, jobs or fitting, timeout or table["timeout"], flags, programs)


def worker_variables(interpreter: Interpreter) -> tuple[tuple[str, str | None], ...]:
    """Return the changes to the worker's environment; None unsets a variable."""
    return (
        *((name, None) for name in configs.load("kernels")["variables"]["unset"]),
        *interpreter.programs.linker,
        *interpreter.variables.items(),
    )


def locate_programs(space: Workspace) -> HostPrograms:
    """Find the programs on this machine."""
    specs = ((name, find_spec(name)) for name in configs.load("kernels")["lent"]["modules"])
    lent = ((name, str(Path(spec.origin).parents[1])) for name, spec in specs if spec and spec.origin)
    return HostPrograms(_disassemblers(space), _linker(space), tuple(lent))


def _disassemblers(space: Workspace) -> tuple[Disassembler, ...]:
    disassemblers = []
    for binary, row in configs.load("kernels")["disassemblers"].items():
        named = os.environ.get(row["variable"], "") if row["variable"] else ""
        here = tuple(map(str, _on_this_machine(row["program"], space)))
        programs = (*((named,) if named else ()), *row["programs"], *here)
        flags = tuple(row["flags"])
        disassemblers.append(
            Disassembler(binary, row["stage"], row["program"], programs, flags, row["remedy"])
        )
    return tuple(disassemblers)


def remedy(stage: str) -> str:
    """Explain why a stage of text is missing, and what to do about it."""
    rows = configs.load("kernels")["disassemblers"].values()
    row = next(row for row in rows if row["stage"] == stage)
    return f"no {stage}: {row['program']} is missing; {row['remedy']}"


def _linker(space: Workspace) -> tuple[tuple[str, str], ...]:
    table = configs.load("kernels")["linker"]
    # Where the user named a linker, or ROCm is installed, Triton finds one by itself.
    if os.environ.get(table["variable"]) or Path(table["default"]).exists():
        return ()
    linker = next(_on_this_machine(table["program"], space), None)
    return ((table["variable"], str(linker)),) if linker else ()


def _on_this_machine(program: str, space: Workspace) -> Iterator[Path]:
    """Yield paths of a program: unpacked packages, system LLVMs (newest first), PATH, our LLVM builds."""
    # A program on PATH may be years older than the distribution's others: LLVM 14 does not know gfx942.
    yield from sorted(space.toolchain.glob(f"*/nvidia/*/bin/{program}"), reverse=True)
    installed = Path("/usr/lib").glob(f"llvm-*/bin/{program}")
    yield from sorted(installed, key=lambda path: version_key(path.parts[3]), reverse=True)
    if path := process.which(program):
        yield Path(path)
    yield from sorted(space.llvm.glob(f"*/bin/{program}"), reverse=True)
