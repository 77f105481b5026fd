"""A line of a file, for an editor."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """Where something is.

    Attributes:
        file: relative to the tree.
        line: from 1; 0 for the whole file.
        what: what is there: a function, a pattern, a call; may be empty.
        when: conditions under which it is reached, outermost first.
    """

    file: str
    line: int
    what: str = ""
    when: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)
