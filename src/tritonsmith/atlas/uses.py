"""Find tests that use a thing, and the last change of a place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.atlas.place import Place
from tritonsmith.atlas.source_files import SourceFiles, line_of
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


def of_pass(tree: SourceFiles, argument: str) -> tuple[Place, ...]:
    """Return lit tests whose RUN lines name a pass."""
    return _find(
        tree,
        re.compile(rf"RUN:.*?(?:\s--?|[(,\"'\s=])({re.escape(argument)})(?![\w-])"),
        argument,
        ("//", "RUN"),
    )


def of_word(tree: SourceFiles, word: str, suffixes: tuple[str, ...]) -> tuple[Place, ...]:
    """Return tests that name a word, those that name it most often first."""
    return _find(tree, re.compile(rf"(?<![\w.])({re.escape(word)})(?![\w.])"), word, (), suffixes)


def _find(
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
    where = (f"-L{place.line},{end}:{place.file}", "-s") if end else ("--", place.file)
    answer = git.look(root, "log", "-1", form, *where)
    if answer is None or answer.code or not answer.out:
        return None
    parts = answer.out.splitlines()[0].split("\t", 3)
    if len(parts) != 4:  # noqa: PLR2004 - as many as the format has
        return None
    commit, date, author, subject = parts
    return LastChange(commit, date, author, subject, place)
