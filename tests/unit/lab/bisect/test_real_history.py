"""Searches over the shape of upstream's history: pins that come back, trees that are equal, breakages."""

from __future__ import annotations

import random
import statistics
from itertools import pairwise

import pytest

from tests.unit.lab.bisect.real_history import gaps, plan
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect.search import LlvmState

_CULPRITS = 16  # of each gap


def spent(llvm: LlvmState, way: str, share: float = 0.0) -> list[float]:
    """Seconds of searches in all gaps; the benchmark ends the process where one loses its culprit."""
    draw, simulation = random.Random(7), plan()  # noqa: S311 - no secret
    seconds = []
    for commits in gaps().values():
        broken = simulation.broken_ones(len(commits), share, draw)
        known: dict[object, int] = {}
        for culprit in draw.choices(suspected(commits), k=_CULPRITS):
            found = simulation.search(commits, culprit, broken, way, llvm, known)
            assert found.steps < len(commits)
            assert found.left == 1 or share
            seconds.append(found.seconds)
    return seconds


def suspected(commits: tuple[TritonCommit, ...]) -> list[int]:
    return [index for index, one in enumerate(commits) if index and one.concerns("nvidia")]


def test_the_shape_is_that_of_history() -> None:
    assert next(iter(gaps())) == "3.0 -> 3.2"
    assert list(gaps())[-1] == "3.8 -> 3.9"
    assert sum(len(commits) - 1 for commits in gaps().values()) > 4400
    everything = [one for commits in gaps().values() for one in commits]
    runs = [one.pin for one, other in pairwise(everything) if one.pin != other.pin]
    assert len(runs) > len(set(runs)) + 4  # reverted bumps
    assert len({one.native for one in everything}) < 0.7 * len(everything)


@pytest.mark.parametrize(("llvm", "most"), [("ready", 0.95), ("prebuilt", 0.95), ("source", 0.9)])
def test_the_culprit_is_found_in_fewer_seconds_than_by_halving(llvm: LlvmState, most: float) -> None:
    ours, halving = (statistics.fmean(spent(llvm, way)) for way in ("bisect", "halving"))
    assert ours < most * halving


def test_it_takes_a_third_of_a_plain_bisection_with_clean_builds() -> None:
    ours, clean = (statistics.fmean(spent("ready", way)) for way in ("bisect", "clean"))
    assert ours < 0.34 * clean


def test_with_breakages_the_culprit_is_among_those_left() -> None:
    ours, halving = (statistics.fmean(spent("prebuilt", way, 0.1)) for way in ("bisect", "halving"))
    assert ours < halving
