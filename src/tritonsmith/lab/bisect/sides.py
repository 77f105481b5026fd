"""The sides of a farm: commits of a clone, its working tree, releases, environments and interpreters.

The user's clone is only read, except that a commit of uncommitted changes adds objects to it which nothing
refers to, as `git stash create` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler.tritons import CommitSource, Triton
from tritonsmith.core import untrusted
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import FactError, PreflightError, StepError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.core.text import counted
from tritonsmith.facts import checkout, git, git_history, triton_history
from tritonsmith.facts.git import GitHead
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect.candidates import CommitBuilds
from tritonsmith.lab.bisect.stages import SHORT
from tritonsmith.lab.compare import rehearsal

SAME = "the same compiler"
_MAINS = (*reversed(git_history.MAINS), "master", "origin/master")
_PACKAGE = "python/triton/__init__.py"
_VERSION = re.compile(r"""^__version__\s*=\s*["']([\w.+]+)""", re.MULTILINE)
_RELEASE = re.compile(r"\d+\.\d+[\w.]*", re.ASCII)  # `v3.4.0` is a tag: a commit, which is built
_COMMIT = "commit "  # spells a commit that is named like something else
_NAMED = 6  # untracked files in a note
# Nobody's, and no date of today: the same changes are the same commit each time, so nothing is built twice.
_WHO = {"NAME": "tritonsmith", "EMAIL": "tritonsmith@localhost"}


@dataclass(frozen=True)
class Side:
    """One side of a farm.

    Attributes:
        triton: the Triton that compiles; one of a commit may not be built yet.
        commit: the commit; None for a release, an environment or an interpreter.
        builds: make the commit ready; None where there is none.
    """

    triton: Triton
    commit: TritonCommit | None = None
    builds: CommitBuilds | None = None

    @property
    def plan(self) -> Iterator[str]:
        """The work of `make` in a line; nothing for a side that is no commit."""
        if self.commit is None or self.builds is None:
            return
        if self.builds.built(self.commit):
            yield f"{self.triton.label}: its libraries are built"
            return
        llvm = self.builds.llvm_dir(self.commit.pin) or self.commit.pin[:SHORT] or "of no known commit"
        state = self.builds.llvm_state(self.commit.pin)
        yield f"{self.triton.label}: to be built first, with the LLVM {llvm} ({state})"

    def make(self) -> None:
        """Build a commit, unless it is built.

        Raises:
            StepError: it cannot be built.
            SmithError: something else is in the way, such as another process that builds.
        """
        if self.commit is None or self.builds is None:
            return
        try:
            self.builds.make(self.commit)
        # Without this, a compiler's first error would not say which of the two sides it is about.
        except (FactError, PreflightError, StepError) as error:
            what = f"{self.triton.label} cannot be built: {error.what}"
            raise StepError(what, where=error.where, why=error.why, hints=error.hints) from error


@dataclass(frozen=True)
class Sides:
    """Both sides of a farm.

    Attributes:
        base: the Triton that is compared with.
        head: the Triton in question.
        notes: what a person should know about them.
    """

    base: Side
    head: Side
    notes: tuple[str, ...] = ()

    @property
    def are_same(self) -> bool:
        """Report whether both are commits by which every kernel compiles alike."""
        base, head = (side.triton for side in (self.base, self.head))
        if base.source is None or head.source is None:
            return False
        return (base.source.content, base.ptxas) == (head.source.content, head.ptxas)

    @property
    def are_built_alike(self) -> bool:
        """Report whether both are commits whose builds gave the same libraries, byte for byte.

        Raises:
            FactError: what a commit gave cannot be read.
        """
        base, head = self.base, self.head
        if not (base.builds and base.commit and head.builds and head.commit):
            return False
        if base.triton.ptxas != head.triton.ptxas:
            return False
        # First, as it is cheaper: the libraries have 100 MB and more, which may be on a slow disk.
        if base.builds.python_files(base.commit) != head.builds.python_files(head.commit):
            return False
        # A comment in C++ is a change of the sources, and so is a tool that no kernel is compiled with. All
        # commits are built in one folder, so what they have in common comes out the same.
        binaries = base.builds.binaries(base.commit)
        return binaries != "" and binaries == head.builds.binaries(head.commit)


def resolve(base: str, head: str, source: Path | None, env: str) -> Sides:
    """Resolve the two sides of a farm; nothing is built.

    Args:
        base: a commit, tag or branch, a release, an environment or an interpreter; empty for where the head
            left main.
        head: in the same form; empty for the working tree of the clone.
        source: clone of Triton; None for the checkout around the current folder.
        env: environment whose settings builds of commits have.

    Raises:
        SmithError: a side is nothing of the kind, is no commit of Triton, or needs a clone.
    """
    named = _NamedSides(_clone(source), env)
    notes: tuple[str, ...] = ()
    if head:
        second = named.parse(head, "--head")
    else:
        commit, label, notes = _working_tree(named.require("--head is the working tree by default, and"))
        second = named.of_commit(commit, label)
    if base:
        return Sides(named.parse(base, "--base"), second, notes)
    if second.commit is None:
        hints = ["--base main", "--base 3.6.0"]
        raise UsageError("--base is missing, as --head is no commit", hints=hints)
    main, commit = _merge_base(named.require("--base"), second.commit.commit)
    if commit == second.commit.commit:
        notes += (f"{second.triton.label} is in {main}: compare it with another commit, as --base HEAD~1",)
    return Sides(named.of_commit(commit, f"{main} {commit[:SHORT]}"), second, notes)


def resolve_all(names: Sequence[str], source: Path | None, env: str) -> tuple[Side, ...]:
    """Resolve the Tritons of a site, each named like a side of a farm; nothing is built.

    Args:
        names: commits, tags and branches, releases, environments and interpreters.
        source: clone of Triton; None for the checkout around the current folder, if there is one.
        env: environment whose settings builds of commits have.

    Raises:
        SmithError: one is nothing of the kind, is no commit of Triton, or needs a clone.
    """
    named = _NamedSides(_clone(source), env)
    return tuple(named.parse(name, "--triton") for name in names)


@dataclass(frozen=True)
class _NamedSides:
    """Sides by their names.

    Attributes:
        clone: of Triton; None if there is none.
        env: of the builds.
    """

    clone: Path | None
    env: str

    def parse(self, text: str, flag: str) -> Side:
        """Parse a side: a commit of the clone, or what `rehearsal.parse_side` takes."""
        word, _, more = text.partition(",")
        commit = self._resolved(word.strip(), flag)
        if not commit:
            return Side(self._other(text, flag))
        name = word.strip().removeprefix(_COMMIT).strip()
        # A hash is not said twice.
        label = commit[:SHORT] if commit.startswith(name) else f"{name} {commit[:SHORT]}"
        if not more:
            return self.of_commit(commit, label)
        other = rehearsal.parse_side(more, flag)
        if other.env or other.version or other.python:
            what = f"{flag} names two Tritons: {name} and {other.label}"
            raise UsageError(what, hints=["a commit takes another ptxas alone: main,ptxas=13.0"])
        return self.of_commit(commit, f"{label},ptxas={other.ptxas}", other.ptxas)

    def of_commit(self, commit: str, label: str, ptxas: str = "") -> Side:
        """Return the side of a commit.

        Args:
            commit: 40 hex digits.
            label: its name on the screen.
            ptxas: another one than its own, in full; empty for its own.

        Raises:
            FactError: it is no commit of Triton.
        """
        clone = self.require(label)
        version = _version(clone, commit)
        (row,) = triton_history.read(clone, commit, commit)
        builds = CommitBuilds(clone, settings.load(self.env), workspace.default())
        source = CommitSource(clone, self.env, version, builds.content(row))
        python = str(builds.interpreter(row))
        return Side(Triton(label, python=python, ptxas=ptxas, commit=commit, source=source), row, builds)

    def require(self, what: str) -> Path:
        """Return the clone.

        Raises:
            UsageError: there is none.
        """
        if self.clone is None:
            hints = ["run this in a checkout of Triton, or name one: --source CLONE"]
            raise UsageError(f"{what} needs a clone of Triton", where=Path.cwd(), hints=hints)
        return self.clone

    def _resolved(self, word: str, flag: str) -> str:
        """Return the commit that a word names; empty if it names none."""
        if word.startswith(_COMMIT):
            with git_history.opened(self.require(f"{flag} {word}")) as repository:
                if commit := git_history.resolve(repository, word.removeprefix(_COMMIT).strip()):
                    return commit
            raise UsageError(f"{flag}: no {word}", where=self.clone, hints=["git fetch --all --tags"])
        # A number is the release and `pytorch:2.9` is one, whatever tags there are; and a file is a file.
        if self.clone is None or not word or _RELEASE.fullmatch(word) or ":" in word or Path(word).is_file():
            return ""
        with git_history.opened(self.clone) as repository:
            return git_history.resolve(repository, word)

    def _other(self, text: str, flag: str) -> Triton:
        try:
            return rehearsal.parse_side(text, flag)
        except UsageError as error:
            here = f"commits, tags and branches are those of {self.clone}: git fetch --all --tags"
            none = "commits, tags and branches need a clone of Triton: --source CLONE"
            # Most words that no list of Tritons has are commits: `HEAD`, outside of a checkout.
            hints = [*error.hints, here] if self.clone else [none, *error.hints]
            what = error.what if flag in error.what else f"{flag}: {error.what}"
            raise UsageError(what, where=error.where, why=error.why, hints=hints) from error


def _clone(source: Path | None) -> Path | None:
    if source is None:
        return checkout.enclosing(Path.cwd())
    folder = source.expanduser().absolute()
    if not folder.is_dir():
        raise UsageError("--source is not a folder", where=folder, hints=["give a clone of Triton"])
    # A folder inside a checkout stands for it; a bare clone has no such folders, and is taken as it is.
    return checkout.enclosing(folder) or folder


def _version(clone: Path, commit: str) -> str:
    """Return the version of a commit's package; empty if its text does not tell.

    Raises:
        FactError: the commit has no such package.
    """
    with git_history.opened(clone) as repository:
        text = git_history.text_at(repository, commit, _PACKAGE)
    if text is None:
        hints = ["--source takes a clone of Triton, or of a fork"]
        what = f"this is no commit of Triton: it has no {_PACKAGE}"
        raise FactError(what, where=f"{clone} at {commit[:SHORT]}", hints=hints)
    match = _VERSION.search(text)
    return match[1] if match else ""


def _working_tree(clone: Path) -> tuple[str, str, tuple[str, ...]]:
    """Return the commit of a clone's working tree, its label, and notes."""
    head = git.head(clone)
    if head.problem:
        raise FactError("git cannot read this checkout", where=clone, why=head.problem)
    folder = git.git_folder(clone)
    # Bare, or `git clone --no-checkout`: without an index all files would count as deleted.
    if folder is None or not untrusted.is_file(folder / "index"):
        with git_history.opened(clone) as repository:
            commit = git_history.resolve(repository, "HEAD")
        if not commit:
            raise FactError("this repository has no commit", where=clone)
        return commit, f"HEAD {commit[:SHORT]}", ()
    commit = _commit_of_changes(clone, head, folder / "index") if head.dirty else head.commit
    label = f"HEAD {head.commit[:SHORT]}" + (" + changes" if commit != head.commit else "")
    return commit, label, tuple(_untracked(clone, label))


def _untracked(clone: Path, label: str) -> Iterator[str]:
    listed = git.look(clone, "ls-files", "--others", "--exclude-standard", "-z")
    names = [name for name in listed.out.split("\0") if name] if listed and not listed.code else []
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        shown = ", ".join(names[:_NAMED])
        number, are = counted(len(names), "untracked file"), "is" if len(names) == 1 else "are"
        yield f"{number} {are} not in {label}: {shown}{more}; `git add -N` would add them"


def _commit_of_changes(clone: Path, head: GitHead, index: Path) -> str:
    """Return a commit of the tracked files as they are now, whose parent is HEAD; HEAD if they are alike.

    `git stash create` would do, but it refreshes the index, and makes another commit each second.

    Raises:
        FactError: git cannot make it.
    """
    dates = {f"GIT_{who}_DATE": head.committed for who in ("AUTHOR", "COMMITTER")}
    names = {f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in _WHO.items()}
    with files.scratch("changes") as scratch:
        # In a copy of the index, which knows what was only added so far. Git compares the time of the index
        # with those of the files: in one that is younger, a file that was written in the same moment as the
        # index, and at the same size, would count as unchanged (git's Documentation/technical/racy-git).
        files.copy(index, scratch / "index", dated=True)
        own = {**dates, **names, "GIT_INDEX_FILE": str(scratch / "index")}
        # Submodules are passed over: to see whether one changed, git would run by the settings of that one.
        _git(clone, "-c", "diff.ignoreSubmodules=all", "add", "--update", change=own, compares=True)
        # It compares, too: a file that was written in the second of the index is read once more.
        tree = _git(clone, "write-tree", change=own, compares=True)
        if tree == _git(clone, "rev-parse", f"{head.commit}^{{tree}}"):
            return head.commit
        return _git(clone, "commit-tree", tree, "-p", head.commit, "-m", "Uncommitted changes", change=own)


def _git(clone: Path, *arguments: str, change: dict[str, str] | None = None, compares: bool = False) -> str:
    answer = git.look(clone, *arguments, files=compares, change=change)
    if answer is None or answer.code:
        why = answer.err if answer else "git did not finish in time"
        raise FactError("git cannot make a commit of the changes", where=clone, why=why)
    return answer.out


def _merge_base(clone: Path, head: str) -> tuple[str, str]:
    """Return the branch that a commit left last, and the last commit that they have in common.

    Raises:
        UsageError: there is no main, or nothing in common with it.
    """
    bases: list[tuple[int, str, str]] = []
    for name in _MAINS:
        try:
            commit = triton_history.branch_point(clone, head, name)
        except FactError:  # no such branch
            continue
        if commit:
            bases.append((int(_git(clone, "rev-list", "--count", f"{commit}..{head}")), name, commit))
    if not bases:
        with git_history.opened(clone) as repository:
            shallow = git_history.is_shallow(repository)
        why = "the clone is shallow: its history is cut off" if shallow else None
        hints = ["--base COMMIT", "git fetch --unshallow" if shallow else "git fetch origin main"]
        raise UsageError("nothing in common with a branch main", where=clone, why=why, hints=hints)
    # A local main is often behind that of origin, and then has less in common than the branch was made with.
    _, name, commit = min(bases, key=lambda row: row[0])
    return name, commit
