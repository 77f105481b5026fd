"""What holds of every table on every screen."""

from __future__ import annotations

import re

from tritonsmith.core.ui.tables import Grid

MARK = "…"
SHORTEST = 12  # characters of a word that may be broken, at least
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
    left_out = re.search(r"^not shown: ((?:.|\n)+?);\s--wide$", text, re.MULTILINE)
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


def check_rows(grid: Grid, width: int) -> None:
    """Rows are rows: all keys stand at the left below each heading; or all of them in one heading."""
    lines = shown(grid, width)
    rules = [number for number, line in enumerate(lines) if line and not line.strip("─")]
    assert rules, "\n".join(lines)
    keys = [row[0].plain.strip()[: SHORTEST // 2].strip() for row in grid.rows]
    if len(rules) == 1 and all(_begin(key) in " ".join(lines[: rules[0]]) for key in keys):
        return
    for begin, end in zip(rules, [*rules[1:], len(lines)], strict=True):
        left = iter(lines[begin + 1 : end])
        for key in keys:
            assert any(line.lstrip().startswith(_begin(key)) for line in left), f"{key!r}:\n" + "\n".join(
                lines
            )


def _begin(key: str) -> str:
    return _WORDS.split(key)[0]


def _marked(cell: str, text: str) -> bool:
    flat = " ".join(cell.split())
    return any(f"{flat[:end]}{MARK}" in text for end in range(1, len(flat)))


def _all_there(text: str, seen: set[str], *, width: int) -> None:
    """Every word; one that no screen of this width has room for may be in parts."""
    for word in filter(None, _WORDS.split(text)):
        if word in seen:
            continue
        assert width, f"{word!r} is not there"
        assert len(word) > SHORTEST, f"{word!r} is broken"
        rest = word
        while rest:
            parts = [part for part in seen if part and rest.startswith(part)]
            assert parts, f"{rest!r} of {word!r} is not there"
            rest = rest[len(max(parts, key=len)) :]
