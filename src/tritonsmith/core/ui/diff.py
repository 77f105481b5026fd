"""A unified diff in colours."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

_STYLES = {"+": "green", "-": "red", "@": "cyan"}  # by a line's first character


def coloured(lines: Iterable[str]) -> Text:
    """Return the lines of a diff, each with a line end."""
    text = Text()
    for line in lines:
        text.append(f"{line}\n", style=_STYLES.get(line[:1], ""))
    return text
