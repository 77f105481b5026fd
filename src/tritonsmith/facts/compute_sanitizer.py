"""NVIDIA's compute-sanitizer: where it is, how it is called, and the first error that it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import process

_PROGRAM = "compute-sanitizer"
_MARK = re.compile(r"^=========(?: (?P<text>.*))?$")
_NO_ERROR = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Target application", "Warning")
_HOST = "Saved host backtrace"
_LINE = re.compile(r"^at .* in \S+:\d+$")


def tools() -> tuple[str, ...]:
    """`memcheck` and the others."""
    return tuple(configs.load("sanitizers")["gpu"]["tools"])


def locate() -> Path:
    """The program.

    Raises:
        FactError: it is not there.
    """
    places = configs.load("sanitizers")["gpu"]["places"]
    found = [process.which(_PROGRAM), *places]
    for one in found:
        if one and Path(one).is_file():
            return Path(one)
    hints = ["it comes with the CUDA toolkit: put it on PATH"]
    raise FactError(f"no {_PROGRAM}", why=f"neither on PATH nor {', '.join(places)}", hints=hints)


def argv(program: Path, tool: str, log: Path) -> tuple[str, ...]:
    """Words before the program that is watched.

    Args:
        program: compute-sanitizer.
        tool: one of `tools`.
        log: the file that gets what it says.
    """
    limit = configs.load("sanitizers")["gpu"]["limit"]
    return (str(program), "--tool", tool, "--print-limit", str(limit), "--log-file", str(log), "--")


def first_error(text: str) -> tuple[str, Sequence[str]]:
    """What it says first: the head, and where on the GPU; empty if it found nothing.

    The error of an API call, which follows from one on the GPU, counts where nothing else was said.
    """
    said = [match["text"] or "" for line in text.splitlines() if (match := _MARK.match(line))]
    heads = [n for n, line in enumerate(said) if line and line[0] != " " and not line.startswith(_NO_ERROR)]
    if not heads:
        return "", ()
    first = next((n for n in heads if not said[n].startswith("Program hit")), heads[0])
    rest = takewhile(lambda line: line.strip() and _HOST not in line, said[first + 1 :])
    return said[first], [line.strip() for line in rest]


def finished(text: str) -> bool:
    """Whether it saw the program end: without its summary nothing found means nothing."""
    return " SUMMARY: " in text


def place(lines: Sequence[str]) -> str:
    """`at KERNEL+0x120 in FILE:LINE` of an error; empty without line information."""
    return next((line for line in lines if _LINE.match(line)), "")
