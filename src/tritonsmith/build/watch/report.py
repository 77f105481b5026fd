"""The output of `watch`: all of the first run, and of each later one the differences."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rich.text import Text

from tritonsmith.build.watch import outcome
from tritonsmith.build.watch.outcome import OutcomeChange, RunOutcome
from tritonsmith.core.ui import console, diff
from tritonsmith.core.ui.tables import Grid
from tritonsmith.core.ui.units import duration

_NAMED = 3  # saved files in a line
_LONGEST = 200  # lines of a diff on the screen


class WatchReport:
    """Prints runs, one after the other."""

    def __init__(self) -> None:
        self._last: RunOutcome | None = None
        self._by_verdict: dict[str, RunOutcome] = {}
        self._files: dict[str, str] = {}

    def part(self, part: str | Grid) -> None:
        """Print a line or a table of the first run as it arrives."""
        if self._last is None:
            _print(part)
            sys.stdout.flush()  # for a reader at the end of a pipe

    def run(self, made: RunOutcome, saved: Iterable[Path], seconds: Mapping[str, float]) -> None:
        """Print the end of a run.

        Args:
            made: the outcome.
            saved: the files that were saved before it.
            seconds: the duration of each part.
        """
        last, alike = self._last, self._by_verdict.get(made.verdict)
        self._last, self._by_verdict[made.verdict] = made, made
        known = replace(alike or replace(made, files={}), files=self._files)
        self._files = {**self._files, **made.files}
        if last is None:
            if made.what:  # a build's lines are not printed as they arrive
                _print_all(made)
            _say(made, made.verdict, seconds)
            sys.stdout.flush()
            return
        change = outcome.compare(known, made)
        _say(made, _sentence(last, made, change, new=alike is None), seconds, saved)
        if alike is None:
            _print_new(last, made)
        for grid in change.grids:
            _print(grid)
        for name, lines in change.diffs.items():
            _print_diff(name, lines)
        sys.stdout.flush()


def _sentence(last: RunOutcome, result: RunOutcome, change: OutcomeChange, *, new: bool) -> str:
    """Describe the differences, the result first."""
    same = "unchanged except for times" if change.hidden else "unchanged"
    what = "changed" if change.any else "" if new else same
    if last.verdict == result.verdict:
        ended = result.verdict if result.code == 0 else f"still {result.verdict}"
        return f"{what}, {ended}"
    return ", ".join(filter(None, (f"{last.verdict}{outcome.ARROW}{result.verdict}", what)))


def _say(result: RunOutcome, sentence: str, seconds: Mapping[str, float], saved: Iterable[Path] = ()) -> None:
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


def _print_all(result: RunOutcome) -> None:
    for part in result.parts:
        _print(part)


def _print_new(last: RunOutcome, result: RunOutcome) -> None:
    """Print a run with a new kind of result; of tables that the last run had too, only the changes."""
    known = {grid.title: grid for grid in last.grids}
    for part in result.parts:
        if isinstance(part, Grid) and part.title in known:
            if cells := outcome.changed_cells(known[part.title], part):
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
    console.out().print(diff.coloured(lines[:_LONGEST]), end="")
    if len(lines) > _LONGEST:
        more = f"{len(lines) - _LONGEST} more lines of this diff"
        console.note(f"{more}: {name}" if name else more)
