"""What all predicates have in common, and the repetition of those that are flaky."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tritonsmith.compiler.tritons import Triton
from tritonsmith.lab.model import Observation, Verdict

Outcomes = Generator[tuple[Triton, Observation], None, None]
CandidateTests = Callable[[Sequence[Triton]], Outcomes]


def one_by_one(test: Callable[[Triton], Observation]) -> CandidateTests:
    """Tests of several Tritons, one after another."""
    return lambda tritons: ((one, test(one)) for one in tritons)


class Predicate(Protocol):
    """Tests Tritons."""

    def outcomes(self, tritons: Sequence[Triton]) -> Outcomes:
        """Test several Tritons, at once where that can be: their outcomes as they come.

        Raises:
            SmithError: as `test` does.
        """

    def test(self, triton: Triton) -> Observation:
        """Test whether a Triton is bad.

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

    def outcomes(self, tritons: Sequence[Triton]) -> Outcomes:
        """One outcome of all tests of each."""
        began = time.monotonic()
        every: dict[str, list[Observation]] = defaultdict(list)
        for _ in range(self.times):
            for triton, outcome in self.inner.outcomes(tritons):
                every[triton.label].append(outcome)
                if len(every[triton.label]) == self.times:
                    yield triton, self._agreed(every[triton.label], time.monotonic() - began)

    def test(self, triton: Triton) -> Observation:
        """One outcome of all tests."""
        ((_, outcome),) = self.outcomes((triton,))
        return outcome

    def _agreed(self, every: Sequence[Observation], seconds: float) -> Observation:
        seen = Counter(one.verdict for one in every)
        if len(seen) == 1:
            return replace(every[-1], seconds=seconds)
        counts = ", ".join(f"{number} {verdict}" for verdict, number in sorted(seen.items()))
        figures = "; ".join(dict.fromkeys(one.figures for one in every if one.figures))
        return Observation(Verdict.SKIP, figures, f"flaky: {counts} of {self.times} tests", seconds)
