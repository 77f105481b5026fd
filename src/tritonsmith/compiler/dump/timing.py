"""Parse the timing reports of MLIR and LLVM, and match them with dumps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tritonsmith.ir.normalize import line_alignment

# mlir/lib/Support/Timing.cpp (DisplayMode::Tree), llvm/lib/Support/Timer.cpp
_MLIR = re.compile(
    r"===-+===\n *\.\.\. Execution time report \.\.\.\n===-+===\n"
    r" *Total Execution Time: [^\n]*\n\n *(?:----User Time---- +)?----Wall Time----[^\n]*\n"
    r"(?P<rows>(?:  [^\n]*\n)*)"
)
_LLVM = re.compile(
    r"===-+===\n *Pass execution timing report\n===-+===\n"
    r" *Total Execution Time: [^\n]*\n\n[^\n]*--- ?Name ?---\n(?P<rows>(?: +[^\n]*\n)*)"
)
_CELL = r"[\d.]+ \( *[\d.]+%\)"
_MLIR_ROW = re.compile(rf" *(?:{_CELL} +)?(?P<wall>[\d.]+) \( *[\d.]+%\)  (?P<indent> *)(?P<name>[^\n]+)")
_LLVM_ROW = re.compile(rf" *(?:{_CELL} +)*(?P<wall>[\d.]+) \( *[\d.]+%\)  (?P<name>[^\n]+)")
_SUMS = ("Rest", "Total", "root")


@dataclass(frozen=True)
class TimingRow:
    """A line of a report.

    Attributes:
        name: name of the pass.
        depth: 0 for a pass of the pipeline itself, more for those of nested pipelines.
        seconds: wall time.
    """

    name: str
    depth: int
    seconds: float


@dataclass(frozen=True)
class TimingReport:
    """The times of one pipeline.

    Attributes:
        llvm: an LLVM report, sorted by time; MLIR's are in the order in which passes ran.
        rows: passes only; neither analyses nor sums.
    """

    llvm: bool
    rows: tuple[TimingRow, ...]


def reports(text: str) -> Iterator[TimingReport]:
    """Yield all reports in a compiler's output, MLIR's and LLVM's, in the order of the text."""
    matches = [*_MLIR.finditer(text), *_LLVM.finditer(text)]
    for match in sorted(matches, key=re.Match.start):
        llvm = match.re is _LLVM
        pattern = _LLVM_ROW if llvm else _MLIR_ROW
        lines = (pattern.fullmatch(line) for line in match["rows"].splitlines())
        yield TimingReport(llvm, tuple(_row(line) for line in lines if line and not _other(line["name"])))


def without(text: bytes) -> bytes:
    """Return a program's output without the reports."""
    if b"timing report" not in text and b"time report" not in text:
        return text
    plain = text.decode("utf-8", "surrogateescape")
    return _LLVM.sub("", _MLIR.sub("", plain)).encode("utf-8", "surrogateescape")


def _row(match: re.Match[str]) -> TimingRow:
    depth = len(match["indent"]) // 2 if match.re is _MLIR_ROW else 0
    return TimingRow(match["name"], depth, float(match["wall"]))


def _other(name: str) -> bool:
    """Report whether a row is an analysis, a sum, or a pipeline of passes."""
    return name in _SUMS or name.startswith("(A) ") or name.endswith("' Pipeline")


def matched(
    rows: Sequence[TimingRow], passes: Sequence[tuple[str, bool]], begin: int
) -> tuple[dict[int, float], int]:
    """Match the rows of an MLIR report with passes.

    Args:
        rows: the rows of the report on a pipeline.
        passes: names in the order in which they ran, each with True if it ran on the module, as every pass of
            the pipeline itself does.
        begin: the first pass that no earlier report covers.

    Returns:
        Place in `passes` to seconds, and the first place that this report does not cover.
    """
    # Rows of the pipeline itself are in the order in which passes ran. A row of a nested pipeline stands
    # where the first of its kind ran, once for all functions: it goes to the first free pass of that name.
    known = {row.name for row in rows}
    end = begin
    while end < len(passes) and passes[end][0] in known:
        end += 1
    outer = [row for row in rows if not row.depth]
    names = [name if module else "" for name, module in passes[begin:end]]
    pairs = line_alignment.pairs([row.name for row in outer], names)
    times = {begin + there: outer[here].seconds for here, there in pairs}
    for row in rows:
        if row.depth:
            free = (at for at in range(begin, end) if passes[at][0] == row.name and at not in times)
            place = next(free, None)
            if place is not None:
                times[place] = row.seconds
    return times, end


def nth(report: TimingReport, names: Sequence[str]) -> dict[int, float]:
    """Do the same as `matched` for LLVM: `Global Value Numbering #2` is the second pass of this name."""
    # A single row for several passes of one name is their sum, so it is skipped.
    seconds = {row.name: row.seconds for row in report.rows}
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    times = {}
    for name, where in places.items():
        if len(where) > 1 and f"{name} #2" not in seconds:
            continue
        for number, place in enumerate(where, 1):
            key = name if number == 1 else f"{name} #{number}"
            if key in seconds:
                times[place] = seconds[key]
    return times
