"""What holds of every table on every screen."""

from __future__ import annotations

import re

from tritonsmith.ui.tables import Grid

MARK = "…"
_WORDS = re.compile(r"\s+|(?<=[^\d][,;/])(?=\S)|(?<=[,;/])(?=[^\s\d])")


def shown(grid: Grid, width: int | None) -> list[str]:
    """Its lines on a screen."""
    return [line.plain for line in grid.lines(width)]


def check(grid: Grid, width: int) -> None:
    """No line is too long, no number and no word of a head is broken, nothing is cut without a mark."""
    lines = shown(grid, width)
    assert all(len(line) <= width for line in lines), "\n".join(lines)
    text = "\n".join(lines)
    seen = set(_WORDS.split(text))
    left_out = re.search(r"^not shown: ((?:.|\n)+?); --wide$", text, re.MULTILINE)
    hidden = set(re.split(r",\s+", left_out[1])) if left_out else set()
    for number, column in enumerate(grid.columns):
        if " ".join(column.head.plain.split()) in hidden:
            continue
        cells = [row[number].plain for row in grid.rows]
        if not any(cell.strip() for cell in cells) and grid.rows:
            continue
        _all_there(column.head.plain, seen, width=0)
        for cell in cells:
            if not (column.cut and _marked(cell, text)):
                _all_there(cell, seen, width=0 if column.right else width)


def _marked(cell: str, text: str) -> bool:
    flat = " ".join(cell.split())
    return any(f"{flat[:end]}{MARK}" in text for end in range(1, len(flat)))


def _all_there(text: str, seen: set[str], *, width: int) -> None:
    """Every word; one that no screen of this width has room for may be in parts."""
    for word in filter(None, _WORDS.split(text)):
        if word in seen:
            continue
        assert width, f"{word!r} is not there"
        assert len(word) > width // 3, f"{word!r} is broken"
        rest = word
        while rest:
            parts = [part for part in seen if part and rest.startswith(part)]
            assert parts, f"{rest!r} of {word!r} is not there"
            rest = rest[len(max(parts, key=len)) :]
