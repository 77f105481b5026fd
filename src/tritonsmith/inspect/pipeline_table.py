"""List the passes of a dump with what each changed, or a backend's passes for a target: `passes.list`."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any

from tritonsmith.atlas import pipeline
from tritonsmith.atlas.source_files import Place
from tritonsmith.compiler.dump import pass_runs
from tritonsmith.compiler.dump.index import KEPT, Dump, DumpedKernel, DumpIndex
from tritonsmith.compiler.replay.bindings import Binding, TracedCall
from tritonsmith.core import untrusted
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import files
from tritonsmith.core.text import byte_size, duration
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Cell, Grid
from tritonsmith.ir import ir_text
from tritonsmith.ir.normalize import diff

Step = tuple[str, str]  # stage, pass
_LIMIT = 4 << 20  # bytes of a file


@dataclass(frozen=True)
class BackendPass:
    """A line of a backend that adds a pass.

    Attributes:
        stage: the stage: `ttgir`.
        name: the pass's name: `tritongpu-pipeline`; the function's if no pass manager shows it.
        calls: the arguments of each call; empty if this target does not run it.
        place: the line, and the conditions around it.
    """

    stage: str
    name: str
    calls: tuple[tuple[Any, ...], ...]
    place: Place

    @property
    def cell(self) -> str:
        """The cell of the table: `yes`, `yes (3, False)`, `3 times`, `no`."""
        if not self.calls:
            return "no"
        if len(self.calls) > 1:
            return f"{len(self.calls)} times"
        # An object has no text in JSON: its class stands for it.
        values = ", ".join(
            value["class"] if isinstance(value, Mapping) else repr(value) for value in self.calls[0]
        )
        return f"yes ({values})" if values else "yes"


def target_passes(trace: Sequence[TracedCall], known: Iterable[Binding]) -> tuple[BackendPass, ...]:
    """Return every pass of the functions that a backend ran, in the order of its stages and lines.

    Args:
        trace: the calls for a target, with their files and lines.
        known: the bindings of that Triton, for the names of passes that the target does not run.
    """
    # The trace has what ran, the source what could have run: only both together show that another
    # target would run a pass, and under which condition.
    names = {binding.path: binding.argument for binding in known}
    result: list[BackendPass] = []
    stages: dict[tuple[str, str], str] = {}  # file and function
    reached: set[tuple[str, int]] = set()
    lines: dict[tuple[str, int], list[TracedCall]] = {}
    for traced in trace:
        lines.setdefault(traced.at, []).append(traced)
    calls = [
        call
        for file in dict.fromkeys(traced.at[0] for traced in trace)
        for call in pipeline.calls_in(untrusted.read_text(Path(file), _LIMIT), file)
    ]
    for call in calls:
        for traced in lines.get((call.place.file, call.place.line), ()):
            stages.setdefault((call.place.file, call.stage), traced.stage)
    for call in calls:
        at = call.place.file, call.place.line
        # A call that did not run has no stage of its own. It belongs to that of its function, which any call
        # that ran there tells; a function without one is not part of this target's pipeline.
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
    order = list(dict.fromkeys(traced.stage for traced in trace))
    return tuple(sorted(result, key=lambda row: (order.index(row.stage), row.place.line)))


def side_by_side(columns: Sequence[Sequence[BackendPass]]) -> list[tuple[BackendPass | None, ...]]:
    """Align the same pass of several pipelines in rows; None if a pipeline has no such line."""
    rows: list[tuple[BackendPass | None, ...]] = []
    for number, column in enumerate(columns):
        # Each pipeline is aligned with the rows so far, not with the first pipeline: a pass that only the
        # second and the third have is one row. With `autojunk`, difflib ignores what occurs often in a
        # list of 200 and more, as `canonicalize` and `cse` do.
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


def target_table(rows: Sequence[tuple[BackendPass | None, ...]], sides: Sequence[str]) -> Grid:
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
        styles.append("" if any(entry.calls for entry in there) else "dim")
    heads = ["stage", "pass", *sides, "when", *(["line"] if len(paths) == 1 else [])]
    title = f"Passes of {', '.join(files)}"
    cut = {"when": 24}
    return tables.plain(title, heads, cells, right=["line"], cut=cut, spare=["line"], keys=2, styles=styles)


def target_as_json(
    rows: Sequence[tuple[BackendPass | None, ...]], sides: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the rows as JSON data."""
    return [
        {
            "stage": next(entry.stage for entry in row if entry),
            "pass": next(entry.name for entry in row if entry),
            "sides": {
                side: entry and {"calls": entry.calls, **entry.place.as_json()}
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


SCHEMA = 1

# What renumbering changes: names of values, blocks, metadata and aliases of layouts.
_NAMES = re.compile(rb"%[-\w$.]+(?::\d+|#\d+)?|\^\w+|![0-9]+|#[a-z_]*\d+(?![\w.])|#[a-z_]+(?![\w.<])")
NO_LINES = "\u00b10"  # the pass moved lines or changed operands: no line was added or removed
_SHOWN = 4  # kinds of operations in a cell
_SYMBOL = 24  # characters of another function's name
_LEAST = {"name": 28, "operations": 20, "what it does": 20}  # characters, of columns that can be cut
# "what it does" is dropped last, because the user requested it.
_FIRST_TO_GO = ("size", "stage", "time", "operations", "what it does")


@dataclass(frozen=True)
class PipelineRow:
    """The changes by one pass.

    Attributes:
        added: the number of added lines, value names and locations aside; moved lines do not count.
        removed: the number of removed lines.
        operations: kind to the change of its number; negative if there are fewer.
    """

    added: int
    removed: int
    operations: Mapping[str, int]


def pass_changes(index: DumpIndex, kernel: str) -> tuple[PipelineRow | None, ...]:
    """Return a row for each dump of a kernel, in order; None if nothing shows the changes of its pass."""
    # Counting reads every text of the dump, so the counts are kept in its folder if that is writable.
    key = index.digest
    path = index.folder / KEPT
    kept = _kept_rows(path, key)
    rows = kept.get(kernel)
    if rows is None or len(rows) != len(index.of(kernel)):
        rows = kept[kernel] = tuple(_counted(index, kernel))
        kernels = {name: [row and vars(row) for row in counts] for name, counts in kept.items()}
        with contextlib.suppress(OSError):
            files.write_atomically(path, json.dumps({"schema": SCHEMA, "index": key, "kernels": kernels}))
    return rows


def _kept_rows(path: Path, key: str) -> dict[str, tuple[PipelineRow | None, ...]]:
    """Return the rows of each kernel that were counted before; empty if the file does not fit this index."""
    try:
        content = untrusted.read_json(path, untrusted.OURS)
        if content["schema"] != SCHEMA or content["index"] != key:
            return {}
        return {
            name: tuple(None if row is None else untrusted.shaped(PipelineRow, row) for row in rows)
            for name, rows in content["kernels"].items()
        }
    # The file is in the dump, so whoever wrote that may have written this, too: the rows are counted again.
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _counted(index: DumpIndex, kernel: str) -> Iterator[PipelineRow | None]:
    texts = {dump.sha256: dump for dump in reversed(index.dumps)}

    # The output of one pass is the input of the next, or of one after a pass inside it; more texts than
    # that would fill the memory.
    @lru_cache(4)
    def counted(sha256: str) -> tuple[Counter[bytes], Counter[str]]:
        """Count the lines and operations of a text."""
        dump = texts[sha256]
        raw = index.content(dump)
        plain = _NAMES.sub(b"%", ir_text.without_locations(dump.kind, raw))
        operations = diff.operations(raw.decode(errors="replace"), dump.language)
        return Counter(plain.split(b"\n")), operations

    for dump in index.of(kernel):
        if dump.against is None or dump.changed is None:
            yield None
        elif not dump.changed:
            yield PipelineRow(0, 0, {})
        else:
            other = index.dumps[dump.against]
            old, new = (dump, other) if dump.when == "before" else (other, dump)
            (old_lines, old_operations), (lines, operations) = counted(old.sha256), counted(new.sha256)
            added, removed = (lines - old_lines).total(), (old_lines - lines).total()
            # The union of names is a set, whose order differs from run to run: hence the sort below.
            more = {name: operations[name] - old_operations[name] for name in {*operations, *old_operations}}
            yield PipelineRow(added, removed, {name: more[name] for name in sorted(more) if more[name]})


def table(
    index: DumpIndex,
    kernel: DumpedKernel,
    counted: Sequence[PipelineRow | None],
    summaries: Mapping[str, str] | None = None,
    *,
    changed: bool = False,
) -> Grid:
    """Return the pipeline, one row per pass; passes that changed nothing are dim.

    Args:
        index: the index of the folder.
        kernel: a kernel of it.
        counted: the result of `pass_changes`.
        summaries: the description of each pass, by its name on a command line; None for no such column.
        changed: leave out passes that changed nothing.
    """
    columns = ["pass", "stage", "name", "lines", "operations", "size", "time"]
    columns += ["what it does"] if summaries is not None else []
    shown = _shown(index, kernel, counted)
    chosen = [(dump, row) for dump, row in shown if not changed or dump.changed is not False]
    cells = []
    for dump, row in chosen:
        lines = changed_lines(dump, row)
        size = byte_size(dump.size) + ("" if dump.whole else " cut")
        name, more, took = pass_name(kernel, dump), changed_operations(row), pass_time(dump)
        line = [str(dump.number), dump.stage, name, lines, more, size, took]
        cells.append([*line, summaries.get(dump.argument, "")] if summaries is not None else line)
    styles = [row_style(kernel, dump) for dump, _ in chosen]
    return tables.plain(
        _title(index, kernel),
        columns,
        cells,
        right=["pass", "lines", "size", "time"],
        cut=_LEAST,
        spare=_FIRST_TO_GO,
        styles=styles,
    )


def pass_name(kernel: DumpedKernel, dump: Dump) -> str:
    """Return the name of a pass, with the function that it ran on if that is not the kernel itself."""
    other = dump.symbol if dump.symbol != kernel.function else ""
    return dump.label + (f" @{tables.clipped(other, _SYMBOL)}" if other else "")


def row_style(kernel: DumpedKernel, dump: Dump) -> str:
    """Return the style of a pass's row: dim if it changed nothing, red if it failed."""
    if dump.changed is False:
        return "dim"
    return "red" if kernel.failed and dump.name == kernel.failed else ""


def _shown(
    index: DumpIndex, kernel: DumpedKernel, counted: Sequence[PipelineRow | None]
) -> Iterator[tuple[Dump, PipelineRow | None]]:
    """Yield one row per pass, and one per dump of no pass."""
    by_number = dict(zip((dump.number for dump in index.of(kernel.name)), counted, strict=True))
    for run in pass_runs.of(index, kernel.name):
        yield run.dump, by_number[run.dump.number]


def _title(index: DumpIndex, kernel: DumpedKernel) -> str:
    """Return the title of a kernel's passes: the kernel and how it was compiled, a line end, the counts."""
    by = f" by Triton {index.triton}" if index.triton else ""
    target = f" for {kernel.target}" if kernel.target else ""
    return f"{kernel.name}{target}{by}\n{pass_runs.totals(index, kernel.name)}"


def changed_lines(dump: Dump, row: PipelineRow | None) -> str:
    """Return the cell of added and removed lines: `+11 -277`; empty if the pass changed nothing."""
    if row is None or not dump.changed:
        return ""
    return f"+{row.added} -{row.removed}" if row.added or row.removed else NO_LINES


def changed_operations(row: PipelineRow | None) -> str:
    """Return the cell of operations whose number changed, the largest change first."""
    if row is None:
        return ""
    largest = sorted(row.operations.items(), key=lambda item: (-abs(item[1]), item[0]))
    words = [f"{more:+d} {name}" for name, more in largest[:_SHOWN]]
    return ", ".join(words + ([f"{len(largest) - _SHOWN} more"] if len(largest) > _SHOWN else []))


def pass_time(dump: Dump) -> str:
    """Return the cell of the time that a pass took; empty if it was not measured."""
    if dump.seconds is None:
        return ""
    return f"{dump.seconds * 1e3:.1f} ms" if dump.seconds < 1 else duration(dump.seconds)


def as_json(
    index: DumpIndex, kernel: DumpedKernel, counted: Sequence[PipelineRow | None], *, changed: bool = False
) -> dict[str, Any]:
    """Return the pipeline as JSON data; `changed` leaves out passes that changed nothing."""
    passes = [
        {**dump.as_json(), **(vars(row) if row else {"added": None, "removed": None, "operations": None})}
        for dump, row in _shown(index, kernel, counted)
        if not changed or dump.changed is not False
    ]
    return {
        "schema": 1,
        "folder": str(index.folder),
        "kernel": vars(kernel),
        "triton": index.triton,
        "totals": vars(pass_runs.totals(index, kernel.name)),
        "passes": passes,
    }


# Passes.td is read as text: where a dump is read there may be no llvm-tblgen, and no built LLVM.
_PASS = re.compile(
    r"\bdef\s+\w+\s*:\s*(?:Interface)?Pass<\s*\"([^\"]+)\"[^{;]*\{(.*?)(?=\ndef\s|\Z)", re.DOTALL
)
_SUMMARY = re.compile(r"let\s+summary\s*=\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+|\[\{.*?\}\])\s*;", re.DOTALL)
_SKIPPED = {".git", "build", "node_modules", "test", "tests", "unittests"}


def read_summaries(checkouts: Sequence[Path]) -> dict[str, str]:
    """Return one line on each pass, by its name on a command line, from the tablegen of checkouts."""
    summaries: dict[str, str] = {}
    for checkout in checkouts:
        for folder, folders, names in os.walk(checkout):
            # A build folder has copies of the same file, and tests define passes that are in no pipeline.
            # Sorted, as the first summary of a name counts.
            folders[:] = sorted(set(folders) - _SKIPPED)
            for name in names:
                if name.endswith("Passes.td"):
                    try:
                        text = untrusted.read_text(Path(folder) / name)
                    except OSError:
                        continue  # a summary less
                    for argument, body in _PASS.findall(text):
                        if match := _SUMMARY.search(body):
                            summaries.setdefault(argument, _line(match[1]))
    return summaries


def _line(text: str) -> str:
    if text.startswith("[{"):
        return " ".join(text[2:-2].split())
    return " ".join("".join(re.findall(r"\"((?:[^\"\\]|\\.)*)\"", text)).split())


def requested_summaries(checkouts: Sequence[str] | None, *, requested: bool) -> dict[str, str] | None:
    """Return the summaries that `--summary` and `--source` request; None if they request none.

    Raises:
        UsageError: one flag without the other, or a folder that does not exist.
    """
    if not checkouts:
        if requested:
            hints = ["give Triton's or LLVM's checkout: --source PATH"]
            raise UsageError("--summary reads the summaries from a checkout", hints=hints)
        return None
    folders = [Path(text).expanduser() for text in checkouts]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError("no such checkout", where=folder)
    return read_summaries(folders)
