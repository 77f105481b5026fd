"""List the commits of a Triton clone in landing order, and which of them share libraries.

One run of git lists the changes of all of them, file by file. Properties of a commit's whole tree, such as
the key of its native tree, are followed from change to change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tritonsmith.core.errors import FactError
from tritonsmith.facts import git, git_history

if TYPE_CHECKING:
    from git import Repo

Area = Literal["common", "nvidia", "amd"]

# What the compiler's libraries are built from. A file too many is harmless: a build then has nothing to do.
_NATIVE = re.compile(
    r"(?:(?:bin|cmake|include|lib|python/src|third_party)/.*(?<!\.py)"
    r"|(?:python/)?(?:CMakeLists\.txt|pyproject\.toml|setup\.py))"
)
_PYTHON = re.compile(r"python/triton/.*|third_party/\w+/(?:backend|language)/.*")
_ASIDE = re.compile(r"(?:^|/)(?:docs?|tests?|tutorials|unittest)/|\.(?:md|rst)$")
_INCLUDED = (".def", ".h", ".hpp", ".inc", ".td")
_PROFILER = "third_party/proton/"  # changes the code only of what it profiles
_VENDORS: tuple[tuple[re.Pattern[str], Area], ...] = (
    (re.compile(r"third_party/nvidia/|python/triton/(?:[\w/]+/)?(?:cuda|nvidia)/"), "nvidia"),
    (re.compile(r"third_party/amd/|python/triton/(?:[\w/]+/)?(?:amd|hip)/"), "amd"),
)
_PIN_FILES = {"cmake/llvm-info.json", "cmake/llvm-hash.txt", "python/setup.py"}

_RECORD, _FIELD = "\x01", "\x02"
_FORMAT = "--format=%x01%H%x02%P%x02%aI%x02%s"
_NONE = "000000"  # the mode of a file that is not there
_WIDTH = 16  # bytes of a native tree's key
_UNDOES = re.compile(r"(?:\[[^\]]*\]\s*)*\W*(?:revert|re-?land|re-?apply)", re.IGNORECASE)


@dataclass(frozen=True)
class TritonCommit:
    """A commit on the way from one commit to a later one, along first parents.

    Attributes:
        commit: 40 hex digits.
        parents: their hashes. The changes of a merge are those against the first one.
        date: when its author wrote it, ISO 8601.
        subject: the first line of its message.
        pin: the LLVM that it names; empty if it names none.
        bump: whether it names another LLVM than the commit before.
        native: key of the native tree. Commits with one key give the same libraries on the same LLVM.
        areas: the code that it may change; empty for tests, documents, workflows and the profiler.
        sources: number of native files that it changed.
        headers: number of headers or tables among them, which others include.
    """

    commit: str
    parents: tuple[str, ...]
    date: str
    subject: str
    pin: str
    bump: bool
    native: str
    areas: frozenset[Area]
    sources: int
    headers: int

    @property
    def pull(self) -> int | None:
        """The pull request that the subject ends with; None if there is none."""
        number = git_history.own_number(self.subject)
        return int(number) if number else None

    @property
    def undoes(self) -> bool:
        """Report whether the subject says that this reverts something, or lands something again."""
        return bool(_UNDOES.match(self.subject))

    @property
    def named(self) -> tuple[int, ...]:
        """The other pull requests in the subject: those that this reverts, or lands again."""
        return tuple(
            number for text in git_history.pull_numbers(self.subject) if (number := int(text)) != self.pull
        )

    def concerns(self, vendor: Area) -> bool:
        """Return whether this may change the code for a vendor's GPUs."""
        return not self.areas.isdisjoint({"common", vendor})


@dataclass(frozen=True)
class FileChange:
    """A file before and after a change: mode and blob, as one word each; None where it is missing."""

    path: str
    before: str | None
    after: str | None


def read(clone: Path, good: str, bad: str) -> tuple[TritonCommit, ...]:
    """Return the commits from one to a later one, both included, oldest first.

    Args:
        clone: a repository of Triton, with a work tree or bare; it is not changed.
        good: the earlier commit, a tag or a branch.
        bad: the later one.

    Raises:
        FactError: no repository, a name without a commit, or the earlier one is no ancestor of the later.
    """
    with git_history.opened(clone) as repository:
        first, last = _commit(repository, clone, good), _commit(repository, clone, bad)
        if _merge_base(repository, first, last) != first:
            raise FactError(
                f"{good} is not an ancestor of {bad}",
                where=clone,
                why="history does not order the commits of two branches",
                hints=[f"start where they part: git merge-base {good} {bad}"],
            )
        return tuple(_followed(repository, clone, first, last))


def branch_point(clone: Path, branch: str, main: str) -> str:
    """Return the last commit of `main` in a release branch: 40 hex digits; empty if there is none.

    Raises:
        FactError: no repository, or a name without a commit.
    """
    with git_history.opened(clone) as repository:
        return _merge_base(repository, _commit(repository, clone, branch), _commit(repository, clone, main))


def imported(clone: Path, commit: str, folders: Sequence[str]) -> str:
    """Return a digest of the files of a commit that Python may import from some folders: 32 hex digits.

    Raises:
        FactError: git cannot list them.
    """
    # Git passes over a folder that the commit lacks. Blobs are compared by name, so none is read.
    listed = _output(clone, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *folders).split("\0")
    rows = sorted(row for row in listed if row and not _ASIDE.search(row.partition("\t")[2]))
    return hashlib.blake2b("\0".join(rows).encode(), digest_size=_WIDTH).hexdigest()


def _commit(repository: Repo, clone: Path, name: str) -> str:
    if resolved := git_history.resolve(repository, name):
        return resolved
    shallow = git_history.is_shallow(repository)
    why = "the clone is shallow: its history is cut off" if shallow else None
    hints = ["git fetch --unshallow" if shallow else "git fetch --all --tags"]
    raise FactError(f"no commit, tag or branch named {name!r}", where=clone, why=why, hints=hints)


def _merge_base(repository: Repo, commit: str, other: str) -> str:
    bases = repository.merge_base(commit, other)
    return str(bases[0]) if bases else ""


def _followed(repository: Repo, clone: Path, first: str, last: str) -> Iterator[TritonCommit]:
    before, pin, key = "", "", 0
    for head, changes in (*log(clone, "-1", first), *log(clone, f"{first}..{last}")):
        commit, parents, date, subject = head
        # At the start, and where history came by a merge from elsewhere, the change to the commit before is
        # not known: the whole tree is read.
        apart = not before or parents[0] != before
        if apart:
            key = 0
        for change in _tree(clone, commit) if apart else changes:
            key += _weight(change.path, change.after) - _weight(change.path, change.before)
        # The pin is read where its file changed only: each read asks git for a blob.
        named = pin
        if apart or not _PIN_FILES.isdisjoint(change.path for change in changes):
            named = git_history.llvm_at(repository, commit)
        paths = [change.path for change in changes]
        sources = [path for path in paths if _is_native(path)]
        yield TritonCommit(
            commit=commit,
            parents=parents,
            date=date,
            subject=subject,
            pin=named,
            bump=bool(before) and named != pin,
            # A sum of hashes may be negative or longer than a hash; modulo its width it is neither.
            native=f"{key % (1 << 8 * _WIDTH):0{2 * _WIDTH}x}",
            areas=frozenset(area for path in paths if (area := _area(path))),
            sources=len(sources),
            headers=sum(path.endswith(_INCLUDED) for path in sources),
        )
        before, pin = commit, named


# Cached, as `_area` is: thousands of commits change the same files again and again.
@cache
def _is_native(path: str) -> bool:
    return bool(_NATIVE.fullmatch(path)) and not _ASIDE.search(path)


@cache
def _area(path: str) -> Area | None:
    if path.startswith(_PROFILER) or _ASIDE.search(path):
        return None
    if not (_is_native(path) or _PYTHON.fullmatch(path)):
        return None
    return next((area for pattern, area in _VENDORS if pattern.match(path)), "common")


def _weight(path: str, content: str | None) -> int:
    """Return a file's part of its tree's key."""
    if content is None or not _is_native(path):
        return 0
    # The key of a tree is the sum of its files' hashes, so a commit's change is one addition and one
    # subtraction for each file: no tree of 3000 files is listed again for each of 2000 commits.
    return int.from_bytes(hashlib.blake2b(f"{path}\0{content}".encode(), digest_size=_WIDTH).digest())


def _tree(clone: Path, commit: str) -> Iterator[FileChange]:
    """Yield all files of a commit, as if it had added them."""
    for entry in _output(clone, "ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
        if entry:
            words, _, path = entry.partition("\t")
            mode, _, blob = words.split()
            yield FileChange(path, None, f"{mode} {blob}")


_Head = tuple[str, tuple[str, ...], str, str]


def log(clone: Path, *span: str) -> Iterator[tuple[_Head, list[FileChange]]]:
    """Yield commits along first parents, oldest first: hash, parents, date, subject; and their changes.

    No content of a file is read, so that a clone without any (`--filter=blob:none`) works as well.

    Raises:
        FactError: git cannot list them.
    """
    # Only blobs' names are compared, which a clone without contents has. A rename is a removal and an
    # addition, as for the key.
    compared = ("--diff-merges=first-parent", "--root", "--raw", "-r", "--no-renames", "--no-abbrev", "-z")
    order = ("--first-parent", "--reverse", "--no-show-signature", "--no-ext-diff")
    output = _output(clone, "log", *order, *compared, _FORMAT, *span)
    for record in output.split(_RECORD)[1:]:
        head, *words = record.split("\0")
        commit, parents, date, subject = head.split(_FIELD, 3)
        changes = []
        for states, path in zip(words[::2], words[1::2], strict=False):
            # `:100644 100755 BLOB BLOB M`, then the path; the first follows the subject's line feed.
            if states.lstrip("\n").startswith(":"):
                old, new, from_blob, to_blob, _ = states.lstrip("\n")[1:].split()
                changes.append(
                    FileChange(
                        path,
                        None if old == _NONE else f"{old} {from_blob}",
                        None if new == _NONE else f"{new} {to_blob}",
                    )
                )
        yield (commit, tuple(parents.split()), date, subject), changes


def _output(clone: Path, *arguments: str) -> str:
    answer = git.look(clone, *arguments)
    if answer is None or answer.code:
        why = answer.err if answer else "git did not finish in time"
        raise FactError("git cannot list the history of this clone", where=clone, why=why)
    return answer.out
