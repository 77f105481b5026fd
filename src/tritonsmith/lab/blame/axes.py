"""One text over all versions of what takes it: over Tritons, over LLVMs, over the ptxas of the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler.resources import measure
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import digest
from tritonsmith.core.versions import version_key
from tritonsmith.lab.blame import ptxas_run
from tritonsmith.lab.blame.components import Side
from tritonsmith.lab.blame.llc import Llc
from tritonsmith.lab.blame.pipeline import MixedPipeline
from tritonsmith.lab.blame.verdict import Figures

SIDES: tuple[Side, Side] = ("A", "B")


@dataclass(frozen=True)
class AxisRow:
    """One text, and what it becomes.

    Attributes:
        axis: `Triton`, `LLVM`, `ptxas`.
        text: whose it is: `ttgir of 3.6.0`.
        by: what took it: `3.9.0`, `llc 19.1.7`, `ptxas 12.9.86`.
        figures: registers, spills, code; or why there are none.
        note: what was not as Triton has it.
        side: whose text it is.
    """

    axis: str
    text: str
    by: str
    figures: Figures | str
    note: str = ""
    side: Side = "A"


def tritons(pipeline: MixedPipeline) -> Iterator[AxisRow]:
    """Each text of one Triton, and the rest by the same or the other."""
    last = pipeline.components[-1].name  # after which nothing is left for the other
    for stage in (one for one in pipeline.stages if one != last):
        at = pipeline.stages.index(stage) + 1
        for text in SIDES:
            for by in SIDES:
                choice = {
                    one.name: text if one.name in pipeline.stages[:at] else by for one in pipeline.components
                }
                labels = [pipeline.sides[side].label for side in (text, by)]
                figures = pipeline.try_figures(choice)
                yield AxisRow("Triton", f"{stage} of {labels[0]}", labels[1], figures, side=text)


def llvms(pipeline: MixedPipeline, every: Sequence[Llc]) -> Iterator[AxisRow]:
    """The llir of both by each LLVM, then the assembler of its own Triton."""
    for whose in SIDES:
        for llc in every:
            lacks: list[str] = []
            figures = _tried(lambda: _by_llc(pipeline, whose, llc, lacks))  # noqa: B023 - called at once
            note = f"without {', '.join(lacks)}" if lacks else ""
            label = pipeline.sides[whose].label
            yield AxisRow("LLVM", f"llir of {label}", llc.label, figures, note, whose)


def assemblers(pipeline: MixedPipeline, programs: Sequence[tuple[str, Path]]) -> Iterator[AxisRow]:
    """The PTX of both by each ptxas, with the flags of its own Triton.

    Args:
        pipeline: of both.
        programs: versions and programs; A's first, then B's. The rows go from there to there.
    """
    down = [version_key(version) for version, _ in programs[:2]]
    programs = sorted(programs, key=lambda one: version_key(one[0]), reverse=down[0] > down[-1])
    for whose in SIDES:
        side = pipeline.sides[whose]
        flags = pipeline.assembler(whose)[1]
        for version, program in programs:
            figures = _tried(lambda: pipeline.assembled(side.file("ptx"), program, flags, side.point))  # noqa: B023
            yield AxisRow("ptxas", f"ptx of {side.label}", f"ptxas {version}", figures, side=whose)


def _by_llc(pipeline: MixedPipeline, whose: Side, llc: Llc, lacks: list[str]) -> Figures:
    side, last = pipeline.sides[whose], pipeline.stages[-1]
    out = pipeline.work / f"{digest(whose, str(llc.program))[:12]}.{last}"
    lacks += pipeline.by_llc(whose, llc, out)
    if pipeline.backend == "cuda":
        program, flags = pipeline.assembler(whose)
        return pipeline.assembled(out, program, flags, side.point)
    path = pipeline.step(whose, last, out, "hsaco")[0]
    return ptxas_run.summary(measure.values(path, side.point.arch, side.point.metadata, None), "hip")


def _tried(make: Callable[[], Figures]) -> Figures | str:
    try:
        return make()
    except FactError as error:
        return ": ".join(filter(None, (error.what, error.why)))
