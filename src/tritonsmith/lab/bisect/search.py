"""The search for the first bad candidate of a history: bisection by expected seconds.

Candidates stand in order of history, as numbers from 0. The first one is known to be good and the last one to
be bad, so somewhere between them a bad one follows a good one: the culprit. Plain bisection halves the number
of suspects, however long each test takes. Here a test is worth what it is expected to tell (Shannon's bits)
in a second of its expected time: see `choose`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from math import log2
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

from tritonsmith.compiler import tritons
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.experiment import Change, Search
from tritonsmith.lab.journal import Observation, Verdict

LlvmState = Literal["ready", "prebuilt", "source"]
# Metrics of the observation of a commit: seconds until it was ready, those of its build without its LLVM, and
# what could not be had of it, which its neighbours need as well.
READY, BUILD, LACKS = "ready_seconds", "build_seconds", "lacks"
LLVM, NATIVE_TREE, TOOLS = "LLVM", "native tree", "tools"
# How likely a commit is the culprit, against others. Not 0 for those aside, so that they are
# tested once nothing else is left.
_LIKELY = {"bump": 4.0, "usual": 1.0, "aside": 1e-3}
_LLVM = {"prebuilt": "LLVM {} to be downloaded", "source": "LLVM {} to be built"}
_INSTANT = 1e-3  # seconds; no test takes less

C = TypeVar("C", bound=Change)


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
    # Where the outcome changed more than once, the earliest change that is known is searched.
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
    together: Callable[[int, Collection[int]], Collection[int]] = lambda _first, left: left,
) -> tuple[int, ...]:
    """Choose the candidates to test now, the most worthwhile first; none when the search is over.

    Args:
        state: the state of the search.
        cost: expected seconds of a test of a candidate, as things are now.
        jobs: how many are tested at once; each one is chosen knowing those before.
        prior: how likely each candidate is the culprit, in any unit; equally likely if not given.
        together: the candidates, of these, that can be tested at once with the first one.
    """
    up_to = [0.0, *accumulate(prior or [1.0] * (state.bad + 1))]  # likelihood of all candidates before one
    chosen: list[int] = []
    left: Collection[int] = state.left
    while left and len(chosen) < jobs:
        ends = sorted((state.good, *chosen, state.bad))

        # Several tests at once are worth what they tell together: each splits the part that the ones chosen
        # before leave it in, so that three tests cut a range into quarters and not thrice in the middle.
        def worth(index: int, ends: Sequence[int] = ends) -> float:
            before = max(end for end in ends if end < index)
            after = min(end for end in ends if end > index)
            left, right = up_to[index + 1] - up_to[before + 1], up_to[after + 1] - up_to[index + 1]
            return _testable(state, index) * _bits(left, right) / max(cost(index), _INSTANT)

        chosen.append(max(left, key=worth))
        others = [index for index in left if index not in chosen]
        left = others if len(chosen) > 1 or jobs == 1 else together(chosen[0], others)
    return tuple(chosen)


def _bits(left: float, right: float) -> float:
    """Return the bits of a test that splits a weight in two, times the weight, to compare several."""
    whole = left + right
    return sum(part * log2(whole / part) for part in (left, right) if part > 0)


def _testable(state: Suspects, index: int) -> float:
    """Estimate how likely a candidate can be tested: neighbours of an untestable one often cannot."""
    # What breaks a build stays broken until it is repaired, which takes some commits.
    near = min((abs(index - other) for other in state.skipped), default=0)
    return 1 - 1 / (1 + near) if near else 1.0


@dataclass
class BisectRange(Generic[C]):
    """A part of history that is searched; see `first_bad`.

    Attributes:
        candidates: in order; the first one is good and the last one bad.
        costs: of their tests.
        known: names of candidates that an earlier run has tested, in the order of its tests.
        prior: how likely each candidate is the culprit, in any unit; None for equally likely.
        jobs: candidates tested at once.
        observations: name to observation, of every candidate of the bisect that was asked for; it grows.
    """

    candidates: Sequence[C]
    costs: Costs
    known: Sequence[str] = ()
    prior: Sequence[float] | None = None
    jobs: int = 1
    observations: dict[str, Observation] = field(default_factory=dict)

    @property
    def state(self) -> Suspects:
        """The state now; a candidate that others have shown to be untestable is skipped."""
        verdicts = dict.fromkeys(self.costs.untestable(), Verdict.SKIP)
        verdicts |= {
            index: self.observations[candidate.name].verdict
            for index, candidate in enumerate(self.candidates)
            if candidate.name in self.observations
        }
        return suspects(len(self.candidates), verdicts)

    def next(self) -> tuple[int, ...]:
        """Return the candidates to test now; none when the search is over."""
        return choose(
            self.state,
            lambda index: self.costs.of(index).seconds,
            jobs=self.jobs,
            prior=self.prior,
            together=self.costs.together,
        )

    def ends(self) -> Search[C, tuple[Observation, Observation]]:
        """Ask for the first candidate and the last one."""
        yield from self.ask((0, len(self.candidates) - 1))
        first, last = (self.observations[self.candidates[index].name] for index in (0, -1))
        return first, last

    def ask(self, indices: Iterable[int]) -> Search[C, None]:
        """Ask for candidates, except for those that were asked for before."""
        new = [
            index for index in dict.fromkeys(indices) if self.candidates[index].name not in self.observations
        ]
        if not new:
            return
        for index, observation in zip(new, (yield [self.candidates[index] for index in new]), strict=True):
            name = self.candidates[index].name
            self.observations[name] = observation
            self.costs.learn(index, observation, earlier=name in self.known)


def first_bad(span: BisectRange[C]) -> Search[C, Suspects]:
    """Search until one suspect is left, or only those that cannot be tested."""
    # First for everything that an earlier run has tested, which costs nothing. To choose again as that run
    # did is impossible: what was built meanwhile has changed the costs.
    numbers = {candidate.name: index for index, candidate in enumerate(span.candidates)}
    yield from span.ask([numbers[name] for name in span.known if name in numbers])
    while chosen := span.next():
        yield from span.ask(chosen)
    return span.state


@dataclass(frozen=True)
class ExpectedCost:
    """The expected cost of one test.

    Attributes:
        seconds: in all.
        reasons: the parts of that time, in words.
    """

    seconds: float
    reasons: tuple[str, ...]


class Costs(Protocol):
    """The expected costs of the candidates of a history, which are numbered."""

    def of(self, index: int) -> ExpectedCost:
        """Return the expected cost of testing a candidate now."""

    def learn(self, index: int, observation: Observation, *, earlier: bool) -> None:
        """Take account of the test of a candidate; `earlier`: of a run before this one."""

    def untestable(self) -> Collection[int]:
        """Return candidates that cannot be tested, by what the tests of others showed."""

    def together(self, first: int, left: Collection[int]) -> Collection[int]:
        """Return those of the candidates that can be tested at once with the first one."""


@dataclass(frozen=True)
class WheelCosts:
    """Expected costs of releases and nightlies, of which nothing is built.

    Attributes:
        tritons: in order of history.
    """

    tritons: Sequence[Triton]

    def of(self, index: int) -> ExpectedCost:
        """See `Costs`."""
        table, triton = configs.load("bisect")["seconds"], self.tritons[index]
        python = Path(triton.python) if triton.python else tritons.env_of(triton.version).python
        if python.exists():
            return ExpectedCost(float(table["test"]), ("it is installed",))
        return ExpectedCost(float(table["test"] + table["wheel"]), ("its wheel must be installed",))

    def learn(self, index: int, observation: Observation, *, earlier: bool) -> None:
        """See `Costs`: a wheel tells nothing of others."""

    def untestable(self) -> Collection[int]:
        """See `Costs`."""
        return ()

    def together(self, first: int, left: Collection[int]) -> Collection[int]:  # noqa: ARG002 - see `Costs`
        """See `Costs`."""
        return left


class CommitCosts:
    """Expected costs of the commits of a range, by what was built and measured so far.

    Args:
        commits: the range, oldest first.
        llvm: where the LLVM of a pin comes from.
        built: whether the libraries of a commit are there.
        last: the commit that the build folder of a pin is at; empty if nothing was built there.
    """

    def __init__(
        self,
        commits: Sequence[TritonCommit],
        llvm: Callable[[str], LlvmState],
        built: Callable[[TritonCommit], bool],
        last: Callable[[str], str] = lambda _pin: "",
    ) -> None:
        self._commits, self._built = commits, built
        self._llvm, self._last = cache(llvm), cache(last)  # thousands of commits share a few pins
        self._numbers = {commit.commit: number for number, commit in enumerate(commits)}
        self._at: dict[str, int] = {}  # pin to the commit that was built last
        self._table = configs.load("bisect")["seconds"]
        compiles = (
            (commit.sources - commit.headers) * self._table["source"] + commit.headers * self._table["header"]
            for commit in commits
        )
        self._changed = list(accumulate(compiles))
        self._files = list(accumulate(commit.sources for commit in commits))
        self._tests: list[float] = []
        self._whole = float(self._table["whole-build"])
        self._missing: set[str] = set()  # LLVM pins that cannot be had
        self._unbuildable: set[str] = set()  # keys of native trees

    def record_build(self, index: int, seconds: float) -> None:
        """Note that a commit was built; from there its neighbours are built incrementally."""
        pin = self._commits[index].pin
        # Only a build from nothing tells how long one takes; the others were incremental.
        if self._folder(pin) is None:
            self._whole = max(seconds, float(self._table["link"]))
        self._at[pin] = index
        self._llvm.cache_clear()  # its LLVM is there now

    def record_test(self, seconds: float) -> None:
        """Note how long the test of a Triton that was ready took."""
        self._tests.append(seconds)

    def learn(self, index: int, observation: Observation, *, earlier: bool) -> None:
        """See `Costs`."""
        commit, metrics = self._commits[index], observation.metrics
        ready, build, lacks = metrics.get(READY), metrics.get(BUILD), metrics.get(LACKS)
        if isinstance(build, int | float):
            self.record_build(index, build)
        if isinstance(ready, int | float) and not lacks:
            self.record_test(observation.seconds - ready)
        # By the next run a network may be back, or a program installed, so it tries the pin or the tree once
        # more; an error of the compiler stays the same.
        if lacks == LLVM and not earlier:
            self._missing.add(commit.pin)
        if lacks == NATIVE_TREE or (lacks == TOOLS and not earlier):
            self._unbuildable.add(commit.native)

    def untestable(self) -> Collection[int]:
        """See `Costs`."""
        if not (self._missing or self._unbuildable):
            return ()
        return [
            index
            for index, commit in enumerate(self._commits)
            if commit.pin in self._missing or commit.native in self._unbuildable
        ]

    def together(self, first: int, left: Collection[int]) -> Collection[int]:
        """See `Costs`: those that need no other build than the first one."""
        tree = self._commits[first].native, self._commits[first].pin
        commits = ((index, self._commits[index]) for index in left)
        return [
            index for index, commit in commits if (commit.native, commit.pin) == tree or self._built(commit)
        ]

    def of(self, index: int) -> ExpectedCost:
        """See `Costs`."""
        test = sum(self._tests) / len(self._tests) if self._tests else float(self._table["test"])
        commit = self._commits[index]
        if self._built(commit):
            return ExpectedCost(test, ("its libraries are already built: only Python files differ",))
        state = self._llvm(commit.pin)
        llvm = float(self._table[f"llvm-{state}"])
        reasons = [] if state == "ready" else [_LLVM[state].format(commit.pin[:8])]
        at = self._folder(commit.pin)
        build = self._whole
        if at is None:
            reasons.append("a whole build")
        else:
            changed = abs(self._changed[index] - self._changed[at])
            # Far from the last build, nearly all is compiled again, so a whole build is the most.
            build = min(self._whole, self._table["link"] + changed)
            files = abs(self._files[index] - self._files[at])
            reasons.append(f"{files} native files differ from the last build, {self._commits[at].commit[:9]}")
        return ExpectedCost(llvm + build + test, tuple(reasons))

    def _folder(self, pin: str) -> int | None:
        """Return the commit of this range that the build folder of a pin is at."""
        return self._at.get(pin, self._numbers.get(self._last(pin)))


def likelihood(commit: TritonCommit, vendor: str) -> float:
    """Return how likely a commit changes the code for a vendor's GPUs, relative to other commits."""
    # LLVM generates the code, so a bump changes more of it than any other commit of one line.
    if commit.bump:
        return _LIKELY["bump"]
    # A quarter of upstream's commits from 3.4 to August 2026 change no vendor's code: tests, documents,
    # tools.
    touches = not commit.areas.isdisjoint({"common", vendor}) if vendor else bool(commit.areas)
    return _LIKELY["usual" if touches else "aside"]
