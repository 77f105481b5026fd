"""Return a clone's names of Triton's main and its release branches, and the commits of both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tritonsmith.core.errors import FactError
from tritonsmith.facts import eras, git_history

if TYPE_CHECKING:
    from git import Repo

MAINS = ("upstream/main", "origin/main", "main")


def line(release: str) -> str:
    """Return the release line, `3.7` of `3.7.1`."""
    return ".".join(release.split(".")[:2])


def names(release: str) -> tuple[str, ...]:
    """Return the names that clones give the branch of a release or of its line."""
    name = f"release/{line(release)}.x"
    return f"upstream/{name}", f"origin/{name}", name


def first(repository: Repo, *candidates: str) -> tuple[str, str]:
    """Return the first name that the clone has, and its commit; both empty if it has none."""
    resolved = ((name, git_history.resolve(repository, name)) for name in candidates)
    return next((pair for pair in resolved if pair[1]), ("", ""))


def commit_of(release: str, repository: Repo) -> str:
    """Return the commit of a release: its tag, or its branch's end for the last one; empty if unknown."""
    wheels = next((row.wheels for row in eras.releases() if release in row.wheels), ())
    branches = names(release) if not wheels or release == wheels[-1] else ()
    return first(repository, f"refs/tags/v{release}", *branches)[1]


def refuse_shallow(repository: Repo, clone: Path) -> None:
    """Raise an error if history is cut off somewhere.

    Raises:
        FactError: history is cut off.
    """
    if git_history.is_shallow(repository):
        raise FactError(
            "this clone is shallow, so its history is incomplete",
            where=clone,
            hints=["fetch the rest: git fetch --unshallow", "or use another clone: --source PATH"],
        )
