"""Collect the files that a kernel needs, so that a copy compiles alone; write a notebook as such a file.

The files are the kernel's own, and what it imports from its own package or folder. The code cells of a
Jupyter notebook become one Python file, whose lines messages then name by cell.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tritonsmith.compiler import source
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import Plan, Write, digest
from tritonsmith.worker.load import StatementNames, needed, statements

# A dotted name, and the number of levels up: `from ..a import b` gives `a.b` and 2.
Import = tuple[str, int]
# Gets a function that returns the digest of a file's content, the file and the kernel.
ImportReader = Callable[[Callable[[Path], str], Path, str], tuple[Import, ...]]

_INIT = "__init__.py"
BYTECODE = "__pycache__"  # what Python adds beside modules that a compile imports
# Files. A larger tree is not a kernel with its helpers, but a monorepo that one import reaches into.
_MOST = 2000
# Files of another package. Small ones are copied, such as `packaging`; large ones are installed where it
# compiles.
_FEW = 100
# Packages in these folders lie beside each other by accident: a neighbour is not the file's own.
_INSTALLED = ("site-packages", "dist-packages")

# A corpus: see `lab.corpus`. Each folder of copies is named by the key of its files.
COPIED_LIST, COPIES = "kernels.toml", "sources"
_KEY = re.compile("[0-9a-f]{16}")

SUFFIX = ".ipynb"
_PLACE = "notebooks"
# A generated file begins with the notebook, and names each cell: that is all that messages need to find a
# line.
_HEAD, _CELL = "# made from ", "# %% cell "
# Magics of a whole cell whose body is Python; those of any other magic may be shell, HTML or Perl.
_PYTHON_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun", "%%triton_stages")
_MAGIC = re.compile(r"(\s*)((?:[\w., ]+=\s*)?[%!].*|\?.*|.*\?)", re.DOTALL)
# Characters that are parsed to find the magics of a notebook: each one costs another look at its cell, and a
# cell of a stranger's notebook may have thousands.
_PARSED = 32 << 20
# A generated file in a message, as tracebacks (`File "...", line 3`) and compilers (`...:3`) spell it.
_GENERATED = re.compile(rf"(/[^\n:'\"]*?/{_PLACE}/[0-9a-f]{{16}}/[^\n:'\"]*?\.py)(?::(\d+)|\", line (\d+))?")
_LINE = re.compile(r"(?<!, )\bline (\d+)\b")  # but not that of `cell 2, line 3`


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

    @functools.cached_property
    def key(self) -> str:
        """A digest of the whole content."""
        return digest(self.main, self.sums)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the kernel's file."""
        return dict(self.sums)[self.main]


class TreeReader:
    """Finds the files of many kernels, and reads each file once: nobody may change them meanwhile.

    The kernels of a list share most of their files, and a large package has thousands.

    Args:
        imports: returns what a file imports for a kernel, see `imports_of`; it may take the digest of a
            file's content from the function that it gets.
        loads: patterns of files that every kernel needs besides, relative to the root of its sources.
    """

    def __init__(self, imports: ImportReader | None = None, loads: Sequence[str] = ()) -> None:
        self.of = functools.cache(self._of)
        read = imports or _imports_by_text
        # Paths are texts below: of a list of packages, to join and to hash `Path`s would take most of all.
        self._sum_of_path = functools.cache(sum_of)
        self._sum = functools.cache(lambda root, name: self._sum_of_path(Path(root, name)))
        self._words = functools.cache(lambda path, kernel: read(self._sum_of_path, Path(path), kernel))
        self.is_file = functools.cache(os.path.isfile)
        self.is_dir = functools.cache(os.path.isdir)
        self.edges = functools.cache(self._edges)
        self.near = functools.cache(self._near)
        self._files = functools.cache(self._files_of)
        self._loads = loads
        self._loaded = functools.cache(_loaded)
        self._copied = functools.cache(self._copied_files)

    def _of(self, file: Path, kernel: str, module: str = "") -> KernelSources:
        """Return the files that a kernel needs: see `of`."""
        if copy := self._copy_around(file):
            return KernelSources(copy, file.relative_to(copy).as_posix(), self._copied(copy))
        place = self._root(file, kernel, module)
        root, main = str(place), file.relative_to(place).as_posix()
        # Python imports these before the kernel's file, whatever it imports itself.
        around = (f"{folder}/{_INIT}" for folder in _parents(main))
        names = {name for name in around if self.is_file(f"{root}/{name}")}
        walk = _Walk(root, main, kernel, self)
        own = set(walk.reached())
        if len(own) > _MOST:
            raise SmithError(f"{file.name} imports more than {_MOST} files of its package", where=place)
        names |= own
        for pattern in self._loads:
            loader, files = self._loaded(place, pattern)
            if any(name.rpartition("/")[0] == loader for name in own):
                if not files:
                    raise SmithError(f"no file of this package matches {pattern!r}", where=place)
                names |= files
        waiting, known = set(walk.beside), set[str]()
        followed: tuple[str, ...] = ()
        while waiting:
            package = min(waiting)
            known.add(package)
            waiting.remove(package)
            # Most of them are installed elsewhere, and another walk through the tree reaches nothing new.
            if not (self.is_dir(f"{root}/{package}") or self.is_file(f"{root}/{package}.py")):
                continue
            other = _Walk(root, main, kernel, self, (*followed, package))
            new = (name for name in other.reached() if name not in names)
            # Lazily: a package that is left out anyway is not read to its end.
            more = set(islice(new, _FEW + 1))
            if len(more) > _FEW:
                continue
            names |= more
            # What installed packages need of each other is installed, and changes with them.
            if place.name not in _INSTALLED:
                followed += (package,)
                waiting |= other.beside - known
        return KernelSources(place, main, tuple((name, self._sum(root, name)) for name in sorted(names)))

    def _copy_around(self, file: Path) -> Path | None:
        """Return the folder of a kernel's copies in a corpus: `CORPUS/sources/KEY`; None for other files."""
        # A package may have a folder of that name itself.
        folders = (str(folder) for folder in file.parents if folder.parent.name == COPIES)
        for folder in folders:
            corpus = folder.rpartition(f"/{COPIES}/")[0]
            if _KEY.fullmatch(folder.rpartition("/")[2]) and self.is_file(f"{corpus}/{COPIED_LIST}"):
                return Path(folder)
        return None

    def _copied_files(self, copy: Path) -> tuple[tuple[str, str], ...]:
        """Return the files of a copy: those of its kernel and no others, also those that nothing imports."""
        names: list[str] = []
        linked = False
        # Through links, as Python imports through them: a package may be a link to somebody's checkout.
        for folder, inside, files in os.walk(copy, followlinks=True):
            inside[:] = [name for name in inside if name != BYTECODE and not _leads_up(folder, name)]
            linked = linked or any(Path(folder, name).is_symlink() for name in inside)
            paths = (f"{folder}/{name}" for name in files)
            names += (os.path.relpath(path, copy) for path in paths if self.is_file(path))
            if linked and len(names) > _MOST:
                raise SmithError(f"links lead from this copy to more than {_MOST} files", where=copy)
        return tuple((name, self._sum(str(copy), name)) for name in sorted(names))

    def _root(self, file: Path, kernel: str, module: str) -> Path:
        """Return the folder with the outermost package; the file's own folder if it is in no package."""
        folder = file.parent
        while self.is_file(f"{folder}/{_INIT}"):
            folder = folder.parent
        parts = module.split(".") if module else []
        if parts and file.with_suffix("").parts[-len(parts) :] == tuple(parts):
            named = file.parents[len(parts) - 1]
            # A package may import its own files as modules of another name, and these the package.
            around = named.relative_to(folder).parts[:1] if named.is_relative_to(folder) else ()
            imported = {
                words.partition(".")[0] for words, level in self._imports(str(file), kernel) if not level
            }
            return folder if imported.intersection(around) else named
        # As `worker.load.package_of` has it: relative imports make packages of folders without `__init__.py`.
        deepest = max((level for _, level in self._imports(str(file), kernel)), default=0)
        if deepest < len(file.parents):
            folder = min(folder, file.parents[deepest], key=lambda path: len(path.parts))
        return folder

    def _imports(self, path: str, kernel: str) -> tuple[Import, ...]:
        return self._words(path, kernel) if path.endswith(".py") else ()  # IR has none

    def _edges(self, root: str, name: str, kernel: str, own: str, packages: tuple[str, ...]) -> _Edges:
        """Return what a file of the tree imports.

        Args:
            root: the folder of the tree.
            name: the file, relative to it.
            kernel: only what this kernel needs counts; empty for the whole file.
            own: the outermost package of the kernel's file; empty if it is in none.
            packages: more packages that are followed.
        """
        files: list[tuple[str, bool]] = []
        beside: list[str] = []
        # Installed packages lie beside each other by accident.
        installed = root.rpartition("/")[2] in _INSTALLED
        here = _parents(name)
        for words, level in self._imports(f"{root}/{name}", kernel):
            first = words.partition(".")[0]
            if level:
                if level <= len(here) + 1:
                    files += self._files(root, (*here, "")[level - 1], words)
            # A file in no package imports its neighbours as modules of their own, as a script does.
            elif first in (own, *packages) or not (own or installed):
                if first == own or first not in _others():
                    files += self._files(root, "", words)
            elif first not in _others():
                beside.append(words)
        return _Edges(tuple(dict.fromkeys(files)), frozenset(beside))

    def _near(self, root: str, folder: str, beside: frozenset[str]) -> tuple[tuple[str, bool], ...]:
        """Return the files in a folder of the tree that are imported as modules of their own."""
        paths = ((words, f"{root}/{folder}/{words.partition('.')[0]}") for words in sorted(beside))
        return tuple(
            file
            for words, path in paths
            if self.is_file(f"{path}.py") or self.is_dir(path)
            for file in self._files(root, folder, words)
        )

    def _files_of(self, root: str, base: str, words: str) -> tuple[tuple[str, bool], ...]:
        """Return the existing files of `a.b.c` below a folder; with True, those of packages on the way."""
        parts = words.split(".") if words else []
        files: list[tuple[str, bool]] = []
        place = base
        for number, part in enumerate(parts, 1):
            inner = f"{place}/{part}" if place else part
            if self.is_file(f"{root}/{inner}/{_INIT}"):
                files.append((f"{inner}/{_INIT}", True))
                place = inner
            elif self.is_file(f"{root}/{inner}.py"):
                files.append((f"{inner}.py", False))
                break
            elif number < len(parts) and self.is_dir(f"{root}/{inner}"):
                place = inner
            else:
                # A name that is no module of its package (or `*`) comes from the package's `__init__.py`.
                init = f"{place}/{_INIT}" if place else _INIT
                if self.is_file(f"{root}/{init}"):
                    files.append((init, False))
                break
        return tuple(files)


def _leads_up(folder: str, name: str) -> bool:
    """Report whether a folder is a link to one that it is in itself, where a walk would not end."""
    path = Path(folder, name)
    return path.is_symlink() and Path(folder).resolve().is_relative_to(path.resolve())


def _loaded(root: Path, pattern: str) -> tuple[str, frozenset[str]]:
    """Return the folder of the module that loads files by their names, and the files that match.

    The module is in the folder around the last one without a wildcard: in `a/backend` for
    `a/backend/_nvidia/*`.
    """
    inside = root.resolve()
    files = frozenset(
        path.relative_to(root).as_posix()
        for path in root.glob(pattern)
        # Not what Python compiles there, nor what a link in the package leads to.
        if path.is_file() and BYTECODE not in path.parts and path.resolve().is_relative_to(inside)
    )
    fixed = pattern.partition("*")[0].rpartition("/")[0]
    return fixed.rpartition("/")[0], files


def of(file: Path, kernel: str, module: str = "") -> KernelSources:
    """Return the files that a kernel needs.

    Of the kernel's file, only the statements count that the kernel needs. Of the packages around the file, an
    `__init__.py` counts only if something is imported from it: the others are copied, and may fail. Modules
    in the folder of the kernel's file count, and so do packages beside the kernel's own of which only a few
    files are needed; what these need of other packages counts unless they are installed. A kernel of a corpus
    needs all that was copied for it, also the files that a package loads by a name made at run time.

    Args:
        file: absolute.
        kernel: name of the function; empty for the whole file.
        module: the import name of the file; empty if unknown.

    Raises:
        FactError: a file cannot be read.
        SmithError: there are too many files.
    """
    return TreeReader().of(file, kernel, module)


def as_python(file: Path) -> Path:
    """Return the Python file of a notebook, in the workspace; any other file unchanged.

    Raises:
        FactError: it cannot be read, or is not a notebook with Python.
    """
    if file.suffix != SUFFIX:
        return file
    return write_cells(_cells(file), str(file), file.parent, file.stem)


def write_cells(cells: Iterable[str], origin: str, folder: Path, stem: str) -> Path:
    """Write cells as a Python file in the workspace.

    Args:
        cells: their texts, in order.
        origin: name of the notebook in messages.
        folder: folder of modules that cells import.
        stem: the stem of the file's name.

    Raises:
        FactError: a cell cannot be written as Python.
    """
    lines = [f"{_HEAD}{origin}", f"import sys; sys.path.insert(0, {str(folder)!r})"]
    left = _PARSED
    for number, cell in enumerate(cells, 1):
        try:
            # JSON can carry half of a surrogate pair, UTF-8 cannot.
            cell.encode()
        except UnicodeEncodeError as error:
            why = f"cell {number}: half of a surrogate pair: {error.object[error.start]!r}"
            raise FactError(
                "this notebook has text that cannot be written to a file", where=origin, why=why
            ) from None
        python, left = _without_magics(cell, left)
        if left < 0:
            hints = ["put them in a cell of their own, or remove them"]
            what = f"cell {number} has too many lines that only IPython understands"
            raise FactError(what, where=origin, hints=hints)
        lines += (f"{_CELL}{number}", python)
    text = "\n".join((*lines, ""))
    space = workspace.default()
    # By its content: an older file stays, since manifests and tracebacks refer to its lines.
    place = space.root / "kernels" / _PLACE / digest(text) / f"{stem}.py"
    if not place.is_file():
        space.claim()
        space.run(Plan("notebook", (Write(place, text, phase="notebook"),)), "notebook", quiet=True)
    return place


def name_cells(text: str) -> str:
    """Replace references to a generated file in a message by the notebook's name, cell and line."""
    for generated in dict.fromkeys(match[1] for match in _GENERATED.finditer(text)):
        try:
            lines = untrusted.read_text(Path(generated)).splitlines()
        except OSError:
            continue
        if lines and lines[0].startswith(_HEAD):
            text = _GENERATED.sub(partial(_notebook_place, generated, lines), text)
            # Messages about such a file name a line alone, too, and no other file in the same text.
            text = _LINE.sub(partial(_line_place, lines), text)
    return text


def sum_of(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        FactError: it cannot be read.
    """
    try:
        return hashlib.sha256(untrusted.read_bytes(path)).hexdigest()
    except OSError as error:
        raise FactError("cannot read this file", where=path, why=error.strerror) from error


class _Edges(NamedTuple):
    """The imports of one file.

    Attributes:
        files: names of the tree's files; with True, those of packages on the way to a module.
        beside: modules of packages that are not followed.
    """

    files: tuple[tuple[str, bool], ...]
    beside: frozenset[str]


def _parents(name: str) -> tuple[str, ...]:
    """Return the folders around a file, the innermost first, without the one that names are relative to."""
    parts = name.split("/")
    return tuple("/".join(parts[:number]) for number in range(len(parts) - 1, 0, -1))


class _Walk:
    """The way from a kernel's file to what it imports from its own package and some others.

    Attributes:
        beside: the names of all other imported packages, once `reached` is exhausted.
    """

    def __init__(
        self, root: str, main: str, kernel: str, reader: TreeReader, packages: tuple[str, ...] = ()
    ) -> None:
        self.beside: set[str] = set()
        self._root, self._main, self._kernel = root, main, kernel
        self._reader, self._packages = reader, packages
        self._own = main.partition("/")[0] if "/" in main else ""
        self._folder = main.rpartition("/")[0]
        self._around = {f"{folder}/{_INIT}" for folder in _parents(main)}

    def reached(self) -> Iterator[str]:
        """Yield the kernel's file and its imports; at worst a few too many."""
        reached = {self._main}
        waiting = [self._main]
        while waiting and len(reached) <= _MOST + 1:
            name = waiting.pop()
            yield name
            kernel = self._kernel if name == self._main else ""
            files, beside = self._reader.edges(self._root, name, kernel, self._own, self._packages)
            self.beside |= {words.partition(".")[0] for words in beside}
            # The worker looks for modules in the folder of the kernel's file, even if it is in a package.
            near = self._reader.near(self._root, self._folder, beside) if self._folder and beside else ()
            for imported, passed in (*files, *near):
                # A package around the kernel's file is only passed on the way to a module in it.
                if imported not in reached and not (passed and imported in self._around):
                    reached.add(imported)
                    waiting.append(imported)
        # Over the limit: the rest is yielded unread, so that the caller sees that there are too many.
        yield from waiting


def _imports_by_text(_: object, path: Path, kernel: str) -> tuple[Import, ...]:
    return imports_of(source.read(path), kernel)


# Lists of one package share files across calls, too.
@functools.lru_cache(maxsize=1024)
def imports_of(text: str, kernel: str) -> tuple[Import, ...]:
    """Return what a file imports; for a kernel, what the statements that it needs import."""
    kernel = kernel.partition(".")[0]
    try:
        tree, facts = _parsed(text) if kernel else (untrusted.python_tree(text), None)
    # Perhaps of a newer Python. If not, the compile reports the error.
    except (SyntaxError, ValueError):
        return ()
    # The worker runs the same statements: what they import is what the copy needs. The whole file is at worst
    # a little too much.
    body = (facts and needed(tree, kernel, facts)) or tree.body
    imports: list[Import] = []
    for node in (node for part in body for node in ast.walk(part)):
        if isinstance(node, ast.Import):
            imports += ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            head = f"{node.module}." if node.module else ""
            imports += ((f"{head}{alias.name}", node.level) for alias in node.names)
    return tuple(dict.fromkeys(imports))


# Kernels of one file follow each other in a list, and a file may have thirty.
@functools.lru_cache(maxsize=4)
def _parsed(text: str) -> tuple[ast.Module, list[StatementNames] | None]:
    tree = untrusted.python_tree(text)
    try:
        return tree, statements(tree)
    except RecursionError:
        return tree, None


@functools.cache
def _others() -> frozenset[str]:
    """Return the modules that are never a kernel's own, even if they lie beside its file."""
    return frozenset({"triton", *sys.stdlib_module_names, *configs.load("kernels")["stand-ins"]["modules"]})


def _cells(file: Path) -> Iterator[str]:
    """Yield the texts of the code cells."""
    try:
        content = untrusted.read_json(file)
        language = content.get("metadata", {}).get("kernelspec", {}).get("language", "python")
        cells: list[dict[str, Any]] = content["cells"]
        texts = [
            source if isinstance(source, str) else "".join(source)
            for source in (cell["source"] for cell in cells if cell["cell_type"] == "code")
        ]
    except FileNotFoundError:
        raise FactError("no such file", where=file) from None
    except OSError as error:
        raise FactError("cannot read this notebook", where=file, why=error.strerror) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hints = ["older formats: jupyter nbconvert --to notebook --nbformat 4"]
        raise FactError(
            "this is not a notebook of format 4", where=file, why=repr(error), hints=hints
        ) from None
    if language != "python":
        raise FactError(f"the cells of this notebook are {json.dumps(language)}, not Python", where=file)
    yield from texts


def _without_magics(cell: str, left: int) -> tuple[str, int]:
    """Comment out the lines of a cell that only IPython can parse; the number of lines stays the same.

    Args:
        cell: its text.
        left: number of characters that may still be parsed.

    Returns:
        The text, and the characters left; negative if there were too few.
    """
    lines = cell.split("\n")
    if lines[0].startswith("%%"):
        if not lines[0].startswith(_PYTHON_CELLS):
            return "\n".join(f"# {line}" for line in lines), left
        lines[0] = f"# {lines[0]}"
    # Python's parser reports one error at a time, so each magic costs another parse of the cell.
    while (left := left - len(cell)) >= 0:
        try:
            untrusted.python_tree("\n".join(lines))
        except SyntaxError as error:
            # IPython's own grammar is not used: it is no dependency, and the notebook need not be of this
            # version.
            number = (error.lineno or 0) - 1
            match = _MAGIC.fullmatch(lines[number]) if 0 <= number < len(lines) else None
            if not match:
                break
            lines[number] = f"{match[1]}pass  # {match[2]}"
            # No statement of Python begins like the magics that follow, so they cost no parse of their own.
            for below in range(number + 1, len(lines)):
                if not lines[below].startswith((f"{match[1]}%", f"{match[1]}!")):
                    break
                lines[below] = f"{match[1]}pass  # {lines[below].lstrip()}"
        # Nested too deeply for the parser; the compile says so.
        except ValueError:
            break
        else:
            break
    return "\n".join(lines), left


def _notebook_place(generated: str, lines: list[str], match: re.Match[str]) -> str:
    if match[1] != generated:
        return match[0]
    number = match[2] or match[3]
    notebook = lines[0].removeprefix(_HEAD)
    return f"{notebook}, {_cell_place(lines, int(number))}" if number else notebook


def _line_place(lines: list[str], match: re.Match[str]) -> str:
    return _cell_place(lines, int(match[1]))


def _cell_place(lines: list[str], number: int) -> str:
    """Return the place of a line (counted from 1) as `cell 2, line 3`."""
    for index in range(min(number, len(lines)) - 1, 0, -1):
        if lines[index].startswith(_CELL):
            return f"cell {lines[index].removeprefix(_CELL)}, line {number - index - 1}"
    return f"line {number}"
