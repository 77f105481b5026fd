"""Hold a profiler's measurements: kernels, and the Python lines on which they were sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tritonsmith.inspect.show.source_lines import SourceLine


@dataclass
class ProfiledKernel:
    """All launches of a kernel.

    Attributes:
        name: of the symbol.
        calls: number of measured launches.
        nanoseconds: of all of them; 0 if the time was not measured.
        samples: of the program counter.
        lines: samples of each Python line, if the kernel has line information.
        stalls: of each line, reasons why the warp did not issue, to samples.
    """

    name: str
    calls: int = 0
    nanoseconds: float = 0.0
    samples: int = 0
    lines: Counter[SourceLine] = field(default_factory=Counter)
    stalls: dict[SourceLine, Counter[str]] = field(default_factory=dict)

    def sampled(self, line: SourceLine, samples: int, stalls: dict[str, int]) -> None:
        """Add the samples of a line."""
        self.lines[line] += samples
        self.samples += samples
        self.stalls.setdefault(line, Counter()).update(stalls)


def by_time(kernels: Iterable[ProfiledKernel]) -> list[ProfiledKernel]:
    """Sort kernels by their time; those without times by their samples."""
    return sorted(kernels, key=lambda kernel: (-kernel.nanoseconds, -kernel.samples, kernel.name))
