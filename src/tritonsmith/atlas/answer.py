"""The answer to "what is this": one shape for all kinds of things, with their names in other versions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tritonsmith.atlas import mentions, pipeline
from tritonsmith.atlas.index import (
    Entry,
    Index,
    LanguageFunction,
    full_path,
    known_variable,
    lowered,
    mlir_passes,
)
from tritonsmith.atlas.pipeline import Switch, cmake_options
from tritonsmith.atlas.source_files import Definition, Place, line_of
from tritonsmith.core import configs, untrusted

_CONFIG = "triton-names"
_SURE = 0.85  # share of the text that stayed; below it, another thing may have taken its place
_MARKS = {"#": "attribute", "!": "type"}


@dataclass(frozen=True)
class Renaming:
    """One commit that gave a thing another name.

    Attributes:
        kind: `pass`, `op`, `type`, `attribute` or `dialect`.
        before: the older name.
        after: the newer one.
        date: the date of the commit.
        commit: the commit of triton-lang/triton.
        alike: the share of its text that stayed the same, if its record was renamed as well.
        members: the members of a dialect at that time.
    """

    kind: str
    before: str
    after: str
    date: str
    commit: str
    alike: float = 1.0
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Removal:
    """A name that upstream removed and that did not come back.

    Attributes:
        kind: `pass`, `op`, `type`, `attribute` or `dialect`.
        name: the name as MLIR prints it.
        date: the date of the commit.
        commit: the commit of triton-lang/triton.
        title: the first line of its message, with its pull request.
        release: the first release line without it; empty if there is none yet.
    """

    kind: str
    name: str
    date: str
    commit: str
    title: str
    release: str = ""


def removed(thing: str, kind: str = "") -> Removal | None:
    """Return the last removal of a name, with or without the marks of types and attributes."""
    # A name may have been removed twice; the rows are in the order of time, and the later one says what users
    # miss.
    rows = (configs.as_dataclass(Removal, row) for row in reversed(configs.load(_CONFIG)["removed"]))
    fits = (row for row in rows if kind in ("", row.kind) and thing in (row.name, row.name.lstrip("#!")))
    return next(fits, None)


@cache
def renamings() -> tuple[Renaming, ...]:
    """Return every renaming, oldest first; that of a dialect renames all its members."""
    rows = [configs.as_dataclass(Renaming, row) for row in configs.load(_CONFIG)["renamed"]]
    return tuple(renaming for row in rows for renaming in (row, *_members(row)))


def _members(row: Renaming) -> Iterator[Renaming]:
    # The table has one row for the dialect, because one commit renamed everything in it; users ask for its
    # members.
    for name in row.members:
        mark = name[0] if name[0] in _MARKS else ""
        before, after = (f"{mark}{dialect}.{name.lstrip('#!')}" for dialect in (row.before, row.after))
        yield Renaming(_MARKS.get(mark, "op"), before, after, row.date, row.commit)


def other_names(kind: str, name: str) -> tuple[str, ...]:
    """Return other names of a thing, in words, oldest first."""
    # A name may have been given to another thing later, so the chain is followed in the order of time:
    # backwards for older names, forwards for newer ones.
    rows = [renaming for renaming in renamings() if renaming.kind == kind]
    older: list[str] = []
    known = name
    for renaming in reversed(rows):
        if renaming.after == known and renaming.before != name:
            older.insert(0, f"{renaming.before} until {_commit_in_words(renaming)}")
            known = renaming.before
    newer, known = [], name
    for renaming in rows:
        if renaming.before == known and renaming.after != name:
            newer.append(f"{renaming.after} since {_commit_in_words(renaming)}")
            known = renaming.after
    return (*older, *newer)


def _commit_in_words(renaming: Renaming) -> str:
    unsure = (
        f", if it is the same: {renaming.alike:.0%} of its definition stayed"
        if renaming.alike < _SURE
        else ""
    )
    return f"{renaming.date} ({renaming.commit}{unsure})"


def names_over_time(thing: str) -> tuple[str, ...]:
    """Return every other name, older or newer, of the things that have ever had this name."""
    # Both directions, transitively: the user may have the oldest or the newest of several names, and
    # the checkout any of them.
    known = {thing}
    while more := {
        other
        for renaming in renamings()
        for mine, other in ((renaming.before, renaming.after), (renaming.after, renaming.before))
        if {mine, mine.lstrip("#!")} & known and other not in known
    }:
        known |= more
    return tuple(sorted(known - {thing}))


_LIT = (".mlir", ".ll", ".py")


@dataclass
class AtlasFacts:
    """The facts about one thing.

    Attributes:
        kind: the kind of thing.
        name: its full name.
        summary: one line.
        description: the full text.
        facts: small facts, name to text: `record`, `debug type`, `signature`.
        places: sections of places by name; an empty section means that a search found nothing.
        tables: lists of named things: `options`, `statistics`, `arguments`; name, type and text.
        changes: its last changes.
        others: its names in other versions, in words.
        notes: remarks on how to read this answer.
    """

    kind: str
    name: str
    summary: str = ""
    description: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[Place, ...]] = field(default_factory=dict)
    tables: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    changes: tuple[mentions.LastChange, ...] = ()
    others: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def first(self) -> Place | None:
        """The place to open: the implementation, else the definition."""
        order = ("implemented", "defined", "read", "declared", "printed", "called")
        listed = (self.places.get(name, ()) for name in order)
        return next((places[0] for places in listed if places), None)

    def as_json(self) -> dict[str, Any]:
        """Return the answer as JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "summary": self.summary,
            "description": self.description,
            "facts": self.facts,
            "places": {name: [item.as_json() for item in places] for name, places in self.places.items()},
            "tables": {
                name: [{"name": item, "type": type_, "about": about} for item, type_, about in rows]
                for name, rows in self.tables.items()
            },
            "changes": [{**vars(item), "place": item.place.as_json()} for item in self.changes],
            "other_names": list(self.others),
            "notes": self.notes,
        }


def explain(index: Index, entry: Entry) -> AtlasFacts:
    """Return everything that a tree says about one of its entries."""
    if isinstance(entry.what, Definition):
        answer = _definition(index, entry.what)
    elif isinstance(entry.what, LanguageFunction):
        answer = _function(index, entry.what)
    else:
        answer = _OTHERS[entry.kind](index, entry)
    answer.others = other_names(entry.kind, entry.name)
    answer.changes = _changes(index, answer)
    return answer


def _definition(index: Index, text: Definition) -> AtlasFacts:
    # TableGen knows inherited fields and defaults; the text is what there is without an LLVM.
    exact, why = index.exact(text)
    answer = AtlasFacts(exact.kind, exact.name, exact.summary, exact.description)
    answer.facts |= {"record": exact.record, "C++ class": exact.cpp}
    answer.places["defined"] = (Place(exact.file, exact.line, exact.record),)
    if why:
        answer.notes.append(why)
    # Not `exact`: it differs from what the index has in whatever TableGen knows better.
    if text not in index.definitions:
        # The sources of MLIR's C++ are not in the tree: only the calls of it are.
        answer.notes.append(f"MLIR's own: files are relative to {index.llvm}")
        _calls(index, answer, exact)
        return answer
    if exact.kind == "pass":
        _pass(index, answer, exact)
    else:
        if exact.dialect:
            answer.facts["dialect"] = exact.dialect
        if exact.has:
            answer.facts["C++ adds"] = ", ".join(exact.has)
        if exact.traits:
            answer.facts["traits"] = ", ".join(exact.traits)
        answer.tables |= {
            name: [(operand, type_, "") for operand, type_ in rows]
            for name, rows in (("arguments", exact.arguments), ("results", exact.results))
            if rows
        }
    if exact.kind in ("op", "type", "attribute"):
        _class(index, answer, exact)
    if exact.kind == "dialect":
        members = [other for other in index.definitions if other.dialect == exact.record]
        answer.tables["contains"] = [(other.name, other.kind, other.summary) for other in members]
    return answer


def _pass(index: Index, answer: AtlasFacts, definition: Definition) -> None:
    implementation = mentions.implementation(index.tree, definition.record, definition.constructor)
    answer.places["implemented"] = ()  # an empty section tells that nothing was found
    if implementation:
        answer.places["implemented"] = (Place(implementation.file, implementation.line, "runOnOperation"),)
        answer.facts["found by"] = implementation.found_by
        answer.facts["debug type"] = implementation.debug_type or "none in that file"
        if patterns := mentions.patterns_in(index.tree, implementation.file):
            answer.places["patterns"] = patterns
    answer.tables["options"] = [
        (opt.name, opt.type, _with_default(opt.about, opt.default)) for opt in definition.options
    ]
    answer.tables["statistics"] = [(opt.name, "", opt.about) for opt in definition.statistics]
    _calls(index, answer, definition)
    # RUN lines name a pass by its option, so neither its record nor its binding is searched for.
    answer.places["tests"] = mentions.tests_of_pass(index.tree, definition.name)


def _calls(index: Index, answer: AtlasFacts, definition: Definition) -> None:
    if definition.kind != "pass":
        return
    bound = mentions.bindings_of_pass(index.bindings, definition)
    answer.places["bound"] = tuple(binding.place for binding in bound)
    answer.places["called"] = tuple(
        call.in_words
        for binding in bound
        for call in pipeline.calls_of_binding(index.calls, binding, index.bindings)
    )
    answer.places["called in C++"] = mentions.callers(index.tree, definition)
    # A wheel has the backends' Python, but not the C++ that binds passes to names.
    if not index.has_sources and (calls := _called_by_name(index, definition)):
        answer.places.pop("called")
        answer.places["called, perhaps"] = calls
        answer.notes.append(
            "libtriton's sources say which pass a call adds; without them, its name is the only clue"
        )


def _class(index: Index, answer: AtlasFacts, definition: Definition) -> None:
    answer.places["implemented"] = mentions.methods(index.tree, definition)
    # Dialects may share the name of a class, each in its own namespace, and these searches read no
    # namespaces.
    namesakes = [
        other.name
        for other in index.definitions
        if other.cpp == definition.cpp and other.name != definition.name
    ]
    if namesakes:
        answer.notes.append(
            f"{', '.join(namesakes)} {'has' if len(namesakes) == 1 else 'have'} "
            f"a class {definition.cpp}, too: "
            "the places below were found by name, so check the namespace"
        )
    if definition.kind == "op":
        answer.places["patterns"] = mentions.patterns_of(index.tree, definition)
        builders = index.builders(definition.cpp)
        answer.places["built"] = tuple(binding.place for binding in builders)
        # A function of the language makes an op by the name of the builder's function, such as create_dot.
        names = {binding.name for binding in builders}
        # `builds` has the nearest builder first: a function that makes this op directly comes before
        # one that makes it on the way to something else.
        from_ = [fn for fn in index.functions.values() if names.intersection(fn.builds)]
        answer.places["language"] = tuple(
            Place(fn.place.file, fn.place.line, fn.name)
            for fn in sorted(
                from_, key=lambda fn: min(fn.builds.index(name) for name in names & {*fn.builds})
            )
        )
        word = definition.name
    else:
        # Without the mark: a test may give it an alias, "#blocked = #ttg.blocked<...>".
        word = definition.name[1:]
    answer.places["tests"] = mentions.tests_of_word(index.tree, word, _LIT)


def _function(index: Index, function: LanguageFunction) -> AtlasFacts:
    first, _, rest = function.about.partition("\n\n")
    answer = AtlasFacts("function", function.name, " ".join(first.split()), rest)
    answer.facts["signature"] = function.signature
    answer.places["defined"] = (function.place,)
    answer.places["implemented"] = function.semantic
    answer.places["built"] = tuple(binding.place for binding in lowered(index, function))
    answer.facts["ops"] = (
        ", ".join(_ops_of(index, function)) or "none found: it is composed of other functions"
    )
    if function.calls:
        answer.facts["calls"] = ", ".join(function.calls)
    names = (function.name, full_path(function.name))
    answer.places["tests"] = tuple(
        place for name in names for place in mentions.tests_of_word(index.tree, name, (".py",))
    )
    return answer


def _ops_of(index: Index, function: LanguageFunction) -> list[str]:
    """Return the ops that a function may build, nearest first."""
    ops = [other for other in index.definitions if other.kind == "op"]
    return list(
        dict.fromkeys(op.name for binding in lowered(index, function) for op in ops if binding.names(op.cpp))
    )


def _variable(index: Index, entry: Entry) -> AtlasFacts:
    # The tree says where a variable is read; what it does, and whether it is in the cache's key, only our
    # table does.
    row = known_variable(entry.name)
    answer = AtlasFacts("variable", entry.name, row.what if row else "")
    if row:
        answer.facts |= {
            "versions": row.span,
            "read at": ", ".join(row.at),
            "kind": row.kind,
            "effect": row.effect,
            "cache key": row.cache or "not part of it",
            "source": row.source,
        }
    else:
        answer.notes.append("not in tritonsmith's table of variables: only the sources are shown")
    answer.places["read"] = places_of(entry)
    if any("{" in place.what for place in answer.places["read"]):
        answer.notes.append("the sources compose this name, so its text does not appear in them")
    # A build may read the variable in setup.py and hand it to CMake under the same name.
    same = [option for option in cmake_options(index.tree) if option.name == entry.name]
    if same:
        answer.places["option of CMake"] = tuple(place for option in same for place in option.places)
    answer.places["tests"] = mentions.tests_of_word(index.tree, entry.name, _LIT)
    return answer


def _switches(index: Index, entry: Entry) -> AtlasFacts:
    listed = (
        [switch for switch in entry.what if isinstance(switch, Switch)]
        if isinstance(entry.what, tuple)
        else []
    )
    answer = AtlasFacts(entry.kind, entry.name, next((switch.about for switch in listed if switch.about), ""))
    answer.tables["declared by"] = [
        (switch.owner or str(switch.places[0]), switch.type, _with_default(switch.about, switch.default))
        for switch in listed
    ]
    answer.places["declared"] = tuple(place for switch in listed for place in switch.places)
    if entry.kind == "option":
        answer.places["read"] = _reads(index, entry.name)
        answer.places["tests"] = mentions.tests_of_word(index.tree, entry.name, (".py",))
    else:
        answer.places["read"] = _mentions(index, entry.name)
    return answer


def _reads(index: Index, name: str) -> tuple[Place, ...]:
    """Return the places where a backend reads a field of its options."""
    places = []
    for file in index.tree.having(".py"):
        text = index.tree.text(file)
        # Parsing every Python file of a checkout takes seconds, and few of them have the name at all.
        if name not in text or "test" in file:
            continue
        try:
            parsed = untrusted.python_tree(text)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(parsed):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
                # By the object's name: no type says that it holds options, and `name` alone is a common
                # attribute.
                of = ast.unparse(node.value)
                if of.rpartition(".")[2] in ("opt", "options", "opts", "metadata"):
                    places.append(Place(file, node.lineno, ast.unparse(node)))
    return tuple(places)


def _mentions(index: Index, name: str) -> tuple[Place, ...]:
    sign = re.compile(rf"\b{name}\b")
    return tuple(
        Place(file, line_of(text, match.start()))
        for file in index.tree.having("CMakeLists.txt", ".cmake", "setup.py", "build_helpers.py")
        if name in (text := index.tree.text(file))
        for match in sign.finditer(text)
    )


def _undefined_pass(index: Index, entry: Entry) -> AtlasFacts:
    """Return the answer for a pass that no file of the tree defines."""
    # A backend calls MLIR's passes as its own, but their records are in LLVM: the table knows the common ones
    # without an LLVM.
    of_mlir = next((row for row in mlir_passes() if row.name == entry.name), None)
    module, _, short = (of_mlir.binding if of_mlir else entry.name).rpartition(".")
    bound = [
        candidate
        for candidate in index.bindings
        if candidate.name == short and (of_mlir is None or module in candidate.words)
    ]
    makers = (
        candidate
        for candidate in index.foreign
        if candidate.kind == "pass" and mentions.bindings_of_pass(tuple(bound), candidate)
    )
    # The binding's code names the function that makes the pass, which is surer than any similarity of names.
    theirs = next(makers, None)
    answer = _definition(index, theirs) if theirs else AtlasFacts("pass", entry.name)
    if theirs is None and of_mlir:
        answer.summary = of_mlir.about
        answer.facts |= {"of": "MLIR", "C++": of_mlir.maker, "alone": f"mlir-opt --{of_mlir.name} FILE"}
        answer.notes.append(
            "MLIR's own: an LLVM with MLIR's .td files (--llvm-dir) adds its definition and options"
        )
        answer.places["bound"] = tuple(candidate.place for candidate in bound)
    elif theirs is None:
        if bound:
            answer.notes.append("no .td file here defines it: MLIR's own passes are in LLVM (--llvm-dir)")
            answer.places["bound"] = tuple(candidate.place for candidate in bound)
        else:
            answer.notes.append("only libtriton's sources say which pass this adds")
            answer.notes += [
                f"judging by its name, perhaps {candidate.name}" for candidate in _namesakes(index, short)
            ]
    answer.places["called"] = places_of(entry)
    return answer


def _namesakes(index: Index, short: str) -> list[Definition]:
    """Return passes named like the function that adds them: `tritongpu-coalesce` for `add_coalesce`."""
    end = "-" + short.removeprefix("add_").replace("_", "-")
    return [
        definition
        for definition in index.definitions
        if definition.kind == "pass" and definition.name.endswith(end)
    ]


def _called_by_name(index: Index, definition: Definition) -> tuple[Place, ...]:
    """Return the calls that, by their name, may add a pass."""
    return tuple(
        call.in_words
        for call in index.calls
        if any(same.name == definition.name for same in _namesakes(index, call.name.rpartition(".")[2]))
    )


def _debug_type(_: Index, entry: Entry) -> AtlasFacts:
    answer = AtlasFacts(
        "debug-type", entry.name, "what LLVM_DEBUG prints in these files, in a build with assertions"
    )
    answer.places["defined"] = places_of(entry)
    answer.facts["switch on"] = f"TRITON_ENABLE_LLVM_DEBUG=1 TRITON_LLVM_DEBUG_ONLY={entry.name}"
    return answer


def of_file(index: Index, file: str) -> AtlasFacts:
    """Return the contents of a file."""
    text = index.tree.text(file)
    answer = AtlasFacts("file", file, _heading(file, text))
    defined = [item for item in index.definitions if item.file == file]
    answer.tables["defines"] = [(item.name, item.kind, item.summary) for item in defined]
    passes = [item for item in index.definitions if item.kind == "pass"]
    implemented = [
        item
        for item in passes
        # `implementation` looks through the whole tree, so it is asked only for passes that the file
        # mentions.
        if item.record in text
        and (implementation := mentions.implementation(index.tree, item.record, item.constructor))
        and implementation.file == file
    ]
    answer.tables["implements"] = [(item.name, "pass", item.summary) for item in implemented]
    if debug := mentions.debug_type(text):
        answer.facts["debug type"] = debug
    answer.places["patterns"] = (
        mentions.patterns_in(index.tree, file) if file.endswith((".cpp", ".h")) else ()
    )
    answer.places["binds"] = tuple(item.place for item in index.bindings if item.place.file == file)
    answer.places["calls"] = tuple(item.place for item in index.calls if item.place.file == file)
    answer.facts["lines"] = str(len(text.splitlines()))
    answer.places = {name: places for name, places in answer.places.items() if places}
    answer.tables = {name: rows for name, rows in answer.tables.items() if rows}
    # After empty sections are dropped: it is the place to open, and 0 is the whole file.
    place = Place(file, 0)
    answer.places["defined"] = (place,)
    answer.changes = tuple(filter(None, (mentions.last_change(index.tree, place),)))
    return answer


def of_message(index: Index, text: str) -> AtlasFacts | None:
    """Return the lines that may print a text; None if no literal of the sources fits."""
    literals = mentions.find_message(index.tree, text)
    if not literals:
        return None
    answer = AtlasFacts("message", text, f"the longest part that the sources contain: {literals[0].piece!r}")
    answer.places["printed"] = tuple(literal.place for literal in literals)
    answer.notes.append("found by the longest literal part of the text: several lines may print it")
    answer.changes = _changes(index, answer)
    return answer


def _heading(file: str, text: str) -> str:
    """Return the first sentence of a docstring, or of the comment at the top that is no licence."""
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
    # MLIR's files begin with a banner and the licence; NVIDIA's and AMD's with the licence alone.
    good = [line for line in lines if line and "opyright" not in line and "icense" not in line]
    return good[0] if good and " " in good[0] else ""


def _changes(index: Index, answer: AtlasFacts) -> tuple[mentions.LastChange, ...]:
    """Return the last changes of the definition's lines, and of the file that implements it."""
    changes: list[mentions.LastChange] = []
    for section in ("defined", "implemented", "declared", "read", "printed"):
        for place in answer.places.get(section, ())[:1]:
            # A pass changes anywhere in its file; a definition, in its own lines.
            end = 0 if section == "implemented" else _end(index, place)
            change = mentions.last_change(index.tree, place, end)
            if change and all(change.commit != other.commit for other in changes):
                changes.append(change)
    return tuple(changes[:2])


def _end(index: Index, place: Place) -> int:
    same = (
        definition
        for definition in index.definitions
        if definition.file == place.file and definition.line == place.line
    )
    return next((definition.end for definition in same), place.line)


def _with_default(about: str, default: str) -> str:
    return f"{about} (default: {default})".strip() if default else about


def places_of(entry: Entry) -> tuple[Place, ...]:
    """Return the places of a variable, a DEBUG_TYPE or a foreign pass; empty for other things."""
    return (
        tuple(place for place in entry.what if isinstance(place, Place))
        if isinstance(entry.what, tuple)
        else ()
    )


_OTHERS: Mapping[str, Callable[[Index, Entry], AtlasFacts]] = {
    "pass": _undefined_pass,
    "variable": _variable,
    "option": _switches,
    "cmake": _switches,
    "debug-type": _debug_type,
}
