"""Read a git checkout: its HEAD, worktrees and branches, without GitPython, whose import takes 0.1 s.

HEAD comes from git's machine-readable output (`--format`, `--porcelain`), worktrees and branches from files.
GitPython reads history, in `git_history.py`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.plan import process
from tritonsmith.core.plan.process import CommandOutput
from tritonsmith.facts import git_reader


@dataclass(frozen=True)
class GitHead:
    """HEAD of a repository.

    Attributes:
        commit: 40 hex digits; empty outside git.
        committed: date of that commit, ISO 8601.
        dirty: tracked files differ from it; submodules are ignored.
        problem: git's error if the folder is under git but git fails; empty otherwise.
    """

    commit: str = ""
    committed: str = ""
    dirty: bool = False
    problem: str = ""


def head(root: Path, *, dirt: bool = True) -> GitHead:
    """Return the HEAD of the repository with this top folder; a repository around it does not count.

    Args:
        root: the folder.
        dirt: also check whether tracked files were changed, which reads each of them.
    """
    if not (root / ".git").exists():
        return GitHead()
    log = git_reader.look(root, "log", "-1", "--no-show-signature", "--format=%H %cI")
    if log is None or log.code:
        return GitHead(problem=_problem(log))
    commit, _, date = log.out.partition(" ")
    state = GitHead(commit, datetime.fromisoformat(date).isoformat())  # newer ones of git write Z for +00:00
    if not dirt:
        return state
    # `status` compares contents where only a time stamp changed; without the lock it writes nothing.
    compared = ("--porcelain", "--untracked-files=no", "--ignore-submodules=all")
    status = git_reader.look(root, "status", *compared, files=True)
    if status is None or status.code:
        return replace(state, problem=_problem(status))
    return replace(state, dirty=bool(status.out))


def changes(root: Path) -> str:
    """Return a digest of the changes of tracked files against HEAD: 16 hex digits; empty if git fails."""
    compared = ("HEAD", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
    diff = git_reader.look(root, "diff", *compared, files=True)
    return "" if diff is None or diff.code else hashlib.sha256(diff.out.encode()).hexdigest()[:16]


def git_folder(root: Path) -> Path | None:
    """Return a checkout's repository (`.git`, or the target of a worktree's `.git` file), or None."""
    entry = root / ".git"
    if untrusted.is_dir(entry):
        return entry
    match = re.match(r"gitdir: (.+)", untrusted.read_text(entry)) if untrusted.is_file(entry) else None
    named = untrusted.real(root / match[1].strip()) if match else None
    return named if named and untrusted.is_dir(named) else None


def common_folder(root: Path) -> Path | None:
    """Return the repository that all worktrees of a checkout share; None outside git."""
    folder = git_folder(root)
    if folder is None:
        return None
    common = folder / "commondir"
    there = untrusted.is_file(common)
    named = untrusted.real(folder / untrusted.read_text(common).strip()) if there else folder
    return named if untrusted.is_dir(named) else folder


def worktrees(root: Path) -> tuple[Path, ...]:
    """Return every existing checkout of a repository, the main one first; a submodule's is its own."""
    common = common_folder(root)
    if common is None:
        return (root,)
    linked = [  # each names its `.git` file, by its whole path or (git 2.48) from here
        (path.parent / untrusted.read_text(path).strip()).parent
        for path in sorted((common / "worktrees").glob("*/gitdir"))
    ]
    there = [folder for folder in (common.parent, *linked, root) if untrusted.exists(folder / ".git")]
    return tuple(dict.fromkeys(untrusted.real(folder) for folder in there))


def branches(root: Path) -> dict[str, str]:
    """Return local branches, loose and packed, with their commits."""
    common = common_folder(root)
    if common is None:
        return {}
    heads = common / "refs" / "heads"
    commits: dict[str, str] = {}
    packed = common / "packed-refs"
    if untrusted.is_file(packed):
        text = untrusted.read_text(packed)  # git allows any bytes in a name
        rows = re.findall(r"^([0-9a-f]{40}) refs/heads/(.+)$", text, re.MULTILINE)
        commits |= {name: commit for commit, name in rows}
    for path in heads.rglob("*"):
        if untrusted.is_file(path):
            commits[str(path.relative_to(heads))] = untrusted.read_text(path).strip()
    return commits


def divergence(root: Path) -> tuple[int, int] | None:
    """Return how many commits HEAD is behind and ahead of its upstream branch; None if it tracks none."""
    counts = _output(root, "rev-list", "--left-right", "--count", "@{upstream}...HEAD").split()
    return (int(counts[0]), int(counts[1])) if len(counts) == 2 else None  # noqa: PLR2004 - left and right


def has_object(root: Path, prefix: str) -> bool:
    """Return whether a repository has an object whose name begins with these hex digits, 4 at least."""
    return bool(_output(root, "rev-parse", f"--disambiguate={prefix}"))


def _output(root: Path, *arguments: str) -> str:
    answer = git_reader.look(root, *arguments)
    return answer.out if answer and answer.code == 0 else ""


def _problem(answer: CommandOutput | None) -> str:
    if answer is None:
        return "git does not respond" if process.which("git") else "no git on PATH"
    fatal = [line for line in answer.err.splitlines() if line.startswith("fatal: ")]
    return (fatal or [answer.err or f"git exited with {answer.code}"])[0]
