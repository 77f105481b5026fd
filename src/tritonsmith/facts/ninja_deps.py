"""Read the headers that Ninja recorded when it built a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tritonsmith.core.plan.process import query

_PATIENCE = 60.0  # seconds


def headers(ninja: Path, build: Path, outputs: Iterable[str]) -> tuple[Path, ...]:
    """Return the recorded inputs of outputs, each once and absolute; empty where nothing is recorded.

    Args:
        ninja: the program.
        build: a build folder in which no build runs.
        outputs: the outputs as Ninja names them.
    """
    answer = query((str(ninja), "-C", str(build), "-t", "deps", *outputs), timeout=_PATIENCE)
    lines = answer.out.splitlines() if answer and answer.code == 0 else []
    return tuple(dict.fromkeys(build / line.strip() for line in lines if line.startswith("    ")))
