"""The history between two ends: releases, the commits of main or picked between them, and a fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.versions import version_key
from tritonsmith.facts import eras, git_history, triton_history
from tritonsmith.lab.model import Observation, Verdict


def releases_between(good: str, bad: str) -> tuple[str, ...]:
    """Releases on the package index from the good end to the bad one, both included, in this order.

    Raises:
        UsageError: the good end is the same as the bad one.
    """
    first, last = sorted((version_key(good), version_key(bad)))
    if first == last:
        raise UsageError(f"--good and --bad are the same release, {good}")
    every = {wheel for row in eras.releases() for wheel in row.wheels} | {good, bad}
    between = sorted((version for version in every if first <= version_key(version) <= last), key=version_key)
    return tuple(between if version_key(good) == first else reversed(between))


@dataclass(frozen=True)
class CommitRange:
    """A part of history, from one commit to a later one.

    Attributes:
        first: 40 hex digits.
        last: 40 hex digits.
        good: what `first` is to the good end, in words; empty if it is that end.
        bad: what `last` is to the bad end.
        fix: whether it is the other way round: `first` is bad and `last` good, on the branch of the good end.
    """

    first: str
    last: str
    good: str = ""
    bad: str = ""
    fix: bool = False

    @property
    def picked(self) -> bool:
        """Report whether the range ends with the bad release, on the branch of that release."""
        return not self.fix and self.bad.startswith("release")


def between(good: str, bad: str, clone: Path, outcomes: Mapping[str, Observation]) -> CommitRange:
    """The range to search, by what is known.

    A release is cut from main at its branch point. So main is searched first, from one branch point to the
    other; if the newer one turns out to be good, what was picked into the newer branch; if the older one is
    bad, the fix that only the good end has. Two releases of one branch have only picks between them.

    Args:
        good: a release or a commit.
        bad: a later one.
        clone: Triton's history.
        outcomes: by commit.

    Raises:
        FactError: the clone lacks a commit.
    """
    one_line = "." in good and "." in bad and git_history.release_line(good) == git_history.release_line(bad)
    if one_line:
        return _from_base(clone, _own(good, clone), _own(bad, clone), f"release {good}", f"release {bad}")
    # Each release has a branch of its own, so what two of them have in common is main, between the points
    # where they were cut.
    first, good_is = _on_main(good, clone)
    last, bad_is = _on_main(bad, clone)
    main = _from_base(clone, first, last, good_is, bad_is)
    outcome = outcomes.get(main.last)
    not_on_main = main.first == main.last or (outcome is not None and outcome.verdict is Verdict.GOOD)
    if "." in bad and not_on_main and (own := commit_of(bad, clone)) and own != main.last:
        return _from_base(clone, main.last, own, bad_is, f"release {bad}")
    before = outcomes.get(main.first)
    if before is not None and before.verdict is Verdict.BAD:
        return _fix(good, clone, main)
    return main


def _fix(good: str, clone: Path, main: CommitRange) -> CommitRange:
    """From the bad start of a range to the good end, whose branch has a fix; the range itself if not."""
    own = commit_of(good, clone) if "." in good else triton_history.branch_point(clone, good, good)
    if not own or own == main.first:
        return main
    return CommitRange(main.first, own, f"release {good}" if "." in good else "", main.good, fix=True)


def _on_main(name: str, clone: Path) -> tuple[str, str]:
    if "." in name:
        return branch_point(name, clone), f"{name} branched there"
    return name, ""


def _own(release: str, clone: Path) -> str:
    if commit := commit_of(release, clone):
        return commit
    hints = ["git fetch --all --tags"]
    what = f"the clone has neither a tag nor a branch of release {release}"
    raise FactError(what, where=clone, hints=hints)


def _from_base(clone: Path, first: str, last: str, good: str, bad: str) -> CommitRange:
    """The range from a commit, or from where its history and that of a later one part."""
    base = triton_history.branch_point(clone, first, last)
    if not base:
        raise FactError(f"{first} and {last} have no common history", where=clone)
    if not base.startswith(first):
        good = f"where {good or first[:12]} and the bad end diverge"
    return CommitRange(base, triton_history.branch_point(clone, last, last), good, bad)


def branch_point(release: str, clone: Path | None) -> str:
    """The last commit of main in a release: of a clone that has the branch, or else of the table."""
    if clone:
        for branch in (*git_history.branch_names(release), f"v{release}"):
            for main in git_history.MAINS:
                try:
                    if commit := triton_history.branch_point(clone, branch, main):
                        return commit
                except FactError:  # this clone has no such name, as one of a fork or of a single branch
                    continue
    return eras.release(release).branch_point


def commit_of(release: str, clone: Path) -> str:
    """The commit of a release: its tag, or the end of its branch if it is the last one; empty if unknown."""
    with git_history.opened(clone) as repository:
        return git_history.release_commit(release, repository)


def about_step(good: str, bad: str, clone: Path | None) -> Iterator[str]:
    """Describe the way between two releases: commits of main between the branch points, and picks."""
    before, after = eras.release(good), eras.release(bad)
    old, new = before.version, after.version
    if old == new:
        yield f"{good} and {bad} are on release/{old}.x: the culprit is a commit cherry-picked into it"
        return
    points = [branch_point(version, clone)[:12] for version in (good, bad)]
    if points[0] == points[1]:
        yield f"both are cut from {points[0]}: a commit of release/{new}.x, or a fix that {old}.x has"
        return
    yield f"main between the branch points: {points[0]}..{points[1]} (release/{old}.x, release/{new}.x)"
    yield f"or commits cherry-picked into release/{new}.x, or a fix that only {old}.x has"
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
    old, new = eras.release(bad).version, eras.release(good).version
    points = [branch_point(version, clone)[:12] for version in (bad, good)]
    if points[0] == points[1]:
        yield f"both are cut from {points[0]}: a commit of release/{new}.x"
        return
    yield f"main between the branch points: {points[0]}..{points[1]} (release/{old}.x, release/{new}.x)"
    yield f"or a commit cherry-picked into release/{new}.x"
