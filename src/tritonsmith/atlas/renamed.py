"""Names of other versions, and removed ones: `configs/triton-names.toml`, from upstream's history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tritonsmith.core import configs

_CONFIG = "triton-names"
_SURE = 0.85  # of the text stayed; below that another thing may have come instead
_MARKS = {"#": "attribute", "!": "type"}


@dataclass(frozen=True)
class Renaming:
    """One commit that gave a thing another name.

    Attributes:
        kind: `pass`, `op`, `type`, `attribute` or `dialect`.
        before: the older name.
        after: the newer one.
        date: of the commit.
        commit: of triton-lang/triton.
        alike: how much of its text stayed, where its record got another name, too.
        members: of a dialect, what it had then.
    """

    kind: str
    before: str
    after: str
    date: str
    commit: str
    alike: float = 1.0
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Removal:
    """A name that upstream took away and that did not come back.

    Attributes:
        kind: `pass`, `op`, `type`, `attribute` or `dialect`.
        name: as MLIR prints it.
        date: of the commit.
        commit: of triton-lang/triton.
        title: the first line of its message, with its pull request.
        release: the first release line without it; empty if there is none yet.
    """

    kind: str
    name: str
    date: str
    commit: str
    title: str
    release: str = ""


def removed(thing: str, kind: str = "") -> Removal | None:
    """The removal of a name, with or without the marks of types and attributes; the last one of several."""
    rows = (configs.made(Removal, row) for row in reversed(configs.load(_CONFIG)["removed"]))
    fits = (row for row in rows if kind in ("", row.kind) and thing in (row.name, row.name.lstrip("#!")))
    return next(fits, None)


@cache
def table() -> tuple[Renaming, ...]:
    """Every renaming, oldest first; that of a dialect renames all that it had."""
    rows = [configs.made(Renaming, row) for row in configs.load(_CONFIG)["renamed"]]
    return tuple(one for row in rows for one in (row, *_members(row)))


def _members(row: Renaming) -> Iterator[Renaming]:
    for name in row.members:
        mark = name[0] if name[0] in _MARKS else ""
        before, after = (f"{mark}{dialect}.{name.lstrip('#!')}" for dialect in (row.before, row.after))
        yield Renaming(_MARKS.get(mark, "op"), before, after, row.date, row.commit)


def of(kind: str, name: str) -> tuple[str, ...]:
    """Other names of a thing, in words, oldest first."""
    rows = [one for one in table() if one.kind == kind]
    older: list[str] = []
    known = name
    for one in reversed(rows):
        if one.after == known and one.before != name:
            older.insert(0, f"{one.before} until {_source(one)}")
            known = one.before
    newer, known = [], name
    for one in rows:
        if one.before == known and one.after != name:
            newer.append(f"{one.after} since {_source(one)}")
            known = one.after
    return (*older, *newer)


def _source(one: Renaming) -> str:
    unsure = f", if it is the same: {one.alike:.0%} of its definition stayed" if one.alike < _SURE else ""
    return f"{one.date} ({one.commit}{unsure})"


def names(thing: str) -> tuple[str, ...]:
    """All names, of any time, of what was or will be called so."""
    found = {thing}
    while more := {
        other
        for one in table()
        for mine, other in ((one.before, one.after), (one.after, one.before))
        if {mine, mine.lstrip("#!")} & found and other not in found
    }:
        found |= more
    return tuple(sorted(found - {thing}))
