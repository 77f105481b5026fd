"""The index of everything in a tree that has a name, and the meanings of a word."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tritonsmith.atlas import mentions, pipeline, tablegen
from tritonsmith.atlas.mentions import PythonBinding
from tritonsmith.atlas.pipeline import PassCall, Switch
from tritonsmith.atlas.source_files import Definition, KeptDefinitions, Place, SourceFiles
from tritonsmith.core import configs, untrusted
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
        name: its full name.
        aliases: its other names.
        what: a `Definition`, a `LanguageFunction`, `Switch`es, or the places of a variable or DEBUG_TYPE.
    """

    kind: str
    name: str
    aliases: frozenset[str]
    what: Definition | LanguageFunction | tuple[Switch, ...] | tuple[Place, ...]


_MLIR = ("include/mlir", "mlir/include")  # of an installed LLVM, and of its sources


def foreign_tops(llvm: Path) -> tuple[Path, ...]:
    """Return the folders with MLIR's own files."""
    return tuple(llvm / top for top in _MLIR)


class Index:
    """The names of a tree.

    Args:
        tree: the files of a checkout, or of an installed Triton.
        llvm: an LLVM whose TableGen may be used, and whose own passes and ops count; None if there is none.
        kept: what earlier questions have read.

    Attributes:
        certain: the answer is the same as long as the tree is. TableGen may fail for lack of time or memory.
    """

    # Everything is read on first use: most questions need one kind of thing, and all kinds together
    # take seconds.
    def __init__(
        self, tree: SourceFiles, llvm: Path | None = None, kept: KeptDefinitions | None = None
    ) -> None:
        self.tree = tree
        self.llvm = llvm
        self.certain = True
        self._kept = kept or KeptDefinitions()

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """The definitions in the tree's `.td` files."""
        return self._kept.get(("text", self.tree.root), self._td, lambda: tablegen.read_td(self.tree))

    @cached_property
    def _td(self) -> tuple[Path, ...]:
        """The tree's `.td` files."""
        return tuple(self.tree.root / name for name in self.tree.having(".td"))

    @cached_property
    def foreign(self) -> tuple[Definition, ...]:
        """The definitions in MLIR's own files, of the LLVM at hand."""
        if self.llvm is None:
            return ()
        tree = SourceFiles(self.llvm, _MLIR)
        return self._kept.get(("text", self.llvm), foreign_tops(self.llvm), lambda: tablegen.read_td(tree))

    @cached_property
    def bindings(self) -> tuple[PythonBinding, ...]:
        """The functions of libtriton."""
        return mentions.bindings(self.tree)

    @cached_property
    def has_sources(self) -> bool:
        """Report whether libtriton's own sources are here: a wheel may have some other C++."""
        return any(binding.name.startswith("add_") for binding in self.bindings)

    @cached_property
    def calls(self) -> tuple[PassCall, ...]:
        """The calls of passes."""
        return pipeline.calls(self.tree)

    @cached_property
    def functions(self) -> Mapping[str, LanguageFunction]:
        """The functions of the language."""
        # To parse the modules of the language takes longer than all the rest of most answers.
        front_end = FrontEnd(self.tree)
        functions = self._kept.convert(
            ("functions", self.tree.root),
            [self.tree.root / name for name in front_end.files],
            lambda: tuple(front_end.functions.values()),
            LanguageFunction.to_row,
            LanguageFunction.of_row,
        )
        return {function.name: function for function in functions}

    @cached_property
    def debug_types(self) -> Mapping[str, tuple[Place, ...]]:
        """The DEBUG_TYPEs, with the places of their definitions."""
        return mentions.debug_types(self.tree)

    @cached_property
    def variables(self) -> Mapping[str, tuple[Place, ...]]:
        """The environment variables that the tree reads."""
        read = pipeline.variables(self.tree)
        # A name may be read in full in one file, and composed in another.
        for name, places in pipeline.composed_variables(self.tree).items():
            read[name] = (*read.get(name, ()), *places)
        return read

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry of the tree."""
        entries = [_of_definition(definition, self._bound(definition)) for definition in self.definitions]
        entries += self._passes_of_others()
        entries += [
            Entry("function", name, frozenset({name.partition(".")[2]}), function)
            for name, function in self.functions.items()
        ]
        entries += [Entry("variable", name, frozenset(), places) for name, places in self.variables.items()]
        for kind, listed in (
            ("option", pipeline.backend_options(self.tree)),
            ("cmake", pipeline.cmake_options(self.tree)),
        ):
            by_name: dict[str, list[Switch]] = {}
            # One option may be declared by each backend: it is one thing with several owners.
            for switch in listed:
                by_name.setdefault(switch.name, []).append(switch)
            entries += [
                Entry(
                    kind,
                    name,
                    frozenset(f"{switch.owner.partition(' ')[0]}.{name}" for switch in same),
                    tuple(same),
                )
                for name, same in by_name.items()
            ]
        entries += [
            Entry("debug-type", name, frozenset(), places) for name, places in self.debug_types.items()
        ]
        return tuple(entries)

    def _passes_of_others(self) -> list[Entry]:
        """Return passes that a pipeline calls or libtriton binds, but no file defines: MLIR's, a wheel's."""
        ours = {
            binding.name for item in self.definitions if item.kind == "pass" for binding in self._bound(item)
        }
        known = {row.binding: row for row in mlir_passes()}
        by_name: dict[str, list[PassCall]] = {}
        for call in self.calls:
            # Backends import `passes` under several names, which are not several passes.
            path = _PASSES.sub("", call.name)
            if path in known or call.name.rpartition(".")[2] not in ours:
                by_name.setdefault(path, []).append(call)
        bound = {".".join((*item.words[-1:], item.name)): item for item in self.bindings}
        names = dict.fromkeys([*by_name, *(name for name in known if name in bound)])
        return [_called_only(name, by_name.get(name, []), known.get(name)) for name in names]

    def find(self, thing: str, kind: str = "") -> tuple[Entry, ...]:
        """Return the meanings of a word, several if it is ambiguous.

        Full names count first, then short ones, then either in any case. MLIR's own passes, ops and types
        count where nothing of the tree has that name.
        """
        listed = [entry for entry in self.entries if kind in ("", entry.kind)]
        # Exact before short before case-insensitive: `ttg.dot` is one thing, `dot` may be several.
        for fits in (
            lambda entry: entry.name == thing,
            lambda entry: thing in entry.aliases,
            lambda entry: thing.lower() in {name.lower() for name in (entry.name, *entry.aliases)},
        ):
            if matching := tuple(filter(fits, listed)):
                return _without_doubles(matching)
        # Only now: many of MLIR's ops share a short name with one of Triton's, such as load and reduce.
        foreign = (_of_definition(entry, ()) for entry in self.foreign if kind in ("", entry.kind))
        return tuple(entry for entry in foreign if thing == entry.name or thing in entry.aliases)

    def near(self, thing: str, most: int = 5) -> tuple[str, ...]:
        """Return names that are spelled similarly, or contain the word."""
        names = {name: entry.name for entry in self.entries for name in (entry.name, *entry.aliases)}
        close = get_close_matches(thing, names, n=most, cutoff=0.6)
        # The shortest first: it has the least besides the word.
        holding = sorted((name for name in names if thing.lower() in name.lower()), key=len)
        return tuple(dict.fromkeys(names[entry] for entry in (*close, *holding)))[:most]

    def exact(self, definition: Definition) -> tuple[Definition, str]:
        """Return a definition as TableGen gives it, or as the text does, with the reason why."""
        # TableGen runs for a question and not for the index: a file takes up to a second, and many an LLVM is
        # too far from the pin.
        llvm, program = self.llvm, self.llvm and tablegen.program(self.llvm)
        if llvm is None or program is None:
            return definition, "read as text: no LLVM with MLIR's files at hand (--llvm-dir)"
        tree = self.tree if definition in self.definitions else SourceFiles(llvm, _MLIR)
        included = tablegen.looked_up(tree, definition.file, llvm)
        # What lies where nothing else is read is not noted before a question.
        self.certain &= all(map(tree.covers, included))
        sources = (program, *tablegen.includes(llvm), *included, *self._td)
        try:
            exact = self._kept.get(
                ("exact", tree.root, definition.file, llvm),
                sources,
                lambda: tablegen.read_exact(tree, definition.file, llvm),
            )
        except tablegen.TableGenError as error:
            self.certain = False
            return definition, f"read as text: llvm-tblgen of {self.llvm} refuses {definition.file}: {error}"
        answer = next((same for same in exact if same.record == definition.record), None)
        return (
            (tablegen.merge_text(answer, definition), "")
            if answer
            else (definition, "read as text: llvm-tblgen does not list it")
        )

    def builders(self, cpp: str) -> tuple[PythonBinding, ...]:
        """Return functions of the builder that make an op."""
        return tuple(
            binding for binding in self.bindings if binding.name.startswith("create") and binding.names(cpp)
        )

    def _bound(self, definition: Definition) -> tuple[PythonBinding, ...]:
        return mentions.bindings_of_pass(self.bindings, definition) if definition.kind == "pass" else ()


@dataclass(frozen=True)
class MlirPass:
    """A pass of MLIR that Triton binds.

    Attributes:
        name: its name in `mlir-opt`.
        binding: module and function in libtriton: `common.add_cse`.
        maker: the function in C++.
        about: its effect.
    """

    name: str
    binding: str
    maker: str
    about: str


@cache
def mlir_passes() -> tuple[MlirPass, ...]:
    """Return the table in `configs/source-map.toml`."""
    rows: dict[str, dict[str, str]] = configs.load("source-map")["mlir-passes"]
    return tuple(configs.as_dataclass(MlirPass, {"name": name, **row}) for name, row in rows.items())


def _called_only(path: str, calls: list[PassCall], known: MlirPass | None) -> Entry:
    """Return a pass without a definition here; one of MLIR's has the name that MLIR gives it."""
    short = path.rpartition(".")[2]
    full = {call.name for call in calls}
    aliases = {path, short, short.removeprefix("add_"), *full}
    if known:
        aliases |= {known.maker, known.maker.removeprefix("create").removesuffix("Pass")}
    # Of several spellings in the backends, the shortest has the fewest aliases of modules in it.
    name = known.name if known else min(full, key=len)
    return Entry("pass", name, frozenset(aliases - {name}), tuple(call.in_words for call in calls))


def known_variable(name: str) -> variables.TritonVariable | None:
    """Return the facts about a variable over all releases."""
    return variables.find(name)


def lowered(index: Index, function: LanguageFunction) -> tuple[PythonBinding, ...]:
    """Return the C++ functions of the builder that a function of the language calls in the end."""
    by_name: dict[str, tuple[PythonBinding, ...]] = {}
    for binding in index.bindings:
        by_name[binding.name] = (*by_name.get(binding.name, ()), binding)
    return builders_of(function, by_name)


def _of_definition(definition: Definition, bound: Iterable[PythonBinding]) -> Entry:
    aliases = {definition.record, definition.cpp, definition.name.lstrip("#!")}
    # Users write `dot` for `tt.dot`, and `blocked` for `#ttg.blocked`.
    if definition.kind in ("op", "type", "attribute"):
        aliases.add(definition.name.rpartition(".")[2].lstrip("#!"))
    if definition.kind == "pass":
        # Passes are known by their option (`coalesce` of tritongpu-coalesce), their C++ and their binding.
        aliases |= {*mentions.makers(definition), definition.name.partition("-")[2]}
        for binding in bound:
            aliases |= {binding.name, binding.name.removeprefix("add_")}
    if definition.kind == "dialect":
        aliases.add(definition.name)
    return Entry(definition.kind, definition.name, frozenset(aliases - {""}), definition)


def _without_doubles(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Drop a DEBUG_TYPE or a call with the name of its pass: it is no second meaning."""
    others = {entry.name for entry in entries if entry.kind != "debug-type"}
    kept = tuple(entry for entry in entries if entry.kind != "debug-type" or entry.name not in others)
    read = {entry.name for entry in kept if entry.kind == "variable"}  # its answer names CMake's option, too
    kept = tuple(entry for entry in kept if entry.kind != "cmake" or entry.name not in read)
    defined = tuple(entry for entry in kept if isinstance(entry.what, Definition))
    # In a wheel, which lacks libtriton's sources, only the name tells that the call adds the pass.
    pair = len(kept) == 2 and len(defined) == 1 and {entry.kind for entry in kept} == {"pass"}  # noqa: PLR2004
    return defined if pair else kept


_LANGUAGES = {"tl": "triton/language", "gl": "triton/experimental/gluon/language"}
_Function = ast.FunctionDef


@dataclass(frozen=True)
class LanguageFunction:
    """A function that kernels call.

    Attributes:
        name: `tl.dot`.
        place: the place of its definition.
        signature: the signature as written, without the compiler's own parameters.
        about: its docstring.
        semantic: the functions of `semantic.py` that it calls.
        builds: the builder's functions that these call, nearest first.
        calls: other functions of the language that it calls.
    """

    name: str
    place: Place
    signature: str
    about: str
    semantic: tuple[Place, ...]
    builds: tuple[str, ...]
    calls: tuple[str, ...]

    def to_row(self) -> list[Any]:
        """Return the function as JSON."""
        places = [[place.file, place.line, place.what] for place in (self.place, *self.semantic)]
        return [self.name, self.signature, self.about, places, list(self.builds), list(self.calls)]

    @classmethod
    def of_row(cls, row: list[Any]) -> LanguageFunction:
        """Make the function of its JSON.

        Raises:
            ValueError: it has another form.
            TypeError: as ValueError.
        """
        name, signature, about, places, builds, calls = row
        place, *semantic = (Place(file, line, what) for file, line, what in places)
        return cls(name, place, signature, about, tuple(semantic), tuple(builds), tuple(calls))


class FrontEnd:
    """The language of a tree: `python/triton/language` of a checkout, `language` of an installed Triton."""

    def __init__(self, tree: SourceFiles) -> None:
        self._tree = tree

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The files of all languages that the tree has, relative to it."""
        tops = tuple(f"{top}/" for prefix in _LANGUAGES for top in _tops(prefix))
        return tuple(name for name in self._tree.having(".py") if name.startswith(tops))

    @cached_property
    def functions(self) -> Mapping[str, LanguageFunction]:
        """The functions by name, of all languages that the tree has."""
        known: dict[str, LanguageFunction] = {}
        for prefix in _LANGUAGES:
            for top in _tops(prefix):
                if f"{top}/__init__.py" in self._tree.names:
                    known |= dict(self._language(prefix, top))
        return known

    def _language(self, prefix: str, top: str) -> Iterator[tuple[str, LanguageFunction]]:
        # `tl` checks its types in semantic.py, Gluon in _semantic.py.
        candidates = (f"{top}/semantic.py", f"{top}/_semantic.py")
        semantic_file = next((file for file in candidates if file in self._tree.names), "")
        semantic = self._functions_of(semantic_file)
        modules: dict[str, dict[str, _Function]] = {}
        exports = list(_exports(self._parsed(f"{top}/__init__.py")))
        # tl.math is a module, whose functions __init__.py does not name.
        exports += [
            ("math", name) for name in self._functions_of(f"{top}/math.py") if not name.startswith("_")
        ]
        known = {name for _, name in exports}
        for module, name in exports:
            file = f"{top}/{module}.py"
            if module not in modules:
                modules[module] = self._functions_of(file)
            functions = modules[module]
            if name in functions:
                yield (
                    f"{prefix}.{name}",
                    _language_function(
                        f"{prefix}.{name}", file, functions[name], semantic, semantic_file, known
                    ),
                )

    def _parsed(self, file: str) -> ast.Module:
        try:
            text = self._tree.text(file) if file in self._tree.names else ""
            return untrusted.python_tree(text)
        except (SyntaxError, ValueError):
            return ast.Module([], [])

    def _functions_of(self, file: str) -> dict[str, _Function]:
        every = (node for node in ast.walk(self._parsed(file)) if isinstance(node, _Function))
        definitions: dict[str, _Function] = {}
        # Breadth first: a function of the module counts before a method or a nested function of its name.
        for node in every:
            definitions.setdefault(node.name, node)
        return definitions


def _tops(prefix: str) -> tuple[str, str]:
    """Return the folder of a language in a checkout, and in an installed Triton."""
    folder = _LANGUAGES[prefix]
    return f"python/{folder}", folder.removeprefix("triton/")


def full_path(name: str) -> str:
    """Return the name of a function with its package: `triton.language.dot` for `tl.dot`."""
    prefix, _, rest = name.partition(".")
    return f"{_LANGUAGES[prefix].replace('/', '.')}.{rest}"


def builders_of(
    function: LanguageFunction, builders: Mapping[str, tuple[PythonBinding, ...]]
) -> tuple[PythonBinding, ...]:
    """Return the C++ functions of the builder that a function of the language calls in the end."""
    return tuple(binding for name in function.builds for binding in builders.get(name, ()))


def _exports(module: ast.Module) -> Iterator[tuple[str, str]]:
    # `from .core import dot` makes `tl.dot`; an absolute import is of another package.
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            for name in node.names:
                yield node.module, name.name


def _language_function(
    name: str,
    file: str,
    node: _Function,
    semantic: Mapping[str, _Function],
    semantic_file: str,
    known: set[str],
) -> LanguageFunction:
    called = _called(node)
    # Old versions call semantic.add(..., builder), newer ones _semantic.add(...).
    in_semantic = dict.fromkeys(callee for owner, callee in called if "semantic" in owner)
    first = [callee for callee in in_semantic if callee in semantic]
    builds = [f"create_{node.name}"]  # it counts if it is called below
    builds += [callee for of, callee in called if "builder" in of and callee.startswith("create_")]
    # Level by level through the functions that are called, so that the nearest builders come first.
    nearest, visited = list(first), set(first)
    while nearest:
        inside = [(of, callee) for parent in nearest for of, callee in _called(semantic[parent])]
        builds += [callee for of, callee in inside if "builder" in of and callee.startswith("create_")]
        nearest = [
            callee
            for of, callee in dict.fromkeys(inside)
            if of in ("", "self") and callee in semantic and callee not in visited
        ]
        visited |= {*nearest}
    own = builds[0]
    # Users never pass these; the compiler does.
    arguments = ast.unparse(node.args).replace("_semantic=None", "").replace("_builder=None", "")
    return LanguageFunction(
        name,
        Place(file, node.lineno, name),
        f"{name}({arguments.replace('_generator=None', '').rstrip(', ')})",
        inspect.cleandoc(ast.get_docstring(node) or ""),
        tuple(Place(semantic_file, semantic[callee].lineno, callee) for callee in first),
        tuple(dict.fromkeys(builder for builder in builds if builder != own or own in builds[1:])),
        tuple(sorted({callee for _, callee in called if callee in known} - {node.name})),
    )


@cache
def _called(node: ast.AST) -> tuple[tuple[str, str], ...]:
    """Return the calls in a function: the object whose method is called, or an empty text, and the name."""
    # Nodes hash by identity, so a semantic function that many functions of the language call is walked once.
    calls = (callee.func for callee in ast.walk(node) if isinstance(callee, ast.Call))
    return tuple(
        (ast.unparse(callee.value), callee.attr) if isinstance(callee, ast.Attribute) else ("", callee.id)
        for callee in calls
        if isinstance(callee, (ast.Attribute, ast.Name))
    )
