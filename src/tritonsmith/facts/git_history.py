"""Read a clone's history without changing it: commits, their files, and what their messages refer to."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.facts import checkout, git

if TYPE_CHECKING:
    from git import Repo


_LINK = 0o120000  # git's mode of a symbolic link
_NO_SUCH_NAME = 1  # exit code of `git rev-parse --verify --quiet`; anything else is worse
_LINKS = 5  # a chain longer than that is a circle


@contextmanager
def opened(path: Path) -> Iterator[Repo]:
    """Yield a repository, with a work tree or bare, for the body of a `with`.

    Raises:
        FactError: not a git repository, or no git.
    """
    try:
        from git import Repo  # noqa: PLC0415 - 0.1 s, and not every task needs it
        from git.exc import GitError  # noqa: PLC0415
    # GitPython raises ImportError on import where no git is on PATH.
    except ImportError as error:
        raise FactError("no git on PATH", why=str(error).partition("\n")[0]) from error
    try:
        repository = Repo(path)
    except (GitError, OSError, ValueError) as error:
        raise FactError(
            "this folder is not a git repository",
            where=path,
            why=None if path.exists() else "no such folder",
            hints=["give the top folder of a clone"],
        ) from error
    with repository:
        # Before anything is read: even `log` may start programs that the repository's settings name.
        repository.git.update_environment(**git.environ(path))
        try:
            yield repository
        except GitError as error:
            raise FactError("git cannot read this repository", where=path, why=str(error).strip()) from error


def resolve(repository: Repo, name: str) -> str:
    """Return the commit of a tag, a branch (`origin`'s too) or a hash; empty if there is none."""
    from git.exc import GitCommandError  # noqa: PLC0415

    if name.startswith("-"):  # which git would take for an option
        return ""
    # A fresh clone has its branches as origin's only, but for the main one.
    for candidate in (name, f"refs/remotes/origin/{name}"):
        try:
            return str(repository.git.rev_parse("--verify", "--quiet", f"{candidate}^{{commit}}"))
        except GitCommandError as error:
            if error.status != _NO_SUCH_NAME:
                raise
    return ""


def is_shallow(repository: Repo) -> bool:
    """Return whether history is cut off somewhere."""
    return bool(repository.git.rev_parse("--is-shallow-repository") == "true")


def text_at(repository: Repo, commit: str, path: str) -> str | None:
    """Return the text of a file at a commit, links followed; None if there is none.

    In a partial clone git fetches this one file's content.

    Raises:
        FactError: the content is missing and cannot be fetched.
    """
    for _ in range(_LINKS):
        try:
            # By the tree and not by `git show`: the type and the mode tell a link, whose text
            # is its target, from a file.
            entry = repository.commit(commit).tree / path
            text = (
                entry.data_stream.read().decode("utf-8", errors="replace") if entry.type == "blob" else None
            )
        except KeyError:
            return None
        except (ValueError, OSError) as error:  # an object that neither the clone nor its remote gives
            raise FactError(
                "the content of this file is missing in the clone, and could not be fetched",
                where=f"{path} at {commit[:12]}",
                why=str(error).strip(),
                hints=["check the network: the clone may be a partial one", "or use a full clone"],
            ) from error
        if text is None or entry.mode != _LINK:
            return text
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
    return None


def llvm_at(repository: Repo, commit: str) -> str:
    """Return the LLVM that Triton's pin file names at a commit; empty if unknown."""
    # The newest place first, as in `checkout`.
    if info := text_at(repository, commit, "cmake/llvm-info.json"):
        try:
            return str(untrusted.json_of(info)["llvm_hash"])
        except (ValueError, KeyError, TypeError):
            return ""
    if named := text_at(repository, commit, "cmake/llvm-hash.txt"):
        return named.strip()
    setup = text_at(repository, commit, "python/setup.py") or ""
    match = re.search(r"llvm-[\d.]+-([0-9a-f]{12,40})\b", setup)
    return match[1] if match else ""


MAINS = ("upstream/main", "origin/main", "main")


def release_line(release: str) -> str:
    """Return the release line, `3.7` of `3.7.1`."""
    return ".".join(release.split(".")[:2])


def branch_names(release: str) -> tuple[str, ...]:
    """Return the names that clones give the branch of a release or of its line."""
    name = f"release/{release_line(release)}.x"
    return f"upstream/{name}", f"origin/{name}", name


def first_branch(repository: Repo, *candidates: str) -> tuple[str, str]:
    """Return the first name that the clone has, and its commit; both empty if it has none."""
    resolved = ((name, resolve(repository, name)) for name in candidates)
    return next((pair for pair in resolved if pair[1]), ("", ""))


def release_commit(release: str, repository: Repo) -> str:
    """Return the commit of a release: its tag, or its branch's end for the last one; empty if unknown."""
    wheels = next((row.wheels for row in checkout.triton_releases() if release in row.wheels), ())
    # Only the last release of a line may be the end of its branch; an older one
    # without a tag here is unknown.
    branches = branch_names(release) if not wheels or release == wheels[-1] else ()
    return first_branch(repository, f"refs/tags/v{release}", *branches)[1]


def refuse_shallow(repository: Repo, clone: Path) -> None:
    """Raise an error if history is cut off somewhere.

    Raises:
        FactError: history is cut off.
    """
    if is_shallow(repository):
        raise FactError(
            "this clone is shallow, so its history is incomplete",
            where=clone,
            hints=["fetch the rest: git fetch --unshallow", "or use another clone: --source PATH"],
        )


_OWN = re.compile(r"\(#(\d+)\)\s*$")
_NUMBER = re.compile(r"#(\d+)")
_REVERT = re.compile(r"\brevert", re.IGNORECASE)
_AGAIN = re.compile(r"\bre-?(?:land|apply|introduc)", re.IGNORECASE)
_PICKED = re.compile(r"cherry.picked from commit ([0-9a-f]{7,40})")
_REVERTED = re.compile(r"\breverts\s+(?:commit\s+([0-9a-f]{7,40})|(?:[\w.-]+/[\w.-]+)?#(\d+))", re.IGNORECASE)

# For `git log --grep`: the bodies in which `picked_commits` or `reverted_commits` may find anything.
REFERENCES = ("cherry.picked from commit", "[Rr]everts ")


def own_number(subject: str) -> str:
    """Return the pull request that a subject ends with; empty if there is none."""
    # GitHub appends it when it squashes a pull request; numbers elsewhere are those of others.
    match = _OWN.search(subject)
    return match[1] if match else ""


def message_title(subject: str) -> str:
    """Return a subject without the pull request that it ends with."""
    return _OWN.sub("", subject).strip()


def pull_numbers(subject: str) -> tuple[str, ...]:
    """Return every pull request that a subject names."""
    return tuple(_NUMBER.findall(subject))


def reverts(subject: str) -> int:
    """Return how often a subject says revert: twice for the revert of a revert."""
    # Two commits of one pull request are the same change only if they say it equally often.
    return len(_REVERT.findall(subject))


def lands_again(subject: str) -> bool:
    """Return whether a subject says that it lands a change once more."""
    return _AGAIN.search(subject) is not None


def picked_commits(body: str) -> tuple[str, ...]:
    """Return the commits that it was picked from, as `git cherry-pick -x` writes them."""
    return tuple(_PICKED.findall(body))


def reverted_commits(body: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the commits, and the pull requests, that a body says it reverts."""
    references = _REVERTED.findall(body)
    return frozenset(commit for commit, _ in references if commit), frozenset(
        number for _, number in references if number
    )
