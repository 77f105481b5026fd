"""Read the files that Proton writes, one per process: a tree of scopes, kernels and lines as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.inspect.profile.measured import ProfiledKernel
from tritonsmith.inspect.show.source_lines import SourceLine

SUFFIX = ".hatchet"
# FILE:LINE@FUNCTION; before triton#5711 FILE:FUNCTION@LINE
_LINE = re.compile(r"(?P<file>.+?):(?:(?P<line>\d+)@[^@]*|[^:@]*@(?P<old>\d+))")
_STALL = "stalled_"


def read(files: Sequence[Path]) -> list[ProfiledKernel]:
    """Read the kernels of all processes.

    Raises:
        FactError: a file was not written by Proton.
    """
    kernels: dict[str, ProfiledKernel] = {}
    for file in files:
        try:
            tree = untrusted.read_json(file)
            for node in _kernels(tree[0]):
                _add(kernels, node)
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise FactError("cannot read what Proton wrote", where=file, why=str(error)) from error
    return list(kernels.values())


def _kernels(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the kernels: nodes with a launch count. Scopes of the program may surround them."""
    if int(node["metrics"].get("count", 0)):
        yield node
        return
    for child in node["children"]:
        yield from _kernels(child)


def _add(found: dict[str, ProfiledKernel], node: Mapping[str, Any]) -> None:
    name, metrics = node["frame"]["name"], node["metrics"]
    kernel = found.setdefault(name, ProfiledKernel(name))
    kernel.calls += int(metrics["count"])
    kernel.nanoseconds += float(metrics.get("time (ns)", 0))
    kernel.samples += int(metrics.get("num_samples", 0))  # of a kernel without lines
    for child in node["children"]:
        match = _LINE.fullmatch(child["frame"]["name"])
        samples = int(child["metrics"].get("num_samples", 0))
        if not match:
            kernel.samples += samples
            continue
        stalls = {
            key.removeprefix(_STALL): int(value)
            for key, value in child["metrics"].items()
            if key.startswith(_STALL)
        }
        kernel.sampled(SourceLine(match["file"], int(match["line"] or match["old"])), samples, stalls)
