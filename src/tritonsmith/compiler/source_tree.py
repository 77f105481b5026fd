"""A kernel's file and what it imports of its own package or folder, so that a copy compiles alone."""

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

_MOST = 2000  # files: who imports more has no kernel's helpers in mind
_FEW = 100  # files of another package: small ones come along, such as `packaging`
_INIT = "__init__.py"
_Files = Callable[[PurePosixPath, str], tuple[str, ...]]
_INSTALLED = ("site-packages", "dist-packages")  # what lies there beside a file is not the file's own


@dataclass(frozen=True)
class KernelSources:
    """Files of one kernel.

    Attributes:
        root: the folder that the names are relative to.
        main: the kernel's file.
        sums: relative path to the SHA-256 of the content, sorted; the kernel's file and what it imports.
    """

    root: Path
    main: str
    sums: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """A name of the whole content."""
        return digest(self.main, self.sums)

    @property
    def sha256(self) -> str:
        """Of the kernel's file."""
        return dict(self.sums)[self.main]


def of(file: Path, kernel: str, module: str = "") -> KernelSources:
    """The files that a kernel needs.

    Of the kernel's file only the statements count that the kernel needs; of the packages around the file
    only an `__init__.py` that something is imported from: the others are copied, and may fail. Of packages
    beside the kernel's own those count of which few files are needed.

    Args:
        file: absolute.
        kernel: name of the function; empty for the whole file.
        module: the import name of the file, if it is known.

    Raises:
        FactError: a file cannot be read.
        SmithError: they are too many.
    """
    root = _root(file, module)
    main = file.relative_to(root).as_posix()
    around = [name for name in map(str, PurePosixPath(main).parents) if name != "."]
    found = {f"{folder}/{_INIT}" for folder in around if (root / folder / _INIT).is_file()}
    beside: set[str] = set()
    files = functools.cache(lambda base, words: tuple(_files(root, base, words, main)))
    own = set(_reached(root, main, kernel, "", beside, files))
    if len(own) > _MOST:
        raise SmithError(f"{file.name} imports more than {_MOST} files of its package", where=root)
    found |= own
    for package in sorted(beside):
        new = (name for name in _reached(root, main, kernel, package, set(), files) if name not in found)
        more = set(islice(new, _FEW + 1))  # what is left out anyway is not read to its end
        found |= more if len(more) <= _FEW else set()
    return KernelSources(root, main, tuple((name, sum_of(root / name)) for name in sorted(found)))


def _reached(
    root: Path, main: str, kernel: str, package: str, beside: set[str], files: _Files
) -> Iterator[str]:
    """The kernel's file and what it imports of its own package and of another one; a little too many at most.

    Args:
        root: of the tree.
        main: the kernel's file.
        kernel: name of the function.
        package: the other one; empty for none.
        beside: gets the names of all others that are imported.
        files: `_files` of this tree; many files import the same.
    """
    seen = {main}
    waiting = [main]
    while waiting and len(seen) <= _MOST + 1:
        name = waiting.pop()
        yield name
        for imported in _imported(root, name, main, kernel if name == main else "", package, beside, files):
            if imported not in seen:
                seen.add(imported)
                waiting.append(imported)
    yield from waiting


def _root(file: Path, module: str) -> Path:
    """The folder of the outermost package; that of the file, if it is in none."""
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
    """Files of a tree that one of its files imports: see `_reached`."""
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
    """The files of `a.b.c` below a folder, as far as they exist; without packages around the kernel's file.

    What is imported from such a package, and is no module in it (or `*`), is in its `__init__.py`.
    """
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
            if (root / place / _INIT).is_file():
                yield f"{place}/{_INIT}" if place.parts else _INIT
            return


def _words(path: Path, kernel: str) -> Iterator[tuple[str, int]]:
    """What a file imports: dotted names, and how many levels up they start; `from a import b` is `a.b`."""
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
    found: list[tuple[str, int]] = []
    for node in (node for part in body for node in ast.walk(part)):
        if isinstance(node, ast.Import):
            found += ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            head = f"{node.module}." if node.module else ""
            found += ((f"{head}{alias.name}", node.level) for alias in node.names)
    return tuple(dict.fromkeys(found))


@functools.cache
def _others() -> frozenset[str]:
    """Modules that are never a kernel's own, whatever lies beside its file."""
    return frozenset({"triton", *sys.stdlib_module_names, *configs.load("kernels")["stand-ins"]["modules"]})


def sum_of(path: Path) -> str:
    """The SHA-256 of a file.

    Raises:
        FactError: it cannot be read.
    """
    try:
        return hashlib.sha256(untrusted.read_bytes(path)).hexdigest()
    except OSError as error:
        raise FactError("cannot read this file", where=path, why=error.strerror) from error
