"""Search C++: the file of a pass, methods and patterns of an op, bindings to Python, DEBUG_TYPEs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tritonsmith.atlas.definition import Definition
from tritonsmith.atlas.source_files import Place, SourceFiles, line_of

_DEBUG_TYPE = re.compile(r'^#define\s+DEBUG_TYPE\s+"([^"]+)"', re.MULTILINE)
_RUN = re.compile(r"\bvoid\s+(?:\w+::)?runOnOperation\(\)[^;{]*\{")
_ANY_PATTERN = re.compile(
    r"\b(?:struct|class)\s+(\w+)\s*(?:final\s*)?:[^;{()]*?\b\w*(?:Pattern|Rewrite)\w*\b[^;{]*\{", re.DOTALL
)
_BOUND = re.compile(r'\b(?:ADD_\w+|def)\s*\(\s*"(\w+)"')
_INIT = re.compile(r"\b(init_\w+)\s*\([^;{]*\{")
_CPP = (".cpp", ".cc")
_IDENTIFIER = re.compile(r"\w+")
_PARENTHESIS = re.compile(r"[()]")
_WRAPPER = re.compile(r"\b\w+Wrapper\b")
_NO_PASSES = {"init", "triton", "passes"}


@dataclass(frozen=True)
class Implementation:
    """The C++ of a pass.

    Attributes:
        file: relative to the tree.
        found_by: the evidence for that file.
        line: the line of `runOnOperation`; 0 if it is not there.
        debug_type: the DEBUG_TYPE of the file; empty if it has none.
    """

    file: str
    found_by: str
    line: int
    debug_type: str


@dataclass(frozen=True)
class PythonBinding:
    """A function of libtriton.

    Attributes:
        name: `add_coalesce`, `create_load`.
        place: the place of the binding.
        words: the words of the binding function's name: `passes`, `ttgpuir`.
        body: the code that it is bound to.
    """

    name: str
    place: Place
    words: tuple[str, ...]
    body: str

    def names(self, symbol: str) -> bool:
        """Return whether it calls or makes a symbol."""
        return symbol in self._identifiers

    @cached_property
    def _identifiers(self) -> frozenset[str]:
        return frozenset(_IDENTIFIER.findall(self.body))


def implementation(tree: SourceFiles, record: str, constructor: str = "") -> Implementation | None:
    """Return the file with a pass's TableGen guard, a class of its base, or its constructor; None if none."""
    base = re.compile(rf"\b(?:class|struct)\s+(\w+)[^;{{]*?\b{record}Base<\s*\1\s*>", re.DOTALL)
    guard = f"GEN_PASS_DEF_{record.upper()}"
    signs = [(re.compile(rf"\b{guard}\b"), guard), (base, f"a class that derives from {record}Base")]
    if constructor:
        definition = re.compile(rf"\b{constructor}\([^;{{]*\{{", re.DOTALL)
        signs.append((definition, f"its constructor {constructor}"))
    # The guard is the surest sign, a constructor of that name the weakest: they are tried in this order.
    for sign, words in signs:
        for file in tree.having(*_CPP):
            text = tree.text(file)
            # A text search first: the patterns are slow on hundreds of files.
            if record not in text and guard not in text and not (constructor and constructor in text):
                continue
            if match := sign.search(text):
                derived = base.search(text)
                begin = derived.start() if derived else 0 if "constructor" in words else match.start()
                run = _RUN.search(text, begin) or _RUN.search(text)
                line = line_of(text, run.start()) if run else 0
                return Implementation(file, words, line, debug_type(text))
    return None


def debug_type(text: str) -> str:
    """Return the DEBUG_TYPE that a file defines; empty if it defines none."""
    match = _DEBUG_TYPE.search(text)
    return match[1] if match else ""


def debug_types(tree: SourceFiles) -> dict[str, tuple[Place, ...]]:
    """Return every DEBUG_TYPE, with the places of its definitions."""
    places_of: dict[str, list[Place]] = {}
    for file in tree.having(*_CPP, ".h", ".hpp"):
        text = tree.text(file)
        for match in _DEBUG_TYPE.finditer(text) if "DEBUG_TYPE" in text else ():
            places_of.setdefault(match[1], []).append(Place(file, line_of(text, match.start())))
    return {name: tuple(places) for name, places in sorted(places_of.items())}


def patterns_in(tree: SourceFiles, file: str) -> tuple[Place, ...]:
    """Return rewrite patterns that a file defines."""
    text = tree.text(file)
    return tuple(Place(file, line_of(text, match.start()), match[1]) for match in _ANY_PATTERN.finditer(text))


def methods(tree: SourceFiles, definition: Definition) -> tuple[Place, ...]:
    """Return functions of an op, type or attribute in C++, in the folder that belongs to its file."""
    begin = re.compile(rf"^[^\s#/][^\n;=]*?\b{definition.cpp}::(~?\w+)\s*\(", re.MULTILINE)
    lib = (
        definition.file.replace("include/triton/", "lib/", 1)
        .replace("/include/", "/lib/", 1)
        .rpartition("/")[0]
    )
    every = [file for file in tree.having(*_CPP) if f"{definition.cpp}::" in tree.text(file)]
    # Two dialects may have classes of one name, in two namespaces.
    near = [file for file in every if file.startswith(f"{lib}/")] or every
    return tuple(
        Place(file, line_of(tree.text(file), match.start()), f"{definition.cpp}::{match[1]}")
        for file in near
        for match in begin.finditer(tree.text(file))
    )


def patterns_of(tree: SourceFiles, definition: Definition) -> tuple[Place, ...]:
    """Return patterns that match an op: canonicalizations, conversions, lowerings."""
    sign = re.compile(
        rf"\b(?:struct|class)\s+(\w+)\s*(?:final\s*)?:[^;{{()]*?"
        rf"\b(\w*(?:Pattern|Rewrite)\w*)\s*<\s*(?:\w+::)*{definition.cpp}\s*[,>]",
        re.DOTALL,
    )
    places = []
    for file in tree.having(*_CPP, ".h", ".hpp"):
        text = tree.text(file)
        if definition.cpp in text:
            places += [
                Place(file, line_of(text, match.start()), f"{match[1]} ({match[2]})")
                for match in sign.finditer(text)
            ]
    return tuple(places)


def bindings(tree: SourceFiles) -> tuple[PythonBinding, ...]:
    """Return passes and functions of the builder that libtriton exports to Python."""
    return tuple(binding for file in tree.having(*_CPP) for binding in _bindings(file, tree.text(file)))


def _bindings(file: str, text: str) -> Iterator[PythonBinding]:
    if "pybind11" not in text and "nanobind" not in text:
        return
    inits = [*_INIT.finditer(text)]
    for match in _BOUND.finditer(text):
        around = next((init[1] for init in reversed(inits) if init.start() < match.start()), "")
        words = tuple(word for word in around.split("_") if word and word not in _NO_PASSES)
        body = text[match.start() : _closing(text, match.end())]
        # Some bindings only call a wrapper of the same file, which makes the pass.
        body += "".join(_function(text, name) for name in _WRAPPER.findall(body))
        yield PythonBinding(match[1], Place(file, line_of(text, match.start()), match[1]), words, body)


def _closing(text: str, at: int) -> int:
    """Return the end of a call after its opening parenthesis; strings and comments seldom contain one."""
    depth = 1
    for match in _PARENTHESIS.finditer(text, at):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _function(text: str, name: str) -> str:
    match = re.search(rf"\b{name}\s*\([^;{{]*\{{.*?^\}}", text, re.DOTALL | re.MULTILINE)
    return match[0] if match else ""


def of_pass(known: tuple[PythonBinding, ...], definition: Definition) -> tuple[PythonBinding, ...]:
    """Return bindings that add a pass, by the function that makes it."""
    return tuple(binding for binding in known if any(map(binding.names, makers(definition))))


def makers(definition: Definition) -> tuple[str, ...]:
    """Return functions that make a pass, as TableGen or its definition names them."""
    return tuple(
        dict.fromkeys(
            filter(
                None, (definition.constructor, f"create{definition.record}", f"create{definition.record}Pass")
            )
        )
    )


def callers(tree: SourceFiles, definition: Definition) -> tuple[Place, ...]:
    """Return the places where C++ adds a pass to a pipeline of its own."""
    sign = re.compile(
        rf"\badd(?:Nested)?Pass\w*(?:<[^>]*>)?\(\s*(?:\w+::)*(?:{'|'.join(makers(definition))})\b"
    )
    places = []
    for file in tree.having(*_CPP):
        text = tree.text(file)
        if "Pass" in text and "pybind11" not in text and "nanobind" not in text:
            places += [Place(file, line_of(text, match.start())) for match in sign.finditer(text)]
    return tuple(places)
