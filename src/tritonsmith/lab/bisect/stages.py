"""The stages of a bisect: both ends, the releases, the nightlies, then the commits between two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import SmithError
from tritonsmith.core.text import version_key
from tritonsmith.facts import triton_history
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect import candidates, history
from tritonsmith.lab.bisect.candidates import Builds, Candidate
from tritonsmith.lab.bisect.history import CommitRange
from tritonsmith.lab.bisect.search import (
    BisectRange,
    CommitCosts,
    ExpectedCost,
    Suspects,
    WheelCosts,
    first_bad,
    likelihood,
)
from tritonsmith.lab.bisect.session import FIX
from tritonsmith.lab.experiment import Search
from tritonsmith.lab.journal import Observation, Verdict

SHORT = 12  # digits of a commit
_FOR_THE_FIX = "{} is the newer end and is good: the search is for the fix"


class NotReproducedError(SmithError):
    """An end of the bisect does not have the verdict that it was given for."""

    exit_code = 4


@dataclass(frozen=True)
class CandidateCost:
    """A candidate and the cost of its test, for `--explain`.

    Attributes:
        triton: a release, a nightly or a commit.
        subject: of a commit, the first line of its message; else empty.
        outcome: of its test; None before that.
        cost: that its test is expected to have.
    """

    triton: str
    subject: str
    outcome: Observation | None
    cost: ExpectedCost


@dataclass(frozen=True)
class BisectStep:
    """Two neighbours between which the outcome changed; with skips, several suspects between them.

    Attributes:
        good: the last good Triton; of a fix the first good one.
        bad: the first bad one; of a fix the last bad one.
        suspects: those of which one is the culprit or the fix; the last one is known to be bad, or good.
        later_good: Tritons after `bad` that are good; of a fix those before it.
        fix: whether the good end has a fix that the bad end lacks: both have the cause.
    """

    good: str
    bad: str
    suspects: tuple[str, ...]
    later_good: tuple[str, ...] = ()
    fix: bool = False

    @property
    def decided(self) -> bool:
        """Report whether a single suspect is left."""
        return len(self.suspects) == 1


@dataclass(frozen=True)
class BisectResult:
    """The result of a bisect, before it is explained.

    Attributes:
        release: the step between releases; None where both ends are commits.
        nightly: the step between nightlies; None where none was tested.
        nightlies: those of the range that was searched, oldest first.
        commit: the step between commits; None without a clone.
        commits: of the range that was searched, as the clone's history has them; none without a clone.
        culprit: the first bad commit, or the fix; if there is one.
        notes: what else a person should know, each a sentence.
    """

    release: BisectStep | None
    commit: BisectStep | None = None
    commits: tuple[TritonCommit, ...] = ()
    culprit: TritonCommit | None = None
    notes: tuple[str, ...] = ()
    nightly: BisectStep | None = None
    nightlies: tuple[str, ...] = ()

    @property
    def step(self) -> BisectStep:
        """The narrowest step."""
        narrowest = self.commit or self.nightly or self.release
        if narrowest is None:  # neither stage ran: impossible, and a bug
            raise AssertionError("a bisect without a step")
        return narrowest

    @property
    def line(self) -> str:
        """The answer in one line, for the journal."""
        kind = FIX if self.step.fix else "first bad" if self.step.decided else "one of"
        return f"{kind}: {', '.join(short(name) for name in self.step.suspects)}"


class ClonedBuilds(Builds, Protocol):
    """Builds of the commits of one clone of Triton."""

    @property
    def clone(self) -> Path:
        """The user's clone."""


@dataclass
class StagedSearch:
    """A search through all stages.

    Attributes:
        good: the good end, as `tritons.parse_end` has it.
        bad: the bad one.
        builds: of a clone, which make its commits ready; None without a clone.
        vendor: `nvidia` or `amd` if only one is asked about.
        jobs: commits that share a build and are tested at once.
        releases: releases that are tested at once.
        note: gets a line about each stage.
        releases_only: end with the releases.
        index: URL of an index of nightlies; empty if none was given.
        known: names of candidates that an earlier run has tested, in the order of its tests.
        observations: name of a candidate to its observation, of all that was asked for; it grows.
        nightlies: between the two releases that are left, once they were searched.
    """

    good: Triton
    bad: Triton
    builds: ClonedBuilds | None = None
    vendor: str = ""
    jobs: int = 1
    releases: int = 1
    note: Callable[[str], None] = print
    releases_only: bool = False
    index: str = ""
    known: Sequence[str] = ()
    observations: dict[str, Observation] = field(default_factory=dict)
    nightlies: tuple[Triton, ...] = ()

    def run(self) -> Search[Candidate, BisectResult]:
        """Search stage by stage.

        Raises:
            NotReproducedError: an end does not have the verdict that it was given for.
        """
        release = nightly = None
        good, bad = self.good.label, self.bad.label
        if self._of_releases:
            if self._mended:  # the ends may also have been swapped by mistake, and each test takes a while
                self.note(_FOR_THE_FIX.format(good))
            release = yield from self._search_releases()
            good, bad = release.good, release.bad
            if self.releases_only or release.fix:
                return BisectResult(release, notes=self._about(release))
            if self._between(good, bad):
                nightly = yield from self._search_nightlies(good, bad)
                good, bad = (self._commit_of(name) for name in (nightly.good, nightly.bad))
            if self.builds is None:
                notes = self._about(release)
                return BisectResult(release, notes=notes, nightly=nightly, nightlies=self._labels)
        # From here on the ends are commits. A release is one of its branch; see `history.commit_range`.
        commits, span = yield from self._verified(good, bad)
        # The user should know before the first build that `--jobs` may gain nothing for commits.
        if self.jobs > 1:
            trees = {(row.commit.native, row.commit.pin) for row in commits.candidates if row.commit}
            shared = len(trees) < len(commits.candidates)
            those = "commits with the same native files" if shared else "none, since no two share a build"
            self.note(f"--jobs {self.jobs}: commits are built one by one; tested at once: {those}")
        step = _step((yield from first_bad(commits)), commits.candidates, fix=span.fix)
        every = tuple(row.commit for row in commits.candidates if row.commit)
        culprit = next((commit for commit in every if commit.commit == step.suspects[-1]), None)
        return BisectResult(
            release,
            step,
            # A search for a fix goes backwards, and the page shows commits in the order of history.
            every[::-1] if span.fix else every,
            culprit if step.decided else None,
            _about_range(span),
            nightly,
            self._labels,
        )

    def triton(self, name: str) -> Triton:
        """Return the Triton of a release, a nightly or a commit; build that of a commit if need be."""
        if nightly := next((triton for triton in self.nightlies if triton.label == name), None):
            return nightly
        # Every version has a dot, and no commit has one.
        if "." not in name:
            return triton_of(Triton(name, commit=name), self.builds)
        end = next((end for end in (self.good, self.bad) if end.label == name), None)
        return end or Triton(name, version=name)

    def costs(self) -> Iterator[CandidateCost]:
        """Yield each candidate of the stage that is not over."""
        if self._of_releases:
            # This follows `run` without testing: the first stage with candidates left is the one that is not
            # over.
            wheels = self._releases()
            state = wheels.state
            good, bad = (wheels.candidates[index].name for index in (state.good, state.bad))
            only = self.releases_only or self._mended
            if not (state.left or only) and self._between(good, bad):
                wheels = self._wheels(self._with_nightlies(good, bad), self.jobs)
                state = wheels.state
                good, bad = (
                    self._commit_of(wheels.candidates[index].name) for index in (state.good, state.bad)
                )
            if state.left or self.builds is None or only:
                for index, row in enumerate(wheels.candidates):
                    outcome = self.observations.get(row.name)
                    yield CandidateCost(row.name, "", outcome, wheels.costs.of(index))
                return
        else:
            good, bad = self.good.label, self.bad.label
        commits = self._commits(self._range(good, bad))
        for index in commits.state.left:
            row = commits.candidates[index]
            subject = row.commit.subject if row.commit else ""
            yield CandidateCost(row.name, subject, self.observations.get(row.name), commits.costs.of(index))

    @property
    def _of_releases(self) -> bool:
        return not (_is_commit(self.good) or _is_commit(self.bad))

    @property
    def _clone(self) -> Path | None:
        return self.builds.clone if self.builds else None

    @property
    def _mended(self) -> bool:
        """Report whether the good end is the newer release, so that the search is for the fix."""
        return version_key(self.good.label) > version_key(self.bad.label)

    @property
    def _labels(self) -> tuple[str, ...]:
        return tuple(nightly.label for nightly in self.nightlies)

    def _about(self, step: BisectStep) -> tuple[str, ...]:
        if step.fix:
            left = ("nightlies and commits are not searched for the fix",)
            deeper = left if self.index or self.builds else ()
            return (*history.about_fix(step.bad, step.good, self._clone), *deeper)
        return tuple(history.about_step(step.good, step.bad, self._clone))

    def _releases(self) -> BisectRange[Candidate]:
        names = history.releases_between(self.good.label, self.bad.label)
        return self._wheels([self.triton(name) for name in names], self.releases)

    def _wheels(self, tritons: Sequence[Triton], jobs: int) -> BisectRange[Candidate]:
        # No prior: a release is not likelier than another, as all of them have hundreds of commits.
        rows = candidates.of_tritons(tritons)
        costs = WheelCosts(tritons)
        return BisectRange(rows, costs, self.known, jobs=jobs, observations=self.observations)

    def _search_releases(self) -> Search[Candidate, BisectStep]:
        releases = self._releases()
        names = {"good": self.good.label, "bad": self.bad.label}
        # Both ends come first: a search between wrong ends finds a culprit, too.
        if against := _contradiction(*(yield from releases.ends()), names):
            raise _not_reproduced(*against)
        return _step((yield from first_bad(releases)), releases.candidates, fix=self._mended)

    def _between(self, good: str, bad: str) -> tuple[Triton, ...]:
        """Return the nightlies between two releases, in order; none if no index was given."""
        if self.index:
            every = history.read_nightlies(self.index)
            if self._clone:
                # Outcomes could lead into a branch, and all nightlies are built from main: so none are
                # passed.
                span = history.commit_range(good, bad, self._clone, {})
                commits = [row.commit for row in triton_history.read(self._clone, span.first, span.last)]
                self.nightlies = history.by_history(every, commits)
            else:
                self.nightlies = history.by_date(every, good, bad)
            order = "by history" if self._clone else "by the dates in their versions"
            count = f"{len(self.nightlies)} of {len(every)} nightlies"
            self.note(f"{count} are between {good} and {bad}, {order}")
        return self.nightlies

    def _with_nightlies(self, good: str, bad: str) -> tuple[Triton, ...]:
        return self.triton(good), *self.nightlies, self.triton(bad)

    def _search_nightlies(self, good: str, bad: str) -> Search[Candidate, BisectStep]:
        # Nightlies are installed one after the other.
        wheels = self._wheels(self._with_nightlies(good, bad), self.jobs)
        return _step((yield from first_bad(wheels)), wheels.candidates)

    def _commit_of(self, name: str) -> str:
        """Return the commit of a nightly; a release unchanged."""
        return next((nightly.commit for nightly in self.nightlies if nightly.label == name), name)

    def _range(self, good: str, bad: str) -> CommitRange:
        if self.builds is None:
            hints = ["--source CLONE names a clone of Triton"]
            raise SmithError("commits need a clone", hints=hints)
        return history.commit_range(good, bad, self.builds.clone, self.observations)

    def _commits(self, span: CommitRange) -> BisectRange[Candidate]:
        builds = self.builds
        if builds is None:
            raise AssertionError("a range of commits needs a clone")
        commits = triton_history.read(builds.clone, span.first, span.last)
        commits = commits[::-1] if span.fix else commits  # a search goes from good to bad
        return searched(commits, builds, self.vendor, self.known, self.jobs, self.observations)

    def _verified(self, good: str, bad: str) -> Search[Candidate, tuple[BisectRange[Candidate], CommitRange]]:
        """Ask for both ends of the commits, be they ends of the bisect or branch points of releases."""
        # Releases say that the outcome changed between two branches, not that it changed on main: the fault
        # may have been picked into the newer branch, or repaired in the older one.
        span = self._range(good, bad)
        commits = self._commits(span)
        ends = yield from commits.ends()
        if (own := self._range(good, bad)) != span:  # the newer branch point is good, or the older one bad
            span, commits = own, self._commits(own)
            ends = yield from commits.ends()
        names = {
            name: commits.candidates[place].name[:SHORT] + (f" ({what})" if what else "")
            for name, place, what in (("good", 0, span.good), ("bad", -1, span.bad))
        }
        if against := _contradiction(*ends, names):
            # Two releases leave more to suspect than commits of main: picks, and what only the older branch
            # has.
            both = "." in good and "." in bad
            hints = list(history.about_step(good, bad, self._clone)) if both else []
            raise _not_reproduced(*against, hints=hints)
        return commits, span


def searched(
    commits: Sequence[TritonCommit],
    builds: Builds,
    vendor: str = "",
    known: Sequence[str] = (),
    jobs: int = 1,
    observations: dict[str, Observation] | None = None,
) -> BisectRange[Candidate]:
    """Return commits of Triton as a range to search; see `StagedSearch` and `BisectRange`."""
    costs = CommitCosts(
        commits, builds.llvm_state, lambda commit: builds.built(commit) is not None, builds.last
    )
    prior = [likelihood(commit, vendor) for commit in commits]
    # `observations or {}` would be wrong: the caller's dict is empty at first, and has to be the one that
    # grows.
    known_so_far = {} if observations is None else observations
    return BisectRange(candidates.of_commits(commits), costs, known, prior, jobs, known_so_far)


def triton_of(end: Triton, builds: ClonedBuilds | None) -> Triton:
    """Return the Triton of an end, ready to test or a wheel; a commit is built if need be."""
    # Here, not when a bisect begins: whether a build is needed depends on the test, and it may take an hour.
    if not _is_commit(end):
        return end
    if builds is None:
        raise AssertionError("a commit can be an end only with a clone")
    (commit,) = triton_history.read(builds.clone, end.commit, end.commit)
    return builds.make(commit)


def _is_commit(end: Triton) -> bool:
    """Report whether an end has to be built: a nightly has a commit and a wheel."""
    return bool(end.commit) and not end.python


def _step(state: Suspects, rows: Sequence[Candidate], *, fix: bool = False) -> BisectStep:
    # For a fix the candidates run backwards in history: the first good commit is the suspect, not the bad
    # one.
    left = range(state.bad - 1, state.good - 1, -1) if fix else state.culprits
    return BisectStep(
        rows[state.good].name,
        rows[state.bad].name,
        tuple(rows[index].name for index in left),
        tuple(rows[index].name for index in state.contradictions),
        fix,
    )


def _about_range(span: CommitRange) -> tuple[str, ...]:
    if span.fix:
        has = span.good or f"the branch of {span.last[:SHORT]}"
        before = f"{span.first[:SHORT]} ({span.bad})" if span.bad else span.first[:SHORT]
        return (f"only {has} has the fix: {before} is as bad as the bad end",)
    return ("a commit of the release branch, not of main",) if span.picked else ()


def _contradiction(
    good: Observation, bad: Observation, names: dict[str, str]
) -> tuple[str, Observation] | None:
    """Return why the ends rule out a search, and the observation that does so; None if nothing does."""
    for what, name, observation, expected in (
        ("reproduces at the good end", "good", good, Verdict.GOOD),
        ("does not reproduce at the bad end", "bad", bad, Verdict.BAD),
    ):
        if observation.verdict is Verdict.SKIP:
            return f"the {name} end, {names[name]}, cannot be tested", observation
        if observation.verdict is not expected:
            return f"{what}, {names[name]}", observation
    return None


def _not_reproduced(
    what: str, observation: Observation, hints: list[str] | None = None
) -> NotReproducedError:
    return NotReproducedError(
        what, why=observation.evidence, hints=hints or ["choose another end, or another --when"]
    )


def short(triton: str) -> str:
    """Return a release unchanged, and a commit shortened to the digits that are shown."""
    return triton if "." in triton else triton[:SHORT]
