"""Read a git checkout: its HEAD, worktrees, branches and changes, without starting programs that it names.

GitPython, which takes 0.1 s to import, reads history in `git_history.py`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from tritonsmith.core import process, untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.core.process import CommandOutput, query

# A clone brings no hooks or settings of others; an unpacked archive and a shared folder bring a whole `.git`.
# Its `config` may name programs that git starts even for reading: a file system monitor, filters of
# `.gitattributes`, hooks, and the transport that fetches contents which a partial clone lacks.

# What git sets for the hooks and commands that it runs; each would lead to that repository instead.
_ELSEWHERE = dict.fromkeys(
    ("GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_WORK_TREE")
)
_OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}  # the first since git 2.45
_QUIET = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "log.showSignature=false", "core.pager=cat")
_PATIENCE = 60.0  # seconds; a large tree on a network's disk
_OWN = ("local", "worktree")  # where a repository's own settings come from, what they include too
_FILTER = re.compile(r"filter\.(.+)\.(?:clean|smudge|process)", re.DOTALL)
_NO_FILTER = ("clean=", "smudge=", "process=", "required=false")
# With one of these a fetch may start a program, write a file, or ask another server than the one named.
_FETCHES = re.compile(
    r"core\.(?:sshcommand|gitproxy|askpass)|(?:credential|http|protocol|url)\..*|remote\..*\.(?:vcs|uploadpack)",
    re.DOTALL,
)


def look(
    root: Path, *arguments: str, files: bool = False, change: Mapping[str, str] | None = None
) -> CommandOutput | None:
    """Run a git command that changes neither work tree, index nor refs.

    Args:
        root: top folder of the repository.
        arguments: the command and its arguments.
        files: whether the command compares contents of files, for which git would start filters.
        change: of the environment: names to values.

    Returns:
        Its result; None if git is missing or takes too long.
    """
    settings = [*_QUIET]
    if files:
        keys = _own_keys(root)
        names = {match[1] for key in keys or () if (match := _FILTER.fullmatch(key))}
        # A filter whose name has a `=` could not be switched off: `-c` splits at the first one.
        if keys is None or any("=" in name for name in names):  # `-c` could not name it
            return CommandOutput(128, "", "fatal: cannot determine which filters git would start")
        settings += [f"filter.{name}.{off}" for name in sorted(names) for off in _NO_FILTER]
    options = [word for setting in settings for word in ("-c", setting)]
    # `status` would otherwise refresh the index, and take its lock from a commit that the user is making.
    argv = ("git", "--no-optional-locks", "--no-pager", "-C", str(root), *options, *arguments)
    return query(argv, change={**_ELSEWHERE, **_OFFLINE, **(change or {})}, timeout=_PATIENCE)


def environ(root: Path) -> dict[str, str]:
    """Return the changes of the environment under which a library may read a repository by git.

    Contents missing in a partial clone are fetched, unless the repository's own settings influence how.
    """
    settings = [setting.partition("=")[::2] for setting in _QUIET]
    # Settings through the environment are numbered; ours come after those that the user already has.
    known = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    change = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": str(known + len(settings))}
    for number, (key, value) in enumerate(settings, known):
        change |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    keys = _own_keys(root)
    return change if keys is not None and not any(map(_FETCHES.fullmatch, keys)) else change | _OFFLINE


def _own_keys(root: Path) -> frozenset[str] | None:
    """Return the keys of a repository's own configuration, with included files; None if git cannot tell."""
    # Listing settings starts nothing, and it follows the includes, which a parser of
    # our own would have to do.
    argv = ("git", "-C", str(root), "config", "--list", "--show-scope", "--name-only", "-z")  # git 2.26
    answer = query(argv, change=_ELSEWHERE | _OFFLINE, timeout=_PATIENCE)
    if answer is None or answer.code:
        return None
    words = answer.out.split("\0")
    pairs = zip(words[::2], words[1::2], strict=False)
    return frozenset(key for scope, key in pairs if scope in _OWN)


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
    # `%cI` is the committer's date: it says when the commit came into this history,
    # which the author's does not.
    log = look(root, "log", "-1", "--no-show-signature", "--format=%H %cI")
    if log is None or log.code:
        return GitHead(problem=_problem(log))
    commit, _, date = log.out.partition(" ")
    # Newer gits write Z for +00:00. Dates are compared as texts elsewhere, so there is one form.
    state = GitHead(commit, datetime.fromisoformat(date).isoformat())
    if not dirt:
        return state
    # `status` compares contents where only a time stamp changed; without the lock it writes nothing.
    compared = ("--porcelain", "--untracked-files=no", "--ignore-submodules=all")
    status = look(root, "status", *compared, files=True)
    if status is None or status.code:
        return replace(state, problem=_problem(status))
    return replace(state, dirty=bool(status.out))


def changes(root: Path) -> str:
    """Return a digest of the changes of tracked files against HEAD: 16 hex digits; empty if git fails."""
    # GIT_EXTERNAL_DIFF and textconv drivers are programs, and their output is not what the file holds.
    compared = ("HEAD", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
    diff = look(root, "diff", *compared, files=True)
    return "" if diff is None or diff.code else hashlib.sha256(diff.out.encode()).hexdigest()[:16]


def git_folder(root: Path) -> Path | None:
    """Return a checkout's repository (`.git`, or the target of a worktree's `.git` file), or None."""
    entry = root / ".git"
    if untrusted.is_dir(entry):
        return entry
    # In a worktree and in a submodule `.git` is a file that names the folder.
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
    # `git gc` moves refs into this file; a loose one of the same name is newer, so it is read later.
    packed = common / "packed-refs"
    if untrusted.is_file(packed):
        text = untrusted.read_text(packed)  # git allows any bytes in a name
        rows = re.findall(r"^([0-9a-f]{40}) refs/heads/(.+)$", text, re.MULTILINE)
        commits |= {name: commit for commit, name in rows}
    for path in heads.rglob("*"):
        if untrusted.is_file(path):
            commits[str(path.relative_to(heads))] = untrusted.read_text(path).strip()
    return commits


def last_change(root: Path, file: str, begin: int = 0, end: int = 0) -> tuple[str, ...]:
    """Return the commit that changed a file last: its first digits, date (ISO 8601), author and subject.

    Args:
        root: the checkout.
        file: relative to it.
        begin: the first of the lines that count, from 1; 0 for the whole file.
        end: the last one.

    Returns:
        Four texts; none if git knows no such commit, or does not respond.
    """
    # -L prints the whole diff without -s.
    where = (f"-L{begin},{end}:{file}", "-s") if begin else ("--", file)
    lines = _output(root, "log", "-1", "--format=%h%x09%cs%x09%an%x09%s", *where).splitlines()
    parts = lines[0].split("\t", 3) if lines else ()
    return tuple(parts) if len(parts) == 4 else ()  # noqa: PLR2004 - as many as the format has


def divergence(root: Path) -> tuple[int, int] | None:
    """Return how many commits HEAD is behind and ahead of its upstream branch; None if it tracks none."""
    counts = _output(root, "rev-list", "--left-right", "--count", "@{upstream}...HEAD").split()
    return (int(counts[0]), int(counts[1])) if len(counts) == 2 else None  # noqa: PLR2004 - left and right


def has_object(root: Path, prefix: str) -> bool:
    """Return whether a repository has an object whose name begins with these hex digits, 4 at least."""
    return bool(_output(root, "rev-parse", f"--disambiguate={prefix}"))


def _output(root: Path, *arguments: str) -> str:
    answer = look(root, *arguments)
    return answer.out if answer and answer.code == 0 else ""


def _problem(answer: CommandOutput | None) -> str:
    if answer is None:
        return "git does not respond" if process.which("git") else "no git on PATH"
    fatal = [line for line in answer.err.splitlines() if line.startswith("fatal: ")]
    return (fatal or [answer.err or f"git exited with {answer.code}"])[0]


# A diff starts no program that a repository's settings name, and looks into no submodule.
_SAFE = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
_BASES = ("upstream/main", "origin/HEAD", "origin/main", "origin/master", "main", "master")


@dataclass(frozen=True)
class BranchChanges:
    """The files of a checkout that differ from the branch which it will be merged into, or are uncommitted.

    Attributes:
        base: the branch, or `HEAD` where there is none and only uncommitted changes are known.
        files: absolute paths of files that still exist, sorted.
        deleted: absolute paths of deleted files.
    """

    base: str
    files: tuple[Path, ...]
    deleted: tuple[Path, ...] = ()


def branch_changes(root: Path, base: str = "") -> BranchChanges:
    """Compare the work tree with the commit at which its branch left `base`.

    Args:
        root: the checkout.
        base: branch or commit; empty to search for upstream's main.

    Raises:
        FactError: git knows no such branch, or does not respond.
    """
    # The merge base, not the branch itself: what others added to main since is no change of this branch.
    for name in (base,) if base else (*_BASES, "HEAD"):
        commit = (
            _stripped_output(root, "merge-base", "HEAD", "--", name) if not name.startswith("-") else None
        )
        if commit:
            break
    else:
        raise FactError(
            f"git finds nothing to compare with: {base or 'no branch, and no commit'}",
            where=root,
            hints=["name the branch that this one will be merged into: --base upstream/main"],
        )
    return changes_since(root, commit, name)


def changes_since(root: Path, commit: str, base: str = "") -> BranchChanges:
    """Compare the work tree with a commit.

    Args:
        root: the checkout.
        commit: the commit.
        base: the name that the result has for it.

    Raises:
        FactError: git does not respond.
    """
    # `--relative` makes names relative to this folder, which may lie below the top of a larger repository.
    options = (*_SAFE, "--name-only", "--relative", "--no-renames", "-z")
    changed = _stripped_output(root, "diff", *options, "--diff-filter=d", commit, "--", files=True)
    gone = _stripped_output(root, "diff", *options, "--diff-filter=D", commit, "--", files=True)
    new = _stripped_output(root, "ls-files", "--others", "--exclude-standard", "-z")
    if changed is None or new is None or gone is None:
        raise FactError("git cannot tell what changed", where=root)
    present, deleted = _paths(root, changed, new), _paths(root, gone)
    return BranchChanges(base, present, tuple(path for path in deleted if path not in present))


def renames(root: Path, commit: str) -> dict[Path, str]:
    """Return files that git takes for renamed ones of a commit, and their old names relative to `root`."""
    options = (*_SAFE, "--name-status", "--relative", "-M", "--diff-filter=R", "-z")
    # A score, the old name and the new one, each followed by a NUL; nothing if git does not respond.
    words = (_stripped_output(root, "diff", *options, commit, "--", files=True) or "").split("\0")
    return {root / new: old for old, new in zip(words[1::3], words[2::3], strict=False)}


def _paths(root: Path, *lists: str) -> tuple[Path, ...]:
    return tuple(sorted({root / name for text in lists for name in text.split("\0") if name}))


def _stripped_output(root: Path, *arguments: str, files: bool = False) -> str | None:
    answer = look(root, *arguments, files=files)
    return answer.out.strip() if answer and answer.code == 0 else None
