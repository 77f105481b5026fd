"""List the commits of LLVM between two pins, and the commits of Triton that moved the pin.

No content of a file is read: a partial clone (`--filter=blob:none`) fetches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tritonsmith.core import configs
from tritonsmith.core.errors import FactError
from tritonsmith.facts import git, triton_history
from tritonsmith.facts.triton_history import FileChange, TritonCommit

_PROMISED = r"^(extensions\.partialclone|remote\..*\.promisor)$"
_HEADERS = (".def", ".h", ".inc", ".td")
_PLAIN = re.compile(r"[^a-z0-9]")


@dataclass(frozen=True)
class LlvmHistory:
    """The commits from one pin to a later one.

    Attributes:
        commits: both pins included, oldest first. `sources` counts files that llc is built from; `areas` is
            empty for a commit that touches neither this code generator nor the code shared by all of them.
        changed: commit to the files that it changed, as far as they lie in LLVM or MLIR.
    """

    commits: tuple[TritonCommit, ...]
    changed: dict[str, tuple[str, ...]]

    def touching(self, paths: Iterable[str]) -> tuple[TritonCommit, ...]:
        """Return the commits that changed any of these files, without the first one."""
        files = frozenset(paths)
        return tuple(
            commit for commit in self.commits[1:] if not files.isdisjoint(self.changed[commit.commit])
        )

    @property
    def near(self) -> tuple[TritonCommit, ...]:
        """The commits that touch the code generator, or the code that all generators share."""
        return tuple(commit for commit in self.commits[1:] if commit.areas)

    @property
    def candidates(self) -> tuple[TritonCommit, ...]:
        """The first commit, and all that change a file from which llc is built: others have the same llc."""
        return (self.commits[0], *(commit for commit in self.commits[1:] if commit.sources))


def read(clone: Path, old: str, new: str, targets: tuple[str, ...]) -> LlvmHistory:
    """Return the commits between two pins.

    Args:
        clone: a clone of LLVM, with a work tree or bare, possibly partial; it is not changed.
        old: the earlier pin, 40 digits.
        new: the later one.
        targets: the code generators: `NVPTX`.

    Raises:
        FactError: the clone lacks a commit, or the earlier one is no ancestor of the later.
    """
    for commit in (old, new):
        # In a partial clone git would fetch a missing commit; `look` forbids it.
        answer = git.look(clone, "cat-file", "-e", f"{commit}^{{commit}}")
        if answer is None or answer.code:
            hints = [f"git fetch {configs.load('bisect')['llvm']['page']} {commit}"]
            raise FactError(f"the clone of LLVM has no {commit[:12]}", where=clone, hints=hints)
    answer = git.look(clone, "merge-base", "--is-ancestor", old, new)
    if answer is None or answer.code:
        why = "the pin moved back or is on a branch, or the clone is shallow"
        raise FactError(f"LLVM's {old[:12]} is not an ancestor of {new[:12]}", where=clone, why=why)
    table = configs.load("bisect")["llvm"]
    built, near = (
        re.compile(table[name].replace("TARGET", f"(?:{'|'.join(targets)})")) for name in ("built", "near")
    )
    commits, changed = [], {}
    # `A..B` is without A itself, which is the good end of a search.
    for head, changes in (*triton_history.log(clone, "-1", old), *triton_history.log(clone, f"{old}..{new}")):
        commits.append(_commit(head, changes, built, near))
        changed[head[0]] = tuple(
            change.path for change in changes if change.path.startswith(("llvm/", "mlir/"))
        )
    return LlvmHistory(tuple(commits), changed)


def is_partial(clone: Path) -> bool:
    """Return whether a clone lacks contents of files, which git would fetch."""
    answer = git.look(clone, "config", "--get-regexp", _PROMISED)
    return answer is not None and answer.code == 0


def files_of(clone: Path, commit: str, pass_name: str) -> tuple[str, ...]:
    """Return the files of a pass of LLVM or MLIR at a commit, by file and folder names; empty if none fits.

    `InstCombinePass` is in `llvm/lib/Transforms/InstCombine`, `cse` in `mlir/lib/Transforms/CSE.cpp`.
    """
    answer = git.look(clone, "ls-tree", "-r", "-z", "--name-only", commit, "llvm/lib", "mlir/lib")
    plain = _plain(pass_name).removesuffix("pass")
    if answer is None or answer.code or not plain:
        return ()
    return tuple(path for path in answer.out.split("\0") if path and plain in _names(path))


def _names(path: str) -> Iterator[str]:
    """Yield the possible names of a source: its own and its folder's, as one word each."""
    file = PurePosixPath(path)
    if file.suffix in (".cpp", ".h", ".td"):
        yield _plain(file.stem).removesuffix("pass")
        yield _plain(file.parent.name)


def _plain(name: str) -> str:
    return _PLAIN.sub("", name.lower())


def _commit(
    head: tuple[str, tuple[str, ...], str, str],
    changes: list[FileChange],
    built: re.Pattern[str],
    near: re.Pattern[str],
) -> TritonCommit:
    commit, parents, date, subject = head
    sources = [change.path for change in changes if built.match(change.path)]
    return TritonCommit(
        commit=commit,
        parents=parents,
        date=date,
        subject=subject,
        pin="",
        bump=False,
        native=commit,
        areas=frozenset({"common"}) if any(near.match(path) for path in sources) else frozenset(),
        sources=len(sources),
        headers=sum(path.endswith(_HEADERS) for path in sources),
    )


_PIN_FILES = ("cmake/llvm-hash.txt", "cmake/llvm-info.json")
_HEAD = "bump "  # before each commit
_FORMAT = f"--format={_HEAD}%H %cs"
_SIDES = 6  # commits to look at on each side of the checkout


@dataclass(frozen=True)
class Bump:
    """A commit that changed the pin, and adapted the sources to that LLVM.

    Attributes:
        commit: 40 hex digits.
        date: ISO 8601.
        files: the files that it changed, as git names them; no added or removed ones.
        distance: 0 for the bump to the checkout's own pin, and for the next one; 1 for those beyond.
        after: whether HEAD lacks it still.
    """

    commit: str
    date: str
    files: tuple[str, ...]
    distance: int
    after: bool = False


def bumps_around(root: Path) -> tuple[Bump, ...]:
    """Return the bumps before and after HEAD, the nearest first; later ones as far as a branch here has them.

    A root of the history is none, nor is the end of a shallow clone: there everything is new.
    """
    before = _bumps(root, f"-n{_SIDES}", "HEAD")
    # Bumps after HEAD are on branches that contain it: a checkout in the past lacks
    # adaptions that exist already.
    holding = ("for-each-ref", "--contains=HEAD", "--format=%(refname)")
    branches = _output(root, *holding, "refs/remotes", "refs/heads", "refs/tags")
    after: tuple[Bump, ...] = ()
    for branch in _likely_main(branches.splitlines()):
        after = _bumps(root, "--reverse", "--ancestry-path", f"HEAD..{branch}")[:_SIDES]
        if after:
            break
    later = (replace(bump, after=True) for bump in after)
    return tuple(sorted((*before, *later), key=lambda bump: bump.distance))


def _likely_main(branches: list[str]) -> list[str]:
    """Return three branches that contain HEAD, upstream's first."""
    # Few, because each costs a walk through history.
    return sorted(branches, key=lambda name: (not name.endswith(("/HEAD", "/main", "/master")), name))[:3]


def _bumps(root: Path, *arguments: str) -> tuple[Bump, ...]:
    # Modified only: where the pin file is added, the commit is the import of a history or the end
    # of a shallow clone, where everything is new. `--full-diff` shows the other files of the
    # commit besides the pin file.
    modified = ("--diff-filter=M", "--name-only", "--full-diff", "--no-renames")
    options = ("--no-show-signature", *modified, "-z", _FORMAT, *arguments)
    log = _output(root, "log", *options, "--", *_PIN_FILES)
    bumps: list[Bump] = []
    for word in (word.strip("\n") for word in log.split("\0")):
        if word.startswith(_HEAD):
            commit, _, date = word.removeprefix(_HEAD).partition(" ")
            bumps.append(Bump(commit, date, (), len(bumps)))
        elif word and bumps:
            bumps[-1] = replace(bumps[-1], files=(*bumps[-1].files, word))
    return tuple(bumps)


def _output(root: Path, *arguments: str) -> str:
    """Return the output of git; empty if there is no repository, or git fails."""
    answer = git.look(root, *arguments) if (root / ".git").exists() else None
    return "" if answer is None or answer.code else answer.out
