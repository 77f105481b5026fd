"""Describe entries of a cache, which an observer finds and a step of a plan removes."""

from __future__ import annotations

from dataclasses import dataclass

# The name of a folder of a clearing in the cache begins with this; the next clearing empties it.
TRASH = ".tritonsmith-trash-"


@dataclass(frozen=True)
class SeenEntry:
    """An entry of a cache, as it was when it was inspected.

    Attributes:
        name: `ENTRY`, or `ENTRY/NAME` for something in an entry.
        changed: its modification time, in nanoseconds.
    """

    name: str
    changed: int


@dataclass(frozen=True)
class CacheIndex:
    """The file by which readers find the other files of an entry.

    Attributes:
        prefix: of its name.
        empty: content of one that names no file. It is replaced, not removed: readers may open it by now.
    """

    prefix: str
    empty: str
