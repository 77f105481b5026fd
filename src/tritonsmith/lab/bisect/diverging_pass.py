"""Inside the culprit: the pass at which a kernel's compiles by two Tritons diverge for good, and its file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from tritonsmith.compiler import tritons
from tritonsmith.compiler.dump import run
from tritonsmith.compiler.dump.index import Dump, choose_kernel
from tritonsmith.compiler.dump.run import Choices
from tritonsmith.compiler.replay import pass_chain
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import SmithError
from tritonsmith.inspect import show_passes as show
from tritonsmith.inspect.show_passes import ComparedRun, Divergence

_RELEASES = "two releases may print the same IR differently, so this is a place to start and not a proof"


class Level(StrEnum):
    """The part of the compiler in which two compiles diverge."""

    FRONT_END = "front end"
    PASSES = "passes"
    LLVM = "LLVM"
    ASSEMBLER = "assembler"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PartingPass:
    """The place where two compiles of one kernel diverge.

    Attributes:
        level: the part of the compiler.
        sentence: the place in words.
        name: of the pass on a command line; empty where no single pass is named.
        file: its C++ file, relative to the checkout; empty where it has none, or no checkout was given.
        good: the IR that the pass leaves by the good Triton; empty where no pass is named.
        bad: by the bad one.
    """

    level: Level
    sentence: str
    name: str = ""
    file: str = ""
    good: str = ""
    bad: str = ""

    @property
    def language(self) -> str:
        """The language of both texts, as `ir.normalize` names it."""
        return "llvm" if self.level is Level.LLVM else "mlir"


def parting(
    asked: CompileRequest,
    good: Triton,
    bad: Triton,
    out: Path,
    checkout: Path | None = None,
    *,
    silent: bool = False,
) -> PartingPass:
    """Compile a kernel by both, and find the pass at which they diverge; or the reason why that is unknown.

    Args:
        asked: the kernel; the first of its targets is compiled.
        good: the Triton before the culprit.
        bad: the culprit's.
        out: folder for both dumps: `good`, `bad`, and `good-llvm`, `bad-llvm` where those are needed.
        checkout: sources in which the file of the pass is searched; None for none.
        silent: show no progress.
    """
    asked = replace(asked, targets=asked.targets[:1])
    try:
        place = _parting(asked, good, bad, out, checkout, silent=silent)
    except SmithError as error:
        return PartingPass(Level.UNKNOWN, f"passes: not comparable: {error.what}")
    # Two commits of one clone seldom change the printer; two releases often do.
    doubt = f"; {_RELEASES}" if good.version and bad.version and place.good else ""
    return replace(place, sentence=f"passes: {place.sentence}{doubt}")


def _parting(
    asked: CompileRequest,
    good: Triton,
    bad: Triton,
    out: Path,
    checkout: Path | None,
    *,
    silent: bool,
) -> PartingPass:
    # LLVM's passes are dumped only where Triton's own end with the same IR, as there are many more. Where
    # those do, too, what is left is the assembler.
    for level, name in ((Level.PASSES, ""), (Level.LLVM, "-llvm")):
        llvm = level is Level.LLVM
        runs = (
            _dump(asked, good, out / f"good{name}", llvm=llvm, silent=silent),
            _dump(asked, bad, out / f"bad{name}", llvm=llvm, silent=silent),
        )
        # After the last pass that leaves the same IR in both: a front end that only writes its constants in
        # another order is not to blame.
        divergence = show.divergence(*runs, lasting=True)
        if divergence.mine or divergence.theirs:
            return _parting_pass(level, divergence, runs, checkout)
    sentence = "after all passes of Triton and LLVM, the IR is the same: the difference comes later"
    return PartingPass(Level.ASSEMBLER, sentence)


def _parting_pass(
    level: Level, divergence: Divergence, runs: tuple[ComparedRun, ComparedRun], checkout: Path | None
) -> PartingPass:
    good, bad = divergence.mine, divergence.theirs
    if divergence.already and good and bad:
        sentence = "the IR differs from the front end onwards"
        return PartingPass(
            Level.FRONT_END, sentence, good=runs[0].index.text(good), bad=runs[1].index.text(bad)
        )
    if not (good and bad and good.label == bad.label):
        alone = " and ".join(
            f"only {by} changes the IR of {dump.label}"
            for dump, by in ((good, "the good one"), (bad, "the bad one"))
            if dump
        )
        return PartingPass(Level.UNKNOWN, f"not one pass: after {divergence.same} passes, {alone}")
    source = pass_chain.find(good.argument, checkout) if checkout and good.argument else None
    file = source.file.relative_to(source.root).as_posix() if source else ""
    return PartingPass(
        level,
        f"{good.label} is the first pass after which the IR differs ({good.number} of the good one, "
        f"{bad.number} of the bad one){f': {file}' if file else ''}",
        good.label,
        file,
        _left(runs[0], good),
        _left(runs[1], bad),
    )


def _left(side: ComparedRun, dump: Dump) -> str:
    return side.index.text(show.after_pass(side.index, dump)) if show.shows(dump) else ""


def _dump(asked: CompileRequest, side: Triton, out: Path, *, llvm: bool, silent: bool) -> ComparedRun:
    # Without locations, which differ between Tritons where the IR does not.
    request = tritons.applied(asked, side)
    prepared = run.of_kernel(request, tritons.place_of(side, 1), Choices(llvm=llvm, line_info=False), out)
    index, _ = run.dump_kernel(prepared, silent=silent)
    run.check(index)
    return ComparedRun(index, choose_kernel(index, index.kernels[0].name))
