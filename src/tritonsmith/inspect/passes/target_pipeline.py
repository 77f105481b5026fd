"""List a backend's passes and those that a target runs, side by side for several targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from tritonsmith.atlas import pipeline
from tritonsmith.atlas.source_files import Place
from tritonsmith.compiler.replay.bindings import Binding, TracedCall
from tritonsmith.core import untrusted
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Cell, Grid

Step = tuple[str, str]  # stage, pass
_LIMIT = 4 << 20  # bytes of a file


@dataclass(frozen=True)
class BackendPass:
    """A line of a backend that adds a pass.

    Attributes:
        stage: `ttgir`.
        name: of the pass: `tritongpu-pipeline`; of the function if no pass manager shows it.
        made: arguments of each call; empty if this target does not run it.
        place: the line, and the conditions around it.
    """

    stage: str
    name: str
    made: tuple[tuple[Any, ...], ...]
    place: Place

    @property
    def cell(self) -> str:
        """The cell of the table: `yes`, `yes (3, False)`, `3 times`, `no`."""
        if not self.made:
            return "no"
        if len(self.made) > 1:
            return f"{len(self.made)} times"
        values = ", ".join(
            value["class"] if isinstance(value, Mapping) else repr(value) for value in self.made[0]
        )
        return f"yes ({values})" if values else "yes"


def passes(made: Sequence[TracedCall], known: Iterable[Binding]) -> tuple[BackendPass, ...]:
    """Return every pass of the functions that a backend ran, in the order of its stages and lines.

    Args:
        made: the calls for a target, which name files and lines.
        known: bindings of that Triton, for the names of passes that the target does not run.
    """
    names = {binding.path: binding.argument for binding in known}
    result: list[BackendPass] = []
    stages: dict[tuple[str, str], str] = {}  # file and function
    reached: set[tuple[str, int]] = set()
    lines: dict[tuple[str, int], list[TracedCall]] = {}
    for traced in made:
        lines.setdefault(traced.at, []).append(traced)
    calls = [
        call
        for file in dict.fromkeys(traced.at[0] for traced in made)
        for call in pipeline.calls_in(untrusted.read_text(Path(file), _LIMIT), file)
    ]
    for call in calls:
        for traced in lines.get((call.place.file, call.place.line), ()):
            stages.setdefault((call.place.file, call.stage), traced.stage)
    for call in calls:
        at = call.place.file, call.place.line
        stage = stages.get((call.place.file, call.stage))
        if stage is None or at in reached:
            continue
        reached.add(at)
        here = lines.get(at, [])
        path = here[0].call.binding if here else call.name
        arguments = tuple(traced.call.arguments for traced in here)
        result.append(BackendPass(stage, names.get(path) or path, arguments, call.place))
    for at, here in lines.items():  # calls that the source does not spell by name
        if at not in reached:
            arguments = tuple(traced.call.arguments for traced in here)
            path = here[0].call.binding
            result.append(BackendPass(here[0].stage, names.get(path) or path, arguments, Place(*at)))
    order = list(dict.fromkeys(traced.stage for traced in made))
    return tuple(sorted(result, key=lambda row: (order.index(row.stage), row.place.line)))


def side_by_side(columns: Sequence[Sequence[BackendPass]]) -> list[tuple[BackendPass | None, ...]]:
    """Align the same pass of several pipelines in rows; None if a pipeline has no such line."""
    rows: list[tuple[BackendPass | None, ...]] = []
    for number, column in enumerate(columns):
        mine = [_step(entry) for entry in column]
        theirs = [_step(next(entry for entry in row if entry)) for row in rows]
        merged: list[tuple[BackendPass | None, ...]] = []
        for what, a, b, c, d in SequenceMatcher(None, theirs, mine, autojunk=False).get_opcodes():
            if what == "equal":
                merged += [(*row, entry) for row, entry in zip(rows[a:b], column[c:d], strict=True)]
            else:
                merged += [(*row, None) for row in rows[a:b]]
                merged += [(*(None,) * number, entry) for entry in column[c:d]]
        rows = merged
    return rows


def table(rows: Sequence[tuple[BackendPass | None, ...]], sides: Sequence[str]) -> Grid:
    """Return a table of the rows, dim if no side runs them; with line numbers if there is only one file."""
    files = list(dict.fromkeys(_file(entry) for row in rows for entry in row if entry))
    paths = {entry.place.file for row in rows for entry in row if entry}
    cells: list[Sequence[Cell]] = []
    styles = []
    for row in rows:
        there = [entry for entry in row if entry]
        when = list(dict.fromkeys(" and ".join(entry.place.when) for entry in there))
        conditions = when[0] if len(when) == 1 else " | ".join(condition or "always" for condition in when)
        line = [str(there[0].place.line)] if len(paths) == 1 else []
        cells.append(
            [
                there[0].stage,
                there[0].name,
                *(entry.cell if entry else "" for entry in row),
                conditions,
                *line,
            ]
        )
        styles.append("" if any(entry.made for entry in there) else "dim")
    heads = ["stage", "pass", *sides, "when", *(["line"] if len(paths) == 1 else [])]
    title = f"Passes of {', '.join(files)}"
    cut = {"when": 24}
    return tables.plain(title, heads, cells, right=["line"], cut=cut, spare=["line"], keys=2, styles=styles)


def as_json(rows: Sequence[tuple[BackendPass | None, ...]], sides: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows as JSON data."""
    return [
        {
            "stage": next(entry.stage for entry in row if entry),
            "pass": next(entry.name for entry in row if entry),
            "sides": {
                side: entry and {"calls": entry.made, **entry.place.as_json()}
                for side, entry in zip(sides, row, strict=True)
            },
        }
        for row in rows
    ]


def _step(entry: BackendPass) -> Step:
    return entry.stage, entry.name


def _file(entry: BackendPass) -> str:
    """Return the last two parts of a file's path: `nvidia/compiler.py`."""
    return "/".join(Path(entry.place.file).parts[-2:])
