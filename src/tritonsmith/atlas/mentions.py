"""Search the sources for a thing: its C++, bindings and tests, the line that prints it, its last change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tritonsmith.atlas.source_files import Definition, Place, SourceFiles, line_of
from tritonsmith.facts import git

_TESTS = {"test", "tests", "unittest"}


@dataclass(frozen=True)
class LastChange:
    """The commit that changed some lines last.

    Attributes:
        commit: its first digits.
        date: its date, ISO 8601.
        author: the author's name.
        subject: the first line of its message.
        place: the place in question.
    """

    commit: str
    date: str
    author: str
    subject: str
    place: Place


def is_test(file: str) -> bool:
    """Return whether a file is in a folder of tests."""
    return not _TESTS.isdisjoint(file.split("/")[:-1])


def tests_of_pass(tree: SourceFiles, argument: str) -> tuple[Place, ...]:
    """Return lit tests whose RUN lines name a pass."""
    return _tests(
        tree,
        re.compile(rf"RUN:.*?(?:\s--?|[(,\"'\s=])({re.escape(argument)})(?![\w-])"),
        argument,
        ("//", "RUN"),
    )


def tests_of_word(tree: SourceFiles, word: str, suffixes: tuple[str, ...]) -> tuple[Place, ...]:
    """Return tests that name a word, those that name it most often first."""
    return _tests(tree, re.compile(rf"(?<![\w.])({re.escape(word)})(?![\w.])"), word, (), suffixes)


def _tests(
    tree: SourceFiles,
    sign: re.Pattern[str],
    word: str,
    also: tuple[str, ...],
    suffixes: tuple[str, ...] = (".mlir", ".ll", ".py"),
) -> tuple[Place, ...]:
    places = []
    for file in tree.having(*suffixes):
        if not is_test(file):
            continue
        text = tree.text(file)
        # The regular expression only sees the files that have the plain words: there are over a thousand
        # tests.
        if word in text and all(needed in text for needed in also) and (first := sign.search(text)):
            number = len(sign.findall(text))
            places.append(
                (number, Place(file, line_of(text, first.start(1)), f"{number} times" if number > 1 else ""))
            )
    return tuple(place for _, place in sorted(places, key=lambda pair: (-pair[0], pair[1].file)))


def last_change(tree: SourceFiles, place: Place, end: int = 0) -> LastChange | None:
    """Return the last commit that changed these lines, or the whole file; None if git knows none."""
    # Lines rather than the file where there are any: a file of definitions changes for the sake of each of
    # them.
    lines = (place.line, end) if end else (0, 0)
    parts = git.last_change(tree.root, place.file, *lines)
    tree.changes.append((place.file, *lines, parts))
    if not parts:
        return None
    commit, date, author, subject = parts
    return LastChange(commit, date, author, subject, place)


# Adjacent literals are one text, in C++ and in Python.
_LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*f?r?"(?:\\.|[^"\\\n])*")*')
_SINGLE_QUOTED = re.compile(r"'(?:\\.|[^'\\\n])*'")
# Values are printed in their place: an f-string's, printf's. What stays are the pieces between them.
_HOLES = re.compile(r"\{[^{}]*\}|%[-\w.]+|\\n|\\t")
_ESCAPES = re.compile(r"\\(.)")
_SHORTEST = 10  # characters: "expected" alone finds everything


@dataclass(frozen=True)
class Message:
    """A literal that fits a text.

    Attributes:
        piece: the part of the text that the sources have.
        place: the place of the literal, with its line of code.
    """

    piece: str
    place: Place


def find_message(tree: SourceFiles, text: str, most: int = 8) -> tuple[Message, ...]:
    """Return the literals that share the longest piece with a text; empty if that piece is too short."""
    words = " ".join(text.split())
    best: list[Message] = []
    length = _SHORTEST - 1
    for file in tree.having(".cpp", ".cc", ".h", ".hpp", ".py", ".td", ".c"):
        # Tests quote messages; they print none.
        if {"test", "unittest", "tutorials"} & {*file.split("/")}:
            continue
        source = tree.text(file)
        for piece, at in _pieces(source, python=file.endswith(".py")):
            # Either way round: the user may quote a part of a message, or more than one literal prints.
            if piece in words:
                shared = len(piece)
            elif words in piece:
                shared, piece = len(words), words  # noqa: PLW2901 - the part that both have
            else:
                continue
            if shared < length or (shared == length < _SHORTEST):
                continue
            if shared > length:
                best, length = [], shared
            begin = source.rfind("\n", 0, at) + 1
            end = source.find("\n", at)
            best.append(Message(piece, Place(file, line_of(source, at), source[begin:end].strip())))
    return tuple(best[:most])


def _pieces(source: str, *, python: bool) -> Iterator[tuple[str, int]]:
    """Yield the parts of literals between their holes, as they are printed."""
    matches = [*_LITERAL.finditer(source)]
    if python:
        matches += _SINGLE_QUOTED.finditer(source)
    for match in matches:
        # Docstrings are printed by no error.
        if len(match[0]) < _SHORTEST or match[0].startswith(("'''", '"""')):
            continue
        whole = re.sub(r'"\s*f?r?"', "", match[0][1:-1]) if match[0][0] == '"' else match[0][1:-1]
        for part in _HOLES.split(whole):
            piece = " ".join(_ESCAPES.sub(r"\1", part).split())
            if len(piece) >= _SHORTEST and " " in piece:
                yield piece, match.start()


_DEBUG_TYPE = re.compile(r'^#define\s+DEBUG_TYPE\s+"([^"]+)"', re.MULTILINE)
# Regular expressions, not a parser of C++: a checkout has no compile commands, and hundreds of files.
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
        file: the file, relative to the tree.
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
        """Return whether the bound code names a symbol of C++."""
        return symbol in self._identifiers

    @cached_property
    def _identifiers(self) -> frozenset[str]:
        return frozenset(_IDENTIFIER.findall(self.body))


def implementation(tree: SourceFiles, record: str, constructor: str = "") -> Implementation | None:
    """Return the file with a pass's TableGen guard, a class of its base, or its constructor; None if none."""
    # Older files include the base classes of all passes at once (GEN_PASS_CLASSES), and have no guard of
    # their own.
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
                # A file may implement several passes: the `runOnOperation` behind the class of this one is
                # its own.
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
    # At the beginning of a line and without ; and =: a definition, not a call.
    begin = re.compile(rf"^[^\s#/][^\n;=]*?\b{definition.cpp}::(~?\w+)\s*\(", re.MULTILINE)
    # The code of include/triton/Dialect/X/IR lies in lib/Dialect/X/IR.
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
        # The expression spans lines, and backtracks for long in a file that cannot match.
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
    # `def("name"` occurs in other C++, too.
    if "pybind11" not in text and "nanobind" not in text:
        return
    inits = [*_INIT.finditer(text)]
    for match in _BOUND.finditer(text):
        # init_triton_passes_ttgpuir: the function around tells the module in Python.
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


def bindings_of_pass(known: tuple[PythonBinding, ...], definition: Definition) -> tuple[PythonBinding, ...]:
    """Return bindings that add a pass, by the function that makes it."""
    return tuple(binding for binding in known if any(map(binding.names, makers(definition))))


def makers(definition: Definition) -> tuple[str, ...]:
    """Return functions that make a pass, as TableGen or its definition names them."""
    return tuple(
        dict.fromkeys(
            # TableGen declares create<Record>() for a pass that names no constructor; create<Record>Pass is
            # the habit of older sources, where it is written by hand.
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
        # Bindings add passes in the same words, and are listed as such.
        if "Pass" in text and "pybind11" not in text and "nanobind" not in text:
            places += [Place(file, line_of(text, match.start())) for match in sign.finditer(text)]
    return tuple(places)
