"""Find a library by its name, by a pass, or by an LLVM source file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.llvm.source import LlvmSource, SourceTree
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.core import untrusted
from tritonsmith.core.envs import receipts
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.checkout import LlvmPin

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


# The location of an LLVM's sources, or the steps that fetch them.


def sources_of(inputs: Inputs) -> SourceTree:
    """Return the LLVM's sources: those given, those it was built from, or those used last time.

    Raises:
        FactError: the sources cannot be located.
    """
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
