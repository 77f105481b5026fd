"""Records for another process of ours, `watch`, besides text: a task's tables, and the files that it makes.

A record is a line of output: RS and JSON, as in RFC 7464.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_MARK = "\x1e"
_KINDS = {"file", "table"}


class _Records:
    """The state of recording: on if the reader of our output understands records."""

    there = False


def begin() -> None:
    """Write records from now on."""
    _Records.there = True


def on() -> bool:
    """Return whether records are written."""
    return _Records.there


def record(kind: str, content: Any) -> str:
    """Return a line of output."""
    return _MARK + json.dumps({kind: content})


def parse(line: str) -> dict[str, Any]:
    """Return a record by its kind; empty for a line of text, even one that begins as a record does."""
    try:
        content = json.loads(line[1:]) if line.startswith(_MARK) else {}
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) and content.keys() <= _KINDS else {}


def made(path: Path) -> None:
    """Record that a file of text is a part of the answer."""
    if on():
        print(record("file", str(path)), flush=True)
