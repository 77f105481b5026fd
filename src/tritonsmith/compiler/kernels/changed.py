"""Find the kernels that a change touches, of which a kernels file has the signature: `--changed`.

A kernel is touched if a statement differs that it needs: of its own file, or of a file that this one imports.
Comments, the layout of the text and docstrings are no difference. Nothing is run, and no Triton is started.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from tritonsmith.compiler import source
from tritonsmith.compiler.kernels import kernel_list, kernels_file
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.source_tree import TreeReader
from tritonsmith.core import untrusted
from tritonsmith.core.errors import ConfigError, SmithError, UsageError
from tritonsmith.core.text import counted
from tritonsmith.facts import git, git_history
from tritonsmith.worker.load import needed

_HEAD = "HEAD"
# What pre-commit compares, where it runs for a range of commits and not for what is about to be committed.
_RANGE = "PRE_COMMIT_FROM_REF"
_TRITON = re.compile(r"^\s*(?:import|from)\s+triton\b", re.MULTILINE)
_WORD = re.compile(r"\w+")
_SETTINGS = "pyproject.toml"
_USUAL = "kernels.toml"


class KernelPlace(NamedTuple):
    """A function with a Triton decorator: its file, the line of its `def`, and its name."""

    file: Path
    line: int
    kernel: str

    def __str__(self) -> str:
        """Return `FILE:LINE: KERNEL`, relative to the current folder as other linters are."""
        return f"{os.path.relpath(self.file)}:{self.line}: {self.kernel}"


@dataclass(frozen=True)
class TouchedKernel:
    """An entry of a kernels file whose kernel a change touches.

    Attributes:
        entry: the entry.
        listed: the kernels file.
        place: the kernel; or, if a file that it needs cannot be parsed, the line where that fails.
        old: its file at the commit, whose name was another one if it was renamed; None if the commit has
            no such kernel.
        old_entry: the entry that the kernels file had for it at the commit; the same if it had none.
    """

    entry: ListedKernel
    listed: Path
    place: KernelPlace
    old: Path | None
    old_entry: ListedKernel


@dataclass(frozen=True)
class TouchedKernels:
    """The kernels that a change touches.

    Attributes:
        commit: what the files were compared with; 40 hex digits.
        listed: the kernels with a signature, in the order of the kernels files.
        unlisted: the touched kernels that no kernels file has.
        unread: entries and files that could not be read, with the reason.
    """

    commit: str
    listed: tuple[TouchedKernel, ...]
    unlisted: tuple[KernelPlace, ...]
    unread: tuple[str, ...]

    @property
    def title(self) -> str:
        """The kernels in a few words: `2 kernels changed since 1a2b3c4d`."""
        many = len({kernel.place for kernel in self.listed}) + len(self.unlisted)
        return f"{counted(many, 'kernel')} changed since {self.commit[:12]}"

    def fitting(self, version: str) -> TouchedKernels:
        """Return those whose entry is for a Triton with this version; the others are not looked at."""
        fitting = tuple(kernel for kernel in self.listed if kernel.entry.fits(version))
        places = {kernel.place for kernel in fitting}
        others = dict.fromkeys(kernel.place for kernel in self.listed if kernel.place not in places)
        left = (f"{place}: its entries are for other Tritons than {version}" for place in others)
        return replace(self, listed=fitting, unread=(*self.unread, *left))

    def notes(self) -> Iterator[str]:
        """Yield what is not looked at, and why."""
        for place in self.unlisted:
            yield f"{place}: not looked at, as no kernels file has its signature"
        yield from (f"not looked at: {text}" for text in self.unread)


def root_of(folder: Path) -> Path:
    """Return the top folder of the repository that a folder is in.

    Raises:
        UsageError: it is in none.
    """
    root = next((place for place in (folder, *folder.parents) if untrusted.exists(place / ".git")), None)
    if root is None:
        hints = ["run it in a git repository", "invoke kernel.lint FILE looks at a kernel as it is"]
        what = "--changed compares with a commit, and this is no git repository"
        raise UsageError(what, where=folder, hints=hints)
    return root


def find(words: Sequence[str], since: str, lists: Sequence[str]) -> TouchedKernels:
    """Return the kernels that differ from a commit.

    Args:
        words: the files to look at; all that differ if empty.
        since: a commit, tag or branch: what HEAD does not share with it is the change; what pre-commit
            compares with, or HEAD, if empty.
        lists: kernels files; those of the repository if empty.

    Raises:
        SmithError: there is no such commit, or a kernels file is wrong.
    """
    root, since = root_of(Path.cwd()), since or os.environ.get(_RANGE) or _HEAD
    named = [_plain_path(Path(word)) for word in words]
    with git_history.opened(root) as repository:
        commit = git_history.resolve(repository, since)
        if not commit:
            more = ["git fetch --unshallow"] if git_history.is_shallow(repository) else []
            hints = ["name the branch that this one will be merged into: --since origin/main", *more]
            raise UsageError(f"no commit, tag or branch {since!r}", where=root, hints=hints)
        base = git.look(root, "merge-base", _HEAD, commit)
        # A shallow clone has no common ancestor, and CI often makes one: then the commit itself counts.
        commit = base.out.strip() if base and base.code == 0 else commit
        changes = git.changes_since(root, commit)
        change = _Change(root, commit, partial(git_history.text_at, repository, commit))
        files = named or list(changes.files)
        changed = tuple(file for file in files if file.suffix == ".py" and change.differs(file))
        paths = tuple(_plain_path(Path(name)) for name in lists) or kernels_files(root)
        # Most commits change no Python that a kernel needs: then no list is read. What was deleted may be in
        # one, and a list that the commit breaks would otherwise pass.
        gone = tuple(file for file in changes.deleted if file.suffix == ".py")
        if not changed and not gone and not {*changes.files, *changes.deleted}.intersection(paths):
            return TouchedKernels(change.commit, (), (), ())
        return change.touched(changed, paths, gone)


def kernels_files(root: Path) -> tuple[Path, ...]:
    """Return the kernels files that a repository names: `[tool.tritonsmith] kernels` of its pyproject.toml.

    Raises:
        ConfigError: the names are no list of texts.
    """
    settings: object = None
    with suppress(OSError, ValueError):
        settings = untrusted.read_toml(root / _SETTINGS).get("tool", {}).get("tritonsmith", {}).get("kernels")
    if settings is None:
        return (root / _USUAL,) if untrusted.is_file(root / _USUAL) else ()
    if not isinstance(settings, list) or not all(isinstance(name, str) for name in settings):
        hints = ['[tool.tritonsmith]\nkernels = ["kernels.toml"]']
        raise ConfigError(
            "[tool.tritonsmith] kernels is not a list of files", where=root / _SETTINGS, hints=hints
        )
    return tuple(_plain_path(root / name) for name in settings)


class _Change:
    """The difference between the files of a repository, as they are, and a commit."""

    def __init__(self, root: Path, commit: str, read: Callable[[str], str | None]) -> None:
        self.root, self.commit = root, commit
        self._read = read
        self._texts: dict[Path, tuple[str, str]] = {}

    @cached_property
    def _renames(self) -> Mapping[Path, str]:
        # Only now: git compares the contents of files for it, and most changes rename none.
        return git.renames(self.root, self.commit)

    def touched(
        self, changed: Sequence[Path], paths: Sequence[Path], deleted: Sequence[Path]
    ) -> TouchedKernels:
        """Return the kernels that changed or deleted files have a part of.

        Args:
            changed: files with other statements than at the commit.
            paths: the kernels files.
            deleted: files that the commit has, and that do not exist.
        """
        modules = frozenset(file.parent.name if file.stem == "__init__" else file.stem for file in deleted)
        reader = TreeReader()
        listed: list[TouchedKernel] = []
        unread: list[str] = []
        known: set[tuple[Path, str]] = set()
        for path in paths:
            entries, notes = kernels_file.read(path)
            unread += notes
            before = self._entries(path)
            for entry in entries:
                file = _plain_path(path.parent / entry.file)
                try:
                    kernel = self._kernel(entry, file, is_changed=file in changed)
                    known.add((file, kernel))
                    if parts := self._touched_parts(file, kernel, changed, modules, reader):
                        place = self._place(file, kernel, parts)
                        was = kernel in source.kernels(self.texts(file)[0])
                        old = self.root / self._old_name(file) if was else None
                        # With its name, as a file that cannot be parsed does not show which one it is.
                        new_entry, old_entry = (
                            replace(row, kernel=kernel) for row in (entry, before.get(_key(entry), entry))
                        )
                        listed.append(TouchedKernel(new_entry, path, place, old, old_entry))
                except SmithError as error:
                    unread.append(f"{entry.name} of {path.name}: {error.what}")
        places = {kernel.place.file for kernel in listed}
        unread += [
            f"{os.path.relpath(file)}: this Python cannot parse line {line}"
            for file in changed
            for text in (self.texts(file)[1],)
            if file not in places and _TRITON.search(text) and (line := source.broken_line(text))
        ]
        unlisted = [
            KernelPlace(file, source.line_of(text, kernel), kernel)
            for file in changed
            for text in (self.texts(file)[1],)
            # Other packages have a `jit` of their own.
            for kernel in (source.launched(text) if _TRITON.search(text) else ())
            if (file, kernel) not in known and self._differs_for(file, kernel)
        ]
        return TouchedKernels(self.commit, tuple(listed), tuple(unlisted), tuple(unread))

    def texts(self, file: Path) -> tuple[str, str]:
        """Return the text of a file at the commit, empty if it has none, and the text as it is."""
        if file not in self._texts:
            # The repository's own spelling: a link in a path given by the user would lead elsewhere.
            name = self._old_name(file)
            self._texts[file] = ((self._read(name) if name else None) or "", source.read(file))
        return self._texts[file]

    def _old_name(self, file: Path) -> str:
        """Return the name of a file at the commit, relative to the repository; empty if it is outside."""
        name = file.relative_to(self.root).as_posix() if file.is_relative_to(self.root) else ""
        return name if not name or self._read(name) is not None else self._renames.get(file, name)

    def _kernel(self, entry: ListedKernel, file: Path, *, is_changed: bool) -> str:
        """Return the kernel of an entry.

        Raises:
            SmithError: its file or the kernel does not exist, or there are several.
        """
        if not is_changed:
            return source.choose(source.read(file), entry.kernel, file)
        old, text = self.texts(file)
        # A file that cannot be parsed has the kernels that it had: to break it changes all of them.
        kernel = source.choose(old if old and source.broken_line(text) else text, entry.kernel, file)
        source.find(text, kernel, file)
        return kernel

    def _place(self, file: Path, kernel: str, parts: Iterable[Path]) -> KernelPlace:
        """Return the place of a kernel; or the line that cannot be parsed in a changed file that it needs."""
        for part in parts:
            if line := source.broken_line(self.texts(part)[1]):
                return KernelPlace(part, line, kernel)
        return KernelPlace(file, source.line_of(source.read(file), kernel), kernel)

    def _entries(self, path: Path) -> Mapping[tuple[str, str], ListedKernel]:
        """Return what a kernels file had at the commit, by name and Tritons; nothing if it cannot be read."""
        name = self._old_name(path) if path.suffix == kernel_list.SUFFIX else ""
        text = self._read(name) if name else None
        try:
            entries = kernel_list.of_table(untrusted.toml_of((text or "").encode()), path)
        except (SmithError, ValueError):
            return {}
        return {_key(entry): entry for entry in entries}

    def differs(self, file: Path) -> bool:
        """Report whether a file has other statements than at the commit."""
        old, new = self.texts(file)
        return old != new and _plain(_tree(old), None) != _plain(_tree(new), None)

    def _differs_for(self, file: Path, kernel: str) -> bool:
        """Report whether a statement differs that a kernel of this file needs."""
        old, new = (_plain(_tree(text), kernel) for text in self.texts(file))
        return old != new

    def _touched_parts(
        self, file: Path, kernel: str, changed: Iterable[Path], deleted: frozenset[str], reader: TreeReader
    ) -> list[Path]:
        """Return the changed files that a kernel needs, its own one only if it differs for the kernel.

        A file that may import a module that was deleted counts as changed.
        """
        others = {str(path): path for path in changed if path != file}
        own = [file] if file in changed and self._differs_for(file, kernel) else []
        if own and (source.broken_line(self.texts(file)[1]) or not others):
            return own
        if not others and not deleted:
            return []
        # Only now: to follow the imports of a file takes many times as long as to compare it.
        sources = reader.of(file, kernel)
        places = [sources.root / name for name, _ in sources.sums]
        # By any mention: a kernel too many is compiled in vain, and one too few breaks unseen.
        lost = [
            path for path in places if deleted and not deleted.isdisjoint(_WORD.findall(source.read(path)))
        ]
        return [*own, *(others[str(path)] for path in places if str(path) in others), *lost]


def _key(entry: ListedKernel) -> tuple[str, str]:
    return entry.name, str(entry.versions)


def _plain_path(path: Path) -> Path:
    """Return an absolute path without `..`, as git's answers are: a list in `tests/` may name `../k.py`."""
    return Path(os.path.normpath(path.expanduser().absolute()))


def _tree(text: str) -> ast.Module | None:
    """Return the module without docstrings; None if this Python cannot parse it."""
    try:
        tree = untrusted.python_tree(text)
    except (SyntaxError, ValueError):
        return None
    # Their text is no part of what a kernel computes.
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module))
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _plain(tree: ast.Module | None, kernel: str | None) -> list[str] | None:
    """Return the statements that a kernel needs, or all of them, without places; None if unknown."""
    if tree is None:
        return None
    # `ast.dump` leaves out lines and columns: a comment above a kernel moves it, and changes nothing else.
    nodes = tree.body if kernel is None else needed(tree, kernel)
    return None if nodes is None else [ast.dump(node) for node in nodes]
