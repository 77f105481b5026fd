"""Find a library of LLVM by its name, a pass or a file, and read from LLVM's CMake files how it is built.

CMake itself reads these files (`read_lists.cmake`), so conditions, loops and variables mean what they mean in
LLVM's build.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.llvm.source import LlvmSource, SourceTree
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.core import untrusted
from tritonsmith.core.envs import receipts
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan
from tritonsmith.core.process import capture
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.checkout import LlvmPin
from tritonsmith.facts.llvm_tree import LlvmRequest, LlvmTree

_MLIR_PASS = re.compile(r'def\s+(\w+)\s*:\s*\w*Pass\s*<\s*"([\w-]+)"')  # also InterfacePass and others' bases
_LLVM_PASS = re.compile(
    r'\b(?:\w+_(?:PASS|ANALYSIS)(?:_WITH_PARAMS)?)\(\s*"([\w-]+)"\s*,\s*(?:"(\w+)"|(?:\w+::)*(\w+)\b)',
    re.MULTILINE,
)
_LEGACY_PASS = re.compile(
    r'\bINITIALIZE_PASS(?:_BEGIN|_WITH_OPTIONS)?\(\s*\w+\s*,\s*(?:"([\w-]+)"|DEBUG_TYPE)'
)
_DEBUG_TYPE = re.compile(r'#define\s+DEBUG_TYPE\s+"([\w-]+)"')
_SHOWN = 12
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
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_OF_LLVM = ("llvm/", "llvm-c/", "mlir/", "mlir-c/")


@dataclass(frozen=True)
class LibrarySource:
    """The location of a pass or a file.

    Attributes:
        file: the source file.
        words: reason for this choice, for the screen.
        function: function of the pass to stop in; empty if unknown.
    """

    file: Path
    words: str
    function: str = ""


def check(names: Iterable[str], known: Iterable[str]) -> None:
    """Reject names that are not libraries of LLVM or MLIR.

    Raises:
        UsageError: a name is unknown; the hints have the nearest ones.
    """
    libraries = sorted(known)
    for name in names:
        if name not in libraries:
            near = get_close_matches(name, libraries, n=3, cutoff=0.5)
            # By parts, too: to difflib, `transforms` is far from `MLIRTransforms`.
            folded = [library for library in libraries if name.lower() in library.lower()][:_SHOWN]
            candidates = list(dict.fromkeys((*near, *folded)))
            raise UsageError(
                f"LLVM has no library {name!r}",
                hints=[
                    *([f"did you mean {' or '.join(map(repr, candidates[:3]))}?"] if candidates else []),
                    "to list all names: invoke debug-library --list",
                    "or name a pass (--pass cse) or a file (--file CSE.cpp)",
                ],
            )


def by_pass(argument: str, project: Path) -> LibrarySource:
    """Return the source of the pass with this argument: `cse`, `early-cse`, `nvptx-lower-args`.

    Args:
        argument: full argument, as `mlir-opt`, `opt` or a dump's banner writes it.
        project: folder of llvm-project.

    Raises:
        UsageError: no pass matches, or more than one.
    """
    known: set[str] = set()
    places = [*_mlir_pass(argument, project, known), *_llvm_pass(argument, project, known)]
    # Of several registrations in one file the first names the pass best.
    files = {place.file: place for place in reversed(places)}
    if len(files) == 1:
        return next(iter(files.values()))
    if not files:
        near = get_close_matches(argument, sorted(known), n=3, cutoff=0.6)
        raise UsageError(
            f"neither MLIR nor LLVM has a pass {argument!r}",
            where=project,
            hints=[
                *([f"did you mean {' or '.join(map(repr, near))}?"] if near else []),
                "Triton's own passes (triton-..., tritongpu-...) need only `invoke build-triton --debug`",
                "or give its file: --file CSE.cpp",
            ],
        )
    raise UsageError(
        f"more than one file implements {argument!r}",
        why="\n".join(f"{path.relative_to(project)}: {place.words}" for path, place in files.items()),
        hints=[f"choose one: --file {path.relative_to(project)}" for path in files],
    )


def by_file(name: str, project: Path) -> LibrarySource:
    """Return a source by its name or the end of its path: `CSE.cpp`, `mlir/lib/Transforms/CSE.cpp`.

    Raises:
        UsageError: no file matches, or more than one.
    """
    whole = Path(name).expanduser()
    if whole.is_absolute() and whole.resolve().is_relative_to(project.resolve()) and whole.is_file():
        return LibrarySource(whole, "named")
    parts = whole.parts
    files = [file for root in _lib_folders(project) for file in root.rglob(whole.name)]
    matches = sorted(file for file in files if file.parts[-len(parts) :] == parts)
    if len(matches) == 1:
        return LibrarySource(matches[0], "named")
    if matches:
        raise UsageError(
            f"more than one file is named {name!r}",
            why="\n".join(str(file.relative_to(project)) for file in matches),
            hints=["give more of its path: --file mlir/lib/Transforms/CSE.cpp"],
        )
    sources = {file.name for root in _lib_folders(project) for file in root.rglob("*.cpp")}
    near = get_close_matches(whole.name, sorted(sources), n=3, cutoff=0.6)
    raise UsageError(
        f"neither llvm/lib nor mlir/lib has a file {name!r}",
        where=project,
        hints=[f"did you mean {' or '.join(map(repr, near))}?"] if near else [],
    )


def candidates(file: Path, folders: Mapping[str, Path]) -> tuple[str, ...]:
    """Return libraries that a file may belong to: those of its folder, then those of the folders above.

    Args:
        file: a source file.
        folders: library to its folder.
    """
    by_folder: dict[Path, list[str]] = {}
    for name, folder in folders.items():
        by_folder.setdefault(folder, []).append(name)
    return tuple(name for folder in file.parents for name in by_folder.get(folder, ()))


def _lib_folders(project: Path) -> tuple[Path, ...]:
    return (project / "llvm" / "lib", project / "mlir" / "lib")


def _mlir_pass(argument: str, project: Path, known: set[str]) -> Iterator[LibrarySource]:
    """Find a definition in TableGen, then the file that uses its base class."""
    for definitions in sorted((project / "mlir" / "include").rglob("*.td")):
        text = untrusted.read_text(definitions)
        for name, its_argument in _MLIR_PASS.findall(text):
            known.add(its_argument)
            if its_argument == argument:
                # The macro since LLVM 16; before, a pass derived from `NameBase<`.
                base = (f"GEN_PASS_DEF_{name.upper()}\n", f"{name}Base<")
                for file in _containing(project / "mlir" / "lib", base):
                    yield LibrarySource(file, f"def {name} in {definitions.name}", "runOnOperation")


def _llvm_pass(argument: str, project: Path, known: set[str]) -> Iterator[LibrarySource]:
    """Find an entry of a PassRegistry.def and the file with its `run`, else a legacy registration."""
    lib = project / "llvm" / "lib"
    for registry in sorted(lib.rglob("*PassRegistry.def")):
        text = untrusted.read_text(registry)
        for its_argument, quoted, called in _LLVM_PASS.findall(text):
            known.add(its_argument)
            if its_argument == argument:
                name = quoted or called
                # The registry names the class, and a class is where its `run` is.
                for file in _containing(lib, (f"{name}::run(",)):
                    yield LibrarySource(file, f"{name} in {registry.name}", f"{name}::run")
    # Passes of the code generators have no entry in a registry before they are
    # ported to the new pass manager.
    if argument not in known:
        for file in _containing(lib, ("INITIALIZE_PASS",)):
            text = untrusted.read_text(file)
            # Most legacy passes are registered under the macro DEBUG_TYPE instead of a string.
            types = _DEBUG_TYPE.findall(text)
            names = {name or (types[0] if types else "") for name in _LEGACY_PASS.findall(text)}
            known |= names
            if argument in names:
                yield LibrarySource(file, "registers it (INITIALIZE_PASS)")


def _containing(root: Path, texts: tuple[str, ...]) -> Iterator[Path]:
    """Yield files with one of these texts at the start of a name."""
    # `XBase<` must not match `AffineXBase<`.
    pattern = re.compile(rb"(?<!\w)(?:%s)" % b"|".join(re.escape(text.encode()) for text in texts))
    for file in sorted(root.rglob("*.cpp")):
        content = untrusted.read_bytes(file).replace(b"\r\n", b"\n")
        # The plain search is much faster, and most files have neither.
        if any(text.encode() in content for text in texts) and pattern.search(content):
            yield file


def sources_of(inputs: Inputs) -> SourceTree:
    """Return the LLVM's sources: those given, those it was built from, or those used last time.

    Raises:
        FactError: the sources cannot be located.
    """
    # The surest comes first: sources that the user names, then those that this LLVM was built from.
    settings, tree = inputs.settings, inputs.llvm
    if settings.llvm.source:
        source = llvm_source.locate(settings.llvm.source)
        if source.kind == "checkout":
            return SourceTree(Path(source.location), source.commit, ())
        return _obtained(source, inputs)
    last = (receipts.read(inputs.env.receipt("debug-library")) or {}).get("sources")
    for path in (llvm_tree.source_of(tree.prefix), Path(last) if last else None):
        if path is not None and (path / "llvm" / "CMakeLists.txt").is_file():
            return SourceTree(path, llvm_tree.source_commit(path), ())
    if tree.commit:
        return _obtained(llvm_source.locate(""), inputs)
    raise FactError(
        f"cannot locate the sources of LLVM {tree.version}",
        where=tree.prefix,
        why="this LLVM does not record its commit and was not built here",
        hints=[
            "give the sources: --llvm-source PATH_OR_URL (a checkout, or a tarball of that release)",
            f"Debian and Ubuntu: apt source llvm-toolchain-{tree.major}, then --llvm-source with that folder",
        ],
    )


def _obtained(source: LlvmSource, inputs: Inputs) -> SourceTree:
    """Fetch the LLVM's own commit instead of Triton's pin; no steps if all of them are done."""
    settings, llvm = replace(inputs.settings.llvm, any_commit=True), inputs.llvm
    pin = LlvmPin(llvm.commit, str(llvm.prefix)) if llvm.commit else None
    tree = llvm_source.obtain(source, LlvmRequest(pin, frozenset(), "", settings), inputs.workspace)
    done = all(step.stamp and step.stamp.holds() for step in tree.steps)
    return replace(tree, steps=()) if done else tree


def steps_to_fetch(tree: SourceTree) -> Plan:
    """Return the plan that fetches the sources."""
    return Plan("LLVM's sources", tree.steps)


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
    # CMake prints STATUS messages to standard output, with `-- ` before them, and warnings and errors to
    # standard error.
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
        # Calls are recorded from the root down. Reversed, the folder of the library comes before those above
        # it, as in LLVM's build.
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
        # With shared libraries LLVM compiles the objects as a target of their own, obj.NAME.
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
        # What follows is for CMake, not for TableGen.
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
        # LLVM's functions take sources, libraries and keywords in any order. A source that does not exist is
        # generated, or one of another platform.
        if word.endswith(_SOURCES) and (here / word).is_file():
            yield here / word


def _folders(here: Path, words: list[str]) -> Iterator[Path]:
    for word in words:
        if word not in _WORDS:
            yield Path(here, word).resolve()


def _definition(word: str) -> str:
    return word if word.startswith("-") else f"-D{word}"


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
    # As text, without conditions: this must be known before anything is compiled or generated.
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
