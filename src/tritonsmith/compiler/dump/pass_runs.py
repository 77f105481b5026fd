"""The runs of a dump: which dumps are one run of a pass, which are one run of the pipelines, and their times.

A dump is one text that was printed. A pass run is one run of a pass: on three functions it runs three
times. Texts printed before and after it are two dumps of it; texts that a pass prints while it runs, and
assembly, are dumps of no pass. A pipeline run is one kernel's way through all stages; those of several
kernels follow each other, or are interleaved. Timing reports of MLIR and LLVM are matched with the passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tritonsmith.compiler.dump.index import BESIDE, Dump, DumpIndex
from tritonsmith.core.command_line import command
from tritonsmith.core.text import byte_size, duration
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.ir.banners import Banner
from tritonsmith.ir.normalize import diff

TTIR, TTGIR, LLIR, LLVM, ASSEMBLY = range(5)
# Characters that no name of a file should have: a letter beyond ASCII is up to four bytes.
UNUSUAL = r"[^A-Za-z0-9_.\-]+"
STAGES = ("ttir", "ttgir", "llir", "llvm")
_NAME = rb'@("(?:[^"\\]|\\.)*"|[\w$.\-]+)'
_KERNEL = re.compile(rb"(?:tt\.func public |define (?:ptx_kernel|amdgpu_kernel) [^\n@]*)" + _NAME)
_DEFINED = re.compile(rb"(?m:^) *(?:(?:tt|llvm|func|gpu)\.func |define )[^\n@]*" + _NAME + rb"[^\n]*\{")
_FUNCTION = re.compile(rb"(?m:^)[\w.]+ (?:public |private )?" + _NAME + rb"\(")
_MACHINE = re.compile(rb"# Machine code for function ([^:\n]+):")
_ENTRY = re.compile(rb"\.entry ([\w$]+)\(|\.globl\t([\w$.]+)")
_ATTRIBUTES = re.compile(
    rb'(?:ttg|triton_gpu)\.(?:num-ctas|num-warps|threads-per-warp|target)"? = (?:"[^"]*"|\w+)'
)
_TARGET = re.compile(rb'(?:ttg|triton_gpu)\.target = "([^"]+)"')
# Functions that are looked for in IR that does not define a kernel: each one costs a search of the whole
# text.
_KNOWN = 64
# As mlir/lib/Support/Timing.cpp (DisplayMode::Tree) and llvm/lib/Support/Timer.cpp print them.
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
class PassRun:
    """A row of the pipeline.

    Attributes:
        dump: the dump that represents it; if IR was printed before and after it, the first.
        before: the pass's input; None if it was not printed.
        after: the pass's output; None if it was not printed.
    """

    dump: Dump
    before: Dump | None
    after: Dump | None

    @property
    def counts(self) -> bool:
        """True for a pass; False for text that the previous pass printed while it ran, and for assembly."""
        return not self.dump.inside and self.dump.kind not in ("ptx", "amdgcn")


@dataclass(frozen=True)
class PassTotals:
    """The counts of one kernel.

    Attributes:
        passes: passes that ran.
        changed: passes that changed their IR, locations aside.
        unknown: passes of which this is unknown: no later dump was printed, or other passes ran in between.
        dumps: texts that were printed.
    """

    passes: int
    changed: int
    unknown: int
    dumps: int

    def __str__(self) -> str:
        """Return the counts in words, as every report of a dump shows them."""
        unknown = f" ({self.unknown} may have)" if self.unknown else ""
        return (
            f"{_many(self.passes, 'pass', 'passes')}, {self.changed} changed something{unknown}; "
            f"{_many(self.dumps, 'dump', 'dumps')}"
        )


def of(index: DumpIndex, kernel: str) -> Iterator[PassRun]:
    """Yield the pass runs of one kernel, in order."""
    for dump in index.of(kernel):
        other = None if dump.against is None else index.dumps[dump.against]
        if dump.when == "before":
            yield PassRun(dump, dump, other)
        elif other is None or not _same_pass(index, other, dump):
            yield PassRun(dump, other, dump)


def totals(index: DumpIndex, kernel: str) -> PassTotals:
    """Count the passes and dumps of one kernel."""
    passes = [row.dump for row in of(index, kernel) if row.counts]
    return PassTotals(
        passes=len(passes),
        changed=sum(dump.changed is True for dump in passes),
        unknown=sum(dump.changed is None for dump in passes),
        dumps=len(index.of(kernel)),
    )


def _same_pass(index: DumpIndex, before: Dump, after: Dump) -> bool:
    """Report whether both dumps show one pass, so that one row is enough."""
    followed = None if before.against is None else index.dumps[before.against]
    return before.when == "before" and followed == after and before.name == after.name


def _many(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}"


def summary_table(index: DumpIndex) -> Grid:
    """Return a table with one row per kernel."""
    failed = any(kernel.failed for kernel in index.kernels)
    rows = []
    for kernel in index.kernels:
        mine = index.of(kernel.name)
        counted = totals(index, kernel.name)
        size = byte_size(sum(dump.size for dump in mine))
        seconds = sum(dump.seconds or 0.0 for dump in mine)
        took = duration(seconds) if seconds else ""
        counts = [str(counted.passes), str(counted.changed), str(counted.dumps)]
        rows.append([kernel.name, kernel.target, *counts, size, took, *([kernel.failed] if failed else [])])
    right = ["passes", "changed", "dumps", "size"]
    heads = ["kernel", "target", *right, "in passes", *(["failed"] if failed else [])]
    by = f" by Triton {index.triton}" if index.triton else ""
    title = f"{len(index.dumps)} dumps{by}, {byte_size(index.size)}"
    return tables.plain(title, heads, rows, right=right)


def show_summary(index: DumpIndex, *, json: bool = False, aside: bool = False) -> None:
    """Print the table, or the index as JSON; `aside` prints to standard error."""
    # Standard output may belong to the program that was run.
    to = console.err() if aside else console.out()
    if json:
        text = index.render(placed=True)
        to.print(text, markup=False, end="") if aside else console.write(text, end="")
        return
    if index.kernels:
        to.print(summary_table(index))
    to.print(f"{index.folder}", markup=False)
    if index.dumps:
        to.print(console.typed(f"next: {command('passes.list', index.folder)}"), markup=False)
    if torn := sum(not dump.whole for dump in index.dumps[:-1]):
        why = "threads or processes printed at the same time; use only one"
        console.warn(f"{torn} dumps are interleaved: {why}")


@dataclass(eq=False)
class PipelineRun:
    """One run of the pipelines.

    Attributes:
        name: its key and the name of its folder.
        function: name of the kernel's function.
        first: the first banner.
        level: the latest stage that it has reached.
        head: the module's attributes about the target, from TTGIR on; they tell runs of one function apart.
        target: `cuda:90`; empty until the IR says so.
        places: positions of its dumps in the list of `IndexWriter`.
        digest: of its last dump.
        output: the beginning of the text printed after that dump.
        failed: name of the pass that failed.
        latest: unit (the module, a function) to its last dump, and to `shaken` at that time.
        inner: unit to its last dump, including those that passes printed while they ran.
        shaken: number of dumps so far that came with a change, or may have.
        timed: number of MLIR dumps that a timing report has covered.
        pipelines: for each timing report: number of the first dump that it covers, and of the one after it.
    """

    name: str
    function: str
    first: Banner
    level: int
    head: bytes = b""
    target: str = ""
    places: list[int] = field(default_factory=list)
    digest: str = ""
    output: bytes = b""
    failed: str = ""
    latest: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    inner: dict[tuple[str, str], int] = field(default_factory=dict)
    shaken: int = 0
    timed: int = 0
    pipelines: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class DumpText:
    """The properties of a dump's text.

    Attributes:
        module: it is a whole module.
        level: TTIR ... ASSEMBLY.
        head: the module's attributes about the target, from TTGIR on.
        symbol: name of the function, if the dump is one MLIR function.
    """

    module: bool
    level: int
    head: bytes
    symbol: str = ""


def look(banner: Banner, body: bytes) -> DumpText:
    """Read the properties of a dump's text."""
    if banner.kind in ("ptx", "amdgcn"):
        return DumpText(module=True, level=ASSEMBLY, head=b"")
    if banner.kind != "mlir":
        return DumpText(module=banner.operation in ("module", ""), level=LLVM, head=b"")
    at_once = body.startswith((b"module", b'"builtin.module"'))
    begin = 0 if at_once else body.find(b"\nmodule") + 1
    module = begin > 0 or at_once
    head = body[begin : body.find(b"\n", begin)] if module else b""
    attributes = _ATTRIBUTES.findall(head)
    level = LLIR if b"llvm.func" in body else TTGIR if attributes else TTIR
    match = None if module else _FUNCTION.search(body)
    return DumpText(module, level, b", ".join(attributes), _plain(match[1]) if match else "")


class PipelineRuns:
    """All pipeline runs of a stream."""

    def __init__(self) -> None:
        self.all: list[PipelineRun] = []
        self.current: PipelineRun | None = None
        self._of: dict[str, list[PipelineRun]] = {}
        self._names = set(BESIDE)

    def find(self, banner: Banner, body: bytes, text: DumpText, digest: str) -> PipelineRun:
        """Return the run that a dump belongs to; a new one if it begins here."""
        function = self._function(banner, body, text)
        run = self._open(function, banner, text, digest)
        if run is None:
            run = PipelineRun(self._name(function or "kernel"), function, banner, text.level)
            self.all.append(run)
        mine = self._of.setdefault(function, [])
        if run not in mine:
            mine.append(run)
        run.function = run.function or function
        if text.module:
            run.level = max(run.level, text.level)
        if text.head and not run.head:
            run.head = text.head
        if not run.target and (match := _TARGET.search(text.head)):
            run.target = match[1].decode(errors="replace")
        self.current = run
        return run

    def _function(self, banner: Banner, body: bytes, text: DumpText) -> str:
        now = self.current
        symbol = banner.symbol or text.symbol
        # A function that only LLVM's passes name is a helper of the kernel, not a kernel.
        if symbol and (symbol in self._of or (banner.kind == "mlir" and not text.module)):
            return symbol
        if banner.kind not in ("mlir", "ll"):
            match = _MACHINE.match(body) or (_ENTRY.search(body) if text.level == ASSEMBLY else None)
            return _plain(match[match.lastindex or 0]) if match else now.function if now else ""
        if now and now.function and _token(now.function) in body:
            return now.function
        return self._defined(body, text) or (now.function if now else "")

    def _defined(self, body: bytes, text: DumpText) -> str:
        """Return the kernel that a text defines or refers to; empty if none is found."""
        if match := _KERNEL.search(body):
            return _plain(match[1])
        for name in [*reversed(self._of)][:_KNOWN]:
            if name and _token(name) in body:
                return name
        if (match := _DEFINED.search(body)) and text.module:
            return _plain(match[1])
        return ""

    def _open(self, function: str, banner: Banner, text: DumpText, digest: str) -> PipelineRun | None:
        """Return the run of this function that the dump continues; None if a new one begins."""
        runs = self._of.get(function, [])
        now = self.current
        # A part of a module does not tell how far the module got.
        if not text.module:
            return runs[-1] if runs else now
        # IR is only lowered: a dump of an earlier stage than a run has reached belongs to another run.
        going = [run for run in runs if run.level <= text.level and not _begins(run, banner, text)]
        if now in going and now.head in (b"", text.head):
            return now
        fitting = [run for run in going if run.head in (b"", text.head)]
        same = [run for run in fitting if run.digest == digest] or [run for run in fitting if run.head]
        if now in going and not fitting:
            return now
        return (same or fitting or going)[-1] if going else None

    def _name(self, function: str) -> str:
        # Names of C++ templates and of torch.compile's kernels may be longer than a file system allows.
        base = re.sub(UNUSUAL, "-", function).strip("-.")[:100] or "kernel"
        name, number = base, 1
        # File systems of macOS do not distinguish `Add` from `add`.
        while name.lower() in self._names:
            number += 1
            name = f"{base}-{number}"
        self._names.add(name.lower())
        return name


def _begins(run: PipelineRun, banner: Banner, text: DumpText) -> bool:
    """Report whether a pipeline starts again after a failure."""
    # A program may catch the error and compile the same function again, from the first pass on.
    return bool(run.failed) and text.level == TTIR and banner == run.first


@lru_cache(_KNOWN)
def _token(function: str) -> bytes:
    raw = function.encode("utf-8", "surrogateescape")
    plain = re.fullmatch(r"[\w$.\-]+", function)
    return b"@" + raw + b"(" if plain else b'@"' + raw + b'"('


def _plain(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape").strip('"')


def stages(run: PipelineRun, levels: list[int]) -> Iterator[str]:
    """Yield the stage that the pipeline of each dump produces; `levels` has the level of each dump."""
    # Timing reports tell where pipelines end: a pipeline produces what the next one begins with. Without
    # reports, a pass is assigned to the stage of the next pass's input.
    after = [*levels[1:], levels[-1]] if levels else []
    for begin, end in run.pipelines:
        following = levels[end : end + 1]
        produced = (
            following[0] if following and following[0] <= LLIR else max(levels[begin:end], default=TTIR)
        )
        after[begin:end] = [produced] * (end - begin)
    for level, later in zip(levels, after, strict=True):
        yield STAGES[later if later <= LLIR else min(level, LLVM)]


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
    # where the first of its kind ran, once for all functions: it goes to the first free pass of that name. A
    # report covers the passes up to the first one that it does not list: that one belongs to the next
    # pipeline.
    known = {row.name for row in rows}
    end = begin
    while end < len(passes) and passes[end][0] in known:
        end += 1
    outer = [row for row in rows if not row.depth]
    names = [name if module else "" for name, module in passes[begin:end]]
    pairs = diff.pairs([row.name for row in outer], names)
    times = {begin + there: outer[here].seconds for here, there in pairs}
    for row in rows:
        if row.depth:
            free = (at for at in range(begin, end) if passes[at][0] == row.name and at not in times)
            place = next(free, None)
            if place is not None:
                times[place] = row.seconds
    return times, end


def nth(report: TimingReport, names: Sequence[str]) -> dict[int, float]:
    """Match an LLVM report with passes: `Global Value Numbering #2` is the second of this name."""
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
