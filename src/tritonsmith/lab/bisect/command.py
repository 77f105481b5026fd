"""`bisect`: verify both ends, search the releases, then the commits between two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import SmithError
from tritonsmith.core.versions import version_key
from tritonsmith.facts import triton_history
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect import commit_range, ends, nightlies, releases
from tritonsmith.lab.bisect.build import CommitBuilds
from tritonsmith.lab.bisect.commit_range import CommitRange
from tritonsmith.lab.bisect.commits import CommitSearch
from tritonsmith.lab.bisect.cost import ExpectedCost
from tritonsmith.lab.bisect.ends import BisectEnd
from tritonsmith.lab.bisect.nightlies import NightlyWheel
from tritonsmith.lab.bisect.predicate.protocol import Predicate
from tritonsmith.lab.bisect.releases import ReleaseSearch
from tritonsmith.lab.bisect.search import Suspects
from tritonsmith.lab.bisect.session import FIX, BisectSession
from tritonsmith.lab.model import Observation

SHORT = 12  # digits of a commit


class NotReproducedError(SmithError):
    """An end of the bisect is not what it was said to be."""

    exit_code = 4


@dataclass(frozen=True)
class Candidate:
    """A Triton that may be tested next, for `--explain`.

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
    """Two neighbours between which it changed; with skips, several suspects between them.

    Attributes:
        good: the last good Triton; of a fix the first good one.
        bad: the first bad one; of a fix the last bad one.
        suspects: those of which one is the culprit or the fix; the last one is known to be bad, or good.
        outcomes: of all that was tested.
        later_good: Tritons after `bad` that are good; of a fix those before it.
        fix: whether the good end has a fix that the bad end lacks: both have the cause.
    """

    good: str
    bad: str
    suspects: tuple[str, ...]
    outcomes: Mapping[str, Observation]
    later_good: tuple[str, ...] = ()
    fix: bool = False

    @property
    def decided(self) -> bool:
        """Report whether a single suspect is left."""
        return len(self.suspects) == 1


@dataclass(frozen=True)
class BisectAnswer:
    """The result.

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
        """The narrowest one."""
        found = self.commit or self.nightly or self.release
        if found is None:  # neither stage ran: impossible, and a bug
            raise AssertionError("a bisect without a step")
        return found


@dataclass
class TritonBisect:
    """A bisect that goes on from what its session has.

    Attributes:
        session: outcomes so far.
        predicate: what decides.
        good: the good end.
        bad: the bad one.
        builds: makes commits ready; None without a clone.
        vendor: `nvidia` or `amd` if only one is asked about.
        jobs: releases tested at once, and commits that share a build.
        tell: gets a line for each outcome.
    """

    session: BisectSession
    predicate: Predicate
    good: BisectEnd
    bad: BisectEnd
    builds: CommitBuilds | None = None
    vendor: str = ""
    jobs: int = 1
    tell: Callable[[str], None] = field(default=print)
    _nightlies: tuple[NightlyWheel, ...] = ()

    def run(self) -> BisectAnswer:
        """Search, and note the answer in the session.

        Raises:
            NotReproducedError: an end is not what it was said to be.
            SmithError: a test has neither an answer nor a reason to skip; the session is kept.
        """
        try:
            answer = self._run()
        except NotReproducedError as error:
            self.session = replace(self.session, answer=error.what).saved()
            raise
        said = FIX if answer.step.fix else "first bad" if answer.step.decided else "one of"
        text = f"{said}: {', '.join(_short(one) for one in answer.step.suspects)}"
        self.session = replace(self.session, answer=text).saved()
        return answer

    def triton(self, name: str) -> Triton:
        """The Triton of a release or a commit."""
        if nightly := next((one for one in self._nightlies if one.label == name), None):
            return nightly.spec
        if "." not in name:
            return triton_of(BisectEnd(name, commit=name), self.builds)
        given = next((end.spec for end in (self.good, self.bad) if end.release == name), None)
        return given or Triton(name, version=name)

    def costs(self) -> Iterator[Candidate]:
        """Each candidate of the stage that is not over."""
        outcomes = self.session.outcomes
        if self.good.release and self.bad.release:
            search = self._releases()
            state = search.state
            good, bad = (search.tritons[index].label for index in (state.good, state.bad))
            only = self.session.question.releases_only or self._mended
            if not (state.left or only) and self._between(good, bad):
                search = self._nightly_search(good, bad)
                state = search.state
                good, bad = (self._commit_of(search.tritons[one].label) for one in (state.good, state.bad))
            if state.left or self.builds is None or only:
                for index, triton in enumerate(search.tritons):
                    yield Candidate(triton.label, "", outcomes.get(triton.label), search.cost(index))
                return
        else:
            good, bad = self.good.name, self.bad.name
        commits = self._commits(self._range(good, bad))
        for index, cost in commits.table():
            about = commits.commits[index]
            yield Candidate(about.commit, about.subject, outcomes.get(about.commit), cost)

    @property
    def _clone(self) -> Path | None:
        return self.builds.clone if self.builds else None

    def _run(self) -> BisectAnswer:
        release = nightly = None
        good, bad = self.good.name, self.bad.name
        if self.good.release and self.bad.release:
            release = self._search_releases()
            good, bad = release.good, release.bad
            if self.session.question.releases_only or release.fix:
                return BisectAnswer(release, notes=self._about(release))
            if self._between(good, bad):
                nightly = self._search_nightlies(good, bad)
                good, bad = (self._commit_of(name) for name in (nightly.good, nightly.bad))
            if self.builds is None:
                return BisectAnswer(
                    release, notes=self._about(release), nightly=nightly, nightlies=self._labels
                )
        search, span = self._verified(good, bad)
        if self.jobs > 1:
            those = (
                "commits with the same native files"
                if search.shared_trees
                else "none, since no two share a build"
            )
            self.tell(f"--jobs {self.jobs}: commits are built one by one; tested at once: {those}")
        step = self._step(search.run(), [one.commit for one in search.commits], fix=span.fix)
        culprit = next((one for one in search.commits if one.commit == step.suspects[-1]), None)
        notes = ("a commit of the release branch, not of main",) if span.picked else ()
        if span.fix:
            has = span.good or f"the branch of {span.last[:SHORT]}"
            before = f"{span.first[:SHORT]} ({span.bad})" if span.bad else span.first[:SHORT]
            notes = (f"only {has} has the fix: {before} is as bad as the bad end",)
        return BisectAnswer(
            release,
            step,
            tuple(reversed(search.commits) if span.fix else search.commits),
            culprit if step.decided else None,
            notes,
            nightly,
            self._labels,
        )

    def _about(self, step: BisectStep) -> tuple[str, ...]:
        if step.fix:
            deeper = self.session.question.nightlies or self.builds
            left = ("nightlies and commits are not searched for the fix",) if deeper else ()
            return (*releases.about_fix(step.bad, step.good, self._clone), *left)
        return tuple(releases.about_step(step.good, step.bad, self._clone))

    def _releases(self) -> ReleaseSearch:
        names = ends.releases_between(self.good.release, self.bad.release)
        tritons = tuple(self.triton(name) for name in names)
        return ReleaseSearch(
            tritons, self.predicate, dict(self.session.outcomes), self._record, jobs=self.jobs
        )

    def _between(self, good: str, bad: str) -> tuple[NightlyWheel, ...]:
        """The nightlies between two releases, in order; none if no index was given."""
        if url := self.session.question.nightlies:
            found = nightlies.read(url)
            if self._clone:
                span = commit_range.between(good, bad, self._clone, {})
                commits = [one.commit for one in triton_history.read(self._clone, span.first, span.last)]
                self._nightlies = nightlies.by_history(found, commits)
            else:
                self._nightlies = nightlies.by_date(found, good, bad)
            order = "by history" if self._clone else "by the dates in their versions"
            self.tell(
                f"{len(self._nightlies)} of {len(found)} nightlies are between {good} and {bad}, {order}"
            )
        return self._nightlies

    def _nightly_search(self, good: str, bad: str) -> ReleaseSearch:
        tritons = (self.triton(good), *(one.spec for one in self._nightlies), self.triton(bad))
        outcomes, install = dict(self.session.outcomes), nightlies.installer(self._nightlies)
        return ReleaseSearch(tritons, self.predicate, outcomes, self._record, self.jobs, install)

    def _search_nightlies(self, good: str, bad: str) -> BisectStep:
        search = self._nightly_search(good, bad)
        return self._step(search.run(), [one.label for one in search.tritons])

    def _commit_of(self, name: str) -> str:
        """The commit of a nightly; a release as it is."""
        return next((one.commit for one in self._nightlies if one.label == name), name)

    @property
    def _labels(self) -> tuple[str, ...]:
        return tuple(one.label for one in self._nightlies)

    def _search_releases(self) -> BisectStep:
        search = self._releases()
        names = {"good": self.good.release, "bad": self.bad.release}
        if against := releases.verdict_of_ends(*search.ends(), names):
            raise _not_reproduced(*against)
        return self._step(search.run(), [one.label for one in search.tritons], fix=self._mended)

    @property
    def _mended(self) -> bool:
        """Report whether the good end is the newer release, so that the search is for the fix."""
        return version_key(self.good.release) > version_key(self.bad.release)

    def _range(self, good: str, bad: str) -> CommitRange:
        if self.builds is None:
            hints = ["--source CLONE names a clone of Triton"]
            raise SmithError("commits need a clone", hints=hints)
        return commit_range.between(good, bad, self.builds.clone, self.session.outcomes)

    def _commits(self, span: CommitRange) -> CommitSearch:
        builds = self.builds
        if builds is None:
            raise AssertionError("a range of commits needs a clone")
        commits = triton_history.read(builds.clone, span.first, span.last)
        return CommitSearch(
            commits[::-1] if span.fix else commits,
            builds,
            self.predicate.outcomes,
            self.vendor,
            self.session.outcomes,
            lambda commit, outcome: self._record(commit.commit, outcome),
            self.jobs,
        )

    def _verified(self, good: str, bad: str) -> tuple[CommitSearch, CommitRange]:
        """A search whose ends are tested, be they ends of the bisect or branch points of releases."""
        span = self._range(good, bad)
        search = self._commits(span)
        self._test_ends(search)
        if (own := self._range(good, bad)) != span:  # the newer branch point is good, or the older one bad
            span, search = own, self._commits(own)
            self._test_ends(search)
        one, other = search.commits[0], search.commits[-1]
        names = {
            name: end.commit[:SHORT] + (f" ({what})" if what else "")
            for name, end, what in (("good", one, span.good), ("bad", other, span.bad))
        }
        outcomes = search.outcomes
        if against := releases.verdict_of_ends(outcomes[0], outcomes[len(search.commits) - 1], names):
            both = "." in good and "." in bad
            hints = list(releases.about_step(good, bad, self._clone)) if both else []
            raise _not_reproduced(*against, hints=hints)
        return search, span

    def _test_ends(self, search: CommitSearch) -> None:
        todo = [index for index in (0, len(search.commits) - 1) if index not in search.outcomes]
        for group in [todo] if self.jobs > 1 else [[index] for index in todo]:
            search.test(*group)

    def _step(self, state: Suspects, names: list[str], *, fix: bool = False) -> BisectStep:
        left = range(state.bad - 1, state.good - 1, -1) if fix else state.culprits
        return BisectStep(
            names[state.good],
            names[state.bad],
            tuple(names[index] for index in left),
            self.session.outcomes,
            tuple(names[index] for index in state.contradictions),
            fix,
        )

    def _record(self, triton: str, outcome: Observation) -> None:
        self.session = self.session.having(triton, outcome)
        seen = ", ".join(filter(None, (outcome.figures, outcome.why)))
        self.tell(f"{_short(triton)}: {outcome.verdict}: {seen} ({outcome.seconds:.0f} s)")


def triton_of(end: BisectEnd, builds: CommitBuilds | None) -> Triton:
    """The Triton of an end; that of a commit is built if need be."""
    if end.spec:
        return end.spec
    if builds is None:
        raise AssertionError("a commit can be an end only with a clone")
    (commit,) = triton_history.read(builds.clone, end.commit, end.commit)
    return builds.make(commit)


def _not_reproduced(what: str, outcome: Observation, hints: list[str] | None = None) -> NotReproducedError:
    why = ", ".join(filter(None, (outcome.figures, outcome.why)))
    return NotReproducedError(what, why=why, hints=hints or ["choose another end, or another --when"])


def _short(triton: str) -> str:
    return triton if "." in triton else triton[:SHORT]
