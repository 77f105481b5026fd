"""Inspect linked worktrees of a git repository, and the work that would be lost with one of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.facts.git import look

_UNDER_WAY = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
    "NOTES_MERGE_PARTIAL": "merge of notes",  # whose resolved conflicts lie beside it
    "sequencer": "cherry-pick or revert of several commits",
}
# How reflog entries of new commits begin.
_CREATING = ("commit", "cherry-pick", "revert", "merge", "am", "rebase")
_REBASE = re.compile(r"(?:rebase|pull)\b[^(:]*\((?P<stage>\w+)\)")  # in the reflog
_REFLOG_FILE = re.compile(r"(?P<old>[0-9a-f]{40,64}) (?P<new>[0-9a-f]{40,64}) [^\t]*\t?(?P<how>.*)")
_AT_ONCE = 500  # commits in one command line
_OWN_REFS = ("refs/bisect", "refs/rewritten", "refs/worktree")  # these belong to each worktree alone
# Every ref that stays when the worktree goes.
_STAYING = (*(f"--exclude={name}/*" for name in _OWN_REFS), "--glob=refs/*")
# These are a remote's, but for the stash, which is looked at by itself.
_THEIRS = ("refs/remotes/", "refs/tags/", "refs/prefetch/", "refs/stash")
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
        """The branch of its HEAD; empty if HEAD is detached."""
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
    """The folders of a git call; without them git would search parent folders where one of them is damaged.

    Attributes:
        git: git's folder, or the file `.git` that names it.
        files: the folder with the files; git's own folder if there are none.
    """

    git: Path
    files: Path

    @property
    def folder(self) -> Path:
        """The folder of git."""
        if self.git.is_dir():
            return self.git
        return Path(self.output("rev-parse", "--absolute-git-dir"))

    def output(self, *arguments: str, compares: bool = False, none: int = 0) -> str:
        """Return the output of git; empty if it exits with the status `none`.

        Raises:
            FactError: it fails.
        """
        # With both folders named, git does not search the parents: where a worktree's `.git` is damaged it
        # would report the state of the repository around it.
        places = (f"--git-dir={self.git}", f"--work-tree={self.files}")
        root = self.files if self.files.is_dir() else self.git
        answer = look(root, *places, *arguments, files=compares)
        if answer is None or answer.code not in (0, none):
            why = answer.err.strip() if answer else "git does not respond"
            raise FactError("git cannot tell what this worktree has", where=self.files, why=why or None)
        return answer.out

    def lines(self, *arguments: str, none: int = 0) -> list[str]:
        """Return the lines of git's output."""
        return self.output(*arguments, none=none).splitlines()

    def names(self, *arguments: str, compares: bool = False) -> list[str]:
        """Return the entries of git's output with `-z`."""
        return [name for name in self.output(*arguments, "-z", compares=compares).split("\0") if name]

    def status(self, *more: str) -> list[str]:
        """Return files that differ from HEAD, or that git does not know."""
        # A rename would be two names in one entry of `-z`, which nothing else has.
        options = ("--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty", "--no-renames")
        return self.names("status", *options, *more, compares=True)


def repository_of(folder: Path) -> Path | None:
    """Return the repository of a checkout, a worktree or a bare clone; None outside git."""
    answer = look(folder, "rev-parse", "--git-common-dir")
    return untrusted.real(folder / answer.out) if answer and answer.code == 0 else None


def linked(repository: Path) -> tuple[LinkedWorktree, ...]:
    """Return every linked worktree that a repository knows, whether its folder still exists or not."""
    trees = []
    for file in sorted((repository / "worktrees").glob("*/gitdir")):
        admin = file.parent
        place = untrusted.real((admin / untrusted.text_if_any(file).strip()).parent)  # from here in git 2.48
        locked = untrusted.text_if_any(admin / "locked").strip() if (admin / "locked").exists() else None
        trees.append(LinkedWorktree(place, admin, locked))
    return tuple(trees)


def at(repository: Path, path: Path) -> LinkedWorktree | None:
    """Return the linked worktree in a folder, which may be missing; None if there is none."""
    place = untrusted.real(path)
    return next((tree for tree in linked(repository) if tree.path == place), None)


def commit_of(repository: Path, name: str) -> str:
    """Return the commit of a branch (`origin`'s too), a tag or a hash; empty if there is none."""
    for candidate in () if name.startswith("-") else (name, f"refs/remotes/origin/{name}"):
        commit = f"{candidate}^{{commit}}"
        answer = look(repository, "rev-parse", "--verify", "--quiet", commit)
        if answer and answer.code == 0:
            return answer.out
    return ""


def is_bare(repository: Path) -> bool:
    """Return whether a repository has no main worktree."""
    answer = look(repository, "config", "--type=bool", "core.bare")
    return bool(answer and answer.out == "true")


def branch_of(root: Path) -> str:
    """Return the branch that HEAD is on; empty if it is detached."""
    answer = look(root, "symbolic-ref", "--quiet", "--short", "HEAD")
    return answer.out if answer and answer.code == 0 else ""


def stashes(folder: Path) -> int:
    """Return how many stashes the repository of a folder has; its worktrees share them."""
    answer = look(folder, "log", "-g", "--format=%H", "refs/stash", "--")
    return len(answer.out.splitlines()) if answer and answer.code == 0 else 0


def ignored(tree: LinkedWorktree) -> tuple[str, ...]:
    """Return files and folders that git ignores in a worktree.

    Raises:
        FactError: git cannot tell.
    """
    status = _Checkout(tree.admin, tree.path).status("--ignored")
    return tuple(line.removeprefix("!! ") for line in status if line.startswith("!! "))


def unique_work(tree: LinkedWorktree) -> tuple[UniqueWork, ...]:
    """Return work that would be lost with a worktree: changes, commits of no ref, open merges, submodules.

    Raises:
        FactError: git cannot tell.
    """
    checkout = _Checkout(tree.admin, tree.path)
    works = [*_commits(checkout), *_under_way(tree.admin)]
    if tree.locked is not None:
        works.append(UniqueWork("it is locked by `git worktree lock`", (tree.locked,) if tree.locked else ()))
    if tree.path.is_dir():
        works += _files(checkout)
        works += _ignored_clones(checkout, shallow_ones=True)
    works += _submodules(checkout)
    return tuple(dict.fromkeys(works))


def _under_way(git: Path) -> Iterator[UniqueWork]:
    for name, what in _UNDER_WAY.items():
        if (git / name).exists():
            yield UniqueWork(f"a {what} is under way")


def _files(checkout: _Checkout) -> Iterator[UniqueWork]:
    if changed := checkout.status():
        yield UniqueWork("changes that are not committed", tuple(changed))
    flags = checkout.names("ls-files", "-v")
    # `ls-files -v`: lower case for `--assume-unchanged`, S for `--skip-worktree`. `git status`
    # shows no change in them; a sparse checkout marks all files that it leaves out so, hence the
    # look whether they are there.
    hidden = (
        name for flag, name in ((line[:1], line[2:]) for line in flags) if flag.islower() or flag == "S"
    )
    if there := tuple(name for name in hidden if (checkout.files / name).exists()):
        yield UniqueWork("files that are hidden from `git status` (`git update-index`)", there)


def _ignored_clones(checkout: _Checkout, *, shallow_ones: bool) -> Iterator[UniqueWork]:
    """Yield repositories in folders that git ignores; `shallow_ones` names all of the first two levels."""
    near = []
    for name in (line for line in checkout.status("--ignored") if line.startswith("!! ")):
        top = checkout.files / name.removeprefix("!! ")
        for inside in _repositories(top):
            where = inside.files.relative_to(checkout.files)
            # A clone near the top, such as `llvm-project/`, is expensive to make again. CMake fetches
            # repositories into deeper folders: of these only work that no remote has counts.
            if shallow_ones and len(inside.files.relative_to(top).parts) < 2:  # noqa: PLR2004 - levels
                near.append(str(where))
            else:
                yield from _whole(inside, f"repository {where} in a folder that git ignores")
    if near:
        yield UniqueWork("repositories in folders that git ignores", tuple(near))


def _repositories(top: Path) -> Iterator[_Checkout]:
    """Yield repositories at any depth, bare ones included; links are not followed."""
    for path, folders, files in () if top.is_symlink() else os.walk(top):
        here = Path(path)
        if ".git" in folders or ".git" in files:
            yield _Checkout(here / ".git", here)
        if "HEAD" in files and {"objects", "refs"} <= {*folders}:
            folders.clear()
            yield _Checkout(here, here)
        folders[:] = [name for name in folders if name != ".git"]


def _commits(checkout: _Checkout) -> Iterator[UniqueWork]:
    """Yield commits of HEAD, of its reflog and of the worktree's own refs that nothing else has."""
    # A commit that was amended or rebased on a branch is in the branch's reflog too, which lies in
    # the common folder and stays.
    known = {commit for commit, _ in _reflog(checkout, "--branches")}
    tips = [*_head(checkout), *(commit for commit, _ in _results(checkout) if commit not in known)]
    others = []
    for line in checkout.lines("for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", *_OWN_REFS):
        name, kind, ref = line.split(" ", 2)
        if kind in ("commit", "tag"):
            tips.append(name)
        else:
            others.append(f"{ref} ({kind})")
    if lost := _unreachable(checkout, tips, *_STAYING):
        yield UniqueWork("commits that no branch, tag or remote has", lost)
    if others:
        yield UniqueWork("refs of this worktree alone", tuple(others))


def _head(checkout: _Checkout) -> list[str]:
    """Return the commit of HEAD; none before a first commit, and after `checkout --orphan`."""
    return checkout.lines("rev-parse", "--verify", "--quiet", "HEAD^{commit}", none=1)


def _reflog(checkout: _Checkout, *refs: str) -> list[tuple[str, str]]:
    """Return each commit in the reflogs of refs with its reflog message, newest first."""
    # `git log -g` fails where HEAD names a branch without a commit (`checkout --orphan`), but the reflog
    # still names the commits of before.
    if refs == ("HEAD",) and not _head(checkout):
        text = untrusted.text_if_any(checkout.folder / "logs" / "HEAD")
        entries = [match for line in text.splitlines() if (match := _REFLOG_FILE.fullmatch(line))]
        both = ((match[side], match["how"]) for match in reversed(entries) for side in ("new", "old"))
        return [(commit, how) for commit, how in both if commit.strip("0")]
    if not any(name.startswith("-") for name in refs) or checkout.lines(
        "for-each-ref", "--count=1", "refs/heads"
    ):
        lines = checkout.lines("log", "-g", "--format=%H %gs", *refs, "--")
        return [(commit, how) for commit, _, how in (line.partition(" ") for line in lines)]
    return []


def _results(checkout: _Checkout) -> Iterator[tuple[str, str]]:
    """Yield entries of HEAD's reflog, without the steps of a finished rebase."""
    finished = False
    for commit, how in _reflog(checkout, "HEAD"):
        stage = match["stage"] if (match := _REBASE.match(how)) else ""
        if not (finished and stage):
            yield commit, how
        # The reflog is read from its newest entry: after a rebase's `finish` come its steps, down to
        # its `start`. Each step's commit was replaced by the next, so they are no work of their own;
        # without a finish they are.
        finished = stage == "finish" or (finished and stage != "start")


def _unreachable(checkout: _Checkout, tips: Iterable[str], *staying: str) -> tuple[str, ...]:
    """Return commits reachable from some commits and not from refs that stay, with their subjects."""
    commits = list(dict.fromkeys(tips))
    lines: list[str] = []
    # A reflog has thousands of entries, and a command line 128 KiB for one argument and some MiB in all.
    for start in range(0, len(commits), _AT_ONCE):
        some = commits[start : start + _AT_ONCE]
        lines += checkout.lines("log", "--ignore-missing", "--format=%h %s", *some, "--not", *staying, "--")
    return tuple(dict.fromkeys(lines))


def _submodules(checkout: _Checkout) -> Iterator[UniqueWork]:
    """Yield the work in submodules, checked out or not."""
    checked_out = []
    for line in checkout.names("ls-files", "-s"):
        name = line.partition("\t")[2]
        root = checkout.files / name
        if line.startswith(_SUBMODULE) and (root / ".git").exists():
            inside = _Checkout(root / ".git", root)
            checked_out.append(untrusted.real(inside.folder))
            yield from _whole(inside, f"submodule {name}")
    # A submodule that was removed from the index, or never checked out here, still has its
    # repository in this folder.
    modules = checkout.folder / "modules"
    for path, folders, files in os.walk(modules):
        if "HEAD" in files and "objects" in folders:
            folders.clear()  # those inside it are its own
            if untrusted.real(git := Path(path)) not in checked_out:
                name = str(git.relative_to(modules))
                yield from _whole(_Checkout(git, git), f"submodule {name}, which is not checked out")


def _whole(inside: _Checkout, what: str) -> Iterator[UniqueWork]:
    """Yield the work in a repository that is deleted as a whole."""
    bare = inside.git == inside.files
    for work in () if bare else (*_files(inside), *_under_way(inside.folder)):
        yield UniqueWork(f"{what}: {work.what}", work.items)
    entries = list(_results(inside))
    # Commits that were made here are work even under a tag that the clone brought.
    mine = [commit for commit, how in entries if how.startswith(_CREATING)]
    tips = [*_head(inside), *(commit for commit, _ in (*entries, *_reflog(inside, "--branches")))]
    refs = (line.split(" ") for line in inside.lines("for-each-ref", "--format=%(objectname) %(refname)"))
    tips += [commit for commit, ref in refs if not ref.startswith(_THEIRS)]
    # A tag may be the remote's, but not on a commit that was made here.
    alone = (*_unreachable(inside, tips, "--remotes", "--tags"), *_unreachable(inside, mine, "--remotes"))
    if alone:
        yield UniqueWork(f"{what}: commits that no remote has", tuple(dict.fromkeys(alone)))
    if elsewhere := tuple(str(tree.path) for tree in linked(inside.folder) if tree.path.exists()):
        yield UniqueWork(f"{what}: worktrees that belong to it", elsewhere)
    if count := len(inside.lines("log", "-g", "--format=%H", "refs/stash", "--", none=128)):
        yield UniqueWork(f"{what}: stashes", (f"{count}",))
    if not bare:
        yield from _ignored_clones(inside, shallow_ones=False)
    yield from _submodules(inside)


def shown(works: Iterable[UniqueWork], most: int = 5) -> str:
    """Return work in words: a line for each kind, and its first items."""
    lines = []
    for work in works:
        count = f" ({len(work.items)})" if len(work.items) > 1 else ""
        lines.append(f"{work.what}{count}{':' if work.items else ''}")
        lines += [f"  {item}" for item in work.items[:most]]
        lines += ["  ..."] if len(work.items) > most else []
    return "\n".join(lines)
