"""Explain cache misses: compare the inputs of each compile with those of its previous run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build.explain.reasons import RebuildReason
from tritonsmith.core.errors import FactError
from tritonsmith.core.ui import word_diff
from tritonsmith.facts import ccache
from tritonsmith.facts.ccache import Compile

_HINTS = ("build twice, before and after, each with CCACHE_DEBUG=1 CCACHE_DEBUGDIR=/an/empty/folder",)
_WORDS = {  # https://github.com/ccache/ccache/blob/v4.7.5/src/ccache.cpp, `hash_common_info`
    "cc_mtime": "the compiler changed",
    "cc_hash": "the compiler changed",
    "cc_content": "the compiler changed",
    "cwd": "compiled in a different folder, which the debug info records (hash_dir)",
    "object file": "the object has a different path, which split DWARF records",
    "LANG": "the language of messages changed",
    "cache entry version": "written by a different version of ccache",
}
_NOTHING = "nothing differs: the result was never stored or was evicted"
_SOURCE = "sourcecode hash"
_MARKER = re.compile(r'^# \d+ "$')


@dataclass(frozen=True)
class Misses:
    """The numbers of hits and misses, and the reasons for misses, the most frequent first."""

    hits: int
    misses: int
    rows: tuple[RebuildReason, ...]


def explain(after: Path, before: Path) -> Misses:
    """Compare the build to explain with the one whose results should have hit.

    Each folder is the `CCACHE_DEBUGDIR` of that build.

    Raises:
        FactError: a folder has no records of ccache.
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
    """Return compiles by the path of their object, relative to their common folder."""
    compiles = ccache.read_inputs(folder)
    if not compiles:
        raise FactError("ccache recorded no compile here", where=folder, hints=_HINTS)
    top = os.path.commonpath([compile_.object.parent for compile_ in compiles])
    return {str(compile_.object.relative_to(top)): compile_ for compile_ in compiles}


def _why(new: Compile, old: Compile | None) -> str:
    if old is None:
        return "not compiled before"
    if flags := word_diff.parts(old.values("arg"), new.values("arg")):
        return "flags: " + "; ".join(
            f"{before or 'nothing'} -> {after or 'nothing'}" for before, after in flags
        )
    for (_, name, was), (_, _, value) in zip(old.inputs, new.inputs, strict=False):
        if was == value or name == _SOURCE:
            continue
        if name == "cpp":
            return f"the preprocessed source changed, first in {_place(was.splitlines(), value.splitlines())}"
        return _WORDS.get(name, f"{name} changed: {_short(was)} -> {_short(value)}")
    if old.values(_SOURCE) != new.values(_SOURCE):
        return "the source file changed"  # ccache did not get as far as the includes
    more = len(old.inputs) != len(new.inputs)
    return "the key has more or fewer inputs" if more else _NOTHING


def _place(was: Sequence[str], now: Sequence[str]) -> str:
    """Return the file in which preprocessed sources first differ, from ccache's form of `# 1 "FILE" 2`."""
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
