"""Find the files of a checkout that differ from the branch it will be merged into, or are uncommitted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core.errors import FactError
from tritonsmith.facts import git_reader

_BASES = ("upstream/main", "origin/HEAD", "origin/main", "origin/master", "main", "master")


@dataclass(frozen=True)
class BranchChanges:
    """The differences from that branch.

    Attributes:
        base: the branch, or `HEAD` where there is none and only uncommitted changes are known.
        files: absolute paths of files that still exist, sorted.
        deleted: absolute paths of deleted files.
    """

    base: str
    files: tuple[Path, ...]
    deleted: tuple[Path, ...] = ()


def read(root: Path, base: str = "") -> BranchChanges:
    """Compare the work tree with the commit at which its branch left `base`.

    Args:
        root: the checkout.
        base: branch or commit; empty to search for upstream's main.

    Raises:
        FactError: git knows no such branch, or does not respond.
    """
    for name in (base,) if base else (*_BASES, "HEAD"):
        commit = _said(root, "merge-base", "HEAD", "--", name) if not name.startswith("-") else None
        if commit:
            break
    else:
        raise FactError(
            f"git finds nothing to compare with: {base or 'no branch, and no commit'}",
            where=root,
            hints=["name the branch that this one will be merged into: --base upstream/main"],
        )
    safe = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
    options = (*safe, "--name-only", "--relative", "--no-renames", "-z")
    changed = _said(root, "diff", *options, "--diff-filter=d", commit, "--", files=True)
    gone = _said(root, "diff", *options, "--diff-filter=D", commit, "--", files=True)
    new = _said(root, "ls-files", "--others", "--exclude-standard", "-z")
    if changed is None or new is None or gone is None:
        raise FactError("git does not tell what changed", where=root)
    found, deleted = _paths(root, changed, new), _paths(root, gone)
    return BranchChanges(name, found, tuple(path for path in deleted if path not in found))


def _paths(root: Path, *lists: str) -> tuple[Path, ...]:
    return tuple(sorted({root / name for text in lists for name in text.split("\0") if name}))


def _said(root: Path, *arguments: str, files: bool = False) -> str | None:
    answer = git_reader.look(root, *arguments, files=files)
    return answer.out.strip() if answer and answer.code == 0 else None
