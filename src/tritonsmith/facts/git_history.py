"""Read a clone's history without changing it: commits by name, files at a commit, and LLVM's pin there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.facts import git_reader

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
    except ImportError as error:  # what GitPython raises where no git on PATH
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
        repository.git.update_environment(**git_reader.environ(path))
        try:
            yield repository
        except GitError as error:
            raise FactError("git cannot read this repository", where=path, why=str(error).strip()) from error


def resolve(repository: Repo, name: str) -> str:
    """Return the commit of a tag, a branch (`origin`'s too) or a hash; empty if there is none."""
    from git.exc import GitCommandError  # noqa: PLC0415

    if name.startswith("-"):  # which git would take for an option
        return ""
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
