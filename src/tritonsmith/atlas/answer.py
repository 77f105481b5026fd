"""The answer to "what is this": one shape for all kinds of things."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tritonsmith.atlas import message, native, pipeline, renamed, uses
from tritonsmith.atlas.definition import Definition
from tritonsmith.atlas.frontend import LanguageFunction
from tritonsmith.atlas.index import Entry, Index, known_variable, lowered, mlir_passes
from tritonsmith.atlas.place import Place
from tritonsmith.atlas.source_files import line_of
from tritonsmith.atlas.switches import Switch, cmake_options
from tritonsmith.core import untrusted

_LIT = (".mlir", ".ll", ".py")


@dataclass
class AtlasAnswer:
    """What is known of one thing.

    Attributes:
        kind: of the thing.
        name: its whole name.
        summary: one line.
        description: more.
        facts: small facts, name to text: `record`, `debug type`, `signature`.
        places: sections of places, name to them; an empty section was looked for and not found.
        tables: lists of named things: `options`, `statistics`, `arguments`; name, type and text.
        changes: who changed it last.
        others: its names in other versions, in words.
        notes: what a reader should know of this answer.
    """

    kind: str
    name: str
    summary: str = ""
    description: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[Place, ...]] = field(default_factory=dict)
    tables: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    changes: tuple[uses.LastChange, ...] = ()
    others: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def first(self) -> Place | None:
        """The place to open: where it is implemented, else where it is defined."""
        order = ("implemented", "defined", "read", "declared", "printed", "called")
        listed = (self.places.get(name, ()) for name in order)
        return next((places[0] for places in listed if places), None)

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "kind": self.kind,
            "name": self.name,
            "summary": self.summary,
            "description": self.description,
            "facts": self.facts,
            "places": {name: [one.as_json() for one in places] for name, places in self.places.items()},
            "tables": {
                name: [{"name": one, "type": type_, "about": about} for one, type_, about in rows]
                for name, rows in self.tables.items()
            },
            "changes": [{**vars(one), "place": one.place.as_json()} for one in self.changes],
            "other_names": list(self.others),
            "notes": self.notes,
        }


def explain(index: Index, entry: Entry) -> AtlasAnswer:
    """All that a tree says of one of its entries."""
    if isinstance(entry.what, Definition):
        made = _definition(index, entry.what)
    elif isinstance(entry.what, LanguageFunction):
        made = _function(index, entry.what)
    else:
        made = _OTHERS[entry.kind](index, entry)
    made.others = renamed.of(entry.kind, entry.name)
    made.changes = _changes(index, made)
    return made


def _definition(index: Index, text: Definition) -> AtlasAnswer:
    one, why = index.exact(text)
    made = AtlasAnswer(one.kind, one.name, one.summary, one.description)
    made.facts |= {"record": one.record, "C++ class": one.cpp}
    made.places["defined"] = (Place(one.file, one.line, one.record),)
    if why:
        made.notes.append(why)
    if text not in index.definitions:
        made.notes.append(f"MLIR's own: files are relative to {index.llvm}")
        _calls(index, made, one)
        return made
    if one.kind == "pass":
        _pass(index, made, one)
    else:
        if one.dialect:
            made.facts["dialect"] = one.dialect
        if one.has:
            made.facts["C++ adds"] = ", ".join(one.has)
        if one.traits:
            made.facts["traits"] = ", ".join(one.traits)
        made.tables |= {
            name: [(operand, type_, "") for operand, type_ in rows]
            for name, rows in (("arguments", one.arguments), ("results", one.results))
            if rows
        }
    if one.kind in ("op", "type", "attribute"):
        _class(index, made, one)
    if one.kind == "dialect":
        of = [other for other in index.definitions if other.dialect == one.record]
        made.tables["contains"] = [(other.name, other.kind, other.summary) for other in of]
    return made


def _pass(index: Index, made: AtlasAnswer, one: Definition) -> None:
    found = native.implementation(index.tree, one.record, one.constructor)
    made.places["implemented"] = ()
    if found:
        made.places["implemented"] = (Place(found.file, found.line, "runOnOperation"),)
        made.facts["found by"] = found.found_by
        made.facts["debug type"] = found.debug_type or "none in that file"
        if patterns := native.patterns_in(index.tree, found.file):
            made.places["patterns"] = patterns
    made.tables["options"] = [
        (opt.name, opt.type, _with_default(opt.about, opt.default)) for opt in one.options
    ]
    made.tables["statistics"] = [(opt.name, "", opt.about) for opt in one.statistics]
    _calls(index, made, one)
    made.places["tests"] = uses.of_pass(index.tree, one.name)


def _calls(index: Index, made: AtlasAnswer, one: Definition) -> None:
    if one.kind != "pass":
        return
    bound = native.of_pass(index.bindings, one)
    made.places["bound"] = tuple(binding.place for binding in bound)
    made.places["called"] = tuple(
        call.in_words
        for binding in bound
        for call in pipeline.of_binding(index.calls, binding, index.bindings)
    )
    made.places["called in C++"] = native.callers(index.tree, one)
    if not index.has_sources and (found := _called_by_name(index, one)):
        made.places.pop("called")
        made.places["called, perhaps"] = found
        made.notes.append(
            "libtriton's sources say which pass a call adds; without them, its name is the only clue"
        )


def _class(index: Index, made: AtlasAnswer, one: Definition) -> None:
    made.places["implemented"] = native.methods(index.tree, one)
    namesakes = [other.name for other in index.definitions if other.cpp == one.cpp and other.name != one.name]
    if namesakes:
        made.notes.append(
            f"{', '.join(namesakes)} {'has' if len(namesakes) == 1 else 'have'} a class {one.cpp}, too: "
            "the places below were found by name, so check the namespace"
        )
    if one.kind == "op":
        made.places["patterns"] = native.patterns_of(index.tree, one)
        builders = index.builders(one.cpp)
        made.places["built"] = tuple(binding.place for binding in builders)
        names = {binding.name for binding in builders}
        from_ = [fn for fn in index.functions.values() if names.intersection(fn.builds)]
        made.places["language"] = tuple(
            Place(fn.place.file, fn.place.line, fn.name)
            for fn in sorted(
                from_, key=lambda fn: min(fn.builds.index(name) for name in names & {*fn.builds})
            )
        )
        word = one.name
    else:
        word = one.name[1:]  # a test may give it an alias
    made.places["tests"] = uses.of_word(index.tree, word, _LIT)


def _function(index: Index, one: LanguageFunction) -> AtlasAnswer:
    first, _, rest = one.about.partition("\n\n")
    made = AtlasAnswer("function", one.name, " ".join(first.split()), rest)
    made.facts["signature"] = one.signature
    made.places["defined"] = (one.place,)
    made.places["implemented"] = one.semantic
    made.places["built"] = tuple(binding.place for binding in lowered(index, one))
    made.facts["ops"] = ", ".join(_ops_of(index, one)) or "none found: it is composed of other functions"
    if one.calls:
        made.facts["calls"] = ", ".join(one.calls)
    names = [one.name, *(f"triton.language.{one.name.partition('.')[2]}",)]
    made.places["tests"] = tuple(
        place for name in names for place in uses.of_word(index.tree, name, (".py",))
    )
    return made


def _ops_of(index: Index, one: LanguageFunction) -> list[str]:
    """Ops that it may build, nearest first."""
    ops = [other for other in index.definitions if other.kind == "op"]
    return list(
        dict.fromkeys(op.name for binding in lowered(index, one) for op in ops if binding.names(op.cpp))
    )


def _variable(index: Index, entry: Entry) -> AtlasAnswer:
    row = known_variable(entry.name)
    made = AtlasAnswer("variable", entry.name, row.what if row else "")
    if row:
        made.facts |= {
            "versions": row.span,
            "read at": ", ".join(row.at),
            "kind": row.kind,
            "effect": row.effect,
            "cache key": row.cache or "not part of it",
            "source": row.source,
        }
    else:
        made.notes.append("not in tritonsmith's table of variables: only the sources are shown")
    made.places["read"] = places_of(entry)
    if any("{" in place.what for place in made.places["read"]):
        made.notes.append("the sources compose this name, so its text does not appear in them")
    same = [one for one in cmake_options(index.tree) if one.name == entry.name]
    if same:
        made.places["option of CMake"] = tuple(place for one in same for place in one.places)
    made.places["tests"] = uses.of_word(index.tree, entry.name, _LIT)
    return made


def _switches(index: Index, entry: Entry) -> AtlasAnswer:
    listed = [one for one in entry.what if isinstance(one, Switch)] if isinstance(entry.what, tuple) else []
    made = AtlasAnswer(entry.kind, entry.name, next((one.about for one in listed if one.about), ""))
    made.tables["declared by"] = [
        (one.owner or str(one.places[0]), one.type, _with_default(one.about, one.default)) for one in listed
    ]
    made.places["declared"] = tuple(place for one in listed for place in one.places)
    if entry.kind == "option":
        made.places["read"] = _reads(index, entry.name)
        made.places["tests"] = uses.of_word(index.tree, entry.name, (".py",))
    else:
        made.places["read"] = _mentions(index, entry.name)
    return made


def _reads(index: Index, name: str) -> tuple[Place, ...]:
    """Where a backend reads a field of its options."""
    found = []
    for file in index.tree.having(".py"):
        text = index.tree.text(file)
        if name not in text or "test" in file:
            continue
        try:
            parsed = untrusted.python_tree(text)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(parsed):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
                of = ast.unparse(node.value)
                if of.rpartition(".")[2] in ("opt", "options", "opts", "metadata"):
                    found.append(Place(file, node.lineno, ast.unparse(node)))
    return tuple(found)


def _mentions(index: Index, name: str) -> tuple[Place, ...]:
    import re  # noqa: PLC0415

    sign = re.compile(rf"\b{name}\b")
    return tuple(
        Place(file, line_of(text, match.start()))
        for file in index.tree.having("CMakeLists.txt", ".cmake", "setup.py", "build_helpers.py")
        if name in (text := index.tree.text(file))
        for match in sign.finditer(text)
    )


def _called(index: Index, entry: Entry) -> AtlasAnswer:
    """A pass that no file of the tree defines."""
    of_mlir = next((row for row in mlir_passes() if row.name == entry.name), None)
    module, _, short = (of_mlir.binding if of_mlir else entry.name).rpartition(".")
    bound = [one for one in index.bindings if one.name == short and (of_mlir is None or module in one.words)]
    makers = (one for one in index.foreign if one.kind == "pass" and native.of_pass(tuple(bound), one))
    theirs = next(makers, None)
    made = _definition(index, theirs) if theirs else AtlasAnswer("pass", entry.name)
    if theirs is None and of_mlir:
        made.summary = of_mlir.about
        made.facts |= {"of": "MLIR", "C++": of_mlir.maker, "alone": f"mlir-opt --{of_mlir.name} FILE"}
        made.notes.append(
            "MLIR's own: an LLVM with MLIR's .td files (--llvm-dir) adds its definition and options"
        )
        made.places["bound"] = tuple(one.place for one in bound)
    elif theirs is None:
        if bound:
            made.notes.append("no .td file here defines it: MLIR's own passes are in LLVM (--llvm-dir)")
            made.places["bound"] = tuple(one.place for one in bound)
        else:
            made.notes.append("only libtriton's sources say which pass this adds")
            made.notes += [f"judging by its name, perhaps {one.name}" for one in _namesakes(index, short)]
    made.places["called"] = places_of(entry)
    return made


def _namesakes(index: Index, short: str) -> list[Definition]:
    """Passes whose name ends as that of a function that adds one: `add_coalesce`, `tritongpu-coalesce`."""
    end = "-" + short.removeprefix("add_").replace("_", "-")
    return [one for one in index.definitions if one.kind == "pass" and one.name.endswith(end)]


def _called_by_name(index: Index, one: Definition) -> tuple[Place, ...]:
    """The calls that, by their name, may add a pass."""
    return tuple(
        call.in_words
        for call in index.calls
        if any(same.name == one.name for same in _namesakes(index, call.name.rpartition(".")[2]))
    )


def _debug_type(_: Index, entry: Entry) -> AtlasAnswer:
    made = AtlasAnswer(
        "debug-type", entry.name, "what LLVM_DEBUG prints in these files, in a build with assertions"
    )
    made.places["defined"] = places_of(entry)
    made.facts["switch on"] = f"TRITON_ENABLE_LLVM_DEBUG=1 TRITON_LLVM_DEBUG_ONLY={entry.name}"
    return made


def of_file(index: Index, file: str) -> AtlasAnswer:
    """What a file holds."""
    text = index.tree.text(file)
    made = AtlasAnswer("file", file, _heading(file, text))
    defined = [one for one in index.definitions if one.file == file]
    made.tables["defines"] = [(one.name, one.kind, one.summary) for one in defined]
    passes = [one for one in index.definitions if one.kind == "pass"]
    implemented = [
        one
        for one in passes
        if one.record in text
        and (found := native.implementation(index.tree, one.record, one.constructor))
        and found.file == file
    ]
    made.tables["implements"] = [(one.name, "pass", one.summary) for one in implemented]
    if debug := native.debug_type(text):
        made.facts["debug type"] = debug
    made.places["patterns"] = native.patterns_in(index.tree, file) if file.endswith((".cpp", ".h")) else ()
    made.places["binds"] = tuple(one.place for one in index.bindings if one.place.file == file)
    made.places["calls"] = tuple(one.place for one in index.calls if one.place.file == file)
    made.facts["lines"] = str(len(text.splitlines()))
    made.places = {name: places for name, places in made.places.items() if places}
    made.tables = {name: rows for name, rows in made.tables.items() if rows}
    place = Place(file, 0)
    made.places["defined"] = (place,)
    made.changes = tuple(filter(None, (uses.last_change(index.tree.root, place),)))
    return made


def of_message(index: Index, text: str) -> AtlasAnswer | None:
    """The lines that may print a text; None if no literal of the sources fits."""
    found = message.find(index.tree, text)
    if not found:
        return None
    made = AtlasAnswer("message", text, f"the longest part that the sources contain: {found[0].piece!r}")
    made.places["printed"] = tuple(one.place for one in found)
    made.notes.append("found by the longest literal part of the text: several lines may print it")
    made.changes = _changes(index, made)
    return made


def _heading(file: str, text: str) -> str:
    """The first sentence of a docstring, or of the comment at the top that is no licence."""
    if file.endswith(".py"):
        try:
            return (ast.get_docstring(untrusted.python_tree(text)) or "").partition("\n")[0]
        except (SyntaxError, ValueError):
            return ""
    lines = [
        line.strip().lstrip("/*;#- ").strip()
        for line in text.splitlines()[:60]
        if line.startswith(("//", "/*", " *"))
    ]
    good = [line for line in lines if line and "opyright" not in line and "icense" not in line]
    return good[0] if good and len(good) < len(lines) + 1 and " " in good[0] else ""


def _changes(index: Index, made: AtlasAnswer) -> tuple[uses.LastChange, ...]:
    """Of the definition's lines, and of the file that implements it."""
    found: list[uses.LastChange] = []
    for section in ("defined", "implemented", "declared", "read", "printed"):
        for place in made.places.get(section, ())[:1]:
            end = 0 if section == "implemented" else _end(index, place)
            change = uses.last_change(index.tree.root, place, end)
            if change and all(change.commit != other.commit for other in found):
                found.append(change)
    return tuple(found[:2])


def _end(index: Index, place: Place) -> int:
    same = (one for one in index.definitions if one.file == place.file and one.line == place.line)
    return next((one.end for one in same), place.line)


def _with_default(about: str, default: str) -> str:
    return f"{about} (default: {default})".strip() if default else about


def places_of(entry: Entry) -> tuple[Place, ...]:
    """Where a variable, a DEBUG_TYPE or a pass of others is; empty for other things."""
    return tuple(one for one in entry.what if isinstance(one, Place)) if isinstance(entry.what, tuple) else ()


_OTHERS: Mapping[str, Callable[[Index, Entry], AtlasAnswer]] = {
    "pass": _called,
    "variable": _variable,
    "option": _switches,
    "cmake": _switches,
    "debug-type": _debug_type,
}
