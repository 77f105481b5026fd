"""List the commits around a checkout that moved its LLVM pin, and the files that each of them changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.facts import git_reader

_PIN_FILES = ("cmake/llvm-hash.txt", "cmake/llvm-info.json")
_HEAD = "bump "  # before each commit
_FORMAT = f"--format={_HEAD}%H %cs"
_SIDES = 6  # commits to look at on each side of the checkout


@dataclass(frozen=True)
class Bump:
    """A commit that changed the pin, and adapted the sources to that LLVM.

    Attributes:
        commit: 40 hex digits.
        date: ISO 8601.
        files: the files that it changed, as git names them; no added or removed ones.
        distance: 0 for the bump to the checkout's own pin, and for the next one; 1 for those beyond.
        after: whether HEAD lacks it still.
    """

    commit: str
    date: str
    files: tuple[str, ...]
    distance: int
    after: bool = False


def around(root: Path) -> tuple[Bump, ...]:
    """Return the bumps before and after HEAD, the nearest first; later ones as far as a branch here has them.

    A root of the history is none, nor is the end of a shallow clone: there everything is new.
    """
    before = _bumps(root, f"-n{_SIDES}", "HEAD")
    holding = ("for-each-ref", "--contains=HEAD", "--format=%(refname)")
    branches = _said(root, *holding, "refs/remotes", "refs/heads", "refs/tags")
    after: tuple[Bump, ...] = ()
    for branch in _likely_main(branches.splitlines()):
        after = _bumps(root, "--reverse", "--ancestry-path", f"HEAD..{branch}")[:_SIDES]
        if after:
            break
    later = (replace(bump, after=True) for bump in after)
    return tuple(sorted((*before, *later), key=lambda bump: bump.distance))


def _likely_main(branches: list[str]) -> list[str]:
    """Return branches that contain HEAD, upstream's first; few, because each costs a walk through history."""
    return sorted(branches, key=lambda name: (not name.endswith(("/HEAD", "/main", "/master")), name))[:3]


def _bumps(root: Path, *arguments: str) -> tuple[Bump, ...]:
    modified = ("--diff-filter=M", "--name-only", "--full-diff", "--no-renames")
    options = ("--no-show-signature", *modified, "-z", _FORMAT, *arguments)
    told = _said(root, "log", *options, "--", *_PIN_FILES)
    found: list[Bump] = []
    for word in (one.strip("\n") for one in told.split("\0")):
        if word.startswith(_HEAD):
            commit, _, date = word.removeprefix(_HEAD).partition(" ")
            found.append(Bump(commit, date, (), len(found)))
        elif word and found:
            found[-1] = replace(found[-1], files=(*found[-1].files, word))
    return tuple(found)


def _said(root: Path, *arguments: str) -> str:
    """Return the output of git; empty if there is no repository, or git fails."""
    answer = git_reader.look(root, *arguments) if (root / ".git").exists() else None
    return "" if answer is None or answer.code else answer.out
