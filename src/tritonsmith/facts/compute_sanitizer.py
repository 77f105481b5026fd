"""Locate and call NVIDIA's compute-sanitizer, and parse the first error in its log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from tritonsmith.core import configs, process
from tritonsmith.core.errors import FactError

_PROGRAM = "compute-sanitizer"
_MARK = re.compile(r"^=========(?: (?P<text>.*))?$")
_NO_ERROR = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Target application", "Warning")
_HOST = "Saved host backtrace"
_LINE = re.compile(r"^at .* in \S+:\d+$")


def tools() -> tuple[str, ...]:
    """Return the names of its tools: `memcheck` and the others."""
    return tuple(configs.load("sanitizers")["gpu"]["tools"])


def locate() -> Path:
    """Return the path of the program.

    Raises:
        FactError: it is not there.
    """
    places = configs.load("sanitizers")["gpu"]["places"]
    candidates = [process.which(_PROGRAM), *places]
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            return Path(candidate)
    hints = ["it comes with the CUDA toolkit: put it on PATH"]
    raise FactError(f"no {_PROGRAM}", why=f"neither on PATH nor {', '.join(places)}", hints=hints)


def argv(program: Path, tool: str, log: Path) -> tuple[str, ...]:
    """Return the words before the watched program.

    Args:
        program: compute-sanitizer.
        tool: one of `tools`.
        log: the file that its report is written to.
    """
    limit = configs.load("sanitizers")["gpu"]["limit"]
    return (str(program), "--tool", tool, "--print-limit", str(limit), "--log-file", str(log), "--")


def first_error(text: str) -> tuple[str, Sequence[str]]:
    """Return a log's first error: its head, and the lines on its place on the GPU; empty if there is none."""
    messages = [match["text"] or "" for line in text.splitlines() if (match := _MARK.match(line))]
    heads = [
        n for n, line in enumerate(messages) if line and line[0] != " " and not line.startswith(_NO_ERROR)
    ]
    if not heads:
        return "", ()
    # An API call that fails ("Program hit ...") follows from an error on the GPU; it counts
    # only if the log has no other.
    first = next((n for n in heads if not messages[n].startswith("Program hit")), heads[0])
    rest = takewhile(lambda line: line.strip() and _HOST not in line, messages[first + 1 :])
    return messages[first], [line.strip() for line in rest]


def finished(text: str) -> bool:
    """Return whether it saw the program end: without its summary, an empty log means nothing."""
    return " SUMMARY: " in text


def place(lines: Sequence[str]) -> str:
    """Return `at KERNEL+0x120 in FILE:LINE` of an error; empty without line information."""
    return next((line for line in lines if _LINE.match(line)), "")
