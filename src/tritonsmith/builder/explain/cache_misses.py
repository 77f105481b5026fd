"""Why the compiler cache did not answer: the inputs of each compile against those of the same one before."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.builder.explain.reasons import RebuildReason
from tritonsmith.errors import FactError
from tritonsmith.facts import ccache_inputs
from tritonsmith.facts.ccache_inputs import Compile
from tritonsmith.ui import word_diff

_HINTS = ("build with CCACHE_DEBUG=1 CCACHE_DEBUGDIR=/an/empty/folder, once before and once after",)
_WORDS = {  # https://github.com/ccache/ccache/blob/v4.7.5/src/ccache.cpp, `hash_common_info`
    "cc_mtime": "the compiler is another file",
    "cc_hash": "the compiler is another file",
    "cc_content": "the compiler is another file",
    "cwd": "it is compiled in another folder, which the debug info would name (hash_dir)",
    "object file": "the object has another path, which split DWARF names",
    "LANG": "the language of messages is another",
    "cache entry version": "another ccache wrote it",
}
_NOTHING = "nothing differs: the result was not there (any more)"
_SOURCE = "sourcecode hash"
_MARKER = re.compile(r'^# \d+ "$')


@dataclass(frozen=True)
class Misses:
    """What the cache answered, and why it did not answer the rest.

    Attributes:
        hits: compiles that it answered.
        misses: compiles that it did not.
        rows: why, the most frequent reason first.
    """

    hits: int
    misses: int
    rows: tuple[RebuildReason, ...]


def explain(after: Path, before: Path) -> Misses:
    """Compare two builds.

    Args:
        after: what `CCACHE_DEBUGDIR` named in the build that is to be explained.
        before: the same, in the build whose results should have been found.

    Raises:
        FactError: ccache wrote nothing there.
    """
    new, old = _compiles(after), _compiles(before)
    groups: dict[str, list[str]] = {}
    missed = {name: compile_ for name, compile_ in new.items() if compile_.hit is False}
    for name, compile_ in missed.items():
        groups.setdefault(_why(compile_, old.get(name)), []).append(name)
    rows = sorted(
        (RebuildReason(tuple(names), why) for why, names in groups.items()), key=lambda row: -len(row.files)
    )
    hits = sum(compile_.hit is True for compile_ in new.values())
    return Misses(hits, len(missed), tuple(rows))


def _compiles(folder: Path) -> Mapping[str, Compile]:
    """Compiles by their object, below the folder that holds all of them."""
    found = ccache_inputs.read(folder)
    if not found:
        raise FactError("ccache wrote down no compile here", where=folder, hints=_HINTS)
    top = os.path.commonpath([compile_.object.parent for compile_ in found])
    return {str(compile_.object.relative_to(top)): compile_ for compile_ in found}


def _why(new: Compile, old: Compile | None) -> str:
    if old is None:
        return "it was not compiled before"
    if flags := word_diff.parts(old.values("arg"), new.values("arg")):
        return "flags: " + "; ".join(f"{one or 'nothing'} -> {other or 'nothing'}" for one, other in flags)
    for (_, name, was), (_, _, value) in zip(old.inputs, new.inputs, strict=False):
        if was == value or name == _SOURCE:
            continue
        if name == "cpp":
            return f"the source text is another, first in {_place(was.splitlines(), value.splitlines())}"
        return _WORDS.get(name, f"{name} is another: {_short(was)} -> {_short(value)}")
    if old.values(_SOURCE) != new.values(_SOURCE):
        return "the source itself is another"  # and there was no look at what it includes
    more = len(old.inputs) != len(new.inputs)
    return "more or fewer things go into the key" if more else _NOTHING


def _place(was: Sequence[str], now: Sequence[str]) -> str:
    """The file in which preprocessed sources first differ, from ccache's way to print `# 1 "FILE" 2`."""
    file = "an unknown file"
    for number, line in enumerate(now):
        if number >= len(was) or was[number] != line:
            break
        if _MARKER.match(line) and number + 1 < len(now):
            file = now[number + 1]
    return file


def _short(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= 60 else f"{line[:57]}..."  # noqa: PLR2004 - of a screen's line
