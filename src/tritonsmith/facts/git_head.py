"""HEAD of a repository, asked of git itself: GitPython takes 0.1 s to import, git answers in 5 ms.

Only what git prints for programs is read (`--format`, `--porcelain`), no prose but its errors.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from tritonsmith.facts import git_reader
from tritonsmith.plan.process import CommandOutput


@dataclass(frozen=True)
class Head:
    """Where a repository stands.

    Attributes:
        commit: 40 hex digits; empty outside git.
        committed: date of that commit, ISO 8601.
        dirty: tracked files differ from it; submodules are not looked at.
        problem: what git said where the folder is under git and did not answer; empty otherwise.
    """

    commit: str = ""
    committed: str = ""
    dirty: bool = False
    problem: str = ""


def read(root: Path, *, dirt: bool = True) -> Head:
    """HEAD of the repository whose top folder this is; a repository around it does not count.

    Args:
        root: the folder.
        dirt: also look whether tracked files were changed, which takes a look at each of them.
    """
    if not (root / ".git").exists():
        return Head()
    log = git_reader.look(root, "log", "-1", "--no-show-signature", "--format=%H %cI")
    if log is None or log.code:
        return Head(problem=_told(log))
    commit, _, date = log.out.partition(" ")
    seen = Head(commit, datetime.fromisoformat(date).isoformat())  # newer ones of git write Z for +00:00
    if not dirt:
        return seen
    # `status` compares contents where only a time stamp changed; without the lock it writes nothing.
    compared = ("--porcelain", "--untracked-files=no", "--ignore-submodules=all")
    status = git_reader.look(root, "status", *compared, files=True)
    if status is None or status.code:
        return replace(seen, problem=_told(status))
    return replace(seen, dirty=bool(status.out))


def changes(root: Path) -> str:
    """A digest of what tracked files differ by from HEAD: 16 hex digits; empty if git does not answer.

    Args:
        root: top folder of a repository.
    """
    compared = ("HEAD", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
    diff = git_reader.look(root, "diff", *compared, files=True)
    return "" if diff is None or diff.code else hashlib.sha256(diff.out.encode()).hexdigest()[:16]


def _told(answer: CommandOutput | None) -> str:
    if answer is None:
        return "git does not answer" if shutil.which("git") else "there is no git on PATH"
    fatal = [line for line in answer.err.splitlines() if line.startswith("fatal: ")]
    return (fatal or [answer.err or f"git ended with {answer.code}"])[0]
