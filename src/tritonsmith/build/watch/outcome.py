"""The output of a run, and its differences from the run before; times and addresses do not count."""

from __future__ import annotations

import difflib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path

from rich.text import Text

from tritonsmith.core import configs
from tritonsmith.core.text import duration
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.ir.normalize import diff as normalize_diff

ARROW = " → "
_CONTEXT = 2  # lines around a change
_MLIR = ".mlir"
_NAMED = 3  # saved files in a line
_LONGEST = 200  # lines of a diff on the screen


@dataclass(frozen=True)
class WatchedRun:
    """The result of a run.

    Attributes:
        code: exit code.
        parts: its output: lines of text and tables, in order.
        files: names and texts of files that belong to the output: IR.
        what: the part that failed: the build, or the command.
    """

    code: int
    parts: tuple[str | Grid, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    what: str = ""

    @property
    def verdict(self) -> str:
        """The result in words: `ok`, or the kind of failure."""
        # Python reports the signal that ended a process as a negative code.
        failed = f"exit code {self.code}" if self.code >= 0 else f"signal {-self.code}"
        return "ok" if self.code == 0 else ", ".join(filter(None, (self.what, failed)))

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of text."""
        return tuple(part for part in self.parts if isinstance(part, str))

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The tables."""
        return tuple(part for part in self.parts if isinstance(part, Grid))


@dataclass(frozen=True)
class RunChange:
    """The differences between two runs.

    Attributes:
        grids: tables of the cells that changed.
        diffs: unified diffs by the name of the file, which is empty for the text.
        hidden: something else differs: times, addresses, patterns that `configs/watch.toml` calls volatile.
    """

    grids: tuple[Grid, ...] = ()
    diffs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: bool = False

    @property
    def any(self) -> bool:
        """Report whether anything differs."""
        return bool(self.grids or self.diffs)


def compare(before: WatchedRun, after: WatchedRun) -> RunChange:
    """Return the differences, apart from the exit code."""
    old, new = _by_title(before.grids), _by_title(after.grids)
    grids = [changed_cells(old.pop(title, None), grid) for title, grid in new.items()]
    grids += [changed_cells(grid, None) for grid in old.values()]
    diffs = {"": tuple(_lines(before.lines, after.lines))}
    # A file that only one of the runs has is a change, too.
    for name in {**before.files, **after.files}:
        diffs[name] = _texts(Path(name), before.files.get(name, ""), after.files.get(name, ""))
    return RunChange(
        tuple(grid for grid in grids if grid),
        {name: lines for name, lines in diffs.items() if lines},
        hidden=before.parts != after.parts,
    )


def _by_title(grids: Iterable[Grid]) -> dict[tuple[str, int], Grid]:
    """Return tables by their titles, with a number that distinguishes equal ones."""
    tables_by_title: dict[tuple[str, int], Grid] = {}
    counts: Counter[str] = Counter()
    for grid in grids:
        # Titles may have times in them, too.
        title = _steady(grid.title)
        tables_by_title[title, counts[title]] = grid
        counts[title] += 1
    return tables_by_title


def _texts(path: Path, before: str, after: str) -> tuple[str, ...]:
    """Return the difference of two files; for IR, regardless of the names of values and locations."""
    # One new operation renumbers all values behind it.
    if path.suffix == _MLIR and before and after:
        return normalize_diff.of(before, after, "mlir").lines
    return tuple(_lines(before.splitlines(), after.splitlines()))


def _lines(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield a unified diff without the lines for file names; changed lines are as they were printed."""
    # difflib asks for equality, and prints what it was given: lines that differ in times are equal to it.
    old, new = ([_Line(line) for line in lines] for lines in (before, after))
    delta = difflib.unified_diff(old, new, lineterm="", n=_CONTEXT)
    return (
        _steady(line) if line.startswith(" ") else line for number, line in enumerate(delta) if number > 1
    )


def changed_cells(before: Grid | None, after: Grid | None) -> Grid | None:
    """Return a table of the changed cells, `before → after`; None if nothing has changed."""
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
    shown = [head for head in heads if head in changed]
    own = heads[: shape.keys]
    body = [[*key, *(cells.get(head, "") for head in shown)] for key, cells in rows]
    return tables.plain(shape.title, [*own, *shown], body, right=shown, keys=shape.keys, across=shape.across)


def _rows(grid: Grid | None) -> dict[tuple[str, ...], dict[str, str]]:
    """Return the cells by head for each key of a row; the key ends with a number for equal rows."""
    cells_of: dict[tuple[str, ...], dict[str, str]] = {}
    if grid is None:
        return cells_of
    heads = [column.head.plain for column in grid.columns]
    for row in grid.rows:
        key = tuple(cell.plain for cell in row[: grid.keys])
        # Rows with the same key are told apart by their order.
        number = sum(1 for known in cells_of if known[:-1] == key)
        cells_of[*key, str(number)] = {
            head: cell.plain
            for head, cell in zip(heads[grid.keys :], row[grid.keys :], strict=True)
            if head not in _table()["columns"]
        }
    return cells_of


def _row(
    heads: Sequence[str], old: Mapping[str, str] | None, new: Mapping[str, str] | None
) -> dict[str, str]:
    """Return the changed cells of a row, by their heads; all cells of a row that appeared or vanished."""
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
    """A line that equals another one if only times differ."""

    __slots__ = ("_steady",)

    def __init__(self, text: str) -> None:
        self._steady = _steady(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Line) and self._steady == other._steady

    def __hash__(self) -> int:
        return hash(self._steady)


def _steady(text: str) -> str:
    """Return the text without the parts that differ in each run."""
    return _volatile().sub("…", text)


@cache
def _volatile() -> re.Pattern[str]:
    return re.compile("|".join(_table()["patterns"]))


def _table() -> Mapping[str, list[str]]:
    patterns: Mapping[str, list[str]] = configs.load("watch")["volatile"]
    return patterns


class WatchReport:
    """Prints runs, one after the other."""

    def __init__(self) -> None:
        self._last: WatchedRun | None = None
        self._by_verdict: dict[str, WatchedRun] = {}
        self._files: dict[str, str] = {}

    def part(self, part: str | Grid) -> None:
        """Print a line or a table of the first run as it arrives."""
        if self._last is None:
            _print(part)
            sys.stdout.flush()  # for a reader at the end of a pipe

    def run(self, outcome: WatchedRun, saved: Iterable[Path], seconds: Mapping[str, float]) -> None:
        """Print the end of a run.

        Args:
            outcome: the outcome.
            saved: the files that were saved before it.
            seconds: the duration of each part.
        """
        # Compared with the last run of the same kind: after an error that was corrected, the difference to
        # the last good run is what one wants to see.
        last, alike = self._last, self._by_verdict.get(outcome.verdict)
        self._last, self._by_verdict[outcome.verdict] = outcome, outcome
        # Files are compared with their last text, whichever run wrote it: one that fails writes none.
        known = replace(alike or replace(outcome, files={}), files=self._files)
        self._files = {**self._files, **outcome.files}
        if last is None:
            # A build's lines are not printed as they arrive.
            if outcome.what:
                _print_all(outcome)
            _say(outcome, outcome.verdict, seconds)
            sys.stdout.flush()
            return
        change = compare(known, outcome)
        _say(outcome, _sentence(last, outcome, change, new=alike is None), seconds, saved)
        if alike is None:
            _print_new(last, outcome)
        for grid in change.grids:
            _print(grid)
        for name, lines in change.diffs.items():
            _print_diff(name, lines)
        sys.stdout.flush()


def _sentence(last: WatchedRun, result: WatchedRun, change: RunChange, *, new: bool) -> str:
    """Describe the differences, the result first."""
    same = "unchanged except for times" if change.hidden else "unchanged"
    what = "changed" if change.any else "" if new else same
    if last.verdict == result.verdict:
        ended = result.verdict if result.code == 0 else f"still {result.verdict}"
        return f"{what}, {ended}"
    return ", ".join(filter(None, (f"{last.verdict}{ARROW}{result.verdict}", what)))


def _say(result: WatchedRun, sentence: str, seconds: Mapping[str, float], saved: Iterable[Path] = ()) -> None:
    """Print a line: the time, the saved files, the result, and the durations."""
    names = sorted(path.name for path in saved)
    if len(names) > _NAMED:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} more"]
    took = ", ".join(f"{what} {duration(count)}" for what, count in seconds.items())
    line = Text()
    line.append(f"{datetime.now().astimezone():%H:%M:%S} ", "dim")
    line.append(f"{', '.join(names)}: " if names else "")
    line.append(sentence, "green" if result.code == 0 else "red")
    line.append(f" ({took})", "dim")
    console.out().print(line)


def _print_all(result: WatchedRun) -> None:
    for part in result.parts:
        _print(part)


def _print_new(last: WatchedRun, result: WatchedRun) -> None:
    """Print a run with a new kind of result; of tables that the last run had too, only the changes."""
    known = {grid.title: grid for grid in last.grids}
    for part in result.parts:
        if isinstance(part, Grid) and part.title in known:
            if cells := changed_cells(known[part.title], part):
                _print(cells)
        else:
            _print(part)


def _print(part: str | Grid) -> None:
    if isinstance(part, Grid):
        console.out().print(part)
    else:
        console.write(part)


def _print_diff(name: str, lines: tuple[str, ...]) -> None:
    if name:
        console.out().print(Text(Path(name).name, "bold"))
    console.out().print(console.coloured_diff(lines[:_LONGEST]), end="")
    if len(lines) > _LONGEST:
        more = f"{len(lines) - _LONGEST} more lines of this diff"
        console.note(f"{more}: {name}" if name else more)
