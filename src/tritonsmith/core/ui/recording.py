"""What a task tells another process of ours, `watch`, besides text: its tables, and the files that it makes.

A record is a line of output: RS and JSON, as in RFC 7464.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_MARK = "\x1e"
_KINDS = {"file", "table"}


class _Records:
    """Whether the reader of our output understands them."""

    there = False


def begin() -> None:
    """Write records from now on."""
    _Records.there = True


def on() -> bool:
    """Whether records are written."""
    return _Records.there


def record(kind: str, content: Any) -> str:
    """A line of output."""
    return _MARK + json.dumps({kind: content})


def parse(line: str) -> dict[str, Any]:
    """A record by its kind; empty for a line of text, one that only begins as a record does included."""
    try:
        found = json.loads(line[1:]) if line.startswith(_MARK) else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and found.keys() <= _KINDS else {}


def made(path: Path) -> None:
    """Tell that a file of text is a part of the answer."""
    if on():
        print(record("file", str(path)), flush=True)
