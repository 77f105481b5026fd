"""Search the sources: tests that use a thing, the line that prints an error, the last change of a place.

The line that prints an error is found by the longest piece of its text that sources have literally.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.atlas.source_files import Place, SourceFiles, line_of
from tritonsmith.facts import git

_TESTS = {"test", "tests", "unittest"}


@dataclass(frozen=True)
class LastChange:
    """The commit that changed some lines last.

    Attributes:
        commit: its first digits.
        date: ISO 8601.
        author: the name.
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
        if word in text and all(needed in text for needed in also) and (first := sign.search(text)):
            number = len(sign.findall(text))
            places.append(
                (number, Place(file, line_of(text, first.start(1)), f"{number} times" if number > 1 else ""))
            )
    return tuple(place for _, place in sorted(places, key=lambda one: (-one[0], one[1].file)))


def last_change(root: Path, place: Place, end: int = 0) -> LastChange | None:
    """Return the last commit that changed lines, or a whole file; None where git knows none."""
    form = "--format=%h%x09%cs%x09%an%x09%s"
    # -L prints the whole diff without -s.
    where = (f"-L{place.line},{end}:{place.file}", "-s") if end else ("--", place.file)
    answer = git.look(root, "log", "-1", form, *where)
    if answer is None or answer.code or not answer.out:
        return None
    parts = answer.out.splitlines()[0].split("\t", 3)
    if len(parts) != 4:  # noqa: PLR2004 - as many as the format has
        return None
    commit, date, author, subject = parts
    return LastChange(commit, date, author, subject, place)


# ---------------------------------------------- the line that prints an error

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


def find_message(tree: SourceFiles, text: str, most: int = 8) -> tuple[Message, ...]:
    """Return the literals with the longest common piece with a text; empty if that piece is too short."""
    words = " ".join(text.split())
    best: list[Message] = []
    length = _SHORTEST - 1
    for file in tree.having(".cpp", ".cc", ".h", ".hpp", ".py", ".td", ".c"):
        # Tests quote messages; they print none.
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
        # Docstrings are printed by no error.
        if len(match[0]) < _SHORTEST or match[0].startswith(("'''", '"""')):
            continue
        whole = re.sub(r'"\s*f?r?"', "", match[0][1:-1]) if match[0][0] == '"' else match[0][1:-1]
        for part in _HOLES.split(whole):
            piece = " ".join(_ESCAPES.sub(r"\1", part).split())
            if len(piece) >= _SHORTEST and " " in piece:
                yield piece, match.start()
