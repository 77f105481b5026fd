"""What a run has shown, and what is different from the run before; times and addresses do not count."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.ir.normalize import diff as normalize_diff

ARROW = " → "
_CONTEXT = 2  # lines around a change
_MLIR = ".mlir"


@dataclass(frozen=True)
class RunOutcome:
    """The result of a run.

    Attributes:
        code: exit code.
        parts: what was printed: lines of text and tables, in order.
        files: name to text of the files that are a part of the answer: IR.
        what: that ended so: the build, or the command.
    """

    code: int
    parts: tuple[str | Grid, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    what: str = ""

    @property
    def verdict(self) -> str:
        """`ok`, or how it failed."""
        failed = f"exit code {self.code}" if self.code >= 0 else f"signal {-self.code}"
        return "ok" if self.code == 0 else ", ".join(filter(None, (self.what, failed)))

    @property
    def lines(self) -> tuple[str, ...]:
        """The text."""
        return tuple(part for part in self.parts if isinstance(part, str))

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The tables."""
        return tuple(part for part in self.parts if isinstance(part, Grid))


@dataclass(frozen=True)
class OutcomeChange:
    """What is different between two runs.

    Attributes:
        grids: tables of the cells that changed.
        diffs: unified diffs, by the name of the file; of the text under an empty name.
        hidden: something else is different: times, addresses, what `configs/watch.toml` calls volatile.
    """

    grids: tuple[Grid, ...] = ()
    diffs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: bool = False

    @property
    def any(self) -> bool:
        """Whether anything is different."""
        return bool(self.grids or self.diffs)


def compare(before: RunOutcome, after: RunOutcome) -> OutcomeChange:
    """What is different, apart from the exit code."""
    old, new = _by_title(before.grids), _by_title(after.grids)
    grids = [changed_cells(old.pop(title, None), grid) for title, grid in new.items()]
    grids += [changed_cells(grid, None) for grid in old.values()]
    diffs = {"": tuple(_lines(before.lines, after.lines))}
    for name in {**before.files, **after.files}:  # one that only one run made is a change, too
        diffs[name] = _texts(Path(name), before.files.get(name, ""), after.files.get(name, ""))
    return OutcomeChange(
        tuple(grid for grid in grids if grid),
        {name: lines for name, lines in diffs.items() if lines},
        hidden=before.parts != after.parts,
    )


def _by_title(grids: Iterable[Grid]) -> dict[tuple[str, int], Grid]:
    """Tables by their titles, and a number that tells those apart that have the same."""
    found: dict[tuple[str, int], Grid] = {}
    seen: Counter[str] = Counter()
    for grid in grids:
        title = _steady(grid.title)
        found[title, seen[title]] = grid
        seen[title] += 1
    return found


def _texts(path: Path, before: str, after: str) -> tuple[str, ...]:
    """The difference of two files; of IR, regardless of how values and locations are named."""
    if path.suffix == _MLIR and before and after:
        return normalize_diff.of(before, after, "mlir").lines
    return tuple(_lines(before.splitlines(), after.splitlines()))


def _lines(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """A unified diff without the lines for file names; changed lines are as they were printed."""
    old, new = ([_Line(line) for line in lines] for lines in (before, after))
    found = difflib.unified_diff(old, new, lineterm="", n=_CONTEXT)
    return (
        _steady(line) if line.startswith(" ") else line for number, line in enumerate(found) if number > 1
    )


def changed_cells(before: Grid | None, after: Grid | None) -> Grid | None:
    """A table of the changed cells, `before → after`; None if nothing has changed."""
    shape = after or before
    if shape is None:
        return None
    old, new = _rows(before), _rows(after)
    heads = [column.head.plain for column in shape.columns]
    rows: list[tuple[tuple[str, ...], dict[str, str]]] = []
    changed: set[str] = set()
    for key in dict.fromkeys((*new, *old)):
        cells = _row(heads, old.get(key), new.get(key))
        if cells:
            rows.append((key[:-1], cells))
            changed |= cells.keys()
    if not rows:
        return None
    wanted = [head for head in heads if head in changed]
    own = heads[: shape.keys]
    body = [[*key, *(cells.get(head, "") for head in wanted)] for key, cells in rows]
    return tables.plain(
        shape.title, [*own, *wanted], body, right=wanted, keys=shape.keys, across=shape.across
    )


def _rows(grid: Grid | None) -> dict[tuple[str, ...], dict[str, str]]:
    """Cells by their heads, by what identifies a row; its last part tells rows apart that are alike."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    if grid is None:
        return found
    heads = [column.head.plain for column in grid.columns]
    for row in grid.rows:
        key = tuple(cell.plain for cell in row[: grid.keys])
        number = sum(1 for known in found if known[:-1] == key)
        found[*key, str(number)] = {
            head: cell.plain
            for head, cell in zip(heads[grid.keys :], row[grid.keys :], strict=True)
            if head not in _table()["columns"]
        }
    return found


def _row(
    heads: Sequence[str], old: Mapping[str, str] | None, new: Mapping[str, str] | None
) -> dict[str, str]:
    """The changed cells of a row, by their heads; all cells of a row that came or went."""
    if new is None:
        return {head: f"{old[head]}{ARROW}".strip() for head in heads if old and old.get(head)}
    if old is None:
        return {head: f"{ARROW}{new[head]}".strip() for head in heads if new.get(head)}
    return {
        head: f"{old.get(head, '')}{ARROW}{new.get(head, '')}".strip()
        for head in heads
        if _steady(old.get(head, "")) != _steady(new.get(head, ""))
    }


class _Line(str):
    """A line that equals another one if nothing but times is different."""

    __slots__ = ("_steady",)

    def __init__(self, text: str) -> None:
        self._steady = _steady(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Line) and self._steady == other._steady

    def __hash__(self) -> int:
        return hash(self._steady)


def _steady(text: str) -> str:
    """The text without what is different in each run."""
    return _volatile().sub("…", text)


@cache
def _volatile() -> re.Pattern[str]:
    return re.compile("|".join(_table()["patterns"]))


def _table() -> Mapping[str, list[str]]:
    found: Mapping[str, list[str]] = configs.load("watch")["volatile"]
    return found
