"""A line of a file, for an editor."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """A place in the sources.

    Attributes:
        file: relative to the tree.
        line: from 1; 0 for the whole file.
        what: the thing there: a function, a pattern, a call; may be empty.
        when: conditions under which it is reached, outermost first.
    """

    file: str
    line: int
    what: str = ""
    when: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def as_json(self) -> dict[str, Any]:
        """Return the place as JSON."""
        return asdict(self)
