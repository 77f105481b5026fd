"""Linked worktrees of a git repository, and the work that would be lost with one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tritonsmith import untrusted
from tritonsmith.errors import FactError
from tritonsmith.facts import git_reader

_UNDER_WAY = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
_MADE = ("commit", "cherry-pick", "revert", "merge", "am")  # how reflog entries of new commits begin
_ENTRIES = 1000  # of the reflog that are looked at
# Every ref that stays when the worktree goes; these three folders belong to each worktree alone.
_STAYING = (
    "--exclude=refs/bisect/*",
    "--exclude=refs/rewritten/*",
    "--exclude=refs/worktree/*",
    "--glob=refs/*",
)
_SUBMODULE = "160000"  # git's mode of one


@dataclass(frozen=True)
class LinkedWorktree:
    """A worktree beside the main one.

    Attributes:
        path: its folder, which may be missing.
        admin: git's own folder for it, in the repository.
        locked: the reason for `git worktree lock`; None if it is not locked.
    """

    path: Path
    admin: Path
    locked: str | None = None

    @property
    def branch(self) -> str:
        """The branch that it is on; empty if its HEAD is detached."""
        return branch_of(self.admin)


@dataclass(frozen=True)
class UniqueWork:
    """Work that exists in one worktree only.

    Attributes:
        what: the kind of work, in words.
        items: files, or commits with their subjects.
    """

    what: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Checkout:
    """Folders by which git is called, or it would search further up where one of them is damaged.

    Attributes:
        git: git's folder, or the file `.git` that names it.
        files: the folder with the files.
    """

    git: Path
    files: Path

    def told(self, *arguments: str, compares: bool = False, none: int = 0) -> str:
        """What git prints; empty if it exits with `none`.

        Raises:
            FactError: it fails.
        """
        places = (f"--git-dir={self.git}", f"--work-tree={self.files}")
        root = self.files if self.files.is_dir() else self.git
        answer = git_reader.look(root, *places, *arguments, files=compares)
        if answer is None or answer.code not in (0, none):
            why = answer.err.strip() if answer else "git does not respond"
            raise FactError("git cannot tell what this worktree has", where=self.files, why=why or None)
        return answer.out

    def lines(self, *arguments: str, none: int = 0) -> list[str]:
        """The lines that git prints."""
        return self.told(*arguments, none=none).splitlines()

    def names(self, *arguments: str, compares: bool = False) -> list[str]:
        """What git prints with `-z`."""
        return [name for name in self.told(*arguments, "-z", compares=compares).split("\0") if name]

    def status(self, *more: str) -> list[str]:
        """Files that differ from HEAD, or that git does not know."""
        options = ("--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty", "--no-renames")
        return self.names("status", *options, *more, compares=True)


def repository_of(folder: Path) -> Path | None:
    """The repository that a checkout, a worktree or a bare clone belongs to; None outside git."""
    answer = git_reader.look(folder, "rev-parse", "--git-common-dir")
    return untrusted.real(folder / answer.out) if answer and answer.code == 0 else None


def linked(repository: Path) -> tuple[LinkedWorktree, ...]:
    """Every linked worktree that a repository knows, whether its folder still exists or not."""
    found = []
    for file in sorted((repository / "worktrees").glob("*/gitdir")):
        admin = file.parent
        place = untrusted.real((admin / untrusted.text_if_any(file).strip()).parent)  # from here in git 2.48
        locked = untrusted.text_if_any(admin / "locked").strip() if (admin / "locked").exists() else None
        found.append(LinkedWorktree(place, admin, locked))
    return tuple(found)


def at(repository: Path, path: Path) -> LinkedWorktree | None:
    """The linked worktree in a folder, which may be missing; None if the repository knows none there."""
    place = untrusted.real(path)
    return next((tree for tree in linked(repository) if tree.path == place), None)


def commit_of(repository: Path, name: str) -> str:
    """The commit that a branch (`origin`'s too), a tag or a hash names; empty if there is none."""
    for candidate in () if name.startswith("-") else (name, f"refs/remotes/origin/{name}"):
        commit = f"{candidate}^{{commit}}"
        answer = git_reader.look(repository, "rev-parse", "--verify", "--quiet", commit)
        if answer and answer.code == 0:
            return answer.out
    return ""


def is_bare(repository: Path) -> bool:
    """Whether a repository has no main worktree."""
    answer = git_reader.look(repository, "config", "--type=bool", "core.bare")
    return bool(answer and answer.out == "true")


def branch_of(root: Path) -> str:
    """The branch that HEAD is on; empty if it is detached."""
    answer = git_reader.look(root, "symbolic-ref", "--quiet", "--short", "HEAD")
    return answer.out if answer and answer.code == 0 else ""


def stashes(folder: Path) -> int:
    """How many stashes the repository of a folder has; its worktrees share them."""
    answer = git_reader.look(folder, "log", "-g", "--format=%H", "refs/stash", "--")
    return len(answer.out.splitlines()) if answer and answer.code == 0 else 0


def ignored(tree: LinkedWorktree) -> tuple[str, ...]:
    """Files and folders that git ignores there.

    Raises:
        FactError: git cannot tell.
    """
    told = _Checkout(tree.admin, tree.path).status("--ignored")
    return tuple(line.removeprefix("!! ") for line in told if line.startswith("!! "))


def unique_work(tree: LinkedWorktree) -> tuple[UniqueWork, ...]:
    """What would be lost with a worktree: changes, commits that no ref has, what is under way, submodules.

    Raises:
        FactError: git cannot tell.
    """
    checkout = _Checkout(tree.admin, tree.path)
    found = list(_commits(checkout))
    for name, what in _UNDER_WAY.items():
        if (tree.admin / name).exists():
            found.append(UniqueWork(f"a {what} is under way"))
    if tree.locked is not None:
        found.append(UniqueWork("it is locked by `git worktree lock`", (tree.locked,) if tree.locked else ()))
    if tree.path.is_dir():
        found += _files(checkout)
        clones = (git.parent for name in ignored(tree) for git in _clones(tree.path / name))
        if inside := tuple(str(clone.relative_to(tree.path)) for clone in clones):
            found.append(UniqueWork("repositories in folders that git ignores", inside))
        found += _submodules(checkout)
    return tuple(dict.fromkeys(found))


def _files(checkout: _Checkout) -> Iterator[UniqueWork]:
    if changed := checkout.status():
        yield UniqueWork("changes that are not committed", tuple(changed))
    flags = checkout.names("ls-files", "-v")
    hidden = (
        name for flag, name in ((line[:1], line[2:]) for line in flags) if flag.islower() or flag == "S"
    )
    if there := tuple(name for name in hidden if (checkout.files / name).exists()):
        yield UniqueWork("files that are hidden from `git status` (`git update-index`)", there)


def _clones(folder: Path) -> Iterator[Path]:
    """Repositories of people, such as `llvm-project/`; what CMake fetches lies deeper."""
    return chain(folder.glob(".git"), folder.glob("*/.git"))


def _commits(checkout: _Checkout) -> Iterator[UniqueWork]:
    """Commits of a detached HEAD, and those that HEAD has left, which nothing else has.

    A commit that was amended or rebased on a branch is in the branch's reflog, which stays.
    """
    head = checkout.lines("rev-parse", "--verify", "--quiet", "HEAD^{commit}", none=1)
    if not head:  # before a first commit
        return
    entries = checkout.lines("log", "-g", f"-n{_ENTRIES}", "--format=%H %gs", "HEAD", "--")
    known = set(checkout.lines("log", "-g", "--format=%H", "--branches", "--"))
    made = [commit for commit, _, how in (line.partition(" ") for line in entries) if how.startswith(_MADE)]
    tips = dict.fromkeys((*head, *(commit for commit in made if commit not in known)))
    if lost := checkout.lines("log", "--format=%h %s", *tips, "--not", *_STAYING, "--"):
        yield UniqueWork("commits that no branch, tag or remote has", tuple(lost))


def _submodules(checkout: _Checkout) -> Iterator[UniqueWork]:
    """Repositories of submodules lie in the worktree's own folder of git, and go with it."""
    for line in checkout.names("ls-files", "-s"):
        name = line.partition("\t")[2]
        root = checkout.files / name
        if not line.startswith(_SUBMODULE) or not (root / ".git").exists():
            continue
        inside = _Checkout(root / ".git", root)
        for work in _files(inside):
            yield UniqueWork(f"submodule {name}: {work.what}", work.items)
        if alone := inside.lines(
            "log", "--format=%h %s", "--branches", "HEAD", "--not", "--remotes", "--tags", "--"
        ):
            yield UniqueWork(f"submodule {name}: commits that no remote has", tuple(alone))
        if count := stashes(root):
            yield UniqueWork(f"submodule {name}: stashes", (f"{count}",))
        yield from _submodules(inside)


def shown(works: Iterable[UniqueWork], most: int = 5) -> str:
    """Work in words: a line for each kind, and its first items."""
    lines = []
    for work in works:
        count = f" ({len(work.items)})" if len(work.items) > 1 else ""
        lines.append(f"{work.what}{count}{':' if work.items else ''}")
        lines += [f"  {item}" for item in work.items[:most]]
        lines += ["  ..."] if len(work.items) > most else []
    return "\n".join(lines)
