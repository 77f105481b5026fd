"""Which candidate to test next, and which are left: bisection by expected seconds.

Candidates stand in order of history, as numbers from 0. The first one is known to be good and the last one to
be bad, so somewhere between them a bad one follows a good one: the culprit. Plain bisection halves the number
of suspects, however long each test takes. Here a test is worth what it is expected to tell (Shannon's bits)
in a second of its expected time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log2

from tritonsmith.lab.model import Verdict


@dataclass(frozen=True)
class Suspects:
    """The state of a search after some tests.

    Attributes:
        good: the last good candidate before `bad`.
        bad: the first bad candidate.
        left: candidates between them that have not been tested, in order; none when the search is over.
        skipped: candidates between them that could not be tested.
        contradictions: good candidates after `bad`: the outcome changed more than once in history, or it is
            flaky. `bad` is bad and `good` is good all the same.
    """

    good: int
    bad: int
    left: tuple[int, ...]
    skipped: tuple[int, ...]
    contradictions: tuple[int, ...]

    @property
    def culprits(self) -> range:
        """Candidates of which one is the first bad one: one candidate, or more where some were skipped."""
        return range(self.good + 1, self.bad + 1)


def suspects(count: int, verdicts: Mapping[int, Verdict]) -> Suspects:
    """Return the state of candidates 0 (good) to `count - 1` (bad) after these outcomes of tests.

    Raises:
        ValueError: fewer than two candidates.
    """
    if count < 2:  # noqa: PLR2004 - the two ends
        raise ValueError("a search needs a good and a bad candidate")
    known = {**verdicts, 0: Verdict.GOOD, count - 1: Verdict.BAD}
    bad = min(index for index, verdict in known.items() if verdict is Verdict.BAD)
    goods = [index for index, verdict in known.items() if verdict is Verdict.GOOD]
    good = max(index for index in goods if index < bad)
    between = range(good + 1, bad)
    return Suspects(
        good=good,
        bad=bad,
        left=tuple(index for index in between if index not in known),
        skipped=tuple(index for index in between if index in known),
        contradictions=tuple(sorted(index for index in goods if index > bad)),
    )


def choose(
    state: Suspects,
    cost: Callable[[int], float],
    *,
    jobs: int = 1,
    prior: Sequence[float] | None = None,
) -> tuple[int, ...]:
    """The candidates to test now, the most worthwhile first; none when the search is over.

    Args:
        state: what is known.
        cost: expected seconds of a test of a candidate, as things are now.
        jobs: how many are tested at once; each one is chosen knowing those before.
        prior: how likely each candidate is the culprit, in any unit; equally likely if not given.
    """
    up_to = [0.0, *accumulate(prior or [1.0] * (state.bad + 1))]  # likelihood of all candidates before one
    chosen: list[int] = []
    while len(chosen) < min(jobs, len(state.left)):
        ends = sorted((state.good, *chosen, state.bad))

        def worth(index: int, ends: Sequence[int] = ends) -> float:
            before = max(end for end in ends if end < index)
            after = min(end for end in ends if end > index)
            left, right = up_to[index + 1] - up_to[before + 1], up_to[after + 1] - up_to[index + 1]
            return _testable(state, index) * _bits(left, right) / max(cost(index), _INSTANT)

        chosen.append(max((index for index in state.left if index not in chosen), key=worth))
    return tuple(chosen)


_INSTANT = 1e-3  # seconds; no test takes less


def _bits(left: float, right: float) -> float:
    """Return the bits of a test that splits a weight in two, times the weight, to compare several."""
    whole = left + right
    return sum(part * log2(whole / part) for part in (left, right) if part > 0)


def _testable(state: Suspects, index: int) -> float:
    """Estimate how likely a candidate can be tested: neighbours of an untestable one often cannot."""
    near = min((abs(index - other) for other in state.skipped), default=0)
    return 1 - 1 / (1 + near) if near else 1.0
