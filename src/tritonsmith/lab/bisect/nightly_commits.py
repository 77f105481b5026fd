"""Which nightlies have a commit of Triton: by their names alone, or by the history of a clone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tritonsmith.core.errors import FactError
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import git, git_history
from tritonsmith.lab.bisect.nightlies import NightlyWheel

_SHORT = 12


class NightlyStanding(StrEnum):
    """The relation of a nightly to a commit."""

    BUILT_FROM = "built from it"
    HAS = "has it"
    LACKS = "lacks it"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class NightlyCommit:
    """A nightly, and what it is to a commit.

    Attributes:
        wheel: of the index.
        standing: what it is.
        why: the reason where that is unknown.
        time: of its commit in seconds since 1970, by the clone; 0 if unknown.
    """

    wheel: NightlyWheel
    standing: NightlyStanding
    why: str = ""
    time: int = 0


def of(wheels: Sequence[NightlyWheel], commit: str, clone: Path | None) -> tuple[NightlyCommit, ...]:
    """All nightlies, oldest first: by the clone's history, or else by the dates in their versions.

    Args:
        wheels: of an index.
        commit: hash, of which some digits do; with a clone a tag or a branch, too.
        clone: whose history tells which commits a nightly has; None for names only.

    Raises:
        FactError: the clone has no such commit.
    """
    if clone is None:
        found = [_by_name(one, commit) for one in wheels]
    else:
        with git_history.opened(clone) as repository:
            whole = git_history.resolve(repository, commit)
            if not whole:
                raise FactError(f"no commit {commit}", where=clone, hints=["git fetch --all --tags"])
            commits = [git_history.resolve(repository, one.commit) if one.commit else "" for one in wheels]
        pairs = zip(wheels, commits, strict=True)
        found = [_by_history(one, built, whole, clone) for one, built in pairs]
    return tuple(sorted(found, key=lambda one: (one.time, one.wheel.version.dev or 0, one.wheel.label)))


def first(found: Sequence[NightlyCommit]) -> NightlyCommit | None:
    """The oldest that has it; None if that cannot be told."""
    return next(
        (one for one in found if one.standing in (NightlyStanding.BUILT_FROM, NightlyStanding.HAS)), None
    )


def table(found: Sequence[NightlyCommit]) -> Grid:
    """A line for each."""
    rows = [(one.wheel.label, one.wheel.commit[:_SHORT] or "?", one.standing, one.why) for one in found]
    return tables.plain("nightlies, oldest first", ["nightly", "commit", "standing", "why"], rows)


def _by_name(wheel: NightlyWheel, commit: str) -> NightlyCommit:
    if not wheel.commit:
        return NightlyCommit(wheel, NightlyStanding.UNKNOWN, "its file name contains no commit")
    if wheel.commit.startswith(commit) or commit.startswith(wheel.commit):
        return NightlyCommit(wheel, NightlyStanding.BUILT_FROM)
    return NightlyCommit(wheel, NightlyStanding.UNKNOWN, "only a clone has its commit")


def _by_history(wheel: NightlyWheel, built: str, commit: str, clone: Path) -> NightlyCommit:
    if not built:
        return NightlyCommit(
            wheel, NightlyStanding.UNKNOWN, "the clone lacks its commit" if wheel.commit else "no commit"
        )
    said = git.look(clone, "show", "--no-patch", "--format=%ct", built)
    time = int(said.out) if said and said.code == 0 else 0
    if built == commit:
        return NightlyCommit(wheel, NightlyStanding.BUILT_FROM, time=time)
    answer = git.look(clone, "merge-base", "--is-ancestor", commit, built)
    if answer is None or answer.code > 1:
        return NightlyCommit(wheel, NightlyStanding.UNKNOWN, "git cannot tell", time)
    return NightlyCommit(wheel, NightlyStanding.LACKS if answer.code else NightlyStanding.HAS, time=time)
