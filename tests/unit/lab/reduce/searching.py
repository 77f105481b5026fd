"""Runs a reduction on a predicate, as the commands do on a compiler."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from tests.unit.lab.fake_subject import quiet
from tritonsmith.lab import experiment
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.reduce import shrink
from tritonsmith.lab.reduce.shrink import DeltaSearch, PendingTest

C = TypeVar("C", bound=Hashable)


def searched(
    search: DeltaSearch[C],
    interesting: Callable[[C], bool],
    *,
    jobs: int = 1,
    until: float = float("inf"),
    notes: Journal | None = None,
) -> C:
    """Search to the end; return the best."""

    def ask(candidate: C, _: PendingTest) -> Observation:
        return Observation(Verdict.BAD if interesting(candidate) else Verdict.GOOD)

    with shrink.asking(ask, jobs, until) as test:
        return experiment.run(search.search(), test, notes or Journal(), quiet, first=True)
