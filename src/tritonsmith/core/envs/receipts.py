"""Receipts: JSON files beside builds that record their inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tritonsmith import __version__
from tritonsmith.core import untrusted
from tritonsmith.core.ui import redact

SCHEMA = 1


def render(task: str, content: Mapping[str, Any]) -> str:
    """The text of a receipt: the inputs, as commits, flags, compilers, times in seconds, sizes in bytes."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    head = {"schema": SCHEMA, "task": task, "tritonsmith": __version__, "finished": when}
    plain = json.loads(json.dumps(head | dict(content), default=_plain))
    return json.dumps(redact.data(plain), indent=2) + "\n"


def _plain(value: object) -> object:
    """Convert facts to tables, and paths to text."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def read(path: Path) -> dict[str, Any] | None:
    """Read a receipt; None if it is missing or unreadable."""
    try:
        receipt = untrusted.read_json(path)
    except (OSError, ValueError):
        return None
    return receipt if isinstance(receipt, dict) and receipt.get("schema") == SCHEMA else None
