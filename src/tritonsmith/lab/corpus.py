"""A corpus of kernels: a folder with a list, `kernels.toml`, and copies of their sources.

CORPUS/kernels.toml
CORPUS/sources/KEY/...       a kernel's file and its imports; KEY is a hash of all of them
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from tritonsmith.compiler import manifest, signature, source_tree, targets
from tritonsmith.compiler.kernels import kernel_list, kernels_file
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import folder_name
from tritonsmith.compiler.source_tree import KernelSources, TreeReader
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import SmithError, UsageError, did_you_mean
from tritonsmith.core.plan import Copy, Plan, RemoveWritten, Step, Write, files, locks
from tritonsmith.core.text import counted
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid

FILE = source_tree.COPIED_LIST
SOURCES = source_tree.COPIES
_HEAD = """A corpus of kernels, which `invoke compare --corpus-add` and `--corpus-make` write, and every mode
of `invoke compare` takes. The sources are copies."""
_PHASE = "corpus"

STATES = ("new", "changed", "same", "removed", "not added")
_WIDTH = 44  # characters of what a kernel is compiled with

State = Literal["new", "same", "changed", "not added", "removed"]


@dataclass(frozen=True)
class CorpusChange:
    """The change to one kernel of the corpus.

    Attributes:
        name: in the corpus; in the list, where it was not added.
        state: in comparison with the corpus before.
        why: the reason why it was not added.
    """

    name: str
    state: State
    why: str = ""


@dataclass(frozen=True)
class CorpusUpdate:
    """A change of a corpus.

    Attributes:
        plan: the steps.
        changes: of each kernel.
        notes: remarks for the user.
    """

    plan: Plan
    changes: tuple[CorpusChange, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Corpus:
    """A corpus.

    Attributes:
        folder: its folder, which may not exist yet.
    """

    folder: Path

    @property
    def file(self) -> Path:
        """The list of its kernels."""
        return self.folder / FILE

    def kernels(self) -> tuple[ListedKernel, ...]:
        """Return its kernels; none where there is no list yet.

        Raises:
            ConfigError: the list is wrong.
        """
        return kernel_list.read(self.file) if self.file.is_file() else ()

    def held(self, task: str) -> AbstractContextManager[None]:
        """Lock it against other changes by this workspace.

        Raises:
            LockedError: another process changes it.
        """
        space = workspace.default()
        space.claim()
        # Two commands that change it at once would each write the list that they read, and lose a kernel.
        place = manifest.scratch_folder(self.folder, space)
        files.make_folder(place)
        purpose = f"{task} --corpus {self.folder}"
        return locks.hold(
            place / "lock", purpose=purpose, busy="in this corpus", hints=["wait for it to end"]
        )


def named(folder: Path | None) -> Corpus:
    """Return the corpus of a folder; the workspace's if None."""
    return Corpus(folder or workspace.default().root / "corpus")


def kernels_file_of(kernels: str, folder: Path | None) -> tuple[Path, str]:
    """Return the kernels file of a rehearsal, and the name of one of its kernels; else those of the corpus.

    Args:
        kernels: kernels file, or FILE:NAME; empty for the corpus.
        folder: folder of the corpus; None for the workspace's.

    Raises:
        UsageError: the text is not a kernels file, both are given, or the corpus is empty.
    """
    if not kernels:
        corpus = named(folder)
        if not corpus.file.is_file():
            raise empty(corpus)
        return corpus.file, ""
    if folder:
        raise UsageError("a kernels file and --corpus contradict each other", hints=["omit one of them"])
    if (listed := kernels_file.named(kernels)) is None:
        hints = ["invoke compare captured.toml --from 3.6.0 --to 3.9.0"]
        raise UsageError(f"{kernels!r} is not a kernels file", hints=hints)
    return listed


def add(corpus: Corpus, path: Path, folder: Path | None = None, loads: Sequence[str] = ()) -> CorpusUpdate:
    """Merge a kernels file into a corpus.

    Args:
        corpus: the corpus.
        path: the kernels file.
        folder: the folder that the kernels' files are relative to; that of the kernels file if None.
        loads: patterns of files that each kernel needs besides, relative to the root of its sources.

    Raises:
        SmithError: the kernels file is wrong.
    """
    # Each list chooses its own names, so one name may mean two kernels, and two names one.
    known = {_identity(entry): entry for entry in corpus.kernels()}
    trees: dict[str, KernelSources] = {}
    reader = source_tree.TreeReader(loads=loads)
    changes = []
    entries, notes = kernels_file.read(path)
    for entry in entries:
        try:
            kept, tree = _copied(folder or path.parent, entry, reader)
            if tree.key not in trees:
                _check_copy(corpus, tree)
        except SmithError as error:  # one kernel that cannot be copied does not keep the others out
            changes.append(CorpusChange(entry.name, "not added", f"{error.what}: {error.where}"))
            continue
        trees[tree.key] = tree
        # Of the same function, file name, arguments, options, targets and versions: its sources may differ.
        old = known.get(_identity(kept))
        name = old.name if old else _free(entry.name, known.values())
        known[_identity(kept)] = replace(kept, name=name)
        state: State = "new" if old is None else "same" if old.file == kept.file else "changed"
        changes.append(CorpusChange(name, state))
    steps = [_write(corpus, list(known.values())), *_stale(corpus, known.values())] if known else []
    used = {_key(entry) for entry in known.values()}
    # The sources first, then the list, then what is stale: after a kill, the list names only what is there.
    copies = (step for key, tree in trees.items() if key in used for step in _copies(corpus, tree))
    return CorpusUpdate(Plan("change the corpus", (*copies, *steps)), tuple(changes), notes)


def remove(corpus: Corpus, patterns: Sequence[str]) -> CorpusUpdate:
    """Take kernels out of a corpus, with the sources that no other kernel needs.

    Args:
        corpus: the corpus.
        patterns: names, or globs of them.

    Raises:
        UsageError: a pattern fits no kernel.
    """
    every = corpus.kernels()
    for pattern in patterns:
        if not any(_fits(entry, pattern) for entry in every):
            hints = did_you_mean(pattern, [entry.name for entry in every])
            raise UsageError(f"this corpus has no kernel {pattern!r}", where=corpus.file, hints=hints)
    gone = [entry for entry in every if any(_fits(entry, pattern) for pattern in patterns)]
    left = [entry for entry in every if entry not in gone]
    # A kernels file without an entry is an error for every reader: the last kernel takes the file along.
    written = _write(corpus, left) if left else RemoveWritten((corpus.file,), (), phase=_PHASE)
    plan = Plan("change the corpus", (written, *_stale(corpus, left)))
    return CorpusUpdate(plan, tuple(CorpusChange(entry.name, "removed") for entry in gone))


def empty(corpus: Corpus) -> UsageError:
    """Return the error of a command that needs kernels, where there are none."""
    return UsageError(
        "this corpus has no kernels yet",
        where=corpus.folder,
        hints=[
            f"{command('compare --corpus-add', 'captured.toml')} adds those of a list: docs/compare.md",
            f"{command('compare --corpus-make')} adds those of public packages",
        ],
    )


def _copied(folder: Path, entry: ListedKernel, reader: TreeReader) -> tuple[ListedKernel, KernelSources]:
    """Return the corpus' entry for an entry of a list, and its sources.

    Raises:
        SmithError: a file cannot be read, the kernel is not in it, or an argument is missing.
    """
    file = Path(os.path.normpath(folder / entry.file))  # links stay: a package may be one
    request = entry.request(folder, targets.default()) if file.suffix == ".py" else None
    if request:  # patterns are for files that change, and a copy does not
        entry = replace(entry, kernel=request.kernel, signature=request.signature, arguments={})
    tree = reader.of(file, entry.kernel, entry.module)
    return replace(entry, file=f"{SOURCES}/{tree.key}/{tree.main}", sha256=tree.sha256), tree


def _identity(entry: ListedKernel) -> tuple[object, ...]:
    """Return the identity of an entry, which does not depend on its name or its launches."""
    # Nor on the folder of its file: the next capture may be of another checkout.
    file = entry.module or entry.file.rpartition("/")[2]
    options = tuple(sorted((name, repr(value)) for name, value in entry.options.items()))
    return (file, entry.kernel, entry.signature, options, entry.targets, str(entry.versions))


def _free(name: str, known: Iterable[ListedKernel]) -> str:
    """Return the name, or the first of NAME-2, NAME-3 ... that no kernel has."""
    # By the names of folders, as each kernel is compiled into one, and two names may give the same.
    taken = {folder_name(entry.name) for entry in known}
    number, free = 1, name
    while folder_name(free) in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _fits(entry: ListedKernel, pattern: str) -> bool:
    return entry.name == pattern or fnmatchcase(entry.name, pattern)


def _key(entry: ListedKernel) -> str:
    # An entry that a person wrote into the list has its file elsewhere, and no key: nothing of it is removed.
    return entry.file.split("/")[1] if entry.file.startswith(f"{SOURCES}/") else ""


def _write(corpus: Corpus, kernels: Iterable[ListedKernel]) -> Write:
    return Write(corpus.file, kernel_list.render_kernels(map(kernel_list.row, kernels), _HEAD), phase=_PHASE)


def _copies(corpus: Corpus, tree: KernelSources) -> Iterator[Step]:
    for name, _ in tree.sums:
        place = corpus.folder / SOURCES / tree.key / name
        yield Copy(tree.root / name, place, root=corpus.folder, phase=_PHASE)


def _check_copy(corpus: Corpus, tree: KernelSources) -> None:
    """Check that a copy that is there already was not edited, which another copy would undo.

    Raises:
        SmithError: a person has edited it.
    """
    for name, content in tree.sums:
        place = corpus.folder / SOURCES / tree.key / name
        if place.is_file() and source_tree.sum_of(place) != content:
            raise SmithError("its copy in the corpus was edited, and would be lost", where=place)


def _stale(corpus: Corpus, kernels: Iterable[ListedKernel]) -> Iterator[RemoveWritten]:
    """Yield steps that remove the sources of no kernel, if they are as they were written."""
    used = {_key(entry) for entry in kernels}
    for entry in {_key(entry): entry for entry in corpus.kernels()}.values():
        if _key(entry) in used:
            continue
        folder = corpus.folder / SOURCES / _key(entry)
        below = list(folder.rglob("*"))
        # A link to a folder is none of ours, so there is something that a person has added.
        paths = tuple(sorted(path for path in below if path.is_symlink() or not path.is_dir()))
        # A copy that a person has edited has another hash, and stays.
        if _written(folder, entry, [path for path in paths if path.parent.name != source_tree.BYTECODE]):
            # Also one without files, as a cleaner of bytecode leaves it: rmdir(2) removes only empty ones.
            folders = {folder, *below} - set(paths)
            deepest_first = sorted(folders, key=lambda path: -len(path.parts))
            yield RemoveWritten(paths, tuple(deepest_first), phase=_PHASE)


def _written(folder: Path, entry: ListedKernel, paths: Sequence[Path]) -> bool:
    # The key is a hash of all files, so it also tells whether they are still the same.
    main = entry.file.removeprefix(f"{SOURCES}/{_key(entry)}/")
    try:
        sums = [(path.relative_to(folder).as_posix(), source_tree.sum_of(path)) for path in paths]
    except SmithError:
        return False
    return KernelSources(folder, main, tuple(sorted(sums))).key == _key(entry)


def table(kernels: Sequence[ListedKernel]) -> Grid:
    """Return a table with a line for each kernel."""
    rows = [
        [
            entry.name,
            f"{entry.module or entry.file.rpartition('/')[2]}:{entry.kernel}",
            tables.clipped(entry.signature, _WIDTH),
            ", ".join(f"{name}={signature.spell_value(value)}" for name, value in entry.options.items()),
            ", ".join(map(str, entry.targets)),
            str(entry.count or ""),
        ]
        for entry in kernels
    ]
    columns = ["kernel", "from", "signature", "options", "targets", "launches"]
    return tables.plain(counted(len(kernels), "kernel"), columns, rows, right=["launches"])


def as_json(corpus: Corpus, kernels: Sequence[ListedKernel]) -> dict[str, Any]:
    """Return the kernels, with absolute paths of their copies."""
    rows = [
        {
            "name": entry.name,
            "kernel": entry.kernel,
            "file": str(corpus.folder / entry.file),
            "module": entry.module,
            "signature": entry.signature,
            "options": dict(entry.options),
            "targets": list(map(str, entry.targets)),
            "versions": str(entry.versions),
            "configs": len(entry.configs),
            "launches": entry.count,
        }
        for entry in kernels
    ]
    return {"schema": 1, "corpus": str(corpus.folder), "kernels": rows}


def summary(changes: Sequence[CorpusChange]) -> Iterator[str]:
    """Yield a line for each state: how many kernels, and which; those that are the same are not named."""
    for state in STATES:
        names = [change.name for change in changes if change.state == state]
        if names and state != "not added":  # the error names them
            yield f"{len(names)} {state}" + (f": {', '.join(names)}" if state != "same" else "")


def changes_as_json(corpus: Corpus, changes: Sequence[CorpusChange]) -> dict[str, Any]:
    """Return all changes."""
    rows = [{"name": change.name, "state": change.state, "why": change.why} for change in changes]
    return {"schema": 1, "corpus": str(corpus.folder), "changes": rows}
