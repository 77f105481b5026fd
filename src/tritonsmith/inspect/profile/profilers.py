"""Choose a profiler: Proton, or one of the vendor's tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import process
from tritonsmith.facts.gpus import Gpus
from tritonsmith.worker.requests import ProfileSession

PROTON = "proton"
_TOOLS = {"nvidia": "ncu", "amd": "rocprofv3"}
_FIND_PROTON = (
    "import importlib.util as u; print(bool(u.find_spec('triton') and u.find_spec('triton.profiler')))"
)


@dataclass(frozen=True)
class Profiler:
    """A profiler.

    Attributes:
        name: `proton`, `ncu` or `rocprofv3`.
        vendor: of the GPU: `nvidia` or `amd`.
        program: the vendor's tool; None for Proton, which is in Triton.
    """

    name: str
    vendor: str
    program: Path | None = None

    def sessions(self, *, times: bool) -> Sequence[ProfileSession]:
        """Return the ways to start Proton, to be tried in order; empty for another tool.

        Args:
            times: only the times of kernels, no samples.
        """
        rows = configs.load("profilers")["proton"] if self.name == PROTON else ()
        return [
            ProfileSession(row["backend"], row["mode"])
            for row in rows
            if row["vendor"] == self.vendor and not (times and "pcsampling" in row["backend"] + row["mode"])
        ]


def interpreter_of(argv: Sequence[str], python: Path | None) -> Path | None:
    """Return a program's Python: the given one, the one that the program names, or the one on PATH."""
    named = argv[0] if argv and Path(argv[0]).name.startswith("python") else "python"
    path = process.which(named) or process.which("python3")
    return python or (Path(path) if path else None)


def choose(asked: str, python: Path | None, here: Gpus) -> Profiler:
    """Return the requested profiler, or the first available one.

    Args:
        asked: its name; empty for any.
        python: the program's interpreter; None if unknown.
        here: this machine's GPUs.

    Raises:
        UsageError: there is no such profiler.
        FactError: there is no GPU, or no profiler.
    """
    if asked and asked not in (PROTON, *_TOOLS.values()):
        raise UsageError(
            f"--by cannot be {asked!r}", hints=[f"one of {', '.join((PROTON, *_TOOLS.values()))}"]
        )
    vendor = next((name for name in _TOOLS if here.of(name)), "")
    if not vendor:
        hints = [f"{command('kernel.lint')} finds what is slow in a kernel's stages, without a GPU"]
        raise FactError("a profile needs a GPU, and this machine has none", hints=hints)
    if asked in ("", PROTON) and python and process.capture((str(python), "-c", _FIND_PROTON)) == "True":
        return Profiler(PROTON, vendor)
    tool = _TOOLS[vendor]
    if asked in ("", tool) and (program := _program(tool)):
        return Profiler(tool, vendor, program)
    missing = configs.load("profilers")["missing"][vendor]
    raise FactError(
        f"{asked or 'no profiler'} is not there" if asked else "no profiler is there", hints=missing
    )


def _program(tool: str) -> Path | None:
    places = configs.load("profilers")[tool]["places"]
    paths = [process.which(tool), *(path for place in places for path in sorted(glob(place), reverse=True))]  # noqa: PTH207
    return next((Path(path) for path in paths if path and Path(path).is_file()), None)
