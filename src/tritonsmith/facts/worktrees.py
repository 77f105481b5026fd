"""A git repository: its worktrees and branches, read from its files, and how far HEAD has moved."""

from __future__ import annotations

import re
from pathlib import Path

from tritonsmith import outside
from tritonsmith.facts import git_reader


def git_folder(root: Path) -> Path | None:
    """The repository of a checkout (`.git`, or what a worktree's `.git` file names); None outside git."""
    entry = root / ".git"
    if outside.is_dir(entry):
        return entry
    match = re.match(r"gitdir: (.+)", outside.read_text(entry)) if outside.is_file(entry) else None
    named = outside.real(root / match[1].strip()) if match else None
    return named if named and outside.is_dir(named) else None


def common_folder(root: Path) -> Path | None:
    """The repository that all worktrees of a checkout share; None outside git."""
    folder = git_folder(root)
    if folder is None:
        return None
    common = folder / "commondir"
    named = outside.real(folder / outside.read_text(common).strip()) if outside.is_file(common) else folder
    return named if outside.is_dir(named) else folder


def roots(root: Path) -> tuple[Path, ...]:
    """Every checkout of a repository that still exists, the main one first; a submodule's is its own."""
    common = common_folder(root)
    if common is None:
        return (root,)
    linked = [  # each names its `.git` file, by its whole path or (git 2.48) from here
        (path.parent / outside.read_text(path).strip()).parent
        for path in sorted((common / "worktrees").glob("*/gitdir"))
    ]
    there = [folder for folder in (common.parent, *linked, root) if outside.exists(folder / ".git")]
    return tuple(dict.fromkeys(outside.real(folder) for folder in there))


def branches(root: Path) -> dict[str, str]:
    """Local branch to commit, loose and packed."""
    common = common_folder(root)
    if common is None:
        return {}
    heads = common / "refs" / "heads"
    found: dict[str, str] = {}
    packed = common / "packed-refs"
    if outside.is_file(packed):
        text = outside.read_text(packed)  # git allows any bytes in a name
        found |= {
            name: commit
            for commit, name in re.findall(r"^([0-9a-f]{40}) refs/heads/(.+)$", text, re.MULTILINE)
        }
    for path in heads.rglob("*"):
        if outside.is_file(path):
            found[str(path.relative_to(heads))] = outside.read_text(path).strip()
    return found


def divergence(root: Path) -> tuple[int, int] | None:
    """Commits that HEAD is behind and ahead of its upstream branch; None if it follows none."""
    counts = _said(root, "rev-list", "--left-right", "--count", "@{upstream}...HEAD").split()
    return (int(counts[0]), int(counts[1])) if len(counts) == 2 else None  # noqa: PLR2004 - left and right


def has_object(root: Path, prefix: str) -> bool:
    """Whether a repository has an object whose name begins so.

    Args:
        root: a checkout of it.
        prefix: hex digits, 4 at least.
    """
    return bool(_said(root, "rev-parse", f"--disambiguate={prefix}"))


def _said(root: Path, *arguments: str) -> str:
    answer = git_reader.look(root, *arguments)
    return answer.out if answer and answer.code == 0 else ""
