"""The answer of a check, the comparison of memories that it rests on, and its table, sentences and JSON."""

from __future__ import annotations

import contextlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tritonsmith.atlas import tablegen
from tritonsmith.atlas.source_files import SourceFiles
from tritonsmith.check.blame import line_of
from tritonsmith.check.evaluate import known_operations
from tritonsmith.check.memory import (
    Array,
    Contents,
    GlobalMemory,
    RecordingMemory,
    Written,
    regions,
    spans,
    where,
)
from tritonsmith.compiler.dump.index import CHECKED, DumpIndex
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError, SmithError, UndecidedError
from tritonsmith.core.plan import files
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid

KNOWN = ("same text", "equal", "close", "reference")


class ResultChange(StrEnum):
    """The ways in which a pass changes a kernel."""

    RESULT = "result"
    COPIES = "copies land late"
    READS = "dots and stores read late"
    OUTSIDE = "reads outside"
    BEYOND = "accesses shared memory outside of its allocation"
    THREADS = "threads access shared memory without a barrier"
    ENDLESS = "does not end"
    ASSUMED = "assumes what does not hold"


_SINGLE = 4  # bytes of fp32
_GAPS = 3  # of them are named
_LEFT_OUT = "it does not end, or assumes what does not hold"
_SAME = "same text"
_WORDS = {
    "reference": "the reference",
    "equal": "equal",
    "close": "close",
    "differs": "DIFFERS",
    "unknown": "not checked",
    "lowered": "LLVM's dialect",
}
_CHANGES = {
    ResultChange.RESULT: "changes the result",
    ResultChange.COPIES: "makes a race: the result depends on when copies land",
    ResultChange.READS: "makes a race: the result depends on when dots and stores read shared memory",
    ResultChange.OUTSIDE: "makes the kernel read memory that it did not reach before",
    ResultChange.BEYOND: "makes the kernel access shared memory outside of its allocation",
    ResultChange.THREADS: "makes a race: warps access the same shared memory without a barrier between them",
    ResultChange.ENDLESS: "makes the kernel run without an end",
    ResultChange.ASSUMED: "makes the kernel assume what does not hold",
}
CONTENTS = {
    Contents.EDGES: "with zeros, infinities and NaN in memory",
    Contents.LARGE: "with large numbers in memory",
    Contents.PRECISE: "with fractions in memory",
    Contents.INTEGERS: "with integers of all sizes in memory",
    Contents.ABOVE: "with nothing but positive numbers in memory",
    Contents.BELOW: "with nothing but negative numbers in memory",
    Contents.INTEGERS_ABOVE: "with nothing but positive integers in memory",
    Contents.INTEGERS_BELOW: "with nothing but negative integers in memory",
    Contents.SMALL: "with small numbers in memory",
}


@dataclass(frozen=True)
class CheckedPass:
    """A text that a pass left, and the outcome of running it.

    Attributes:
        number: the number of the dump that was run.
        name: the pass that left it, as a command line spells it; empty for the input of the first pass.
        status: `reference`, `same text`, `equal`, `close`, `differs`, `unknown`, or `lowered` once there
            is no Triton IR any more.
        why: the reason for `unknown`, such as an operation that the check does not know.
        apart: the largest relative difference within the tolerance.
        waits: why its waits and barriers could not be checked; empty if they were, or if there are none.
        others: passes that ran in between and left no text of the whole module.
    """

    number: int
    name: str
    status: str
    why: str = ""
    apart: float = 0.0
    waits: str = ""
    others: tuple[str, ...] = ()

    @property
    def sure(self) -> bool:
        """Return whether nothing is left open: the text was compared, and so were its waits."""
        return self.status in KNOWN and not self.waits


@dataclass(frozen=True)
class Difference:
    """The first element that differs, in the order of arguments and addresses.

    Attributes:
        argument: the number of the pointer argument; None for memory reached through a pointer in memory.
        offset: the distance of the element from that pointer, in elements.
        before: its value in the first run; None if it was not written.
        after: its value in the second run; None if it was not written.
        count: the number of elements that differ.
        written: the number of elements that either run wrote.
        address: the byte address of the element.
    """

    argument: int | None
    offset: int
    before: float | None
    after: float | None
    count: int
    written: int
    address: int


@dataclass(frozen=True)
class Culprit:
    """The first pass that changes the result.

    Attributes:
        checked: the pass.
        change: the kind of change.
        difference: the first element that differs, or that is read outside; None if there is none.
        seed: the seed of the inputs.
        program: ids of the program that wrote the element.
        contents: the contents of memory in that run.
        arguments: the kernel's arguments by name, without pointers.
        store: name of the argument whose memory holds the element.
        operation: the first operation after the pass whose value is new; empty if there is none.
        line: FILE:LINE of that operation.
        suspects: candidate passes; more than one if a text between them could not be run.
        place: the place in shared memory that is accessed outside its allocation; else empty.
    """

    checked: CheckedPass
    change: ResultChange
    difference: Difference | None
    seed: int
    program: tuple[int, int, int]
    contents: Contents
    arguments: dict[str, Any]
    store: str
    operation: str
    line: str
    suspects: tuple[str, ...]
    place: str = ""


@dataclass(frozen=True)
class InterpretedRuns:
    """The results of TRITON_INTERPRET=1, compared with those of the first text.

    Attributes:
        status: `equal`, `close`, `differs` or `unknown`.
        why: the reason for `unknown`, from the interpreter or from the comparison.
        apart: the largest relative difference within the tolerance.
        seed: the seed of the inputs under which they differ.
        program: ids of the program that differs.
        contents: the contents of memory in that run.
        difference: the first element; None if the interpreter only reads memory that the first text does not.
        store: name of the argument whose memory holds the element.
        hints: suggestions where the status is `unknown`.
    """

    status: str
    why: str = ""
    apart: float = 0.0
    seed: int = 0
    program: tuple[int, int, int] = (0, 0, 0)
    contents: Contents = Contents.PLAIN
    difference: Difference | None = None
    store: str = ""
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckResult:
    """The answer of a check of one kernel.

    Attributes:
        kernel: its name.
        target: `cuda:90`; empty if the dump does not say.
        passes: the texts that were run, in order.
        culprit: None if no pass changed the result.
        elements: number of elements that the runs of the reference wrote.
        runs: number of inputs (seed, program, contents) under which the kernel was run.
        left_out: number of inputs under which it does not end, or makes an assumption that does not hold.
        racing: the place that depends on which thread or program comes last; empty if there is none.
        gaps: parts of the first text that these inputs do not exercise.
        interpreted: the runs of the interpreter; None if they were not requested.
    """

    kernel: str
    target: str
    passes: tuple[CheckedPass, ...]
    culprit: Culprit | None
    elements: int
    runs: int
    left_out: int
    racing: str
    gaps: tuple[str, ...]
    interpreted: InterpretedRuns | None = None

    @property
    def checked(self) -> int:
        """The number of passes that were compared."""
        return sum(row.status in KNOWN for row in self.passes)

    @property
    def open(self) -> tuple[CheckedPass, ...]:
        """The texts at either end that were not compared: before the first certain one, or after the last."""
        # A text in the middle that could not be run is no gap, as a later one was compared with the same
        # reference.
        sure = [number for number, row in enumerate(self.passes) if row.sure]
        ends = (*self.passes[: sure[0]], *self.passes[sure[-1] + 1 :]) if sure else self.passes
        rows = tuple(row for row in ends if row.status == "unknown" or row.waits)
        # What a race leaves proves nothing about any text.
        return (*rows, *(row for row in self.passes if self.racing and row.status == "reference"))

    @property
    def skipped(self) -> int:
        """The number of texts in the middle that could not be run: these are not open."""
        unknown = sum(row.status == "unknown" for row in self.passes)
        return unknown - sum(row.status == "unknown" for row in self.open)

    @property
    def reasons(self) -> list[str]:
        """The reasons why those texts are open, sorted and without duplicates."""
        return sorted({row.why or row.waits or self.racing for row in self.open})


@dataclass(frozen=True)
class ReadRange:
    """The range that a kernel accesses in its memory.

    Attributes:
        spans: the first and last byte address that is read or written, by region of memory.
    """

    # Neither the IR nor a launch says how large the memory behind a pointer is. What the first text accesses
    # in any run with these sizes counts as inside.
    spans: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, memories: Sequence[RecordingMemory]) -> ReadRange:
        """Return the union of the ranges of all these runs."""
        union: dict[int, tuple[int, int]] = {}
        for memory in memories:
            for reach in (memory.reach, spans(memory.written.at)):
                for number, (first, last) in reach.items():
                    low, high = union.get(number, (first, last))
                    union[number] = min(low, first), max(high, last)
        return cls(union)

    def outside(self, memory: RecordingMemory) -> Difference | None:
        """Return the first element that a run reads outside the range; None if there is none."""
        # The ranges decide nearly always; to merge all addresses that were read takes longer.
        if all(self._has(number, *reach) for number, reach in memory.reach.items()):
            return None
        at = memory.read
        inside = np.zeros(at.shape, np.bool_)
        for low, high in self.spans.values():
            inside |= (at >= low) & (at <= high)
        return first_read(memory, at[~inside]) if not inside.all() else None

    def _has(self, number: int, first: int, last: int) -> bool:
        # The default is a range that nothing lies in, for a region that the reference never accesses.
        low, high = self.spans.get(number, (1, 0))
        return low <= first and last <= high


def first_read(memory: RecordingMemory, at: np.ndarray[Any, Any]) -> Difference:
    """Return the first of some addresses that a run reads, as what differs."""
    address = int(at[0])
    argument, distance = where(address)
    offset = distance // memory.width(address)
    return Difference(argument, offset, None, None, int(at.size), int(memory.read.size), address)


def race_text(
    memory: GlobalMemory, names: Sequence[str] = (), text: str = "", places: Array | None = None
) -> str:
    """Say what depends on which thread, or which program, comes last.

    Args:
        memory: a run with such a place.
        names: the names of the arguments.
        text: the text that ran, with its locations.
        places: the addresses to choose from; all if None.
    """
    address, operation, programs = memory.races.first(memory.races.places if places is None else places)
    argument, distance = where(address)
    name = "memory"
    if argument is not None:
        name = names[argument] if argument < len(names) else f"argument {argument}"
    line = line_of(text, operation) if text and operation else ""
    read = "what is read of " if memory.races.spread else ""
    who = "program" if programs else "thread"
    place = f"{name}[{distance // memory.written.width(address)}]"
    return f"{read}{place} depends on which {who} comes last" + (f" ({line})" if line else "")


def compare_memory(
    before: GlobalMemory,
    after: GlobalMemory,
    least: float = 0.0,
    slack: float = 1.0,
    *,
    narrow: bool = False,
    whole: bool | None = None,
    without: Array | None = None,
) -> tuple[float, Difference | None]:
    """Return the largest relative difference within the tolerance, and the first element beyond it.

    Args:
        before: one run.
        after: another run.
        least: smaller numbers are compared as if they had this size.
        slack: factor on the tolerance of fp32 and fp64.
        narrow: sums that cancel may have been accumulated in their own type, even fp16.
        whole: integers have to be equal; None: only if `least` and `slack` have their defaults.
        without: addresses that are not compared.
    """
    first, second = before.written, after.written
    # Nearly every run writes the same bits to the same places, and to merge the addresses of two runs takes
    # longer than most runs do.
    if np.array_equal(first.at, second.at) and np.array_equal(first.bits, second.bits):
        return 0.0, None
    exact = whole if whole is not None else not least and slack == 1
    addresses = np.union1d(first.at, second.at)
    if without is not None and without.size:
        addresses = np.setdiff1d(addresses, without, assume_unique=True)
    wrong = ~(np.isin(addresses, first.at) & np.isin(addresses, second.at))
    both = addresses[~wrong]
    mine, yours = first.index(both), second.index(both)
    unequal = first.bits[mine] != second.bits[yours]
    largest = 0.0
    # Bits first: most texts compute exactly the same, and floats are compared for the rest alone.
    if unequal.any():
        bad = unequal.copy()
        for dtype in {first.dtypes[int(number)] for number in first.kinds[mine[unequal]]}:
            # Elements whose types differ between the runs are never close, whatever their numbers are.
            chosen = (
                unequal
                & (first.kinds[mine] == first.dtypes.index(dtype))
                & (second.kind_of(yours) == str(dtype))
            )
            values = first.values(mine[chosen], dtype), second.values(yours[chosen], dtype)
            sizes = largest_beside(first, first.at[mine[chosen]], dtype)
            if str(dtype) not in configs.load("passes-check")["tolerance"]:
                close, most = _whole(*values, least, 0.0 if exact else slack)
            else:
                close, most = _close(*values, dtype, least, slack, sizes, narrow=narrow)
            bad[np.flatnonzero(chosen)[close]] = False
            largest = max(largest, most)
        # `bad` counts the elements that both have written, and `wrong` counts all.
        wrong[np.flatnonzero(~wrong)[bad]] = True
    if not wrong.any():
        return largest, None
    address = int(addresses[wrong][0])
    argument, distance = where(address)
    # The element may have been written by one of the two runs only.
    owner = first if np.isin(address, first.at) else second
    size = owner.dtypes[int(owner.kinds[owner.index(np.asarray([address]))[0]])].itemsize
    difference = Difference(
        argument,
        distance // size,
        first.value(address),
        second.value(address),
        int(wrong.sum()),
        int(addresses.size),
        address,
    )
    return largest, difference


def largest_beside(of: Written, at: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> Any:
    """Return, per address, the largest finite absolute value of this dtype in its argument's memory."""
    same = of.kinds == of.dtypes.index(dtype)
    numbers, values = regions(of.at[same]), np.abs(of.values(np.flatnonzero(same), dtype).astype(np.float64))
    values[~np.isfinite(values)] = 0.0
    largest = {number: values[numbers == number].max() for number in np.unique(numbers)}
    return np.asarray([largest[number] for number in regions(at)])


def _close(
    before: Any, after: Any, dtype: Any, least: float, slack: float, sizes: Any, *, narrow: bool
) -> tuple[Any, float]:
    """Return a mask of the elements that are close, and the largest relative difference among them."""
    apart = distances(before, after, dtype, least, slack, sizes, narrow=narrow)
    close = apart <= _tolerance(dtype, slack)  # which NaN is not
    return close, float(apart[close].max(initial=0.0))


def _tolerance(dtype: np.dtype[Any], slack: float) -> float:
    tolerance: float = configs.load("passes-check")["tolerance"][str(dtype)]
    return tolerance * (slack if dtype.itemsize >= _SINGLE else 1.0)


def distances(
    before: Array,
    after: Array,
    dtype: np.dtype[Any],
    least: float,
    slack: float,
    sizes: Array,
    *,
    narrow: bool = False,
) -> Array:
    """Return how far numbers of a dtype are apart, relative to what the tolerance is relative to.

    Args:
        before: numbers of one run.
        after: those of the other.
        dtype: their type.
        least: smaller numbers are compared as if they had this size.
        slack: factor on the tolerance of fp32 and fp64.
        sizes: for each, the largest number beside it: see `largest_beside`.
        narrow: sums that cancel may have been accumulated in their own type, even fp16.
    """
    # Two numbers are close within the tolerance of their type. Where a sum is near 0, its parts cancelled,
    # and their rounding errors are left: so a difference may also be that of parts as large as the largest
    # result. Such parts are taken for fp32, in which Triton accumulates, unless the kernel sums in a narrower
    # type.
    table = configs.load("passes-check")["tolerance"]
    # Below the smallest normal number, all numbers of a type are equally far apart.
    normal = ml_dtypes.finfo(dtype).smallest_normal  # type: ignore[no-untyped-call] # of ml_dtypes
    least = max(least, table["least"], float(normal))
    tolerance = _tolerance(dtype, slack)
    lost = tolerance if narrow else min(tolerance, slack * table["float32"])
    lost = lost * np.minimum(sizes, table["cancelled"])
    with np.errstate(all="ignore"):
        wide, plain = before.astype(np.float64), after.astype(np.float64)
        scale = np.maximum(np.maximum(np.abs(wide), np.abs(plain)), np.maximum(least, lost / tolerance))
        apart: Array = np.where(wide == plain, 0.0, np.abs(wide - plain) / scale)
    apart[np.isnan(wide) & np.isnan(plain)] = 0.0
    return apart


def _whole(before: Any, after: Any, least: float, slack: float) -> tuple[Any, float]:
    """Do the same for integers; where numbers are not exact, integers made from them may be off by one."""
    tolerance = slack * configs.load("passes-check")["tolerance"]["float32"]
    # The difference of two integers may not fit their type: it is computed modulo its size.
    unsigned = np.dtype(f"u{before.dtype.itemsize}")
    high, low = (each(before, after).astype(unsigned) for each in (np.maximum, np.minimum))
    apart = (high - low).astype(np.float64)
    sizes = np.maximum(np.abs(before.astype(np.float64)), np.abs(after.astype(np.float64)))
    close = apart <= (np.maximum(1.0, tolerance * np.maximum(sizes, least)) if tolerance else 0.0)
    return close, float((apart / np.maximum(sizes, 1.0))[close].max(initial=0.0))


def pass_table(answer: CheckResult) -> Grid:
    """Return a table with one line per pass that changed the text."""
    rows = [
        (str(row.number), ", ".join((row.name or "-", *row.others)), _WORDS[row.status], _detail(row))
        for row in answer.passes
        if row.status != _SAME
    ]
    return tables.plain(answer.kernel, ["dump", "pass before it", "result", ""], rows, right=["dump"])


def _detail(row: CheckedPass) -> str:
    waits = f"waits not checked: {row.waits}" if row.waits else ""
    return row.why or "; ".join(filter(None, (f"to {row.apart:.0e}" if row.apart else "", waits)))


def answer_lines(answer: CheckResult) -> Iterator[str]:
    """Yield the verdict, and the evidence for it."""
    yield verdict(answer)
    if culprit := answer.culprit:
        yield from _first(culprit)
        arguments = ", ".join(f"{name}={value}" for name, value in culprit.arguments.items())
        yield from ([f"  with {arguments}"] if arguments else [])
        if culprit.operation:
            words = (
                "by" if culprit.change in (ResultChange.BEYOND, ResultChange.THREADS) else "first new value:"
            )
            yield f"  {words} {culprit.operation}" + (f", {culprit.line}" if culprit.line else "")
    if answer.interpreted:
        yield from _interpreted(answer.kernel, answer.interpreted)
    about = f"{answer.target}, " if answer.target else ""
    # A check that came to a limit has no numbers: its process counts them at its end.
    if answer.runs:
        yield f"  {about}{answer.runs} runs, {answer.elements} elements written" + (
            f"; {answer.left_out} inputs left out: {_LEFT_OUT}" if answer.left_out else ""
        )
    if answer.gaps:
        more = f", and {len(answer.gaps) - _GAPS} more" if len(answer.gaps) > _GAPS else ""
        yield f"  not tried by these inputs: {'; '.join(answer.gaps[:_GAPS])}{more}"
    if any(row.status == "lowered" for row in answer.passes):
        yield "  what follows in LLVM's dialect was not run: --through-llvm runs it"


def _interpreted(kernel: str, runs: InterpretedRuns) -> Iterator[str]:
    """Yield what the interpreter computes, compared with the first text."""
    if runs.status != "differs":
        agreement = {"equal": "the same", "close": f"the same, up to {runs.apart:.1e} apart"}.get(runs.status)
        yield f"  TRITON_INTERPRET=1: {agreement or f'not compared: {runs.why}'}"
        return
    yield interpreter_verdict(kernel)
    run = _inputs(runs)
    if (at := runs.difference) is None:
        yield f"  it reads memory that the first text does not; {run}"
        return
    values = f"{value_text(at.before)} by the first text, {value_text(at.after)} by the interpreter"
    yield f"  first: {runs.store or 'memory'}[{at.offset}]: {values}"
    yield f"  {at.count} of {at.written} elements differ; {run}"


def interpreter_verdict(kernel: str) -> str:
    """Return the verdict in one sentence."""
    # Both read the same source, so nothing here decides which of the two is wrong.
    return f"{kernel}: the front end and TRITON_INTERPRET=1 disagree: one of them is wrong"


def _inputs(findings: Culprit | InterpretedRuns) -> str:
    more = "" if findings.contents is Contents.PLAIN else f" ({CONTENTS[findings.contents]})"
    return f"program {findings.program}, inputs {findings.seed}{more}"


def _first(culprit: Culprit) -> Iterator[str]:
    """Yield the first element that differs."""
    run = _inputs(culprit)
    if (at := culprit.difference) is None:
        yield from ([f"  {culprit.place}"] if culprit.place else [])
        yield f"  {run}"
        return
    where = f"{culprit.store or 'memory'}[{at.offset}]"
    if culprit.change is ResultChange.OUTSIDE:
        yield f"  first: {where}"
        yield f"  {at.count} of {at.written} elements that are read; {run}"
    else:
        yield f"  first: {where}: {value_text(at.before)} before, {value_text(at.after)} after"
        yield f"  {at.count} of {at.written} elements differ; {run}"


def verdict(answer: CheckResult) -> str:
    """Return the verdict in one sentence."""
    if culprit := answer.culprit:
        names = ", ".join(culprit.suspects)
        one_of = "one of " if len(culprit.suspects) > 1 else ""
        return f"{answer.kernel}: {one_of}{names} {_CHANGES[culprit.change]}"
    # The reference is one of those that were checked, and no pass.
    passes = f"{answer.checked - 1} passes"
    if answer.skipped:
        passes += " that could be checked"
    sentence = f"{answer.kernel}: none of {passes} changes the result"
    if answer.racing:
        return f"{answer.kernel}: undecided: {answer.racing}"
    if answer.skipped:
        sentence += f"; {answer.skipped} in the middle could not be checked"
    if not answer.open:
        return sentence
    first = answer.open[0].number < next(row.number for row in answer.passes if row.status == "reference")
    return f"{sentence}; {len(answer.open)} at {'either end' if first else 'the end'} could not be checked"


def as_json(answer: CheckResult) -> dict[str, Any]:
    """Return the whole answer as JSON data."""
    # A disagreement with the interpreter is no change by a pass, so a culprit comes before it.
    beside, sentence, outcome = answer.interpreted, verdict(answer), "unchanged"
    if answer.culprit:
        outcome = "changed"
    elif beside and beside.status == "differs":
        sentence, outcome = interpreter_verdict(answer.kernel), "disagrees"
    elif answer.open or (beside and beside.status == "unknown"):
        outcome = "undecided"
    about = {"schema": 1, "verdict": sentence, "outcome": outcome, "reasons": answer.reasons}
    content: dict[str, Any] = plain_json({**about, **asdict(answer), "checked": answer.checked})
    return content


def keep(answer: CheckResult, index: DumpIndex) -> None:
    """Write an answer beside the texts that were run, for `issue.new`, if their folder is writable."""
    # The folder may be read-only, or gone: then the answer is printed all the same, and `issue.new` lacks it.
    with contextlib.suppress(OSError):
        # With the index, since another dump may be written to the same folder.
        content = {**as_json(answer), "index": index.digest}
        files.write_atomically(index.folder / CHECKED, json.dumps(content, indent=2) + "\n")


def plain_json(value: Any) -> Any:
    """Return a value with the numbers that JSON lacks as words: `NaN`, `inf`, `-inf`."""
    # Python's `json` would write them without quotes, which no other reader of JSON accepts.
    if isinstance(value, dict):
        return {name: plain_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else str(value)
    return value


def open_end(answer: CheckResult) -> UndecidedError:
    """Return the error for an answer with texts that could not be checked."""
    # "No pass changes the result" would not be true of those that follow them.
    why, hints = "\n".join(answer.reasons), ["docs/passes-check.md says what is not known"]
    if "cannot print it" in why:
        hints.append(f"what is wrong in a text: {command('passes.replay', 'DUMP', 'NUMBER')}")
    return UndecidedError(verdict(answer), why=why, hints=hints)


def failure(answer: CheckResult, folder: Path) -> SmithError | None:
    """Return the error that an answer ends with; None if nothing changes the result, and all was checked.

    Args:
        answer: the answer of the check.
        folder: folder of the dump.
    """
    page = "docs/passes-check.md says what is compared"
    if answer.culprit:
        hints = [command("passes.diff", folder, answer.culprit.checked.name), page]
        return SmithError(verdict(answer), hints=hints)
    runs = answer.interpreted
    if runs and runs.status == "differs":
        return SmithError(interpreter_verdict(answer.kernel), hints=[page])
    if answer.open:
        return open_end(answer)
    if runs and runs.status == "unknown":
        what = "the first IR was not compared with TRITON_INTERPRET=1"
        return UndecidedError(what, why=runs.why, hints=runs.hints)
    return None


def undecided(error: UndecidedError) -> dict[str, Any]:
    """Return the same as JSON where nothing could be run."""
    why = error.why.splitlines() if error.why else []
    return {"schema": 1, "verdict": error.what, "outcome": "undecided", "reasons": why}


def value_text(value: float | None) -> str:
    """Return an element as it is shown."""
    return "not written" if value is None else f"{value:.9g}"


@dataclass(frozen=True)
class DialectCoverage:
    """The operations of one dialect, without its prefix, sorted.

    Attributes:
        dialect: `ttg`.
        known: operations that the check can run.
        unknown: operations that stop a check.
    """

    dialect: str
    known: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def coverage_of_all() -> list[DialectCoverage]:
    """Return every known operation, of any release."""
    return _by_dialect(known_operations())


def coverage_of_checkout(root: Path) -> list[DialectCoverage]:
    """Return the operations that a checkout of Triton defines, without those of LLVM's dialects.

    Raises:
        FactError: the checkout defines none.
    """
    defined = {
        definition.name for definition in tablegen.read_td(SourceFiles(root)) if definition.kind == "op"
    }
    if not defined:
        raise FactError("no TableGen file here defines an operation", where=root, hints=["--source CHECKOUT"])
    return _by_dialect(defined)


def _by_dialect(names: Iterable[str]) -> list[DialectCoverage]:
    known, by_prefix = known_operations(), defaultdict[str, list[str]](list)
    for name in sorted(names):
        dialect, dot, rest = name.partition(".")
        if dot:
            by_prefix[dialect].append(rest)
    return [
        DialectCoverage(
            dialect,
            tuple(operation for operation in members if f"{dialect}.{operation}" in known),
            tuple(operation for operation in members if f"{dialect}.{operation}" not in known),
        )
        for dialect, members in sorted(by_prefix.items())
    ]


def coverage_table(rows: Sequence[DialectCoverage]) -> Grid:
    """Return a table with one line per dialect: the unknown operations of a checkout, else the known ones."""
    every = any(row.unknown for row in rows)
    cells = [
        (
            row.dialect,
            f"{len(row.known)} of {len(row.known) + len(row.unknown)}" if every else str(len(row.known)),
            " ".join(row.unknown if every else row.known),
        )
        for row in rows
    ]
    title = "operations that passes.check knows"
    return tables.plain(
        title, ["dialect", "known", "not known" if every else "operations"], cells, right=["known"]
    )
