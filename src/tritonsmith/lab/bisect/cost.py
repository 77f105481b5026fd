"""The expected cost of testing a candidate, in seconds with the reasons, and what tests tell of others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Literal, Protocol

from tritonsmith.compiler import tritons
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.model import Observation

LlvmState = Literal["ready", "prebuilt", "source"]
# Metrics of the observation of a commit: seconds until it was ready, those of its build without its LLVM, and
# what could not be had of it, which its neighbours need as well.
READY, BUILD, LACKS = "ready_seconds", "build_seconds", "lacks"
LLVM, NATIVE_TREE, TOOLS = "LLVM", "native tree", "tools"
_LIKELY = {"bump": 4.0, "usual": 1.0, "aside": 1e-3}  # how likely a commit is the culprit, against others


@dataclass(frozen=True)
class ExpectedCost:
    """The expected cost of one test.

    Attributes:
        seconds: in all.
        reasons: what they are made of, in words.
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
        if self._folder(pin) is None:
            self._whole = max(seconds, float(self._table["link"]))
        self._at[pin] = index
        self._llvm.cache_clear()

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
            build = min(self._whole, self._table["link"] + changed)
            files = abs(self._files[index] - self._files[at])
            reasons.append(f"{files} native files differ from the last build, {self._commits[at].commit[:9]}")
        return ExpectedCost(llvm + build + test, tuple(reasons))

    def _folder(self, pin: str) -> int | None:
        """The commit of this range that the build folder of a pin is at."""
        return self._at.get(pin, self._numbers.get(self._last(pin)))


_LLVM = {"prebuilt": "LLVM {} to be downloaded", "source": "LLVM {} to be built"}


def likelihood(commit: TritonCommit, vendor: str) -> float:
    """Return how likely a commit changes the code for a vendor's GPUs, relative to other commits.

    What touches only the other vendor, tests or documents is most unlikely and not impossible: so it is not
    tested while others are left, and the last suspect is confirmed against the commit before it.
    """
    if commit.bump:
        return _LIKELY["bump"]
    touches = not commit.areas.isdisjoint({"common", vendor}) if vendor else bool(commit.areas)
    return _LIKELY["usual" if touches else "aside"]
