"""What the test of a commit is expected to take, in seconds, with the reasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Literal

from tritonsmith.core import configs
from tritonsmith.facts.triton_history import TritonCommit

LlvmState = Literal["ready", "prebuilt", "source"]
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


class CostModel:
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
            (one.sources - one.headers) * self._table["source"] + one.headers * self._table["header"]
            for one in commits
        )
        self._changed = list(accumulate(compiles))
        self._files = list(accumulate(one.sources for one in commits))
        self._tests: list[float] = []
        self._whole = float(self._table["whole-build"])

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

    def of(self, index: int) -> ExpectedCost:
        """Return the expected cost of testing a commit now."""
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
