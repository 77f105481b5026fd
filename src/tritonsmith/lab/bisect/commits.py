"""The search over the commits of a clone: over LLVM pins and inside one, by what a test tells per second.

There are no fixed stages. Commits whose LLVM is at hand are quick to test, so they come first; a commit with
the libraries of another, from which it differs in Python only, takes seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import FactError, PreflightError, StepError
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect.cost import CostModel, ExpectedCost, LlvmState, likelihood
from tritonsmith.lab.bisect.predicate.protocol import CandidateTests
from tritonsmith.lab.bisect.search import Suspects, choose, suspects
from tritonsmith.lab.model import Observation, Verdict

_OURS = ("No space left on device", "Disk quota exceeded", "out of memory")  # no fault of the commit


class NoLlvmError(StepError):
    """The LLVM of a pin cannot be had, so no commit that pins it can be tested."""


class Builds(Protocol):
    """The protocol that makes commits ready to test: `build.CommitBuilds`, and `llvm_build.LlcBuilds`."""

    def llvm_state(self, pin: str) -> LlvmState:
        """Return the origin of a pin's LLVM."""

    def built(self, commit: TritonCommit) -> dict[str, Any] | None:
        """The receipt of a commit's libraries; None if they must be built."""

    def last(self, pin: str) -> str:
        """The commit that was built last against the LLVM of a pin; empty if none was."""

    def make(self, commit: TritonCommit) -> Triton:
        """Make a commit ready, and name the interpreter that has it, or the llc.

        Raises:
            NoLlvmError: its LLVM cannot be had.
        """


@dataclass(frozen=True)
class _MadeCommit:
    """A commit that is ready to test: its number, its Triton, and the seconds that this took."""

    index: int
    triton: Triton
    seconds: float


class CommitSearch:
    """A search for the first bad commit of a range.

    Args:
        commits: the range (`triton_history.read`); the first one is good, the last one bad.
        builds: makes commits ready.
        tests: what decides. They get interpreters that have the commits' Tritons.
        vendor: `nvidia` or `amd` if the question is about one vendor's code; empty for both.
        known: outcomes so far, by hash: of a search that is resumed, or skips of the user's.
        record: gets every outcome, before the next step begins.
        jobs: commits tested at once, where one build serves them all.
    """

    def __init__(
        self,
        commits: Sequence[TritonCommit],
        builds: Builds,
        tests: CandidateTests,
        vendor: str = "",
        known: Mapping[str, Observation] | None = None,
        record: Callable[[TritonCommit, Observation], None] = lambda _commit, _outcome: None,
        jobs: int = 1,
    ) -> None:
        self.commits, self.costs = commits, CostModel(commits, builds.llvm_state, self._is_built, builds.last)
        self._builds, self._tests, self._record, self.jobs = builds, tests, record, jobs
        self._prior = [likelihood(commit, vendor) for commit in commits]
        self.missing: dict[str, str] = {}  # LLVM pin to the reason why it cannot be had
        self.unbuildable: set[str] = set()  # keys of native trees
        outcomes = known or {}
        self.outcomes = {
            index: outcomes[commit.commit]
            for index, commit in enumerate(commits)
            if commit.commit in outcomes
        }

    @property
    def state(self) -> Suspects:
        """Return the state now; a commit without its LLVM, or whose tree cannot be built, is skipped."""
        verdicts = {
            index: Verdict.SKIP
            for index, commit in enumerate(self.commits)
            if commit.pin in self.missing or commit.native in self.unbuildable
        }
        verdicts |= {index: outcome.verdict for index, outcome in self.outcomes.items()}
        return suspects(len(self.commits), verdicts)

    def run(self) -> Suspects:
        """Test until one suspect is left, or only those that cannot be tested.

        Raises:
            SmithError: what is no fault of a commit: a full disk, a missing compiler, an interrupt.
        """
        while next_ := self.next():
            if made := self._made(next_[0]):
                self._test([made, *self._beside(made)])
        return self.state

    @property
    def shared_trees(self) -> bool:
        """Report whether one build serves several commits of the range, which may then be tested at once."""
        return len({(one.native, one.pin) for one in self.commits}) < len(self.commits)

    def next(self) -> tuple[int, ...]:
        """The commit to test now; none when the search is over."""
        return choose(self.state, self.seconds, prior=self._prior)

    def seconds(self, index: int) -> float:
        """Expected seconds of a test."""
        return self.costs.of(index).seconds

    def table(self) -> list[tuple[int, ExpectedCost]]:
        """Return the expected cost of each remaining commit, for `--explain`."""
        return [(index, self.costs.of(index)) for index in self.state.left]

    def test(self, *indices: int) -> list[Observation]:
        """Build commits one by one where need be, then test them at once, and record each outcome.

        One that cannot be built is a skip with the reason.
        """
        self._test([made for index in indices if (made := self._made(index))])
        return [self.outcomes[index] for index in indices]

    def _beside(self, first: _MadeCommit) -> list[_MadeCommit]:
        """Others that are worth a test now and need no build, as libraries of theirs are there."""
        if self.jobs == 1:
            return []
        state = self.state
        built = tuple(index for index in state.left if self._is_built(self.commits[index]))
        chosen = choose(replace(state, left=built), self.seconds, jobs=self.jobs, prior=self._prior)
        others = [index for index in chosen if index != first.index][: self.jobs - 1]
        return [made for index in others if (made := self._made(index))]

    def _test(self, made: Sequence[_MadeCommit]) -> None:
        by_label = {one.triton.label: one for one in made}
        began = time.monotonic()
        with closing(self._tests([one.triton for one in made])) as found:
            for triton, outcome in found:
                took = time.monotonic() - began
                self.costs.record_test(took)
                one = by_label[triton.label]
                self._have(one.index, replace(outcome, seconds=one.seconds + took))

    def _made(self, index: int) -> _MadeCommit | None:
        """A commit, built if need be; None if it cannot be, which is recorded."""
        commit, started = self.commits[index], time.monotonic()
        was_built = self._is_built(commit)
        try:
            triton = self._builds.make(commit)
        except (FactError, PreflightError, StepError) as error:
            why = reason(error)
            if any(word in why for word in _OURS):
                raise
            if isinstance(error, NoLlvmError):
                self.missing[commit.pin] = why
            elif not was_built:
                self.unbuildable.add(commit.native)
            self._have(index, Observation(Verdict.SKIP, why=why, seconds=time.monotonic() - started))
            return None
        seconds = time.monotonic() - started
        if not was_built:
            took = (self._builds.built(commit) or {}).get(
                "seconds"
            )  # without its LLVM, which others have now
            self.costs.record_build(index, sum(took.values()) if took else seconds)
        return _MadeCommit(index, triton, seconds)

    def _have(self, index: int, outcome: Observation) -> None:
        self.outcomes[index] = outcome
        self._record(self.commits[index], outcome)

    def _is_built(self, commit: TritonCommit) -> bool:
        return self._builds.built(commit) is not None


def reason(error: FactError | PreflightError | StepError) -> str:
    """A failure in one or two lines: what, and the first line of why."""
    return ": ".join(filter(None, (error.what, (error.why or "").strip().partition("\n")[0])))
