"""Simulated histories: commits of every kind, a workshop that builds them in no time, and searches."""

from __future__ import annotations

import hashlib
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.unit.lab.fake_subject import FakeSubject, bad_from, unexpected
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import StepError
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab import experiment
from tritonsmith.lab.bisect.candidates import (
    BisectSubject,
    Candidate,
    CandidateTests,
    NoLlvmError,
)
from tritonsmith.lab.bisect.search import BisectRange, LlvmState, Suspects, first_bad
from tritonsmith.lab.bisect.stages import searched
from tritonsmith.lab.experiment import Search
from tritonsmith.lab.journal import Journal

A = TypeVar("A")
OLD, NEW = "a" * 40, "b" * 40


@dataclass(frozen=True)
class Simulated:
    """A history with its culprit, and what does not build.

    Attributes:
        commits: the range.
        culprit: number of the first bad one.
        broken: numbers of those that do not build.
    """

    commits: list[TritonCommit]
    culprit: int
    broken: frozenset[int]

    @property
    def untestable(self) -> set[int]:
        """Those whose native tree is that of one that does not build."""
        trees = {self.commits[index].native for index in self.broken}
        return {index for index, commit in enumerate(self.commits) if commit.native in trees}


@st.composite
def simulated(draw: st.DrawFn) -> Simulated:
    """Histories of up to 31 commits, whatever of them does not build."""
    kinds = draw(st.lists(st.sampled_from(["common", "python", "amd", "bump"]), min_size=3, max_size=30))
    commits = history("common", *kinds)
    culprit = draw(st.integers(1, len(commits) - 1))
    broken = draw(st.frozensets(st.integers(1, len(commits) - 2), max_size=8))
    return Simulated(commits, culprit, broken)


def history(*kinds: str) -> list[TritonCommit]:
    """Commits of these kinds: `common`, `nvidia`, `amd`, `python`, `tests`, `bump`."""
    made: list[TritonCommit] = []
    pin = OLD
    for number, kind in enumerate(kinds):
        pin = NEW if kind == "bump" else pin
        native = kind in {"common", "nvidia", "amd", "bump"}
        areas = {"nvidia": "nvidia", "amd": "amd"}.get(kind, "common")
        commit = hashlib.sha1(f"{number}".encode(), usedforsecurity=False).hexdigest()
        made.append(
            TritonCommit(
                commit=commit,
                parents=(made[-1].commit if made else "",),
                date="2026-01-01T00:00:00+00:00",
                subject=f"{kind} (#{number})",
                pin=pin,
                bump=kind == "bump",
                native=commit if native or not made else made[-1].native,
                areas=frozenset() if kind == "tests" else frozenset({areas}),  # type: ignore[arg-type]
                sources=int(native),
                headers=0,
            )
        )
    return made


class Workshop:
    """Builds in no time; of these commits not at all."""

    def __init__(self, *broken: str, error: Exception | None = None) -> None:
        self.broken, self.error = broken, error or StepError("cannot compile", why="A.cpp:1: error: no\nmore")
        self.libraries: set[str] = set()
        self.made: list[str] = []
        self.at: dict[str, str] = {}

    def llvm_state(self, pin: str) -> LlvmState:
        return "ready" if pin == OLD else "source"

    def built(self, commit: TritonCommit) -> dict[str, Any] | None:
        return {} if commit.native in self.libraries else None

    def last(self, pin: str) -> str:
        return self.at.get(pin, "")

    def make(self, commit: TritonCommit) -> Triton:
        self.made.append(commit.commit)
        if commit.commit in self.broken:
            raise self.error
        self.libraries.add(commit.native)
        return Triton(commit.commit, python="/usr/bin/python3")


@dataclass
class Run:
    """A search over commits, run against a workshop.

    Attributes:
        commits: the range.
        workshop: builds them.
        tests: of what it builds.
        vendor: the question's.
        jobs: commits tested at once.
        journal: of the tests; one that is not empty is that of an earlier run.
    """

    commits: list[TritonCommit]
    workshop: Workshop
    tests: CandidateTests
    vendor: str = ""
    jobs: int = 1
    journal: Journal = field(default_factory=Journal)
    order: list[str] = field(default_factory=list)

    @cached_property
    def span(self) -> BisectRange[Candidate]:
        return searched(self.commits, self.workshop, self.vendor, [*self.journal.observations], self.jobs)

    def end(self) -> Suspects:
        """Search to the end."""
        return self._run(first_bad(self.span))

    def ask(self, *indices: int) -> None:
        """Test these."""
        self._run(self.span.ask(indices))

    @property
    def tested(self) -> list[int]:
        """What was tested in this run, in order."""
        numbers = {commit.commit: number for number, commit in enumerate(self.commits)}
        return [numbers[name] for name in self.order]

    def _run(self, search: Search[Candidate, A]) -> A:
        subject = BisectSubject(self.tests, self.workshop, self.jobs)
        return experiment.run(search, subject.test, self.journal, lambda name, _seen: self.order.append(name))


def oracle(commits: list[TritonCommit], culprit: int, lives: int = -1) -> CandidateTests:
    """Tests that are bad from one commit on; ^C comes after so many of them."""
    table = bad_from([commit.commit for commit in commits], culprit)
    return FakeSubject(unexpected, table, lives, KeyboardInterrupt).outcomes


def ran(
    commits: list[TritonCommit], culprit: int, workshop: Workshop, vendor: str = "nvidia"
) -> tuple[Run, list[int]]:
    """A search that has ended, and the commits that it tested."""
    run = Run(commits, workshop, oracle(commits, culprit), vendor)
    run.end()
    return run, run.tested


def again(journal: Journal) -> Journal:
    """The journal as the next run reads it."""
    return Journal(observations=deepcopy(journal.observations), skipped=set(journal.skipped))


class NoLlvm(Workshop):
    """Builds what does not pin NEW, whose LLVM cannot be had."""

    def make(self, commit: TritonCommit) -> Triton:
        if commit.pin == NEW:
            self.made.append(commit.commit)
            raise NoLlvmError("no LLVM", why="no archive has it")
        return super().make(commit)
