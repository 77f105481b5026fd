"""Look up names of other versions, and removed ones: `configs/triton-names.toml`, from upstream's history."""

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
        alike: the share of its text that stayed, where its record got another name, too.
        members: the members of a dialect at that time.
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
    """A name that upstream removed and that did not come back.

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
    """Return the last removal of a name, with or without the marks of types and attributes."""
    rows = (configs.made(Removal, row) for row in reversed(configs.load(_CONFIG)["removed"]))
    fits = (row for row in rows if kind in ("", row.kind) and thing in (row.name, row.name.lstrip("#!")))
    return next(fits, None)


@cache
def table() -> tuple[Renaming, ...]:
    """Return every renaming, oldest first; that of a dialect renames all its members."""
    rows = [configs.made(Renaming, row) for row in configs.load(_CONFIG)["renamed"]]
    return tuple(renaming for row in rows for renaming in (row, *_members(row)))


def _members(row: Renaming) -> Iterator[Renaming]:
    for name in row.members:
        mark = name[0] if name[0] in _MARKS else ""
        before, after = (f"{mark}{dialect}.{name.lstrip('#!')}" for dialect in (row.before, row.after))
        yield Renaming(_MARKS.get(mark, "op"), before, after, row.date, row.commit)


def of(kind: str, name: str) -> tuple[str, ...]:
    """Return other names of a thing, in words, oldest first."""
    rows = [renaming for renaming in table() if renaming.kind == kind]
    older: list[str] = []
    known = name
    for renaming in reversed(rows):
        if renaming.after == known and renaming.before != name:
            older.insert(0, f"{renaming.before} until {_source(renaming)}")
            known = renaming.before
    newer, known = [], name
    for renaming in rows:
        if renaming.before == known and renaming.after != name:
            newer.append(f"{renaming.after} since {_source(renaming)}")
            known = renaming.after
    return (*older, *newer)


def _source(renaming: Renaming) -> str:
    unsure = (
        f", if it is the same: {renaming.alike:.0%} of its definition stayed"
        if renaming.alike < _SURE
        else ""
    )
    return f"{renaming.date} ({renaming.commit}{unsure})"


def names(thing: str) -> tuple[str, ...]:
    """Return all names, of any time, of the things that had or will have this name."""
    known = {thing}
    while more := {
        other
        for renaming in table()
        for mine, other in ((renaming.before, renaming.after), (renaming.after, renaming.before))
        if {mine, mine.lstrip("#!")} & known and other not in known
    }:
        known |= more
    return tuple(sorted(known - {thing}))
