"""Show a dump, follow a text through the passes, and compare: `passes.show`, `passes.diff`.

`DumpView` has all of it for one kernel, as the viewer in the terminal shows it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from rich.text import Text

from tritonsmith.compiler.dump import binaries, pass_runs
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.compiler.dump.pass_runs import PassRun
from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.redact import printable
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.inspect import pipeline_table, show
from tritonsmith.inspect.pipeline_table import PipelineRow
from tritonsmith.inspect.show import SourceLine
from tritonsmith.ir import ir_text, normalize
from tritonsmith.ir.normalize import diff

_LANGUAGES = {"mlir": "ttgir", "ll": "llir", "ptx": "ptx", "amdgcn": "amdgcn"}  # as kernel.show calls them


def dump_text(index: DumpIndex, dump: Dump, *, plain: bool = False) -> str:
    """Return the IR of a dump; `plain` renumbers values and removes locations."""
    content = index.text(dump)
    return normalize.text(content, dump.language) if plain else content


def as_json(index: DumpIndex, dump: Dump, *, plain: bool = False) -> dict[str, object]:
    """Return the same text as JSON data, with what it is of."""
    about = {"kernel": dump.kernel, "number": dump.number, "pass": dump.name, "path": str(index.path(dump))}
    return {"schema": 1, **about, "text": dump_text(index, dump, plain=plain)}


def highlighted(index: DumpIndex, dump: Dump, *, plain: bool = False) -> Text:
    """Return the same text with colours."""
    content = dump_text(index, dump, plain=plain)
    language = _LANGUAGES.get(dump.kind)
    return show.highlighted(content, language) if language else Text(content)


_NAME_WIDTH = 28  # characters of a pass's name, at least


@dataclass(frozen=True)
class Event:
    """A pass that changed the number of occurrences of the text.

    Attributes:
        dump: the dump of that pass.
        before: the number of occurrences before it.
        after: the number of occurrences after it.
    """

    dump: Dump
    before: int
    after: int

    @property
    def what(self) -> str:
        """The kind of change: `born`, `multiplied`, `fewer`, `died`."""
        if not self.before:
            return "born"
        if not self.after:
            return "died"
        return "multiplied" if self.after > self.before else "fewer"


@dataclass(frozen=True)
class TextHistory:
    """The occurrences of a text.

    Attributes:
        first: the number of occurrences in the first dump.
        last: their number at the end: after the last event, or in the last dump if there is none.
        dumps: the number of dumps with the text.
        of: the number of all dumps.
        events: the events, in the order of the passes.
    """

    first: int
    last: int
    dumps: int
    of: int
    events: tuple[Event, ...]


def find_text(index: DumpIndex, kernel: str, text: str, *, regex: bool = False) -> TextHistory:
    """Follow a text through the passes of a kernel; locations are not searched.

    `^` and `$` of a regular expression match at lines.

    Raises:
        UsageError: the text is empty, or the regular expression is not valid.
    """
    counts = count_text(index, kernel, text, regex=regex)
    mine = index.of(kernel)
    events = tuple(_events(index, mine, counts))
    here = [counts[dump.sha256] for dump in mine]
    ends = events[-1].after if events else here[-1]
    return TextHistory(here[0], ends, sum(map(bool, here)), pass_runs.totals(index, kernel).dumps, events)


def count_text(index: DumpIndex, kernel: str, text: str, *, regex: bool = False) -> dict[str, int]:
    """Return the occurrences of a text in the dumps of a kernel, by their checksums: see `find_text`.

    Raises:
        UsageError: the text is empty, or the regular expression is not valid.
    """
    if not text:
        raise UsageError("the text is empty", hints=["give a text to search for: convert_layout"])
    try:
        pattern = re.compile(text if regex else re.escape(text), re.MULTILINE)
        # Dumps are searched as bytes: to decode them all would take longer than the search.
        sought = re.compile(pattern.pattern.encode(), re.MULTILINE)
    except re.error as error:
        raise UsageError(f"{text!r} is not a valid regular expression", why=str(error)) from error
    counts: dict[str, int] = {}
    # Most passes change nothing, so many dumps are one text: each is searched once. Locations are left
    # out, since the kernel's name or file would be found in every line.
    for dump in index.of(kernel):
        if dump.sha256 not in counts:
            raw = ir_text.without_locations(dump.kind, index.content(dump))
            counts[dump.sha256] = len(sought.findall(raw)) if regex else raw.count(text.encode())
    return counts


def _events(index: DumpIndex, dumps: tuple[Dump, ...], counts: dict[str, int]) -> Iterator[Event]:
    last: Dump | None = None
    for dump in dumps:
        before = after = counts[dump.sha256]
        if dump.against is not None:
            there = counts[index.dumps[dump.against].sha256]
            before, after = (before, there) if dump.when == "before" else (there, before)
        elif dump.when != "before" and last is not None and last.kind != dump.kind:
            before = counts[last.sha256]  # another language: the translation to it counts as a pass
        if before != after:
            yield Event(dump, before, after)
        last = dump


def events_table(history: TextHistory, text: str) -> Grid:
    """Return a table with one row per event."""
    lines = []
    for event in history.events:
        dump, counts = event.dump, (str(event.before), str(event.after))
        lines.append([str(dump.number), dump.stage, dump.label, *counts, event.what])
    title = f"{text}: {history.first} in the first dump, present in {history.dumps} of {history.of} dumps"
    heads = ["pass", "stage", "name", "before", "after", ""]
    return tables.plain(title, heads, lines, right=["pass", "before", "after"], cut={"name": _NAME_WIDTH})


def events_as_json(history: TextHistory) -> dict[str, Any]:
    """Return the history as JSON data."""
    events = [
        {
            "number": event.dump.number,
            "stage": event.dump.stage,
            "name": event.dump.name,
            "argument": event.dump.argument,
            "before": event.before,
            "after": event.after,
            "what": event.what,
        }
        for event in history.events
    ]
    return {"schema": 1, **vars(history), "events": events}


_ALIAS = re.compile(r"^(#[A-Za-z_][\w$]*(?:\.\d+)?) = (.+)$", re.MULTILINE)
_USE = re.compile(r"#[A-Za-z_][\w$]*(?:\.\d+)?")


@dataclass(frozen=True)
class IrChange:
    """A count of an operation, or of a layout by its definition, on either side."""

    what: str
    before: int
    after: int


@dataclass(frozen=True)
class Divergence:
    """The place where two runs of the pipelines diverge.

    Attributes:
        same: the number of passes with equal results in both.
        mine: the first run's pass at which they diverge; None if it has no more passes.
        theirs: the second run's.
        already: they differ before their first pass: the kernels are not the same.
    """

    same: int
    mine: Dump | None
    theirs: Dump | None
    already: bool = False


@dataclass(frozen=True)
class ComparedRun:
    """One run of the pipelines: a kernel of a dump."""

    index: DumpIndex
    kernel: DumpedKernel

    @property
    def dumps(self) -> tuple[Dump, ...]:
        """The dumps of the run, in order."""
        return self.index.of(self.kernel.name)

    def normal(self, dump: Dump, other: ComparedRun) -> str:
        """Return the normal form of a dump; without the target's name if the other run has another target."""
        ir = self.index.text(dump)
        # Every module names its target in an attribute, which alone would make the very first dumps differ.
        if self.kernel.target and self.kernel.target != other.kernel.target:
            ir = ir.replace(f'"{self.kernel.target}"', '"..."')
        return normalize.text(ir, language(dump))


def language(dump: Dump) -> str:
    """Return the language of a dump for `ir.normalize`: `mlir`, `llvm`, `ptx`, `amdgcn`."""
    return "llvm" if dump.kind == "mir" else dump.language


def after_pass(index: DumpIndex, dump: Dump) -> Dump:
    """Return the IR after a pass.

    Raises:
        FactError: it was not printed.
    """
    return before_and_after(index, dump)[1] if dump.when == "before" else dump


def before_and_after(index: DumpIndex, dump: Dump) -> tuple[Dump, Dump]:
    """Return the IR before a pass, and after it.

    Raises:
        FactError: one of them was not printed.
    """
    if dump.against is None and dump.when == "after":
        hints = ["invoke passes.show prints the IR after the pass"]
        raise FactError(f"the input of {dump.name} is not in this dump", where=index.path(dump), hints=hints)
    if dump.against is None:
        why = "the pass failed" if dump.when == "failed" else "nothing was printed after it"
        raise FactError(f"the output of {dump.name} is not in this dump", where=index.path(dump), why=why)
    other = index.dumps[dump.against]
    return (dump, other) if dump.when == "before" else (other, dump)


def operations(before: str, after: str, language: str) -> tuple[IrChange, ...]:
    """Return the operations whose number changed, the largest change first."""
    return _changes(diff.operations(before, language), diff.operations(after, language))


def layouts(before: str, after: str) -> tuple[IrChange, ...]:
    """Return the MLIR layouts whose number of uses changed, by definition instead of alias."""
    return _changes(_layouts(before), _layouts(after))


def divergence(run: ComparedRun, other: ComparedRun, *, lasting: bool = False) -> Divergence:
    """Return the first pass at which two runs diverge.

    Passes are paired by name. A pass that only one run has counts as a divergence if it changed something.
    The name of the target does not count. LLVM's passes and the assembly count if both runs printed them.

    Args:
        run: a run.
        other: another run.
        lasting: return the first pass after the last one with equal results in both instead: earlier
            divergences make no difference in the end.
    """
    first_divergence, same = None, 0
    for passes, step in _steps(run, other, lasting=lasting):
        first_divergence, same = (first_divergence or step, same) if step else (None, passes)
        if first_divergence and not lasting:
            break
    return first_divergence or Divergence(same, None, None)


def _steps(run: ComparedRun, other: ComparedRun, *, lasting: bool) -> Iterator[tuple[int, Divergence | None]]:
    """Yield the number of common passes so far and a divergence: before the first pass, and after each."""
    # A pass whose result neither run shows counts as equal; with `lasting`, it is skipped.
    # LLVM's passes and the assembly are printed only if a variable asks for them. A run without them was
    # watched less; it did not compile in another way.
    kinds = {dump.kind for dump in run.dumps} & {dump.kind for dump in other.dumps}
    mine, yours = _passes(run.dumps, kinds), _passes(other.dumps, kinds)
    # By name and not by place: releases add, move and drop passes, and one more pass near the top would make
    # all pairs after it wrong.
    pairs = diff.pairs([dump.label for dump in mine], [dump.label for dump in yours])
    first = (mine[pairs[0][0]], yours[pairs[0][1]]) if pairs else None
    apart = first and first[0].when == "before" and _differ(run, first[0], other, first[1])
    yield 0, Divergence(0, *first, already=True) if first and apart else None
    at, there = 0, 0
    for same, (here, over) in enumerate([*pairs, (len(mine), len(yours))]):
        # A pass of one run alone that changed nothing is no divergence; many of a new release's passes have
        # nothing to do.
        alone = next((dump for dump in mine[at:here] if dump.changed), None)
        foreign = next((dump for dump in yours[there:over] if dump.changed), None)
        if alone or foreign:
            yield same, Divergence(same, alone, foreign)
        if here < len(mine) and (not lasting or shows(mine[here]) or shows(yours[over])):
            differ = _results_differ(run, mine[here], other, yours[over])
            yield same + 1, Divergence(same, mine[here], yours[over]) if differ else None
        at, there = here + 1, over + 1


def describe(difference: Divergence) -> str:
    """Describe a divergence in words."""
    if difference.already:
        return "the two differ before their first common pass"
    if difference.mine is None and difference.theirs is None:
        return f"no difference: {difference.same} passes have equal results in both"
    after = f"{difference.same} passes have equal results in both"
    if difference.mine and difference.theirs and difference.mine.label == difference.theirs.label:
        at = f"{difference.mine.label} ({difference.mine.number} here, {difference.theirs.number} there)"
        ended = [
            where
            for dump, where in ((difference.mine, "here"), (difference.theirs, "there"))
            if not shows(dump)
        ]
        end = f": its output was not printed {ended[0]}" if ended else ":"
        return f"{after}; the first difference is at {at}{end}"
    alone = [
        f"{dump.label} ({dump.number}) changes the IR only {where}"
        for dump, where in ((difference.mine, "here"), (difference.theirs, "there"))
        if dump
    ]
    return f"{after}; then {' and '.join(alone)}"


def _passes(dumps: Sequence[Dump], kinds: Collection[str]) -> list[Dump]:
    """Return one dump per pass."""
    # A pass inside another is a part of it, and a text that the log cut off compares with nothing.
    shown = (dump for dump in dumps if dump.when != "failed" and not dump.inside and dump.whole)
    return [dump for dump in shown if dump.kind in kinds]


def shows(dump: Dump) -> bool:
    """Report whether the result of a dump's pass is known."""
    return dump.when == "after" or dump.against is not None


def _results_differ(run: ComparedRun, mine: Dump, other: ComparedRun, yours: Dump) -> bool:
    """Report whether the results of two passes differ."""
    # A result that only one of the two runs shows is a difference: in the other, the pass failed.
    if not shows(mine) or not shows(yours):
        return shows(mine) != shows(yours)
    return _differ(run, after_pass(run.index, mine), other, after_pass(other.index, yours))


def _differ(run: ComparedRun, mine: Dump, other: ComparedRun, yours: Dump) -> bool:
    if mine.sha256 == yours.sha256:  # spares the normal forms, which are costly
        return False
    return run.normal(mine, other) != other.normal(yours, run)


def _changes(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[IrChange, ...]:
    # Ties are sorted by name, so that two runs print the same table.
    names = dict.fromkeys([*before, *after])
    changes = [IrChange(name, before.get(name, 0), after.get(name, 0)) for name in names]
    changed = [change for change in changes if change.before != change.after]
    return tuple(sorted(changed, key=lambda change: (-abs(change.after - change.before), change.what)))


def _layouts(ir: str) -> Counter[str]:
    """Count the uses of each layout, by definition."""
    # MLIR numbers aliases anew after each pass: #blocked1 may be another layout than before.
    meaning = layout_definitions(ir)
    body = _ALIAS.sub("", ir)
    return Counter(meaning[name] for name in _USE.findall(body) if name in meaning)


def layout_definitions(ir: str) -> dict[str, str]:
    """Return alias and definition of each layout; aliases inside definitions are expanded."""
    bodies = {match[1]: match[2].strip() for match in _ALIAS.finditer(ir) if not match[2].startswith("loc(")}
    known: dict[str, str] = {}
    for name, body in bodies.items():  # MLIR defines an alias before it uses it
        known[name] = _USE.sub(lambda match: known.get(match[0], match[0]), body)
    return known


_SUBSTANTIAL = 0.1  # of the lines of its input: the page opens at the first pass that changed as many, too
_TAB = 8
_NAMES = {"ptx": "PTX", "amdgcn": "AMDGCN", "sass": "SASS", "gcnasm": "GCN"}
_STAGES = {"mlir": "ttir", "llvm": "llir", "ptx": "ptx", "amdgcn": "amdgcn"}  # as `show.origins` calls them

View = Literal["diff", "after", "before"]
_TITLES: dict[View, str] = {"diff": "diff", "after": "the output", "before": "the input"}


@dataclass(frozen=True)
class ViewRow:
    """A row of the list.

    Attributes:
        stage: the stage; `compiled` for a text of the compiled kernel.
        name: the name of the pass or the text.
        run: the pass run; None for a text of the compiled kernel.
        file: the file of a text of the compiled kernel, relative to the dump's folder.
        kind: its stage: `sass`, `ptx`.
    """

    stage: str
    name: str
    run: PassRun | None = None
    file: str = ""
    kind: str = ""

    @property
    def unchanged(self) -> bool:
        """True if it is known that the pass changed nothing."""
        return self.run is not None and self.run.dump.changed is False

    @property
    def changed(self) -> bool:
        """True if the pass changed something, or may have."""
        return self.run is not None and not self.unchanged


@dataclass(frozen=True)
class ViewText:
    """A text to show.

    Attributes:
        about: a description: a diff, the input ...; or the reason why there is no diff.
        lines: the lines, as a terminal may show them.
        is_diff: the lines are those of a unified diff.
    """

    about: str
    lines: Sequence[str]
    is_diff: bool = False


@dataclass
class DumpView:
    """The model of the viewer: one kernel of a dump.

    Attributes:
        index: the index of the dump.
        kernel: the kernel.
        rows: its passes, as `passes.list` has them, and the texts of the compiled kernel.
        counted: the changed lines and operations of each dump, by its number; empty until `count`.
    """

    index: DumpIndex
    kernel: DumpedKernel
    rows: Sequence[ViewRow] = ()
    counted: dict[int, PipelineRow | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name, runs = pipeline_table.pass_name, pass_runs.of(self.index, self.kernel.name)
        passes = [ViewRow(run.dump.stage, name(self.kernel, run.dump), run) for run in runs]
        self.rows = [*passes, *self._compiled({row.name for row in passes})]
        # A neighbour has one text in common, and going back and forth between two passes is usual.
        self.text = lru_cache(8)(self._text)
        self.origins = lru_cache(8)(self._origins)

    def _compiled(self, dumped: set[str]) -> Iterator[ViewRow]:
        with suppress(FactError):  # the passes can be viewed without what somebody's compile left
            if binary := binaries.read(self.index).get(self.kernel.name):
                for kind in binaries.TEXTS:
                    if kind in binary.files and kind not in dumped:
                        yield ViewRow("compiled", _NAMES[kind], file=binary.files[kind], kind=kind)

    def count(self) -> dict[int, PipelineRow | None]:
        """Count the changes of all passes, or read what was counted before.

        Raises:
            FactError: a file of the dump cannot be read.
        """
        rows = pipeline_table.pass_changes(self.index, self.kernel.name)
        numbers = (dump.number for dump in self.index.of(self.kernel.name))
        return dict(zip(numbers, rows, strict=True))

    def opening(self) -> int:
        """Return the place of the row to begin with: the first pass that changed much, or else anything."""
        # A page or a screen that opens at a trivial pass says nothing of the kernel.
        much = any_change = None
        for place, row in enumerate(self.rows):
            run = row.run
            if run is None or not run.counts or not run.dump.changed:
                continue
            any_change = place if any_change is None else any_change
            counted = self.counted.get(run.dump.number)
            mine = run.dump.symbol in ("", self.kernel.function)
            if counted and run.before and mine:
                lines = counted.added + counted.removed
                if lines >= _SUBSTANTIAL * run.before.lines:
                    much = place
                    break
        return much if much is not None else any_change or 0

    def matches(self, text: str) -> dict[int, tuple[int, int]]:
        """Return the occurrences of a text before and after each pass, by the row's place.

        Raises:
            FactError: a file of the dump cannot be read.
            UsageError: the text is empty.
        """
        counts = count_text(self.index, self.kernel.name, text)
        runs = ((place, row.run) for place, row in enumerate(self.rows) if row.run)
        both = {
            place: tuple(counts[dump.sha256] if dump else 0 for dump in (run.before, run.after))
            for place, run in runs
        }
        return {place: (before, after) for place, (before, after) in both.items() if before or after}

    def _text(self, place: int, view: View) -> ViewText:
        """Return the text of a row.

        Raises:
            FactError: a file of the dump cannot be read.
        """
        row = self.rows[place]
        if row.run is None:
            return ViewText(row.file, printable_lines(self._compiled_text(row)))
        try:
            before, after = before_and_after(self.index, row.run.dump)
        except FactError as error:  # one of the two was not printed
            dump, about = row.run.dump, error.what
        else:
            if view == "diff":
                return self._diff(before, after)
            dump, about = before if view == "before" else after, _TITLES[view]
        return ViewText(about, printable_lines(self.index.text(dump)))

    def _diff(self, before: Dump, after: Dump) -> ViewText:
        # Equal texts need not be read at all, and those of two passes out of three are.
        same = before.sha256 == after.sha256
        texts = () if same else (self.index.text(before), self.index.text(after))
        lines = diff.of(*texts, language(before)).lines if texts else ()
        if not lines:
            return ViewText("diff", ("nothing changed but locations and names",))
        return ViewText("diff", [printable(line.expandtabs(_TAB)) for line in lines], is_diff=True)

    def _compiled_text(self, row: ViewRow) -> str:
        path = self.index.file(row.file)
        try:
            return untrusted.read_text(path, untrusted.OURS)
        except OSError as error:
            raise FactError("cannot read this text", where=path, why=error.strerror) from error

    def _origins(self, place: int, view: View) -> Sequence[SourceLine | None]:
        """Return the line of Python behind each line of a row's text; None if it has none.

        Raises:
            FactError: a file of the dump cannot be read.
        """
        row, shown = self.rows[place], self.text(place, view)
        if row.run is None:
            return show.origins(self._compiled_text(row), row.kind)
        if not shown.is_diff:
            dump = row.run.before if view == "before" else row.run.after
            return self._python_lines(dump or row.run.dump)
        before, after = before_and_after(self.index, row.run.dump)
        behind = {
            side: (self._python_lines(dump), self._printed_lines(dump))
            for side, dump in (("-", before), ("+", after))
        }
        # From a line of the diff to that of a normal form, to that of the printed text, to that of Python. An
        # index that was written by somebody else may lead nowhere.
        origins: list[SourceLine | None] = []
        for at in diff.numbered(shown.lines):
            lines, printed = behind[at[0]] if at else ((), ())
            where = printed[at[1]] if at and at[1] < len(printed) else None
            origins.append(lines[where] if where is not None and where < len(lines) else None)
        return origins

    def _python_lines(self, dump: Dump) -> Sequence[SourceLine | None]:
        stage, text = _STAGES.get(dump.language), self.index.text(dump)
        # Machine IR names metadata of the LLVM IR, which it does not contain.
        return show.origins(text, stage) if stage else [None] * (text.count("\n") + 1)

    def _printed_lines(self, dump: Dump) -> Sequence[int | None]:
        return diff.printed_lines(self.index.text(dump), language(dump))


def printable_lines(text: str) -> list[str]:
    """Return the lines of a text as a terminal may get them: a dump may be anyone's."""
    lines = text.split("\n")
    return [printable(line.expandtabs(_TAB)) for line in (lines if lines[-1] else lines[:-1])]
