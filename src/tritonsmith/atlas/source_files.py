"""The files of a checkout, of LLVM's sources or of an installed Triton; places and definitions in them."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError

# Folders with code: of Triton; of MLIR in LLVM's sources and in an installed one; of an installed
# Triton. Others, such as .git or a virtual environment in the checkout, would take seconds to walk.
_TOPS = (
    "bin", "examples", "include", "lib", "python", "test", "third_party", "unittest",
    "mlir/include", "mlir/lib", "include/mlir",
    "backends", "compiler", "experimental", "language", "runtime", "tools",
)  # fmt: skip
_COMPILED = (".pyc", ".o", ".a", ".so")  # which no source includes
_PASSED_OVER = {".git", "node_modules", "__pycache__", "build", "googletest", "llvm-project", "llvm-c"}
_SUFFIXES = (".td", ".cpp", ".cc", ".h", ".hpp", ".c", ".cu", ".py", ".mlir", ".ll", ".cmake", ".txt")
_LIMIT = 4 << 20  # bytes; a file of Triton's has at most 0.4 MiB


class SourceFiles:
    """A tree of sources.

    Args:
        root: its top folder.
        tops: folders below it to look into; those of a Triton or of an LLVM if none are given.

    Attributes:
        changes: what git was asked: a file, its lines from 1 (zeros for all of them), and the last change.
    """

    def __init__(self, root: Path, tops: tuple[str, ...] = _TOPS) -> None:
        self.root = root
        self._tops = tops
        self._texts: dict[str, str] = {}
        self.changes: list[tuple[str, int, int, tuple[str, ...]]] = []

    @property
    def origins(self) -> tuple[Path, ...]:
        """The files and folders that `names` and `text` read, besides the top folder itself."""
        own = (path for path in self.root.iterdir() if path.name.endswith(_SUFFIXES))
        return *own, *(self.root / top for top in self._tops)

    def covers(self, path: Path) -> bool:
        """Return whether a file at that path changes the state of `origins`, or of the top folder."""
        place = Path(os.path.relpath(path, self.root))  # without `..` inside
        new = not untrusted.exists(self.root / place.parts[0])
        within = any(place.is_relative_to(top) for top in self._tops) and _PASSED_OVER.isdisjoint(place.parts)
        return new or within

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The paths of all text files, relative to the root, sorted."""
        # setup.py and CMakeLists.txt are at the top, among files and folders that are nobody's sources.
        paths = {path.name for path in self.root.iterdir() if path.name.endswith(_SUFFIXES)}
        for top in self._tops:
            paths.update(name for name in self.below(top) if name.endswith(_SUFFIXES))
        return tuple(sorted(paths))

    def below(self, top: str) -> Iterator[str]:
        """Yield the path of every file of a folder, relative to the root, without builds and caches."""
        # No links are followed: python/triton/backends/nvidia of an installed checkout leads to
        # third_party/nvidia, whose files would count twice.
        for folder, folders, names in os.walk(self.root / top):
            folders[:] = [name for name in folders if name not in _PASSED_OVER]
            path = os.path.relpath(folder, self.root)
            yield from (f"{path}/{name}" for name in names)

    def having(self, *suffixes: str) -> tuple[str, ...]:
        """Return the paths with one of these suffixes."""
        return tuple(name for name in self.names if name.endswith(suffixes))

    def text(self, name: str) -> str:
        """Return the text of a file; invalid bytes are replaced, and a file that cannot be read is empty."""
        # Each question reads most files several times; all texts of a checkout are some 20 MiB.
        if name not in self._texts:
            try:
                self._texts[name] = untrusted.read_text(self.root / name, _LIMIT)
            except FileNotFoundError:  # a link that leads nowhere
                self._texts[name] = ""
            except OSError as error:
                raise FactError("cannot read this file", where=self.root / name, why=str(error)) from error
        return self._texts[name]


def line_of(text: str, at: int) -> int:
    """Return the line of a place in a text, from 1."""
    return text.count("\n", 0, at) + 1


@dataclass(frozen=True)
class Place:
    """A place in the sources.

    Attributes:
        file: the file, relative to the tree.
        line: the line, from 1; 0 for the whole file.
        what: the thing there: a function, a pattern, a call; may be empty.
        when: conditions under which it is reached, outermost first.
    """

    file: str
    line: int
    what: str = ""
    when: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def as_json(self) -> dict[str, Any]:
        """Return the place as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class PassOption:
    """An option or a statistic of a pass.

    Attributes:
        name: its name on a command line: `num-stages`.
        type: its type in C++; empty for a statistic.
        default: the default as written; may be empty.
        about: its description.
    """

    name: str
    type: str
    default: str
    about: str


@dataclass(frozen=True)
class Definition:
    """A record of TableGen.

    Attributes:
        kind: `pass`, `op`, `type`, `attribute`, `dialect`, `interface`, `enum` or `pattern`.
        name: `tritongpu-coalesce`, `ttg.convert_layout`, `#ttg.blocked`, `!ttg.memdesc`, `ttg`.
        record: its name in TableGen: `TTG_ConvertLayoutOp`.
        cpp: the class in C++, without namespaces; may be empty.
        file: the file, relative to the tree.
        line: the first line of the record.
        end: the last line of the record.
        summary: one line; may be empty.
        description: the full text; may be empty.
        dialect: the record of its dialect; empty for a pass.
        constructor: the function that a pass names as its constructor, without namespaces.
        arguments: operands and attributes of an op, parameters of a type: `$src` with its type.
        results: the results of an op.
        options: the options of a pass.
        statistics: the statistics of a pass.
        has: the methods that C++ adds to an op: `canonicalizer`, `canonicalize method`, `folder`, `verifier`.
        traits: the traits as written.
        by: its reader: `tablegen` or `text`.
    """

    kind: str
    name: str
    record: str
    cpp: str
    file: str
    line: int
    end: int
    summary: str = ""
    description: str = ""
    dialect: str = ""
    constructor: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    options: tuple[PassOption, ...] = ()
    statistics: tuple[PassOption, ...] = ()
    has: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    by: str = "text"

    @property
    def place(self) -> str:
        """The place as `FILE:LINE`."""
        return f"{self.file}:{self.line}"

    def as_json(self) -> dict[str, Any]:
        """Return the definition as JSON."""
        return asdict(self)


_FIELDS = tuple(field.name for field in fields(Definition))
_LISTS = {"arguments", "results", "options", "statistics", "has", "traits"}  # fields that are tuples


T = TypeVar("T")


@dataclass(frozen=True)
class KeptDefinitions:
    """Definitions that were read once, in files that are valid as long as nothing they come from changes.

    Attributes:
        folder: of these files; None if nothing is kept.
    """

    folder: Path | None = None

    def get(
        self, what: Iterable[object], tops: Iterable[Path], make: Callable[[], tuple[Definition, ...]]
    ) -> tuple[Definition, ...]:
        """Return what `make` does, or did when all files were the same.

        Args:
            what: a name for it.
            tops: files, and folders whose files it comes from.
            make: reads the definitions.
        """
        return self.convert(what, tops, make, _row, _definition)

    def convert(
        self,
        what: Iterable[object],
        tops: Iterable[Path],
        make: Callable[[], tuple[T, ...]],
        to_row: Callable[[T], list[Any]],
        of_row: Callable[[list[Any]], T],
    ) -> tuple[T, ...]:
        """Return what `make` does, as `get`, for definitions of any kind.

        Args:
            what: as in `get`.
            tops: as in `get`.
            make: as in `get`.
            to_row: returns a definition as JSON.
            of_row: makes a definition of that; raises a ValueError, KeyError or TypeError if it is none.
        """
        if self.folder is None:
            return make()
        # Before the files are read: one that changes in between makes what is kept invalid. The readers
        # themselves belong to it, for who changes them.
        state = state_of((*tops, Path(__file__).parent)).digest
        path = self.folder / f"{hashlib.sha256(json.dumps([*map(str, what)]).encode()).hexdigest()[:16]}.json"
        with suppress(OSError, ValueError, KeyError, TypeError):
            content = untrusted.read_json(path)
            if content["state"] == state:
                return tuple(map(of_row, content["definitions"]))
        definitions = make()
        rows = list(map(to_row, definitions))
        from tritonsmith.core.plan import files  # noqa: PLC0415 - `cli.start` does without

        with suppress(OSError):  # a full disk is no reason not to answer
            files.write_atomically(path, json.dumps({"state": state, "definitions": rows}), wait=False)
        return definitions


def _row(definition: Definition) -> list[Any]:
    return [_plain(getattr(definition, name)) for name in _FIELDS]


def _plain(value: Any) -> Any:
    """Return the value of a field as JSON has it."""
    if not isinstance(value, tuple):
        return value
    return [list(asdict(item).values()) if isinstance(item, PassOption) else item for item in value]


def _definition(row: list[Any]) -> Definition:
    values = dict(zip(_FIELDS, row, strict=True))
    for name in _LISTS:
        kind = PassOption if name in ("options", "statistics") else None
        values[name] = tuple(
            kind(*item) if kind else tuple(item) if isinstance(item, list) else item for item in values[name]
        )
    return Definition(**values)


class FilesState(NamedTuple):
    """The state of files at one time.

    Attributes:
        digest: of their paths, numbers, sizes and times; another one if any of these changes.
        newest: the time of the last change of any of them, in seconds.
    """

    digest: str
    newest: float


def state_of(tops: Iterable[Path], lone: Iterable[Path] = ()) -> FilesState:
    """Return the state of files.

    Args:
        tops: files, and folders whose files count, with all below them, through links, too.
        lone: files and folders that count without what is in them, but for the names in a folder.
    """
    states = [_state(str(path)) for path in lone]
    walked: set[tuple[int, int]] = set()
    waiting = [str(top) for top in dict.fromkeys(tops)]
    # A loop over lists and not `os.walk`, which takes three times as long for thousands of files.
    while waiting:
        path = waiting.pop()
        try:
            status = os.stat(path)  # noqa: PTH116 - of thousands of files, whose names are texts
            if not stat.S_ISDIR(status.st_mode):
                states.append((path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
            elif (where := (status.st_dev, status.st_ino)) not in walked:  # a link may lead back
                walked.add(where)
                with os.scandir(path) as entries:
                    waiting += sorted(_counted(entries))
        except OSError:
            states.append((path, 0, 0, 0, 0))
    text = json.dumps(sorted(states))
    newest = max((changed for *_, changed in states), default=0)
    return FilesState(hashlib.sha256(text.encode()).hexdigest(), newest / 1e9)


def _counted(entries: Iterable[os.DirEntry[str]]) -> Iterator[str]:
    """Yield the paths in a folder that count: no builds, and nothing that is compiled."""
    # Debian's include/llvm is a link, and TableGen includes files of any name.
    for entry in entries:
        if not entry.name.endswith(_COMPILED) and not (entry.name in _PASSED_OVER and entry.is_dir()):
            yield entry.path


def _state(path: str) -> tuple[str, int, int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return path, 0, 0, 0, 0
    # The last one, because the others can be set: by `touch -r`, rsync and tar. The file's number, because a
    # folder may take another's name, with files that were written within one tick of the clock.
    return path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


# Flags of a record that promise C++, and the words for them.
HAS = {
    "hasCanonicalizer": "canonicalizer",
    "hasCanonicalizeMethod": "canonicalize method",
    "hasFolder": "folder",
    "hasVerifier": "verifier",
    "hasRegionVerifier": "region verifier",
    "hasCustomAssemblyFormat": "parser and printer",
}


def cpp_class(kind: str, record: str, own_name: str) -> str:
    """Return the class that TableGen makes of a record.

    Args:
        kind: the kind of definition.
        record: its name; for an op MLIR drops the part up to the first underscore.
        own_name: the name that a type or an attribute gives itself.
    """
    if kind == "op":
        # As MLIR's Operator.cpp does it: a name that has no underscore, or begins with one, stays whole.
        head, _, tail = record.partition("_")
        return tail if head and tail else record
    if kind in ("type", "attribute") and own_name:
        return own_name + ("Type" if kind == "type" else "Attr")
    return own_name or record


def full_name(kind: str, name: str, dialect: str) -> str:
    """Return the name as MLIR prints it."""
    if kind == "op":
        return f"{dialect}.{name}"
    mark = {"type": "!", "attribute": "#"}.get(kind, "")
    return f"{mark}{dialect}.{name}" if mark and dialect else name
