"""Facts about a library from LLVM's CMake files: sources, include folders, definitions, generated headers.

CMake itself reads them (`read_lists.cmake`), so conditions, loops and variables mean what they mean in LLVM's
build.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.core.process import capture
from tritonsmith.facts.llvm_tree import LlvmTree

_READER = Path(__file__).with_name("read_lists.cmake")
_ROOTS = ("llvm/lib", "mlir/lib")
_ADDS = re.compile(r"^\s*((?:llvm_)?add_\w*(?:library|target))\s*\(\s*([A-Za-z]\w*)", re.MULTILINE)
_CALL = re.compile(r"^[ \t]*([A-Za-z_]\w*)[ \t]*\(", re.MULTILINE)
_NO_LIBRARY = ("add_public_tablegen_target", "add_custom_target")
_LANGUAGE = re.compile(
    "(?:else|end)?if|else|(?:end)?(?:foreach|while|function|macro)|return|break|continue|(?:un)?set|list|string"
    "|math|message|get_filename_component|cmake_parse_arguments|file|option|[gs]et_property|cmake_path|include"
    "|add_subdirectory|(?:mlir_)?tablegen|cmake_minimum_required"
)
_TELLING = re.compile(
    "(?:target_)?include_directories|add_(?:compile_)?definitions|target_(?:compile_definitions|sources)"
)
_SOURCES = (".cpp", ".cc", ".c", ".cxx")
_WORDS = {"BEFORE", "AFTER", "SYSTEM", "PRIVATE", "PUBLIC", "INTERFACE"}


@dataclass(frozen=True)
class Table:
    """One generated header: a call of TableGen.

    Attributes:
        project: `LLVM` or `MLIR`: the project whose TableGen program generates it.
        definitions: the `.td` file.
        output: the header.
        arguments: `-gen-instr-info` and the like.
        folder: folder of the CMakeLists.txt that requests it.
    """

    project: str
    definitions: Path
    output: Path
    arguments: tuple[str, ...]
    folder: Path


@dataclass(frozen=True)
class Library:
    """One library as the CMake files describe it.

    Attributes:
        name: name in CMake's packages: `MLIRTransforms`.
        folder: folder of its CMakeLists.txt.
        sources: absolute paths.
        includes: private include folders, the nearest first; some hold generated headers only.
        definitions: preprocessor definitions, as `-D` flags.
        hidden: compiled with hidden visibility.
        tables: headers that may have to be generated.
    """

    name: str
    folder: Path
    sources: tuple[Path, ...]
    includes: tuple[Path, ...]
    definitions: tuple[str, ...]
    hidden: bool
    tables: tuple[Table, ...]


def index(project: Path) -> dict[str, Path]:
    """Return the folder of each library's CMakeLists.txt, for all of LLVM and MLIR.

    The files are read as text, so conditions have no effect.

    Args:
        project: folder of llvm-project.
    """
    folders: dict[str, Path] = {}
    for root in _ROOTS:
        for file in sorted((project / root).rglob("CMakeLists.txt")):
            text = untrusted.text_if_any(file)
            for command, name in _ADDS.findall(text):
                if command not in _NO_LIBRARY:
                    folders.setdefault(_full_name(command, name), file.parent)
    return folders


def _full_name(command: str, name: str) -> str:
    return f"LLVM{name}" if command == "add_llvm_target" else name


def read(name: str, folder: Path, project: Path, tree: LlvmTree, generated: Path, cmake: Path) -> Library:
    """Have CMake read the description of a library.

    Args:
        name: the library.
        folder: folder of its CMakeLists.txt.
        project: folder of llvm-project.
        tree: the LLVM whose options decide the conditions in the files.
        generated: folder for generated headers.
        cmake: path of CMake.

    Raises:
        FactError: CMake cannot read the files, or this LLVM's options leave the library out.
    """
    root = next(project / root for root in _ROOTS if folder.is_relative_to(project / root))
    # `cmake -P` stops at an unknown command, so each one that the files call is either recorded or ignored.
    commands = _commands(root, folder)
    adders = {word for word in commands if _ADDS.match(f"{word}(x") and word not in _NO_LIBRARY}
    recorded = sorted(adders | {word for word in commands if _TELLING.fullmatch(word)})
    ignored = sorted(word for word in commands - set(recorded) if not _LANGUAGE.fullmatch(word))
    values = {
        "PREFIX": tree.prefix,
        "PROJECT": project,
        "ROOT": root,
        "FOLDER": folder.relative_to(root),
        "BINARY": generated,
        "RECORD": ";".join(recorded),
        "IGNORE": ";".join(ignored),
    }
    argv = (str(cmake), *(f"-DSMITH_{key}={value}" for key, value in values.items()), "-P", str(_READER))
    printed = capture(argv)
    if printed is None:
        raise FactError(
            "CMake cannot read LLVM's source lists",
            where=folder / "CMakeLists.txt",
            hints=["to see the error, run: " + " ".join(f"'{word}'" for word in argv)],
        )
    records = [tuple(line.split("\t")[1:]) for line in printed.splitlines() if line.startswith("-- smith\t")]
    library = _library(name, root, generated, records)
    if library is None:
        raise FactError(
            f"{name} is not part of this LLVM: the LLVM was configured without it",
            where=folder / "CMakeLists.txt",
            why=f"read with the options of {tree.prefix}",
        )
    return library


def _commands(root: Path, folder: Path) -> set[str]:
    """Return every command called by the files from the root down to the folder."""
    files = [root / "CMakeLists.txt"]
    for part in folder.relative_to(root).parts:
        files.append(files[-1].parent / part / "CMakeLists.txt")
    texts = (untrusted.read_text(file) for file in files if file.is_file())
    return {word.lower() for text in texts for word in _CALL.findall(text)}


def _library(name: str, root: Path, generated: Path, records: list[tuple[str, ...]]) -> Library | None:
    parts = _Parts(name)
    tables = []
    for kind, at, *fields in records:
        if kind == "tablegen":
            tables.append(_table(Path(at), root, generated, fields))
        else:
            visibility, *words = fields
            parts.take(kind, Path(at), visibility, [word for word in words if word])
    if parts.folder is None:
        return None
    beside = [up for up in (parts.folder, *parts.folder.parents) if up.is_relative_to(root) and up != root]
    generated_folders = [table.output.parent for table in tables]
    return Library(
        name=name,
        folder=parts.folder,
        sources=tuple(parts.sources),
        includes=tuple(dict.fromkeys((*beside, *reversed(generated_folders), *reversed(parts.includes)))),
        definitions=tuple(dict.fromkeys(parts.definitions)),
        hidden=parts.hidden,
        tables=tuple(tables),
    )


@dataclass
class _Parts:
    """The records about one library, merged."""

    name: str
    folder: Path | None = None
    hidden: bool = False
    sources: list[Path] = field(default_factory=list)
    includes: list[Path] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)

    def take(self, kind: str, here: Path, visibility: str, words: list[str]) -> None:
        """Add one call of a command: its kind, folder, default visibility and arguments."""
        if kind == "include_directories":
            self.includes += _folders(here, words)
        elif kind in ("add_definitions", "add_compile_definitions"):
            self.definitions += map(_definition, words)
        elif kind.startswith("target_"):
            self._take_of_target(kind, here, words)
        elif words and _full_name(kind, words[0]) == self.name:
            self.folder, self.hidden = here, visibility == "hidden"
            self.sources += _sources(here, words[1:])

    def _take_of_target(self, kind: str, here: Path, words: list[str]) -> None:
        target, *rest = words
        if target.removeprefix("obj.") != self.name:
            return
        own = list(_own(rest))
        if kind == "target_include_directories":
            self.includes += _folders(here, own)
        elif kind == "target_compile_definitions":
            self.definitions += map(_definition, own)
        else:
            self.sources += _sources(here, own)


def _table(here: Path, root: Path, generated: Path, fields: list[str]) -> Table:
    project, output, definitions, *rest = fields
    arguments: list[str] = []
    for word in rest:
        if word in ("DEPENDS", "EXTRA_INCLUDES"):
            break
        arguments.append(word)
    return Table(
        project=project,
        definitions=here / definitions,
        output=generated / here.relative_to(root) / output,
        arguments=tuple(arguments),
        folder=here,
    )


def _own(words: list[str]) -> Iterator[str]:
    """Yield the words of a `target_...` command that apply to the target itself, not only to its users."""
    section = ""
    for word in words:
        if word in _WORDS:
            section = word
        elif section != "INTERFACE":
            yield word


def _sources(here: Path, words: list[str]) -> Iterator[Path]:
    for word in words:
        if word.endswith(_SOURCES) and (here / word).is_file():
            yield here / word


def _folders(here: Path, words: list[str]) -> Iterator[Path]:
    for word in words:
        if word not in _WORDS:
            yield Path(here, word).resolve()


def _definition(word: str) -> str:
    return word if word.startswith("-") else f"-D{word}"


# The headers that a library's sources reach: includes are followed as text, without conditions.
#
# It finds the generated headers that a library needs before anything is compiled, and which of LLVM's own
# headers it depends on.

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_OF_LLVM = ("llvm/", "llvm-c/", "mlir/", "mlir-c/")


@dataclass(frozen=True)
class Reached:
    """The headers reached through includes.

    Attributes:
        public: names of LLVM's own headers, as they are included: `mlir/IR/Operation.h`.
        missing: names that do not exist: generated headers, and those of other systems.
        private: the library's own headers.
    """

    public: frozenset[str]
    missing: frozenset[str]
    private: frozenset[Path] = frozenset()


def follow_includes(sources: Iterable[Path], private: tuple[Path, ...], public: tuple[Path, ...]) -> Reached:
    """Follow the includes of sources and of every header that they reach.

    Args:
        sources: files to start from.
        private: include folders of the library itself.
        public: include folders of the LLVM that the library is compiled against.
    """
    own: set[Path] = set()
    todo = list(sources)
    visited: set[Path] = set(todo)
    headers: set[str] = set()
    missing: set[str] = set()
    places: dict[str, Path | None] = {}
    while todo:
        file = todo.pop()
        for name in _names(file):
            beside = file.parent / name
            # A header of LLVM's own is that of the LLVM to link against, never one
            # that lies beside the source.
            if beside.is_file() and not name.startswith(_OF_LLVM):
                header: Path | None = beside
            else:
                if name not in places:
                    places[name] = _find(name, private, public)
                header = places[name]
                if header is None:
                    missing.add(name)
                elif name.startswith(_OF_LLVM):
                    headers.add(name)
            if header is not None and header not in visited:
                visited.add(header)
                todo.append(header)
                if not name.startswith(_OF_LLVM):
                    own.add(header)
    return Reached(frozenset(headers), frozenset(missing), frozenset(own))


def _names(file: Path) -> list[str]:
    return [name.decode(errors="replace") for name in _INCLUDE.findall(untrusted.read_bytes(file))]


def _find(name: str, private: tuple[Path, ...], public: tuple[Path, ...]) -> Path | None:
    folders = public if name.startswith(_OF_LLVM) else private
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
