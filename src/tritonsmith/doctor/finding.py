"""What a check says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "note", "warning", "error", "crashed"]
SCHEMA = 1


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        id: of the check: `tools.cmake`.
        status: how it is.
        seen: what was seen, and where.
        affects: what suffers, if something is wrong.
        remedy: what to do about it, as commands or words.
    """

    id: str
    status: Status
    seen: str
    affects: str = ""
    remedy: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """`tools`, `machine`, `builds` ..."""
        return self.id.partition(".")[0]


def as_json(findings: tuple[Finding, ...]) -> dict[str, Any]:
    """The documented form of `doctor --json`."""
    return {"schema": SCHEMA, "findings": [asdict(finding) for finding in findings]}


def worst(findings: tuple[Finding, ...]) -> Status:
    """The gravest status among findings."""
    order: tuple[Status, ...] = ("ok", "note", "warning", "error", "crashed")
    return max((finding.status for finding in findings), key=order.index, default="ok")
