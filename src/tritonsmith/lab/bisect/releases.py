"""The releases of Triton, tested by their wheels: nothing is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler import tritons
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError
from tritonsmith.facts import eras, git_history, triton_history
from tritonsmith.lab.bisect.cost import ExpectedCost
from tritonsmith.lab.bisect.predicate.protocol import Predicate
from tritonsmith.lab.bisect.search import Suspects, choose, suspects
from tritonsmith.lab.model import Observation, Verdict


@dataclass(frozen=True)
class ReleaseSearch:
    """A search for the first bad release.

    Attributes:
        tritons: all releases in order; the first one is good, the last one bad.
        predicate: what decides.
        known: outcomes so far, by release; it grows.
        record: gets every outcome, before the next test begins.
        jobs: releases tested at once.
        install: makes one ready that `predicate` could not; returns why it cannot be had.
    """

    tritons: tuple[Triton, ...]
    predicate: Predicate
    known: dict[str, Observation]
    record: Callable[[str, Observation], None]
    jobs: int = 1
    install: Callable[[Triton], str] = lambda _: ""

    @property
    def state(self) -> Suspects:
        """Return the state now."""
        verdicts = {
            index: self.known[one.label].verdict
            for index, one in enumerate(self.tritons)
            if one.label in self.known
        }
        return suspects(len(self.tritons), verdicts)

    def ends(self) -> tuple[Observation, Observation]:
        """The outcomes of both ends."""
        first, last = self.tritons[0], self.tritons[-1]
        self._test([first, last])
        return self.known[first.label], self.known[last.label]

    def run(self) -> Suspects:
        """Test until one suspect is left, or only those that cannot be tested."""
        while chosen := choose(self.state, self.seconds, jobs=self.jobs):
            self._test([self.tritons[index] for index in chosen])
        return self.state

    def seconds(self, index: int) -> float:
        """Expected seconds of a test."""
        return self.cost(index).seconds

    def cost(self, index: int) -> ExpectedCost:
        """Expected seconds of a test, and why."""
        table = configs.load("bisect")["seconds"]
        triton = self.tritons[index]
        ready = (
            Path(triton.python).exists() if triton.python else tritons.env_of(triton.version).python.exists()
        )
        if ready:
            return ExpectedCost(float(table["test"]), ("it is installed",))
        return ExpectedCost(float(table["test"] + table["wheel"]), ("its wheel must be installed",))

    def _test(self, tritons: Sequence[Triton]) -> None:
        todo = []
        for one in tritons:
            if one.label in self.known:
                continue
            if why := self.install(one):
                self.known[one.label] = Observation(Verdict.SKIP, why=why)
                self.record(one.label, self.known[one.label])
            else:
                todo.append(one)
        with closing(self.predicate.outcomes(todo)) as found:
            for one, outcome in found:
                self.known[one.label] = outcome
                self.record(one.label, outcome)


def branch_point(release: str, clone: Path | None) -> str:
    """The last commit of main in a release: of a clone that has the branch, or else of the table."""
    if clone:
        for branch in (*git_history.branch_names(release), f"v{release}"):
            for main in git_history.MAINS:
                try:
                    if found := triton_history.branch_point(clone, branch, main):
                        return found
                except FactError:  # this clone has no such name
                    continue
    return eras.release(release).branch_point


def commit_of(release: str, clone: Path) -> str:
    """The commit of a release: its tag, or the end of its branch if it is the last one; empty if unknown."""
    with git_history.opened(clone) as repository:
        return git_history.release_commit(release, repository)


def about_step(good: str, bad: str, clone: Path | None) -> Iterator[str]:
    """Describe the way between two releases: commits of main between the branch points, and picks."""
    before, after = eras.release(good), eras.release(bad)
    one, two = before.version, after.version
    if one == two:
        yield f"{good} and {bad} are on release/{one}.x: the culprit is a commit cherry-picked into it"
        return
    points = [branch_point(version, clone)[:12] for version in (good, bad)]
    if points[0] == points[1]:
        yield f"both are cut from {points[0]}: a commit of release/{two}.x, or a fix that {one}.x has"
        return
    yield f"main between the branch points: {points[0]}..{points[1]} (release/{one}.x, release/{two}.x)"
    yield f"or commits cherry-picked into release/{two}.x, or a fix that only {one}.x has"
    if before.llvm and after.llvm and before.llvm != after.llvm:
        compared = f"{configs.load('bisect')['llvm']['page']}/compare/{before.llvm}...{after.llvm}"
        more = (
            ""
            if clone
            else "; --source CLONE finds the bump, and --llvm-source CLONE then finds LLVM's commit"
        )
        yield f"LLVM moved as well: {compared}{more}"


def about_fix(bad: str, good: str, clone: Path | None) -> Iterator[str]:
    """The commits of main and the picks between the last bad release and the one that fixes it."""
    one, two = eras.release(bad).version, eras.release(good).version
    points = [branch_point(version, clone)[:12] for version in (bad, good)]
    if points[0] == points[1]:
        yield f"both are cut from {points[0]}: a commit of release/{two}.x"
        return
    yield f"main between the branch points: {points[0]}..{points[1]} (release/{one}.x, release/{two}.x)"
    yield f"or a commit cherry-picked into release/{two}.x"


def verdict_of_ends(
    good: Observation, bad: Observation, names: Mapping[str, str]
) -> tuple[str, Observation] | None:
    """Return why the ends rule out a search, and the outcome that does so; None if nothing does.

    Args:
        good: outcome of the good end.
        bad: of the bad one.
        names: of both: `good` and `bad`.
    """
    for what, name, outcome, expected in (
        ("reproduces at the good end", "good", good, Verdict.GOOD),
        ("does not reproduce at the bad end", "bad", bad, Verdict.BAD),
    ):
        if outcome.verdict is Verdict.SKIP:
            return f"the {name} end, {names[name]}, cannot be tested", outcome
        if outcome.verdict is not expected:
            return f"{what}, {names[name]}", outcome
    return None
