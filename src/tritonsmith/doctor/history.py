"""The setups of an environment over time: an entry for each change that a complete run of the doctor saw."""

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
        when: time of that run, UTC, ISO 8601.
        tritonsmith: version of the tool.
        worst: the most severe status among its findings.
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
        """Report whether the doctor found no error."""
        return self.worst not in _BAD

    @property
    def moment(self) -> datetime:
        """The time of the first run that saw it, in local time."""
        return datetime.fromisoformat(self.when).astimezone()

    @property
    def seconds(self) -> float:
        """The age of the entry in seconds."""
        return (datetime.now(UTC) - self.moment).total_seconds()

    @property
    def title(self) -> str:
        """The time for people, to the minute."""
        return f"{self.moment:%Y-%m-%d %H:%M}"


def read(path: Path) -> tuple[HistoryEntry, ...]:
    """Read the entries, oldest first; none if there is no such file.

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


def _rows(document: object) -> list[object]:
    if (
        isinstance(document, dict)
        and document.get("schema") == SCHEMA
        and isinstance(document.get("entries"), list)
    ):
        return list(document["entries"])
    raise ValueError(f"it is not a history of schema {SCHEMA}")


def _entry(row: object) -> HistoryEntry:
    if not isinstance(row, dict):
        raise TypeError("an entry is not a table")
    known = {name: row[name] for name in HistoryEntry.__dataclass_fields__}
    entry = untrusted.shaped(HistoryEntry, known)
    if entry.moment.tzinfo is None:
        raise ValueError("an entry has no time")
    return entry


def keep(
    subject: DoctorContext, findings: tuple[Finding, ...], setup: Snapshot, *, deep: bool = False
) -> str:
    """Append this run's setup if something changed since the last entry.

    Returns:
        The reason why nothing could be kept; empty if all is well.
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
                rows = [asdict(kept_entry) for kept_entry in _kept((*known, entry))]
                files.write_atomically(path, json.dumps({"schema": SCHEMA, "entries": rows}, indent=1) + "\n")
    except LockedError:
        return ""  # that run records the same setup
    except SmithError as error:
        return ": ".join(filter(None, (error.what, error.where, error.why)))
    except OSError as error:
        return f"{error.strerror}: {path}"
    return ""


def _is_news(entry: HistoryEntry, known: tuple[HistoryEntry, ...]) -> bool:
    """Report whether the setup or the verdict is new; only a `--deep` run overturns a `--deep` verdict."""
    if not known or known[-1].setup != entry.setup:
        return True
    last = known[-1]
    return last.good != entry.good and (entry.deep or not last.deep)


def _kept(entries: tuple[HistoryEntry, ...]) -> Iterable[HistoryEntry]:
    """Return the newest entries, and the newest good one."""
    most = configs.load("doctor-setup")["history"]["entries"]
    good = last_good(entries)
    newest = entries[-most:]
    return newest if good is None or good in newest else (good, *newest[1:])


def last_good(entries: tuple[HistoryEntry, ...]) -> HistoryEntry | None:
    """Return the newest entry without an error."""
    return next((entry for entry in reversed(entries) if entry.good), None)


def at(entries: tuple[HistoryEntry, ...], moment: datetime) -> HistoryEntry:
    """Return the setup at a moment: the last entry before, or the first of all."""
    before = [entry for entry in entries if entry.moment <= moment]
    return before[-1] if before else entries[0]


def driver_since(entries: tuple[HistoryEntry, ...], version: str) -> HistoryEntry | None:
    """Return the entry that saw the change to this driver; None if it never changed to it."""
    change = None
    for earlier, later in pairwise(entries):
        if later.setup.get("driver") != earlier.setup.get("driver"):
            change = later
    return change if change and change.setup.get("driver") == version else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
