"""The candidates of a bisect, releases, nightlies and commits: how they are made ready and tested."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import FactError, PreflightError, StepError
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect import nightlies
from tritonsmith.lab.bisect.cost import BUILD, LACKS, LLVM, NATIVE_TREE, READY, TOOLS, LlvmState
from tritonsmith.lab.model import Observation, Verdict

# Tests of Tritons that are ready: each Triton with its outcome, as they come.
Outcomes = Generator[tuple[Triton, Observation], None, None]
CandidateTests = Callable[[Sequence[Triton]], Outcomes]

_OURS = ("No space left on device", "Disk quota exceeded", "out of memory")  # no fault of the commit


class TritonTests(Protocol):
    """Tests of Tritons: a subject and the question about it."""

    def outcomes(self, tritons: Sequence[Triton]) -> Outcomes:
        """Test several Tritons, at once where that can be, and yield their outcomes as they come.

        Raises:
            SmithError: as `test` does.
        """

    def test(self, triton: Triton) -> Observation:
        """Test whether a Triton is bad.

        Raises:
            SmithError: neither an answer nor a reason to skip this Triton: the bisect stops, and may go on
                later.
        """


def one_by_one(test: Callable[[Triton], Observation]) -> CandidateTests:
    """Return tests of several Tritons, one after another."""
    return lambda tritons: ((triton, test(triton)) for triton in tritons)


class NoLlvmError(StepError):
    """The LLVM of a pin cannot be had, so no commit that pins it can be tested."""


class Builds(Protocol):
    """The protocol that makes commits ready to test: `build.CommitBuilds`, and `llc.LlcBuilds`."""

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
class Candidate:
    """A Triton that may be tested. Either `triton` or `commit` is set.

    Attributes:
        name: a release (`3.6.0`), a nightly's version, or a commit, all 40 digits.
        triton: of a release or a nightly.
        commit: of a clone, which may have to be built.
    """

    name: str
    triton: Triton | None = None
    commit: TritonCommit | None = None


def of_tritons(tritons: Sequence[Triton]) -> tuple[Candidate, ...]:
    """Return candidates for releases and nightlies."""
    return tuple(Candidate(triton.label, triton) for triton in tritons)


def of_commits(commits: Sequence[TritonCommit]) -> tuple[Candidate, ...]:
    """Return candidates for commits of Triton."""
    return tuple(Candidate(commit.commit, commit=commit) for commit in commits)


@dataclass(frozen=True)
class ReadyTriton:
    """A candidate that is ready to test.

    Attributes:
        triton: that is tested.
        seconds: wall time that it took to make it ready.
        metrics: of these seconds.
    """

    triton: Triton
    seconds: float = 0.0
    metrics: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class BisectSubject:
    """Tests candidates by tests of the Tritons that they become.

    Attributes:
        tests: of Tritons that are ready.
        builds: makes commits ready; None without a clone.
        jobs: candidates tested at once.
    """

    tests: CandidateTests
    builds: Builds | None = None
    jobs: int = 1

    def test(self, candidates: Sequence[Candidate]) -> Iterator[tuple[int, Observation]]:
        """Make candidates ready, then test them; yield places in `candidates` with observations as they come.

        A candidate that cannot be made ready is a skip.

        Raises:
            SmithError: what is no fault of a candidate: a full disk, a missing compiler, an interrupt.
        """
        places = range(len(candidates))
        # A build may take an hour: without --jobs, a commit is tested and noted before the next one is built.
        one_by_one = self.jobs == 1 and any(candidate.commit for candidate in candidates)
        for group in [[place] for place in places] if one_by_one else [places]:
            yield from self._together(candidates, group)

    def _together(
        self, candidates: Sequence[Candidate], group: Sequence[int]
    ) -> Iterator[tuple[int, Observation]]:
        ready: dict[str, tuple[int, ReadyTriton]] = {}  # by label of the Triton
        failed: dict[tuple[str, str], Observation] = {}  # by native tree and LLVM, as others have
        for place in group:
            candidate = candidates[place]
            tree = (candidate.commit.native, candidate.commit.pin) if candidate.commit else None
            result = (tree and failed.get(tree)) or self._made(candidate)
            if isinstance(result, ReadyTriton):
                ready[result.triton.label] = place, result
                continue
            yield place, result
            if tree and LACKS in result.metrics:  # the others of the group need not try the same build
                failed[tree] = replace(result, seconds=0.0)
        if not ready:
            return
        began = time.monotonic()
        with closing(self.tests([prepared.triton for _, prepared in ready.values()])) as outcomes:
            for triton, outcome in outcomes:
                place, prepared = ready[triton.label]
                if not candidates[place].commit:
                    yield place, outcome
                    continue
                # The seconds of a commit are those of its build, too, from which the next choice is made.
                seconds = prepared.seconds + time.monotonic() - began
                metrics = {**outcome.metrics, **prepared.metrics}
                yield place, replace(outcome, seconds=seconds, metrics=metrics)

    def _made(self, candidate: Candidate) -> ReadyTriton | Observation:
        if candidate.commit:
            if self.builds is None:
                raise AssertionError("a commit needs a clone")
            return built(candidate.commit, self.builds)
        if candidate.triton is None:
            raise AssertionError(f"the candidate {candidate.name} is nothing")
        if why := nightlies.install(candidate.triton):
            return Observation(Verdict.SKIP, why=why)
        return ReadyTriton(candidate.triton)


def built(commit: TritonCommit, builds: Builds) -> ReadyTriton | Observation:
    """Make a commit ready; return a skip with the reason if it cannot be built.

    Raises:
        SmithError: what is no fault of the commit.
    """
    was_built, began = builds.built(commit) is not None, time.monotonic()
    try:
        triton = builds.make(commit)
    except (FactError, PreflightError, StepError) as error:
        why = reason(error)
        if any(word in why for word in _OURS):
            raise
        kind = TOOLS if isinstance(error, PreflightError) else NATIVE_TREE
        lacks = LLVM if isinstance(error, NoLlvmError) else "" if was_built else kind
        metrics = {LACKS: lacks} if lacks else {}
        return Observation(Verdict.SKIP, why=why, seconds=time.monotonic() - began, metrics=metrics)
    seconds = time.monotonic() - began
    if was_built:
        return ReadyTriton(triton, seconds, {READY: seconds})
    took = (builds.built(commit) or {}).get("seconds")  # without its LLVM, which others have now
    return ReadyTriton(triton, seconds, {READY: seconds, BUILD: sum(took.values()) if took else seconds})


def reason(error: FactError | PreflightError | StepError) -> str:
    """A failure in one or two lines: what, and the first line of why."""
    return ": ".join(filter(None, (error.what, (error.why or "").strip().partition("\n")[0])))
