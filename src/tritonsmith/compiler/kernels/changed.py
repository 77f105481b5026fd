"""Find the kernels that a change touches, of which a kernels file has the signature: `--changed`.

A kernel is touched if a statement differs that it needs: of its own file, or of a file that this one imports.
Comments, the layout of the text and docstrings are no difference. Nothing is run, and no Triton is started.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tritonsmith.compiler import source
from tritonsmith.compiler.kernels import kernels_file
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
        place: the kernel.
        is_new: the commit has no such kernel.
    """

    entry: ListedKernel
    listed: Path
    place: KernelPlace
    is_new: bool


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
        """Return those whose entry is for a Triton with this version."""
        return replace(self, listed=tuple(kernel for kernel in self.listed if kernel.entry.fits(version)))

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
    named = [Path(word).expanduser().absolute() for word in words]
    files = named or list(git.branch_changes(root, since).files)
    with git_history.opened(root) as repository:
        commit = git_history.resolve(repository, since)
        if not commit:
            raise UsageError(f"no commit, tag or branch {since!r}", where=root, hints=["--since origin/main"])
        base = git.look(root, "merge-base", _HEAD, commit)
        # A shallow clone has no common ancestor, and CI often makes one: then the commit itself counts.
        commit = base.out.strip() if base and base.code == 0 else commit
        change = _Change(root, commit, partial(git_history.text_at, repository, commit))
        changed = tuple(file for file in files if file.suffix == ".py" and change.differs(file))
        # Most commits change no Python that a kernel needs: then no list is read.
        return change.touched(changed, lists) if changed else TouchedKernels(change.commit, (), (), ())


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
    return tuple(root / name for name in settings)


class _Change:
    """The difference between the files of a repository, as they are, and a commit."""

    def __init__(self, root: Path, commit: str, read: Callable[[str], str | None]) -> None:
        self.root, self.commit = root, commit
        self._read = read
        self._texts: dict[Path, tuple[str, str]] = {}

    def touched(self, changed: Sequence[Path], lists: Sequence[str]) -> TouchedKernels:
        """Return the kernels of which one of these files has a part that differs."""
        paths = [Path(name).expanduser().absolute() for name in lists] or kernels_files(self.root)
        reader = TreeReader()
        listed: list[TouchedKernel] = []
        unread: list[str] = []
        known: set[tuple[Path, str]] = set()
        for path in paths:
            entries, notes = kernels_file.read(path)
            unread += notes
            for entry in entries:
                file = (path.parent / entry.file).absolute()
                try:
                    text = source.read(file)
                    kernel = source.choose(text, entry.kernel, file)
                    known.add((file, kernel))
                    if self._touches(file, kernel, changed, reader):
                        place = KernelPlace(file, source.line_of(text, kernel), kernel)
                        old = self.texts(file)[0]
                        is_new = kernel not in source.kernels(old)
                        listed.append(TouchedKernel(entry, path, place, is_new))
                except SmithError as error:
                    unread.append(f"{entry.name} of {path.name}: {error.what}")
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
            inside = file.is_relative_to(self.root)
            name = file.relative_to(self.root).as_posix() if inside else ""
            old = self._read(name) if inside else None
            self._texts[file] = (old or "", source.read(file))
        return self._texts[file]

    def differs(self, file: Path) -> bool:
        """Report whether a file has other statements than at the commit."""
        old, new = self.texts(file)
        return old != new and _plain(_tree(old), None) != _plain(_tree(new), None)

    def _differs_for(self, file: Path, kernel: str) -> bool:
        """Report whether a statement differs that a kernel of this file needs."""
        old, new = (_plain(_tree(text), kernel) for text in self.texts(file))
        return old != new

    def _touches(self, file: Path, kernel: str, changed: Iterable[Path], reader: TreeReader) -> bool:
        others = [path for path in changed if path != file]
        if file in changed and self._differs_for(file, kernel):
            return True
        if not others:
            return False
        # Only now: to follow the imports of a file takes many times as long as to compare it.
        sources = reader.of(file, kernel)
        return any(str(sources.root / name) in map(str, others) for name, _ in sources.sums)


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
