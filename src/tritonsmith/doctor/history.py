"""The setups of an environment over time: an entry for each change that a whole run of the doctor saw."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from tritonsmith import __version__
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import LockedError, SmithError
from tritonsmith.core.plan import files, locks
from tritonsmith.doctor import finding
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding
from tritonsmith.doctor.snapshot import Snapshot

SCHEMA = 1
_BAD = ("error", "crashed")


@dataclass(frozen=True)
class HistoryEntry:
    """A setup, from the first run of the doctor that saw it.

    Attributes:
        when: UTC, ISO 8601.
        tritonsmith: the version that looked.
        worst: the most severe status that it found.
        deep: it ran with `--deep`.
        setup: the facts.
    """

    when: str
    tritonsmith: str
    worst: str
    deep: bool
    setup: Mapping[str, str]

    @property
    def good(self) -> bool:
        """Whether the doctor found no error."""
        return self.worst not in _BAD

    @property
    def moment(self) -> datetime:
        """When it was seen first, in local time."""
        return datetime.fromisoformat(self.when).astimezone()

    @property
    def seconds(self) -> float:
        """How long ago that was."""
        return (datetime.now(UTC) - self.moment).total_seconds()

    @property
    def title(self) -> str:
        """The same for people, to the minute."""
        return f"{self.moment:%Y-%m-%d %H:%M}"


def read(path: Path) -> tuple[HistoryEntry, ...]:
    """The entries, oldest first; none if there is no such file.

    Raises:
        SmithError: the file cannot be read, or is damaged.
    """
    try:
        return tuple(map(_entry, _rows(untrusted.read_json(path))))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise SmithError("cannot read the history", where=path, why=error.strerror) from error
    except (ValueError, KeyError, TypeError) as error:
        raise SmithError(
            "the history is damaged",
            where=path,
            why=str(error),
            hints=["move the file away: the next run of the doctor begins a new one"],
        ) from error


def _rows(told: object) -> list[object]:
    if isinstance(told, dict) and told.get("schema") == SCHEMA and isinstance(told.get("entries"), list):
        return list(told["entries"])
    raise ValueError(f"it is not a history of schema {SCHEMA}")


def _entry(row: object) -> HistoryEntry:
    if not isinstance(row, dict):
        raise TypeError("an entry is not a table")
    known = {name: row[name] for name in HistoryEntry.__dataclass_fields__}
    found = untrusted.shaped(HistoryEntry, known)
    if found.moment.tzinfo is None:
        raise ValueError("an entry has no time")
    return found


def keep(
    subject: DoctorContext, findings: tuple[Finding, ...], setup: Snapshot, *, deep: bool = False
) -> str:
    """Append this run's setup if something changed since the last entry.

    Returns:
        Why nothing could be kept; empty if all is well.
    """
    path = subject.env.history
    worst = finding.worst(findings)
    entry = HistoryEntry(_now(), __version__, worst, deep, setup)
    try:
        if not _is_news(entry, read(path)):
            return ""
        subject.space.claim()
        subject.env.make()
        with locks.hold(path.with_suffix(".lock"), purpose="doctor"):
            known = read(path)  # another run may have written meanwhile
            if _is_news(entry, known):
                rows = [asdict(one) for one in _kept((*known, entry))]
                files.write_atomically(path, json.dumps({"schema": SCHEMA, "entries": rows}, indent=1) + "\n")
    except LockedError:
        return ""  # that run writes what this one saw
    except SmithError as error:
        return ": ".join(filter(None, (error.what, error.where, error.why)))
    except OSError as error:
        return f"{error.strerror}: {path}"
    return ""


def _is_news(entry: HistoryEntry, known: tuple[HistoryEntry, ...]) -> bool:
    """Another setup, or another verdict; what `--deep` found is not overturned by a run without it."""
    if not known or known[-1].setup != entry.setup:
        return True
    last = known[-1]
    return last.good != entry.good and (entry.deep or not last.deep)


def _kept(entries: tuple[HistoryEntry, ...]) -> Iterable[HistoryEntry]:
    """The newest entries, and the newest good one."""
    most = configs.load("doctor-setup")["history"]["entries"]
    good = last_good(entries)
    newest = entries[-most:]
    return newest if good is None or good in newest else (good, *newest[1:])


def last_good(entries: tuple[HistoryEntry, ...]) -> HistoryEntry | None:
    """The newest entry without an error."""
    return next((one for one in reversed(entries) if one.good), None)


def at(entries: tuple[HistoryEntry, ...], moment: datetime) -> HistoryEntry:
    """The setup at a moment: the last entry before, or the first of all."""
    before = [one for one in entries if one.moment <= moment]
    return before[-1] if before else entries[0]


def driver_since(entries: tuple[HistoryEntry, ...], version: str) -> HistoryEntry | None:
    """The entry that saw the change to this driver; None if it was there from the beginning, or never."""
    found = None
    for earlier, later in pairwise(entries):
        if later.setup.get("driver") != earlier.setup.get("driver"):
            found = later
    return found if found and found.setup.get("driver") == version else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
