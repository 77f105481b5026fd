"""The setups of an environment over time: an entry for each change that a complete run of the doctor saw."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from tritonsmith import __version__
from tritonsmith.core import configs, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import LockedError, SmithError, UsageError
from tritonsmith.core.plan import files, locks
from tritonsmith.doctor import check, saved_report, snapshot
from tritonsmith.doctor.check import DoctorContext, Finding
from tritonsmith.doctor.snapshot import SetupChange, Snapshot

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
        """The local time for display, to the minute."""
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
    # Not `entry.moment`, whose `astimezone` silently takes a time without a zone for local time.
    if datetime.fromisoformat(entry.when).tzinfo is None:
        raise ValueError("the time of an entry has no time zone")
    return entry


def keep(
    subject: DoctorContext, findings: tuple[Finding, ...], setup: Snapshot, *, deep: bool = False
) -> str:
    """Append this run's setup if something changed since the last entry.

    Returns:
        The reason why nothing could be kept; empty if all is well.
    """
    # A reason and no exception: a history that cannot be kept must not cost the user the findings.
    path = subject.env.history
    worst = check.worst(findings)
    entry = HistoryEntry(_now(), __version__, worst, deep, setup)
    try:
        if not _is_news(entry, read(path)):
            return ""
        subject.space.claim()
        subject.env.make()
        with locks.hold(path.with_suffix(".lock"), purpose="doctor"):
            # Another run may have written since the first look, which was without the lock.
            known = read(path)
            if _is_news(entry, known):
                rows = [asdict(kept_entry) for kept_entry in _kept((*known, entry))]
                files.write_atomically(path, json.dumps({"schema": SCHEMA, "entries": rows}, indent=1) + "\n")
    # The run that holds the lock records the same setup.
    except LockedError:
        return ""
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
    # A quick run finds less: that it finds no error does not refute a deep one that did.
    return last.good != entry.good and (entry.deep or not last.deep)


def _kept(entries: tuple[HistoryEntry, ...]) -> Iterable[HistoryEntry]:
    """Return the newest entries, and the newest good one."""
    most = configs.load("doctor-setup")["history"]["entries"]
    good = last_good(entries)
    newest = entries[-most:]
    # The last good setup stays, however long ago it was: it is what people compare with.
    return newest if good is None or good in newest else (good, *newest[1:])


def last_good(entries: tuple[HistoryEntry, ...]) -> HistoryEntry | None:
    """Return the newest entry without an error."""
    return next((entry for entry in reversed(entries) if entry.good), None)


def at(entries: tuple[HistoryEntry, ...], moment: datetime) -> HistoryEntry:
    """Return the entry at a moment: the last one before it, or the first of all."""
    before = [entry for entry in entries if entry.moment <= moment]
    return before[-1] if before else entries[0]


def driver_since(entries: tuple[HistoryEntry, ...], version: str) -> HistoryEntry | None:
    """Return the entry that saw the change to this driver; None if it never changed to it."""
    # The newest change counts: a driver may be replaced, put back, and replaced again.
    change = None
    for earlier, later in pairwise(entries):
        if later.setup.get("driver") != earlier.setup.get("driver"):
            change = later
    return change if change and change.setup.get("driver") == version else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# `doctor --since last-good|DATE|REPORT`: the differences between then and now.

LAST_GOOD = "last-good"
_FORMS = (
    LAST_GOOD,
    "a date: 2026-11-20 or '2026-11-20 14:30'",
    "a file that `invoke doctor --json > report.json` wrote",
)


@dataclass(frozen=True)
class SetupComparison:
    """The answer to `--since`.

    Attributes:
        then: description of the earlier setup.
        changes: the differences.
        remarks: facts that could not be compared, and other things to know.
    """

    then: str
    changes: tuple[SetupChange, ...]
    remarks: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the value of the key `since` of `doctor --json`."""
        return {
            "then": self.then,
            "changes": snapshot.changes_as_json(self.changes),
            "remarks": list(self.remarks),
        }


def check_since(since: str) -> None:
    """Refuse an invalid `--since` before any check runs.

    Raises:
        UsageError: the text is neither `last-good`, nor a date, nor a file.
    """
    # Before the checks: a typo must not cost the seconds that they take.
    if since != LAST_GOOD and not _is_file(since) and _date(since) is None:
        raise UsageError(f"--since cannot be {since!r}: no such file, and not a date", hints=_FORMS)


def answer_since(since: str, subject: DoctorContext, now: Snapshot) -> SetupComparison:
    """Compare the current setup with an earlier one.

    Raises:
        SmithError: the history has no such setup, or the file is not a report.
    """
    if since != LAST_GOOD and _is_file(since):
        report = saved_report.read(Path(since).expanduser())
        return _answer(report.title, report.setup, now, report.remarks)
    entries = read(subject.env.history)
    if not entries:
        raise SmithError(
            f"environment {subject.named} has no history yet",
            where=subject.env.history,
            why="each whole run of the doctor adds an entry when something changed; this was the first",
            hints=[
                f"when something stopped working: {command('doctor', env=subject.named, since=LAST_GOOD)}",
                "to compare with another machine: --since FILE, which `invoke doctor --json` printed there",
            ],
        )
    return _of_good(subject, entries, now) if since == LAST_GOOD else _of_date(since, entries, now)


def _of_good(subject: DoctorContext, entries: tuple[HistoryEntry, ...], now: Snapshot) -> SetupComparison:
    good = last_good(entries)
    if good is None:
        raise SmithError(
            f"the doctor has never found environment {subject.named} without an error",
            where=subject.env.history,
            hints=[f"compare with another time: --since '{entry.title}'" for entry in entries[-3:]],
        )
    return _answer(f"last good, {good.title}", dict(good.setup), now, _others(entries, good, now))


def _of_date(since: str, entries: tuple[HistoryEntry, ...], now: Snapshot) -> SetupComparison:
    moment = _date(since)
    assert moment is not None  # noqa: S101 - `check_since` has refused everything else
    entry = at(entries, moment)
    remarks = _others(entries, entry, now)
    if entry.moment > moment:
        remarks = (f"the history begins on {entry.title}: compared with its first entry", *remarks)
    return _answer(entry.title, dict(entry.setup), now, remarks)


def _others(entries: tuple[HistoryEntry, ...], used: HistoryEntry, now: Snapshot) -> tuple[str, ...]:
    """Return the other times to compare with, if nothing differs."""
    # Identical setups look as if nothing ever changed; whoever asks wants to know when it did.
    others = [entry for entry in entries if entry.setup != now]
    if used.setup != now or not others:
        return ()
    times = ", ".join(f"{entry.title} ({'good' if entry.good else entry.worst})" for entry in others[-5:])
    return (f"the setup has changed since: {times}",)


def _answer(title: str, then: Snapshot, now: Snapshot, remarks: tuple[str, ...]) -> SetupComparison:
    return SetupComparison(
        title, snapshot.changes_between(then, now), (*remarks, *snapshot.not_compared(then, now))
    )


def _is_file(since: str) -> bool:
    return Path(since).expanduser().is_file()


def _date(since: str) -> datetime | None:
    # A date without a zone is local time, as people mean it. OverflowError: 0001-01-01 parses, and its local
    # time may lie before the first year.
    try:
        return datetime.fromisoformat(since).astimezone()
    except (ValueError, OverflowError):
        return None
