"""Find the kernel of each dump, when the pipelines of several follow each other or are interleaved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tritonsmith.compiler.dump.index import BESIDE
from tritonsmith.ir.banners import Banner

TTIR, TTGIR, LLIR, LLVM, ASSEMBLY = range(5)
# What no name of a file should have; a letter beyond ASCII is up to four bytes.
UNUSUAL = r"[^A-Za-z0-9_.\-]+"
STAGES = ("ttir", "ttgir", "llir", "llvm")

_NAME = rb'@("(?:[^"\\]|\\.)*"|[\w$.\-]+)'
_KERNEL = re.compile(rb"(?:tt\.func public |define (?:ptx_kernel|amdgpu_kernel) [^\n@]*)" + _NAME)
_DEFINED = re.compile(rb"(?m:^) *(?:(?:tt|llvm|func|gpu)\.func |define )[^\n@]*" + _NAME + rb"[^\n]*\{")
_FUNCTION = re.compile(rb"(?m:^)[\w.]+ (?:public |private )?" + _NAME + rb"\(")
_MACHINE = re.compile(rb"# Machine code for function ([^:\n]+):")
_ENTRY = re.compile(rb"\.entry ([\w$]+)\(|\.globl\t([\w$.]+)")
_TOLD = re.compile(rb'(?:ttg|triton_gpu)\.(?:num-ctas|num-warps|threads-per-warp|target)"? = (?:"[^"]*"|\w+)')
_TARGET = re.compile(rb'(?:ttg|triton_gpu)\.target = "([^"]+)"')
_KNOWN = 64  # functions that are looked for in IR that does not define a kernel


@dataclass(eq=False)
class PipelineRun:
    """One run of the pipelines.

    Attributes:
        name: its key and the name of its folder.
        function: of the kernel.
        first: the first banner.
        level: how far it got.
        head: what the module says of the target, from TTGIR on: it tells runs of one function apart.
        target: `cuda:90`; empty until the IR says so.
        places: of its dumps, in the book.
        digest: of its last dump.
        said: what was printed after that, the beginning of it.
        failed: name of the pass that failed.
        seen: unit (the module, a function) to its last dump, and to `shaken` at that time.
        inner: the same, with what passes printed while they ran.
        shaken: how many dumps so far came with a change, or may have.
        timed: how many of MLIR's dumps have been in a report.
        pipelines: for each report on time: number of the first dump it is about, and of the one after it.
    """

    name: str
    function: str
    first: Banner
    level: int
    head: bytes = b""
    target: str = ""
    places: list[int] = field(default_factory=list)
    digest: str = ""
    said: bytes = b""
    failed: str = ""
    seen: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    inner: dict[tuple[str, str], int] = field(default_factory=dict)
    shaken: int = 0
    timed: int = 0
    pipelines: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class DumpText:
    """What the text of a dump shows.

    Attributes:
        module: it is a whole module.
        level: TTIR ... ASSEMBLY.
        head: what the module says of the target, from TTGIR on.
        symbol: of the function, if it is one of MLIR's.
    """

    module: bool
    level: int
    head: bytes
    symbol: str = ""


def look(banner: Banner, body: bytes) -> DumpText:
    """What the text of a dump shows."""
    if banner.kind in ("ptx", "amdgcn"):
        return DumpText(module=True, level=ASSEMBLY, head=b"")
    if banner.kind != "mlir":
        return DumpText(module=banner.operation in ("module", ""), level=LLVM, head=b"")
    at_once = body.startswith((b"module", b'"builtin.module"'))
    begin = 0 if at_once else body.find(b"\nmodule") + 1
    module = begin > 0 or at_once
    head = body[begin : body.find(b"\n", begin)] if module else b""
    told = _TOLD.findall(head)
    level = LLIR if b"llvm.func" in body else TTGIR if told else TTIR
    match = None if module else _FUNCTION.search(body)
    return DumpText(module, level, b", ".join(told), _plain(match[1]) if match else "")


class PipelineRuns:
    """All runs of a stream."""

    def __init__(self) -> None:
        self.all: list[PipelineRun] = []
        self.current: PipelineRun | None = None
        self._of: dict[str, list[PipelineRun]] = {}
        self._names = set(BESIDE)

    def find(self, banner: Banner, body: bytes, text: DumpText, digest: str) -> PipelineRun:
        """The run that a dump belongs to; a new one, if it begins here."""
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
        if symbol and (symbol in self._of or (banner.kind == "mlir" and not text.module)):
            return symbol
        if banner.kind not in ("mlir", "ll"):
            match = _MACHINE.match(body) or (_ENTRY.search(body) if text.level == ASSEMBLY else None)
            return _plain(match[match.lastindex or 0]) if match else now.function if now else ""
        if now and now.function and _token(now.function) in body:
            return now.function
        return self._defined(body, text) or (now.function if now else "")

    def _defined(self, body: bytes, text: DumpText) -> str:
        """The kernel that a text defines, or is about."""
        if match := _KERNEL.search(body):
            return _plain(match[1])
        for name in [*reversed(self._of)][:_KNOWN]:
            if name and _token(name) in body:
                return name
        if (match := _DEFINED.search(body)) and text.module:
            return _plain(match[1])
        return ""

    def _open(self, function: str, banner: Banner, text: DumpText, digest: str) -> PipelineRun | None:
        """The run of this function that goes on here."""
        found = self._of.get(function, [])
        if not text.module:  # of a part of a module it is not known how far it got
            return found[-1] if found else self.current
        going = [run for run in found if run.level <= text.level and not _begins(run, banner, text)]
        fitting = [run for run in going if run.head in (b"", text.head)]
        if self.current in fitting:
            return self.current
        same = [run for run in fitting if run.digest == digest] or [run for run in fitting if run.head]
        if self.current in going and not fitting:
            return self.current
        return (same or fitting or going)[-1] if going else None

    def _name(self, function: str) -> str:
        base = re.sub(UNUSUAL, "-", function).strip("-.")[:100] or "kernel"
        name, number = base, 1
        while name.lower() in self._names:  # `Add` is `add` on file systems of macOS
            number += 1
            name = f"{base}-{number}"
        self._names.add(name.lower())
        return name


def _begins(run: PipelineRun, banner: Banner, text: DumpText) -> bool:
    """Whether a pipeline begins again that ended in a failure."""
    return banner == run.first and text.level == TTIR and bool(run.failed)


def _token(function: str) -> bytes:
    raw = function.encode("utf-8", "surrogateescape")
    plain = re.fullmatch(r"[\w$.\-]+", function)
    return b"@" + raw + b"(" if plain else b'@"' + raw + b'"('


def _plain(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape").strip('"')


def stages(run: PipelineRun, levels: list[int]) -> Iterator[str]:
    """What the pipeline that each dump of a run belongs to makes.

    A report on time tells where pipelines end: one makes what the next one begins with. Without reports a
    pass belongs to what the next pass finds. Levels are those of the run's dumps, in order.
    """
    after = [*levels[1:], levels[-1]] if levels else []
    for begin, end in run.pipelines:
        found = levels[end : end + 1]
        made = found[0] if found and found[0] <= LLIR else max(levels[begin:end], default=TTIR)
        after[begin:end] = [made] * (end - begin)
    for level, later in zip(levels, after, strict=True):
        yield STAGES[later if later <= LLIR else min(level, LLVM)]
