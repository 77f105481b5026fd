"""The passes that a backend has, and which of them a target takes: side by side for several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from tritonsmith.atlas import pipeline
from tritonsmith.atlas.place import Place
from tritonsmith.compiler.replay.bindings import Binding
from tritonsmith.compiler.replay.introspect import TracedCall
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
        made: values of the arguments, each time that it was called; empty if this target does not take it.
        place: the line, and the conditions around it.
    """

    stage: str
    name: str
    made: tuple[tuple[Any, ...], ...]
    place: Place

    @property
    def cell(self) -> str:
        """`yes`, `yes (3, False)`, `3 times`, `no`."""
        if not self.made:
            return "no"
        if len(self.made) > 1:
            return f"{len(self.made)} times"
        values = ", ".join(one["class"] if isinstance(one, Mapping) else repr(one) for one in self.made[0])
        return f"yes ({values})" if values else "yes"


def passes(made: Sequence[TracedCall], known: Iterable[Binding]) -> tuple[BackendPass, ...]:
    """Every pass of the functions that a backend went through, in the order of its stages and lines.

    Args:
        made: the calls for a target, which name files and lines.
        known: bindings of that Triton, for the names of passes that the target does not take.
    """
    names = {one.path: one.argument for one in known}
    found: list[BackendPass] = []
    stages: dict[tuple[str, str], str] = {}  # file and function
    seen: set[tuple[str, int]] = set()
    lines: dict[tuple[str, int], list[TracedCall]] = {}
    for one in made:
        lines.setdefault(one.at, []).append(one)
    every = [
        call
        for file in dict.fromkeys(one.at[0] for one in made)
        for call in pipeline.calls_in(untrusted.read_text(Path(file), _LIMIT), file)
    ]
    for call in every:
        for one in lines.get((call.place.file, call.place.line), ()):
            stages.setdefault((call.place.file, call.stage), one.stage)
    for call in every:
        at = call.place.file, call.place.line
        stage = stages.get((call.place.file, call.stage))
        if stage is None or at in seen:
            continue
        seen.add(at)
        here = lines.get(at, [])
        path = here[0].call.binding if here else call.name
        arguments = tuple(one.call.arguments for one in here)
        found.append(BackendPass(stage, names.get(path) or path, arguments, call.place))
    for at, here in lines.items():  # what is called otherwise than by its name
        if at not in seen:
            arguments = tuple(one.call.arguments for one in here)
            path = here[0].call.binding
            found.append(BackendPass(here[0].stage, names.get(path) or path, arguments, Place(*at)))
    order = list(dict.fromkeys(one.stage for one in made))
    return tuple(sorted(found, key=lambda one: (order.index(one.stage), one.place.line)))


def side_by_side(columns: Sequence[Sequence[BackendPass]]) -> list[tuple[BackendPass | None, ...]]:
    """Rows of the same pass in several pipelines; None where one of them has no such line."""
    rows: list[tuple[BackendPass | None, ...]] = []
    for number, column in enumerate(columns):
        mine = [_step(one) for one in column]
        theirs = [_step(next(one for one in row if one)) for row in rows]
        merged: list[tuple[BackendPass | None, ...]] = []
        for what, a, b, c, d in SequenceMatcher(None, theirs, mine, autojunk=False).get_opcodes():
            if what == "equal":
                merged += [(*row, one) for row, one in zip(rows[a:b], column[c:d], strict=True)]
            else:
                merged += [(*row, None) for row in rows[a:b]]
                merged += [(*(None,) * number, one) for one in column[c:d]]
        rows = merged
    return rows


def table(rows: Sequence[tuple[BackendPass | None, ...]], sides: Sequence[str]) -> Grid:
    """The rows, those dim that no side takes; with lines if there is one file."""
    files = list(dict.fromkeys(_file(one) for row in rows for one in row if one))
    paths = {one.place.file for row in rows for one in row if one}
    cells: list[Sequence[Cell]] = []
    styles = []
    for row in rows:
        there = [one for one in row if one]
        when = list(dict.fromkeys(" and ".join(one.place.when) for one in there))
        said = when[0] if len(when) == 1 else " | ".join(one or "always" for one in when)
        line = [str(there[0].place.line)] if len(paths) == 1 else []
        cells.append([there[0].stage, there[0].name, *(one.cell if one else "" for one in row), said, *line])
        styles.append("" if any(one.made for one in there) else "dim")
    heads = ["stage", "pass", *sides, "when", *(["line"] if len(paths) == 1 else [])]
    title = f"Passes of {', '.join(files)}"
    cut = {"when": 24}
    return tables.plain(title, heads, cells, right=["line"], cut=cut, spare=["line"], keys=2, styles=styles)


def as_json(rows: Sequence[tuple[BackendPass | None, ...]], sides: Sequence[str]) -> list[dict[str, Any]]:
    """The rows for programs."""
    return [
        {
            "stage": next(one.stage for one in row if one),
            "pass": next(one.name for one in row if one),
            "sides": {
                side: one and {"calls": one.made, **one.place.as_json()}
                for side, one in zip(sides, row, strict=True)
            },
        }
        for row in rows
    ]


def _step(one: BackendPass) -> Step:
    return one.stage, one.name


def _file(one: BackendPass) -> str:
    """`nvidia/compiler.py`."""
    return "/".join(Path(one.place.file).parts[-2:])
