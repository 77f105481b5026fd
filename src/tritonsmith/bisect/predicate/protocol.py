"""What all predicates have in common, and the repetition of those that are flaky."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tritonsmith.bisect.outcome import BisectOutcome, Verdict
from tritonsmith.kernels.batch.spec import CompilerSpec


class Predicate(Protocol):
    """Tests one Triton after another."""

    def prepare(self, tritons: Sequence[CompilerSpec]) -> None:
        """Do at once, for several Tritons that are tested next, what can be done at once."""

    def test(self, triton: CompilerSpec) -> BisectOutcome:
        """Whether a Triton is bad.

        Raises:
            SmithError: neither an answer nor a reason to skip this Triton: the bisect stops, and may go on
                later.
        """


@dataclass(frozen=True)
class ConfirmedPredicate:
    """Another predicate, as often as asked for; outcomes that disagree are a skip.

    Attributes:
        inner: it.
        times: how often.
    """

    inner: Predicate
    times: int

    def prepare(self, tritons: Sequence[CompilerSpec]) -> None:
        """As that one does."""
        self.inner.prepare(tritons)

    def test(self, triton: CompilerSpec) -> BisectOutcome:
        """One outcome of all tests."""
        began = time.monotonic()
        every = [self.inner.test(triton) for _ in range(self.times)]
        seconds = time.monotonic() - began
        seen = Counter(one.verdict for one in every)
        if len(seen) == 1:
            return replace(every[-1], seconds=seconds)
        counts = ", ".join(f"{number} {verdict}" for verdict, number in sorted(seen.items()))
        figures = "; ".join(dict.fromkeys(one.figures for one in every if one.figures))
        return BisectOutcome(Verdict.SKIP, figures, f"flaky: {counts} of {self.times} tests", seconds)
