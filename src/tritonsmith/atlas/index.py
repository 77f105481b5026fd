"""Everything of a tree that has a name, and what a word may mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path

from tritonsmith.atlas import frontend, native, pipeline, switches, tablegen, td_text
from tritonsmith.atlas.definition import Definition
from tritonsmith.atlas.frontend import FrontEnd, LanguageFunction
from tritonsmith.atlas.native import PythonBinding
from tritonsmith.atlas.pipeline import PassCall
from tritonsmith.atlas.place import Place
from tritonsmith.atlas.source_files import SourceFiles
from tritonsmith.atlas.switches import Switch
from tritonsmith.core import configs
from tritonsmith.facts import variables

_PASSES = re.compile(r"^\w*passes\.")
KINDS = (
    "pass", "op", "dialect", "attribute", "type", "interface", "enum", "pattern", "function", "variable",
    "option", "cmake", "debug-type", "file", "message", "stage", "class", "trait", "macro",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One thing that can be explained.

    Attributes:
        kind: one of `KINDS`.
        name: its whole name.
        aliases: what people call it besides.
        what: a `Definition`, a `LanguageFunction`, `Switch`es, or the places of a variable or DEBUG_TYPE.
    """

    kind: str
    name: str
    aliases: frozenset[str]
    what: Definition | LanguageFunction | tuple[Switch, ...] | tuple[Place, ...]


class Index:
    """The names of a tree.

    Args:
        tree: a checkout's, or an installed Triton's.
        llvm: an LLVM whose TableGen may be asked, and whose own passes and ops count; None if there is none.
    """

    def __init__(self, tree: SourceFiles, llvm: Path | None = None) -> None:
        self.tree = tree
        self.llvm = llvm

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """What the tree's `.td` files define."""
        return td_text.read(self.tree)

    @cached_property
    def foreign(self) -> tuple[Definition, ...]:
        """What MLIR's own files define, of the LLVM at hand."""
        return td_text.read(SourceFiles(self.llvm, ("include/mlir", "mlir/include"))) if self.llvm else ()

    @cached_property
    def bindings(self) -> tuple[PythonBinding, ...]:
        """Functions of libtriton."""
        return native.bindings(self.tree)

    @cached_property
    def has_sources(self) -> bool:
        """Whether libtriton's own sources are here: a wheel may have some other C++."""
        return any(one.name.startswith("add_") for one in self.bindings)

    @cached_property
    def calls(self) -> tuple[PassCall, ...]:
        """Calls of passes."""
        return pipeline.calls(self.tree)

    @cached_property
    def functions(self) -> Mapping[str, LanguageFunction]:
        """Functions of the language."""
        return FrontEnd(self.tree).functions

    @cached_property
    def debug_types(self) -> Mapping[str, tuple[Place, ...]]:
        """DEBUG_TYPEs and where they are defined."""
        return native.debug_types(self.tree)

    @cached_property
    def variables(self) -> Mapping[str, tuple[Place, ...]]:
        """Environment variables that the tree reads."""
        found = switches.variables(self.tree)
        for name, places in switches.composed(self.tree).items():
            found[name] = (*found.get(name, ()), *places)
        return found

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Everything of the tree."""
        found = [_of_definition(one, self._bound(one)) for one in self.definitions]
        found += self._passes_of_others()
        found += [
            Entry("function", name, frozenset({name.partition(".")[2]}), one)
            for name, one in self.functions.items()
        ]
        found += [Entry("variable", name, frozenset(), one) for name, one in self.variables.items()]
        for kind, listed in (
            ("option", switches.backend_options(self.tree)),
            ("cmake", switches.cmake_options(self.tree)),
        ):
            by_name: dict[str, list[Switch]] = {}
            for switch in listed:
                by_name.setdefault(switch.name, []).append(switch)
            found += [
                Entry(
                    kind,
                    name,
                    frozenset(f"{one.owner.partition(' ')[0]}.{name}" for one in same),
                    tuple(same),
                )
                for name, same in by_name.items()
            ]
        found += [Entry("debug-type", name, frozenset(), one) for name, one in self.debug_types.items()]
        return tuple(found)

    def _passes_of_others(self) -> list[Entry]:
        """Passes that a pipeline calls or libtriton binds and no file defines: MLIR's, or all of a wheel.

        Backends import `passes` under several names, which are not several passes.
        """
        ours = {
            binding.name for one in self.definitions if one.kind == "pass" for binding in self._bound(one)
        }
        known = {row.binding: row for row in mlir_passes()}
        by_name: dict[str, list[PassCall]] = {}
        for call in self.calls:
            path = _PASSES.sub("", call.name)
            if path in known or call.name.rpartition(".")[2] not in ours:
                by_name.setdefault(path, []).append(call)
        bound = {".".join((*one.words[-1:], one.name)): one for one in self.bindings}
        names = dict.fromkeys([*by_name, *(name for name in known if name in bound)])
        return [_called_only(name, by_name.get(name, []), known.get(name)) for name in names]

    def find(self, thing: str, kind: str = "") -> tuple[Entry, ...]:
        """What a word means: whole names first, then short ones, then in any case; several if unclear.

        MLIR's own passes, ops and types count where nothing of the tree has that name.
        """
        listed = [one for one in self.entries if kind in ("", one.kind)]
        for fits in (
            lambda one: one.name == thing,
            lambda one: thing in one.aliases,
            lambda one: thing.lower() in {name.lower() for name in (one.name, *one.aliases)},
        ):
            if found := tuple(filter(fits, listed)):
                return _without_doubles(found)
        foreign = (_of_definition(one, ()) for one in self.foreign if kind in ("", one.kind))
        return tuple(one for one in foreign if thing == one.name or thing in one.aliases)

    def near(self, thing: str, most: int = 5) -> tuple[str, ...]:
        """Names that are spelled nearly so, or hold the word."""
        names = {name: one.name for one in self.entries for name in (one.name, *one.aliases)}
        close = get_close_matches(thing, names, n=most, cutoff=0.6)
        holding = sorted((name for name in names if thing.lower() in name.lower()), key=len)
        return tuple(dict.fromkeys(names[one] for one in (*close, *holding)))[:most]

    def exact(self, one: Definition) -> tuple[Definition, str]:
        """A definition as TableGen gives it, or as the text does, and why then."""
        if self.llvm is None or tablegen.program(self.llvm) is None:
            return one, "read as text: no LLVM with MLIR's files at hand (--llvm-dir)"
        tree = (
            self.tree if one in self.definitions else SourceFiles(self.llvm, ("include/mlir", "mlir/include"))
        )
        try:
            given = tablegen.read(tree, one.file, self.llvm)
        except tablegen.TableGenError as error:
            return one, f"read as text: llvm-tblgen of {self.llvm} refuses {one.file}: {error}"
        answer = next((same for same in given if same.record == one.record), None)
        return (
            (tablegen.agree(answer, one), "")
            if answer
            else (one, "read as text: llvm-tblgen does not list it")
        )

    def builders(self, cpp: str) -> tuple[PythonBinding, ...]:
        """Functions of the builder that make an op."""
        return tuple(one for one in self.bindings if one.name.startswith("create") and one.names(cpp))

    def _bound(self, one: Definition) -> tuple[PythonBinding, ...]:
        return native.of_pass(self.bindings, one) if one.kind == "pass" else ()


@dataclass(frozen=True)
class MlirPass:
    """A pass of MLIR that Triton binds.

    Attributes:
        name: as `mlir-opt` takes it.
        binding: module and function in libtriton: `common.add_cse`.
        maker: the function in C++.
        about: what it does.
    """

    name: str
    binding: str
    maker: str
    about: str


@cache
def mlir_passes() -> tuple[MlirPass, ...]:
    """The table in `configs/source-map.toml`."""
    rows: dict[str, dict[str, str]] = configs.load("source-map")["mlir-passes"]
    return tuple(configs.made(MlirPass, {"name": name, **row}) for name, row in rows.items())


def _called_only(path: str, calls: list[PassCall], known: MlirPass | None) -> Entry:
    """A pass without a definition here; one of MLIR's has the name that MLIR gives it."""
    short = path.rpartition(".")[2]
    full = {call.name for call in calls}
    aliases = {path, short, short.removeprefix("add_"), *full}
    if known:
        aliases |= {known.maker, known.maker.removeprefix("create").removesuffix("Pass")}
    name = known.name if known else min(full, key=len)
    return Entry("pass", name, frozenset(aliases - {name}), tuple(call.in_words for call in calls))


def known_variable(name: str) -> variables.TritonVariable | None:
    """What is known of a variable over all releases."""
    return variables.find(name)


def lowered(index: Index, one: LanguageFunction) -> tuple[PythonBinding, ...]:
    """The builder's functions in C++ that a function of the language ends in."""
    by_name: dict[str, tuple[PythonBinding, ...]] = {}
    for binding in index.bindings:
        by_name[binding.name] = (*by_name.get(binding.name, ()), binding)
    return frontend.ops_of(one, by_name)


def _of_definition(one: Definition, bound: Iterable[PythonBinding]) -> Entry:
    aliases = {one.record, one.cpp, one.name.lstrip("#!")}
    if one.kind in ("op", "type", "attribute"):
        aliases.add(one.name.rpartition(".")[2].lstrip("#!"))
    if one.kind == "pass":
        aliases |= {*native.makers(one), one.name.partition("-")[2]}
        for binding in bound:
            aliases |= {binding.name, binding.name.removeprefix("add_")}
    if one.kind == "dialect":
        aliases.add(one.name)
    return Entry(one.kind, one.name, frozenset(aliases - {""}), one)


def _without_doubles(found: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """A DEBUG_TYPE that is named as its pass is no second meaning; nor is the one call of its name.

    Where the sources of libtriton are missing, as in a wheel, nothing else tells that the call adds the pass.
    """
    others = {one.name for one in found if one.kind != "debug-type"}
    kept = tuple(one for one in found if one.kind != "debug-type" or one.name not in others)
    read = {one.name for one in kept if one.kind == "variable"}  # its answer names CMake's option, too
    kept = tuple(one for one in kept if one.kind != "cmake" or one.name not in read)
    defined = tuple(one for one in kept if isinstance(one.what, Definition))
    pair = len(kept) == 2 and len(defined) == 1 and {one.kind for one in kept} == {"pass"}  # noqa: PLR2004
    return defined if pair else kept
