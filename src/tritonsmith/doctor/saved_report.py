"""A report of `doctor --json`, from here or from another machine, read as untrusted input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith import __version__
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.doctor import finding
from tritonsmith.doctor.finding import Status
from tritonsmith.doctor.snapshot import Snapshot

_LIMIT = 4 << 20  # bytes; a usual report has 30 KiB
_NOT_RUN = "not run"
_KEYS = frozenset(("schema", "tritonsmith", "when", "env", "worst", "findings", "setup", "since"))


@dataclass(frozen=True)
class SavedReport:
    """A report.

    Attributes:
        path: the file.
        when: time of the report, UTC, ISO 8601; empty if it is not recorded.
        env: name of the environment.
        setup: the facts.
        statuses: check to its most severe status.
        remarks: parts that this version does not understand.
    """

    path: Path
    when: str
    env: str
    setup: Snapshot
    statuses: Mapping[str, Status]
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """A short name of the report, with its day."""
        return " ".join(filter(None, (self.path.name, self.when[:10])))


def read(path: Path) -> SavedReport:
    """Read a report.

    Raises:
        UsageError: there is no such file.
        SmithError: the file is not a report, or one without a setup.
    """
    try:
        document = untrusted.read_json(path, _LIMIT)
    except FileNotFoundError:
        raise UsageError("no such report", where=path, hints=[_how()]) from None
    except OSError as error:
        raise SmithError("cannot read this report", where=path, why=error.strerror) from error
    except ValueError as error:
        raise _no_report(path, f"it is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise _no_report(path, "it has no list `findings`")
    setup = document.get("setup")
    if setup is None and "setup" not in document:
        origin = (
            f"made by tritonsmith {document['tritonsmith']}"
            if document.get("tritonsmith")
            else "of an older version"
        )
        raise SmithError("this report has no setup to compare", where=path, why=origin, hints=[_how()])
    if not isinstance(setup, dict) or not all(isinstance(value, str) for value in setup.values()):
        raise _no_report(path, "its setup is not a table of texts")
    texts = {key: value if isinstance(value := document.get(key), str) else "" for key in ("when", "env")}
    return SavedReport(
        path, **texts, setup=setup, statuses=_statuses(document["findings"]), remarks=_remarks(path, document)
    )


def verdicts(report: SavedReport, other: SavedReport) -> list[dict[str, str]]:
    """Return the checks with different results: id, and the status in each report."""
    names = [*report.statuses, *(name for name in other.statuses if name not in report.statuses)]
    rows = [
        {"id": name, "then": report.statuses.get(name, _NOT_RUN), "now": other.statuses.get(name, _NOT_RUN)}
        for name in names
    ]
    return [row for row in rows if row["then"] != row["now"]]


def table(rows: Iterable[Mapping[str, str]], report: str, other: str) -> Grid:
    """Return a table of the checks with different results."""
    return tables.plain("checks", ["check", report, other], [[*row.values()] for row in rows])


def _statuses(findings: list[Any]) -> dict[str, Status]:
    """Return the most severe status of each check; malformed findings are left out."""
    worst: dict[str, Status] = {}
    for row in filter(lambda row: isinstance(row, dict), findings):
        check, word = row.get("id"), row.get("status")
        status = next((known for known in finding.GRAVITY if known == word), None)
        if isinstance(check, str) and status:
            worst[check] = max(worst.get(check, status), status, key=finding.GRAVITY.index)
    return worst


def _remarks(path: Path, document: Mapping[str, Any]) -> tuple[str, ...]:
    schema, by = document.get("schema"), document.get("tritonsmith", "an older version")
    others = sorted(set(document) - _KEYS)
    remarks = []
    if schema != finding.SCHEMA:
        remarks.append(
            f"{path.name} has schema {schema!r}, tritonsmith {__version__} writes {finding.SCHEMA}: "
            "its setup is compared, what its findings mean may differ"
        )
    if others:
        remarks.append(f"{path.name} has unknown keys, which are not compared: {', '.join(others)} (by {by})")
    return tuple(remarks)


def _no_report(path: Path, why: str) -> SmithError:
    return SmithError("this is not a report of the doctor", where=path, why=why, hints=[_how()])


def _how() -> str:
    return f"a report is what `{command('doctor', json=True)} > report.json` writes"
