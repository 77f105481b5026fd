"""Collect a kernel's file and its imports from its own package or folder, so that a copy compiles alone."""

from __future__ import annotations

import ast
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from tritonsmith.compiler import source
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import digest
from tritonsmith.worker.needed_statements import needed

_MOST = 2000  # files: a larger tree is not a kernel and its helpers
_FEW = 100  # files of another package: small ones are copied, such as `packaging`
_INIT = "__init__.py"
_Files = Callable[[PurePosixPath, str], tuple[str, ...]]
_INSTALLED = ("site-packages", "dist-packages")  # what lies there beside a file is not the file's own


@dataclass(frozen=True)
class KernelSources:
    """The files of one kernel.

    Attributes:
        root: the folder that the names are relative to.
        main: the kernel's file.
        sums: relative path to the SHA-256 of the content, sorted; the kernel's file and its imports.
    """

    root: Path
    main: str
    sums: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """A digest of the whole content."""
        return digest(self.main, self.sums)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the kernel's file."""
        return dict(self.sums)[self.main]


def of(file: Path, kernel: str, module: str = "") -> KernelSources:
    """Return the files that a kernel needs.

    Of the kernel's file, only the statements count that the kernel needs. Of the packages around the file, an
    `__init__.py` counts only if something is imported from it: the others are copied, and may fail. Packages
    beside the kernel's own count if only a few of their files are needed.

    Args:
        file: absolute.
        kernel: name of the function; empty for the whole file.
        module: the import name of the file; empty if unknown.

    Raises:
        FactError: a file cannot be read.
        SmithError: there are too many files.
    """
    root = _root(file, module)
    main = file.relative_to(root).as_posix()
    around = [name for name in map(str, PurePosixPath(main).parents) if name != "."]
    names = {f"{folder}/{_INIT}" for folder in around if (root / folder / _INIT).is_file()}
    beside: set[str] = set()
    files = functools.cache(lambda base, words: tuple(_files(root, base, words, main)))
    own = set(_reached(root, main, kernel, "", beside, files))
    if len(own) > _MOST:
        raise SmithError(f"{file.name} imports more than {_MOST} files of its package", where=root)
    names |= own
    for package in sorted(beside):
        new = (name for name in _reached(root, main, kernel, package, set(), files) if name not in names)
        more = set(islice(new, _FEW + 1))  # what is left out anyway is not read to its end
        names |= more if len(more) <= _FEW else set()
    return KernelSources(root, main, tuple((name, sum_of(root / name)) for name in sorted(names)))


def _reached(
    root: Path, main: str, kernel: str, package: str, beside: set[str], files: _Files
) -> Iterator[str]:
    """Yield the kernel's file and its imports from its own package and one other; at worst a few too many.

    Args:
        root: of the tree.
        main: the kernel's file.
        kernel: name of the function.
        package: the other package; empty for none.
        beside: collects the names of all other imported packages.
        files: `_files` of this tree, cached: many files import the same modules.
    """
    reached = {main}
    waiting = [main]
    while waiting and len(reached) <= _MOST + 1:
        name = waiting.pop()
        yield name
        for imported in _imported(root, name, main, kernel if name == main else "", package, beside, files):
            if imported not in reached:
                reached.add(imported)
                waiting.append(imported)
    # Over the limit: the rest is yielded unread, so that the caller sees that there are too many.
    yield from waiting


def _root(file: Path, module: str) -> Path:
    """Return the folder that holds the outermost package; the file's own folder if it is in no package."""
    parts = module.split(".") if module else []
    if parts and file.with_suffix("").parts[-len(parts) :] == tuple(parts):
        return file.parents[len(parts) - 1]
    folder = file.parent
    while (folder / _INIT).is_file():
        folder = folder.parent
    return folder


def _imported(
    root: Path, name: str, main: str, kernel: str, package: str, beside: set[str], files: _Files
) -> Iterator[str]:
    """Yield the files of a tree that one of its files imports: see `_reached`."""
    # IR has no imports.
    if not name.endswith(".py"):
        return
    here = PurePosixPath(name).parent
    own = PurePosixPath(main).parts[0] if "/" in main else ""
    for words, level in _words(root / name, kernel):
        first = words.partition(".")[0]
        if level:
            base = (here, *here.parents)[level - 1] if level <= len(here.parts) + 1 else None
            if base is not None:
                yield from files(base, words)
        elif first in (own, package) or not (own or root.name in _INSTALLED):
            if first == own or first not in _others():
                yield from files(PurePosixPath(), words)
        elif first not in _others():
            beside.add(first)


def _files(root: Path, base: PurePosixPath, words: str, main: str) -> Iterator[str]:
    """Yield the existing files of `a.b.c` below a folder, except the packages around the kernel's file."""
    around = PurePosixPath(main).parents
    parts = words.split(".") if words else []
    place = base
    for number, part in enumerate(parts, 1):
        folder, module = place / part, place / f"{part}.py"
        if (root / folder / _INIT).is_file():
            if folder not in around:
                yield f"{folder}/{_INIT}"
            place = folder
        elif (root / module).is_file():
            yield str(module)
            return
        elif (root / folder).is_dir() and number < len(parts):
            place = folder
        else:
            # A name that is no module of its package (or `*`) comes from the package's `__init__.py`.
            if (root / place / _INIT).is_file():
                yield f"{place}/{_INIT}" if place.parts else _INIT
            return


def _words(path: Path, kernel: str) -> Iterator[tuple[str, int]]:
    """Yield a file's imports: dotted names, and the number of levels up; `from a import b` gives `a.b`."""
    yield from _words_of(source.read(path), kernel.partition(".")[0])


@functools.lru_cache(maxsize=1024)  # the kernels of a list share most of their files
def _words_of(text: str, kernel: str) -> tuple[tuple[str, int], ...]:
    try:
        tree = untrusted.python_tree(text)
    except (SyntaxError, ValueError):  # of a newer Python, perhaps: the compile tells
        return ()
    try:
        body = (kernel and needed(tree, kernel)) or tree.body
    except RecursionError:  # all of it is a little too much at most
        body = tree.body
    imports: list[tuple[str, int]] = []
    for node in (node for part in body for node in ast.walk(part)):
        if isinstance(node, ast.Import):
            imports += ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            head = f"{node.module}." if node.module else ""
            imports += ((f"{head}{alias.name}", node.level) for alias in node.names)
    return tuple(dict.fromkeys(imports))


@functools.cache
def _others() -> frozenset[str]:
    """Return the modules that are never a kernel's own, even if they lie beside its file."""
    return frozenset({"triton", *sys.stdlib_module_names, *configs.load("kernels")["stand-ins"]["modules"]})


def sum_of(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        FactError: it cannot be read.
    """
    try:
        return hashlib.sha256(untrusted.read_bytes(path)).hexdigest()
    except OSError as error:
        raise FactError("cannot read this file", where=path, why=error.strerror) from error
