"""The commands of README.md and docs/: what a reader copies or is told to run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.cli import modes

REPOSITORY = Path(__file__).parents[1]
DOCS = REPOSITORY / "docs"
PAGES = (REPOSITORY / "README.md", *sorted(DOCS.glob("*.md")))

_PROGRAM = r"(?:invoke|tritonsmith|\./bootstrap)"
_SHELLS = ("", "sh", "console", "yaml")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`]+)`")
_BEGINS = re.compile(rf"(?:eval |\w+=\S* )*{_PROGRAM} ")
_SUBSTITUTED = re.compile(rf'"?\$\(({_PROGRAM} [^()]*)\)"?')  # "$(invoke ...)"


@dataclass(frozen=True)
class DocumentedCommand:
    """One command line of the tool.

    Attributes:
        page: file name.
        line: in that file.
        words: what follows the program's name: a task and its arguments.
        inline: it stands in a sentence, where a bare name of a task only names that task.
    """

    page: str
    line: int
    words: tuple[str, ...]
    inline: bool

    @property
    def complete(self) -> bool:
        """Whether it is more than a task or mode that a sentence names, or the beginning of something."""
        return self.words[-1] != "..." and (not self.inline or len(modes.resolved(self.words)) > 1)

    @property
    def text(self) -> str:
        """The words, without quotes."""
        return " ".join(self.words)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page that are in a language."""
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [text for name, text in found if name == language]


def commands(page: Path) -> list[DocumentedCommand]:
    """Those of one page, in its order; not the options of the program itself, nor `invoke TASK`."""
    text = page.read_text(encoding="utf-8")
    prose = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    lines = [
        (text.count("\n", 0, block.start(2)) + 1 + number, line, False)
        for block in _FENCE.finditer(text)
        if block[1] in _SHELLS
        for number, line in _typed(block[2])
    ]
    lines += [
        (prose.count("\n", 0, span.start()) + 1, " ".join(span[1].split()), True)
        for span in _INLINE.finditer(prose)
        if _BEGINS.match(" ".join(span[1].split()))
    ]
    return [
        DocumentedCommand(page.name, number, words, inline)
        for number, line, inline in sorted(lines)
        for words in _commands_of(line)
        if words[0] != "TASK" and not words[0].startswith("-")
    ]


def typed_lines(block: str) -> list[str]:
    """The lines of a block that a reader types; a continued line is one."""
    return [line for _, line in _typed(block)]


def commands_of(line: str, page: str) -> list[DocumentedCommand]:
    """The tool's commands in one line of shell."""
    return [DocumentedCommand(page, 0, words, inline=False) for words in _commands_of(line)]


def _typed(block: str) -> Iterator[tuple[int, str]]:
    """Lines that a reader types: those after `$`, where a block has such; a continued line is one."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(block.splitlines()):
        if lines and lines[-1][1].endswith("\\"):
            lines[-1] = (lines[-1][0], lines[-1][1].removesuffix("\\") + line)
        else:
            lines.append((number, line))
    prompts = any(line.startswith("$ ") for _, line in lines)
    return ((number, line) for number, line in lines if line.startswith("$ ") or not prompts)


def _commands_of(line: str) -> Iterator[tuple[str, ...]]:
    """The tool's commands in a line of shell."""
    for inner in _SUBSTITUTED.findall(line):
        yield tuple(shlex.split(inner)[1:])
    rest = _SUBSTITUTED.sub("SUBSTITUTED", line)
    if not re.search(rf"(?:^|\s){_PROGRAM} ", rest):
        return
    lexer = shlex.shlex(rest, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    for word in (*lexer, ";"):
        if set(word) <= set(";&|"):
            at = next((place for place, each in enumerate(words) if re.fullmatch(_PROGRAM, each)), len(words))
            if words[at + 1 :]:
                yield tuple(words[at + 1 :])
            words = []
        else:
            words.append(word)
