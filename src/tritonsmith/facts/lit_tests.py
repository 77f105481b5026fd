"""Read the programs that a checkout's lit tests run from their RUN lines, not from a list kept by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tritonsmith.core import untrusted

SITE = "lit.site.cfg.py"  # what CMake configures of the tests
_SUFFIXES = (".mlir", ".ll", ".py", ".td", ".test", ".txt")
_RUN = re.compile(rb"RUN:\s*(.*)")
_PROGRAM = re.compile(r"[A-Za-z][\w.+-]*$")
_BETWEEN = re.compile(r"\|\||&&|[|;]")
_WRAPPERS = ("not", "env", "count")  # take a program as their argument


def programs(checkout: Path) -> tuple[str, ...]:
    """Return the names of the programs that the lit tests below `test/` of a checkout call, sorted."""
    names: set[str] = set()
    for path in (checkout / "test").rglob("*"):
        if path.suffix not in _SUFFIXES or not path.is_file():
            continue
        for line in _RUN.findall(untrusted.read_bytes(path)):
            names.update(_called(line.decode("utf-8", errors="replace")))
    return tuple(sorted(names))


def is_lit(path: str, text: str) -> bool:
    """Return whether a file is a lit test: it has RUN lines, unlike Python's own tests."""
    return not path.endswith(".py") or ("RUN:" in text and "test" in Path(path).parts[:1])


def _called(line: str) -> Iterator[str]:
    for command in _BETWEEN.split(line):
        for word in command.split():
            if "=" in word or word.startswith("-"):
                continue  # a variable or an option of a wrapper
            if not _PROGRAM.match(word):
                break
            yield word
            if word not in _WRAPPERS:
                break
