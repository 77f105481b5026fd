"""Files of a checkout that differ from the branch that it will be merged into, uncommitted ones included."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonsmith.errors import FactError
from tritonsmith.facts import git_reader

_BASES = ("upstream/main", "origin/HEAD", "origin/main", "origin/master", "main", "master")


@dataclass(frozen=True)
class BranchChanges:
    """What differs.

    Attributes:
        base: the branch, or `HEAD` where there is none and only uncommitted changes are known.
        files: absolute paths, sorted; none that were deleted.
    """

    base: str
    files: tuple[Path, ...]


def read(root: Path, base: str = "") -> BranchChanges:
    """Compare the work tree with where its branch left `base`.

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
    options = (*safe, "--name-only", "--relative", "--no-renames", "--diff-filter=d", "-z")
    changed = _said(root, "diff", *options, commit, "--", files=True)
    new = _said(root, "ls-files", "--others", "--exclude-standard", "-z")
    if changed is None or new is None:
        raise FactError("git does not tell what changed", where=root)
    names = {name for name in (*changed.split("\0"), *new.split("\0")) if name}
    return BranchChanges(name, tuple(sorted(root / name for name in names)))


def _said(root: Path, *arguments: str, files: bool = False) -> str | None:
    answer = git_reader.look(root, *arguments, files=files)
    return answer.out.strip() if answer and answer.code == 0 else None
