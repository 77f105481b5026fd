"""The result of a check."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import Step

Status = Literal["ok", "note", "warning", "error", "crashed", "not applicable"]
SCHEMA = 2
GRAVITY: tuple[Status, ...] = ("not applicable", "ok", "note", "warning", "error", "crashed")


@dataclass(frozen=True)
class Finding:
    """One result of a check.

    Attributes:
        status: the verdict.
        seen: description of what the check found.
        where: the file, folder or program that the finding is about.
        affects: the consequence of a problem.
        remedy: a remedy, in words.
        commands: the remedy, as commands.
        fix: steps that apply it, where that is safe and can be undone.
        check: id of the check: `tools.cmake`.
    """

    status: Status
    seen: str
    where: str = ""
    affects: str = ""
    remedy: str = ""
    commands: tuple[str, ...] = ()
    fix: tuple[Step, ...] = ()
    check: str = ""

    @property
    def group(self) -> str:
        """The group of the check: `tools`, `machine`, `builds` ..."""
        return self.check.partition(".")[0]

    @property
    def name(self) -> str:
        """The check's name within its group: `cmake`."""
        return self.check.partition(".")[2]

    @property
    def wrong(self) -> bool:
        """Report whether the user should act on it."""
        return self.status in ("warning", "error", "crashed")

    @property
    def docs(self) -> str:
        """The command that prints the check's documentation, in a checkout and from an installed wheel."""
        return f"invoke doctor --explain {self.check}"


class NotApplicableError(Exception):
    """A check does not apply here; the message has the reason."""


# Constructors for the usual results; the other arguments are those of `Finding`.
note = partial(Finding, "note")
warning = partial(Finding, "warning")
error = partial(Finding, "error")


def ok(seen: str, where: object = "") -> Finding:
    """Return a finding that everything is as expected."""
    return Finding("ok", seen, str(where))


def skipped(why: str) -> Finding:
    """Return a finding that the check does not apply here."""
    return Finding("not applicable", why)


def of_error(reported: SmithError, check: str = "") -> Finding:
    """Return the finding for an error, of a check or before any check."""
    remedy = "; ".join(reported.hints)
    return error(reported.what, reported.where or "", reported.why or "", remedy, check=check)


def as_json(findings: tuple[Finding, ...]) -> dict[str, Any]:
    """Return the documented form of `doctor --json` (docs/doctor.md)."""
    return {"schema": SCHEMA, "worst": worst(findings), "findings": [_table(finding) for finding in findings]}


def worst(findings: tuple[Finding, ...]) -> Status:
    """Return the most severe status among findings."""
    return max((finding.status for finding in findings), key=GRAVITY.index, default="ok")


def _table(finding: Finding) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(finding).items() if name not in ("fix", "check")}
    head = {"id": finding.check, "group": finding.group}
    return {**head, **fields, "docs": finding.docs, "fixable": bool(finding.fix)}
