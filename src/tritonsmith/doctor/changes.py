"""The differences between two snapshots, and their possible consequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.core.versions import version_key
from tritonsmith.doctor.snapshot import VARIABLE, Snapshot
from tritonsmith.facts import variables

_NONE = "none"
_ABOUT_CACHES = "part of the cache's key: kernels compile again"


@dataclass(frozen=True)
class SetupChange:
    """A fact that differs.

    Attributes:
        what: name of the fact: `driver`, or `$TRITON_HOME`.
        title: the name in words.
        then: value in the first snapshot; empty for none.
        now: value in the second snapshot.
        means: possible consequence of the change; empty if unknown.
    """

    what: str
    title: str
    then: str
    now: str
    means: str = ""


def between(then: Snapshot, now: Snapshot) -> tuple[SetupChange, ...]:
    """Return the facts that differ, in the order of `configs/doctor-setup.toml`, variables last.

    A fact in only one of them comes from another version of this tool: see `not_compared`.
    """
    facts = configs.load("doctor-setup")["fact"]
    rest = sorted((then.keys() | now.keys()) - facts.keys())
    both = [name for name in (*facts, *rest) if name.startswith(VARIABLE) or (name in then and name in now)]
    return tuple(_change(name, then, now) for name in both if then.get(name, "") != now.get(name, ""))


def not_compared(then: Snapshot, now: Snapshot) -> tuple[str, ...]:
    """Return a remark on facts that only one of them has, if there are any."""
    names = sorted(name for name in then.keys() ^ now.keys() if not name.startswith(VARIABLE))
    return (f"only one side knows, so not compared: {', '.join(names)}",) if names else ()


def _change(name: str, then: Snapshot, now: Snapshot) -> SetupChange:
    before, after = then.get(name, ""), now.get(name, "")
    if name.startswith(VARIABLE):
        return SetupChange(name, name, before, after, _of_variable(name.removeprefix(VARIABLE)))
    row = configs.load("doctor-setup")["fact"].get(name, {"title": name})
    meaning = row.get("gone", "") if before and not after else row.get("means", "")
    return SetupChange(
        name, row["title"], before, after, "; ".join((*_above(name, now), meaning)).strip("; ")
    )


def _above(name: str, now: Snapshot) -> Iterator[str]:
    """Yield the consequences if a fact has a newer major version than another, whichever of them changed."""
    for rule in configs.load("doctor-setup")["above"]:
        than = now.get(rule["than"], "")
        for fact in rule["facts"]:
            newer = now.get(fact, "")
            if name in (fact, rule["than"]) and newer and than and _major(newer) > _major(than):
                subject = "" if name == fact else f"{fact} {newer}: "
                yield subject + rule["means"].format(than=than)


def _major(version: str) -> int:
    return (version_key(version) or (0,))[0]


def _of_variable(name: str) -> str:
    row, others = variables.find(name), configs.load("doctor-setup")["variables"]
    if row is None:
        return str(others["means"] if name in others["names"] else others["unknown"])
    return "; ".join((row.what, *([_ABOUT_CACHES] if row.cache == "invalidates" else ())))


def table(found: tuple[SetupChange, ...], then: str, now: str) -> Grid:
    """Return a table of the changes, with the names of both sides as heads."""
    rows = [
        [change.title, _shown(change.then, change), _shown(change.now, change), change.means]
        for change in found
    ]
    return tables.plain("", ["what", then, now, "can mean"], rows)


def _shown(value: str, change: SetupChange) -> str:
    return value or ("not set" if change.what.startswith(VARIABLE) else _NONE)


def as_json(found: tuple[SetupChange, ...]) -> list[dict[str, Any]]:
    """Return the changes as JSON data."""
    return [
        {"what": change.what, "then": change.then, "now": change.now, "means": change.means}
        for change in found
    ]
