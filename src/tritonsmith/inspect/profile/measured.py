"""What a profiler measured: kernels, and the lines of Python on which they were sampled."""

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
        calls: how many launches were measured.
        nanoseconds: of all of them; 0 if nothing measured the time.
        samples: of the program counter.
        lines: samples of each line of Python, where the kernel has line information.
        stalls: of each line, why the warp did not issue: reason to samples.
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
    """Kernels in the order of what they take; those that nobody timed by their samples."""
    return sorted(kernels, key=lambda one: (-one.nanoseconds, -one.samples, one.name))
