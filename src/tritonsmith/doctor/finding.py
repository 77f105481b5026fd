"""What a check says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from tritonsmith.errors import SmithError
from tritonsmith.plan import Step

Status = Literal["ok", "note", "warning", "error", "crashed", "not applicable"]
SCHEMA = 2
_GRAVITY: tuple[Status, ...] = ("not applicable", "ok", "note", "warning", "error", "crashed")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        status: how it is.
        seen: what was seen.
        where: file, folder or program that it was seen in.
        affects: what suffers, if something is wrong.
        remedy: what to do about it, in words.
        commands: what to do about it, to be typed.
        fix: steps that mend it, where that is safe and can be undone.
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
        """`tools`, `machine`, `builds` ..."""
        return self.check.partition(".")[0]

    @property
    def name(self) -> str:
        """Of the check, within its group: `cmake`."""
        return self.check.partition(".")[2]

    @property
    def wrong(self) -> bool:
        """Whether somebody should do something about it."""
        return self.status in ("warning", "error", "crashed")

    @property
    def docs(self) -> str:
        """The page of the check, in this project."""
        return f"docs/doctor.md#{self.check.replace('.', '')}"


def ok(seen: str, where: object = "") -> Finding:
    """It is as it should be."""
    return Finding("ok", seen, str(where))


def skipped(why: str) -> Finding:
    """There is nothing here that the check could look at."""
    return Finding("not applicable", why)


def of_error(check: str, error: SmithError) -> Finding:
    """What stopped the doctor before it could look at anything."""
    return Finding(
        "error",
        error.what,
        error.where or "",
        affects=error.why or "",
        remedy="; ".join(error.hints),
        check=check,
    )


def as_json(findings: tuple[Finding, ...]) -> dict[str, Any]:
    """The documented form of `doctor --json` (docs/doctor.md)."""
    return {"schema": SCHEMA, "worst": worst(findings), "findings": [_table(found) for found in findings]}


def worst(findings: tuple[Finding, ...]) -> Status:
    """The gravest status among findings."""
    return max((finding.status for finding in findings), key=_GRAVITY.index, default="ok")


def _table(finding: Finding) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(finding).items() if name not in ("fix", "check")}
    head = {"id": finding.check, "group": finding.group}
    return {**head, **fields, "docs": finding.docs, "fixable": bool(finding.fix)}
