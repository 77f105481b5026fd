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
    attributes = _TOLD.findall(head)
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
        if not text.module:  # of a part of a module it is not known how far it got
            return runs[-1] if runs else self.current
        # IR is only lowered: a dump of an earlier stage than a run has reached belongs to another run.
        going = [run for run in runs if run.level <= text.level and not _begins(run, banner, text)]
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
    """Report whether a pipeline starts again after a failure."""
    return banner == run.first and text.level == TTIR and bool(run.failed)


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
