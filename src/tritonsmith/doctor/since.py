"""`doctor --since last-good|DATE|REPORT`: the differences between then and now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tritonsmith.core.command_line import command
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.doctor import changes, history, saved_report
from tritonsmith.doctor.changes import SetupChange
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.history import HistoryEntry
from tritonsmith.doctor.snapshot import Snapshot

LAST_GOOD = "last-good"
_FORMS = (
    LAST_GOOD,
    "a date: 2026-11-20 or '2026-11-20 14:30'",
    "a file that `invoke doctor --json > report.json` wrote",
)


@dataclass(frozen=True)
class SinceAnswer:
    """The answer to `--since`.

    Attributes:
        then: description of the earlier setup.
        found: the differences.
        remarks: facts that could not be compared, and other things to know.
    """

    then: str
    found: tuple[SetupChange, ...]
    remarks: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the value of the key `since` of `doctor --json`."""
        return {"then": self.then, "changes": changes.as_json(self.found), "remarks": list(self.remarks)}


def check(asked: str) -> None:
    """Refuse an invalid `--since` before any check runs.

    Raises:
        UsageError: the text is neither `last-good`, nor a date, nor a file.
    """
    if asked != LAST_GOOD and not _is_file(asked) and _date(asked) is None:
        raise UsageError(f"--since cannot be {asked!r}: no such file, and not a date", hints=_FORMS)


def answer(asked: str, subject: DoctorContext, now: Snapshot) -> SinceAnswer:
    """Compare the current setup with an earlier one.

    Raises:
        SmithError: the history has no such setup, or the file is not a report.
    """
    if asked != LAST_GOOD and _is_file(asked):
        report = saved_report.read(Path(asked).expanduser())
        return _answer(report.title, report.setup, now, report.remarks)
    entries = history.read(subject.env.history)
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
    return _of_good(subject, entries, now) if asked == LAST_GOOD else _of_date(asked, entries, now)


def _of_good(subject: DoctorContext, entries: tuple[HistoryEntry, ...], now: Snapshot) -> SinceAnswer:
    good = history.last_good(entries)
    if good is None:
        raise SmithError(
            f"the doctor has never found environment {subject.named} without an error",
            where=subject.env.history,
            hints=[f"compare with another time: --since '{entry.title}'" for entry in entries[-3:]],
        )
    return _answer(f"last good, {good.title}", dict(good.setup), now, _others(entries, good, now))


def _of_date(asked: str, entries: tuple[HistoryEntry, ...], now: Snapshot) -> SinceAnswer:
    moment = _date(asked)
    assert moment is not None  # noqa: S101 - see `check`
    entry = history.at(entries, moment)
    remarks = _others(entries, entry, now)
    if entry.moment > moment:
        remarks = (f"the history begins on {entry.title}: compared with its first entry", *remarks)
    return _answer(entry.title, dict(entry.setup), now, remarks)


def _others(entries: tuple[HistoryEntry, ...], used: HistoryEntry, now: Snapshot) -> tuple[str, ...]:
    """Return the other times to compare with, if nothing differs."""
    others = [entry for entry in entries if entry.setup != now]
    if used.setup != now or not others:
        return ()
    times = ", ".join(f"{entry.title} ({'good' if entry.good else entry.worst})" for entry in others[-5:])
    return (f"the setup has changed since: {times}",)


def _answer(title: str, then: Snapshot, now: Snapshot, remarks: tuple[str, ...]) -> SinceAnswer:
    return SinceAnswer(title, changes.between(then, now), (*remarks, *changes.not_compared(then, now)))


def _is_file(asked: str) -> bool:
    return Path(asked).expanduser().is_file()


def _date(asked: str) -> datetime | None:
    try:
        return datetime.fromisoformat(asked).astimezone()
    except (ValueError, OverflowError):
        return None
