"""Where the time of a slow compile goes: by stage, and by the compiler's own clock of its passes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.lab.triage import variant

# `  3.7846 (  6.9%)  ConvertTritonGPUToLLVM`; LLVM has up to four such pairs before the name, wall time last.
_ROW = re.compile(r"^(?: +-?\d+\.\d+ \( *-?[\d.]+%\))* +(?P<seconds>\d+\.\d+) \( *[\d.]+%\) +(?P<name>\S.*)$")
_SUMS = re.compile(r"Total|Rest|.* Pipeline|\(A\) .*")
_MADE = {"cubin": "cubin (ptxas)"}  # whose stage says little


def by_cpu(compiled: Manifest) -> Manifest:
    """With CPU seconds in the place of wall time, which other load changes."""
    points = [replace(point, seconds=cpu(point)) for point in compiled.points]
    return replace(compiled, points=tuple(points))


def cpu(point: Point) -> float:
    """CPU seconds of a compile; its wall time where nobody counted them, as where it failed."""
    return sum(point.cpu_seconds.values()) or point.seconds


def total(compiled: Manifest) -> float:
    """CPU seconds of all compiles."""
    return sum(map(cpu, compiled.points))


def near(least: float, compiled: Manifest) -> bool:
    """Report whether a compile takes too much of the others' time to be called quicker."""
    return total(compiled) > variant.times("quicker") * least


def sentences(points: Sequence[Point]) -> Iterator[str]:
    """The stages and the passes that take most."""
    least = variant.times("share")
    for point in points:
        total = cpu(point)
        stages = sorted(point.cpu_seconds.items(), key=lambda row: -row[1])
        slow_stages = [
            f"{_MADE.get(name, name)} {took:.1f}" for name, took in stages if took >= least * total
        ]
        if slow_stages:
            yield f"of {total:.1f} CPU s: {', '.join(slow_stages)}"
        slow = [(took, name) for took, name in passes(point.log) if took >= least * point.seconds]
        if slow:
            rows = ", ".join(f"{name} {took:.1f} s" for took, name in sorted(slow, reverse=True))
            yield f"passes, by the compiler's clock, of {point.seconds:.1f} s: {rows}"


def passes(log: str) -> Iterator[tuple[float, str]]:
    """Wall time and name of each pass, as MLIR and LLVM report them."""
    for line in log.splitlines():
        if (match := _ROW.match(line)) and not _SUMS.fullmatch(match["name"]):
            yield float(match["seconds"]), match["name"]
