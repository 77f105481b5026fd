"""Find the line that prints an error, by the longest piece of its text that sources have literally."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tritonsmith.atlas.place import Place
from tritonsmith.atlas.source_files import SourceFiles, line_of

_LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*f?r?"(?:\\.|[^"\\\n])*")*')
_PYTHON = re.compile(r"'(?:\\.|[^'\\\n])*'")
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


def find(tree: SourceFiles, text: str, most: int = 8) -> tuple[Message, ...]:
    """Return the literals with the longest common piece with a text; empty if that piece is too short."""
    words = " ".join(text.split())
    best: list[Message] = []
    length = _SHORTEST - 1
    for file in tree.having(".cpp", ".cc", ".h", ".hpp", ".py", ".td", ".c"):
        if {"test", "unittest", "tutorials"} & {*file.split("/")}:
            continue
        source = tree.text(file)
        for piece, at in _pieces(source, python=file.endswith(".py")):
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
        matches += _PYTHON.finditer(source)
    for match in matches:
        if len(match[0]) < _SHORTEST or match[0].startswith(("'''", '"""')):
            continue
        whole = re.sub(r'"\s*f?r?"', "", match[0][1:-1]) if match[0][0] == '"' else match[0][1:-1]
        for part in _HOLES.split(whole):
            piece = " ".join(_ESCAPES.sub(r"\1", part).split())
            if len(piece) >= _SHORTEST and " " in piece:
                yield piece, match.start()
