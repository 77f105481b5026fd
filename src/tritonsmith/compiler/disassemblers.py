"""Programs besides Triton: disassemblers, and the linker that older AMD backends run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import process
from tritonsmith.core.versions import version_key

_PATIENCE = 120.0  # seconds for one binary


@dataclass(frozen=True)
class Disassembler:
    """How one binary stage becomes text.

    Attributes:
        binary: the stage that it reads: `cubin`.
        stage: the text's: `sass`.
        program: its usual name.
        programs: paths to try in order; `{triton}` is Triton's package.
        flags: before the file.
        remedy: what to do where there is none.
    """

    binary: str
    stage: str
    program: str
    programs: tuple[str, ...]
    flags: tuple[str, ...]
    remedy: str

    def request(self) -> dict[str, Any]:
        """As the worker is told it."""
        return {"stage": self.stage, "programs": list(self.programs), "flags": list(self.flags)}

    def text(self, binary: Path, origin: Path) -> str | None:
        """The text of a binary, by the first of the programs that is here and knows it.

        Args:
            binary: the file.
            origin: folder of Triton's package, where that is known.
        """
        for name in self.programs:
            program = Path(name.replace("{triton}", str(origin)))
            if os.access(program, os.X_OK):
                found = process.capture((str(program), *self.flags, str(binary)), timeout=_PATIENCE)
                if found is not None:
                    return found + "\n"
        return None


@dataclass(frozen=True)
class HostPrograms:
    """Programs of this machine that a compile takes beside Triton's own: a fact, so that plans do not look.

    Attributes:
        disassemblers: in the order of configs/kernels.toml.
        linker: the change of the environment that lets AMD's backend up to 3.4 link; empty if none is due.
        lent: packages of this tool's environment for an interpreter that lacks them, each with its folder.
    """

    disassemblers: tuple[Disassembler, ...] = ()
    linker: tuple[tuple[str, str], ...] = ()
    lent: tuple[tuple[str, str], ...] = ()


def locate(space: Workspace) -> HostPrograms:
    """Find the programs on this machine."""
    return HostPrograms(_disassemblers(space), _linker(space), lent())


def lent() -> tuple[tuple[str, str], ...]:
    """Find the packages that an interpreter may lack: see `HostPrograms`."""
    specs = ((name, find_spec(name)) for name in configs.load("kernels")["lent"]["modules"])
    return tuple((name, str(Path(spec.origin).parents[1])) for name, spec in specs if spec and spec.origin)


def _disassemblers(space: Workspace) -> tuple[Disassembler, ...]:
    found = []
    for binary, row in configs.load("kernels")["disassemblers"].items():
        named = os.environ.get(row["variable"], "") if row["variable"] else ""
        here = tuple(map(str, _on_this_machine(row["program"], space)))
        programs = (*((named,) if named else ()), *row["programs"], *here)
        flags = tuple(row["flags"])
        found.append(Disassembler(binary, row["stage"], row["program"], programs, flags, row["remedy"]))
    return tuple(found)


def remedy(stage: str) -> str:
    """Why a stage of text is missing, and what to do."""
    rows = configs.load("kernels")["disassemblers"].values()
    row = next(row for row in rows if row["stage"] == stage)
    return f"no {stage}: {row['program']} is missing; {row['remedy']}"


def _linker(space: Workspace) -> tuple[tuple[str, str], ...]:
    table = configs.load("kernels")["linker"]
    if os.environ.get(table["variable"]) or Path(table["default"]).exists():
        return ()
    found = next(_on_this_machine(table["program"], space), None)
    return ((table["variable"], str(found)),) if found else ()


def _on_this_machine(program: str, space: Workspace) -> Iterator[Path]:
    """In unpacked packages, in a distribution's LLVMs, newest first, on PATH, in LLVM builds of the tool's.

    What PATH has may be years older than what lies beside it: LLVM 14 knows no gfx942.
    """
    yield from sorted(space.toolchain.glob(f"*/nvidia/*/bin/{program}"), reverse=True)
    installed = Path("/usr/lib").glob(f"llvm-*/bin/{program}")
    yield from sorted(installed, key=lambda path: version_key(path.parts[3]), reverse=True)
    if found := process.which(program):
        yield Path(found)
    yield from sorted(space.llvm.glob(f"*/bin/{program}"), reverse=True)
