"""The search of `blame`: which mixtures of two Tritons are compiled, and what a table has of each.

First all of A and all of B, step by step; then each group of components alone in either of them; then the
axes: one text over Tritons, over LLVMs, and over versions of ptxas.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tritonsmith.compiler.resources import measure
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import MakeDir, Plan, digest
from tritonsmith.core.text import version_key
from tritonsmith.lab.blame import pipeline, verdict
from tritonsmith.lab.blame.llc import Llc
from tritonsmith.lab.blame.pipeline import PHASE, MixedPipeline
from tritonsmith.lab.blame.verdict import Choice, Figures, Flip, Side
from tritonsmith.lab.experiment import Search
from tritonsmith.lab.journal import Journal
from tritonsmith.lab.model import Observation, Verdict

SIDES: tuple[Side, Side] = ("A", "B")
WORDS = {
    Verdict.GOOD: "compiles",
    Verdict.BAD: "differs",
    Verdict.OTHER: "does not compile",
    Verdict.SKIP: "not tested",
}

Measured = tuple[Figures, str]  # figures, and what was not as Triton has it


@dataclass(frozen=True)
class Mixture:
    """One way from the kernel to a binary.

    Attributes:
        name: in the journal, and of `--skip`.
        measure: makes it, and returns its figures and what was not as Triton has it.
        pure: all of one side, which has to compile.
    """

    name: str
    measure: Callable[[MixedPipeline], Measured]
    pure: bool = False


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


@dataclass(frozen=True)
class MixedFigures:
    """The figures of all mixtures of one compile.

    Attributes:
        replayed: of A and of B, made step by step.
        flips: of each group of components changed alone.
        rows: of the axes.
        notes: what was read in another spelling.
    """

    replayed: tuple[Figures, Figures]
    flips: tuple[Flip, ...]
    rows: tuple[AxisRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class MixtureTests:
    """Tests mixtures, each by the steps that are left of it.

    Attributes:
        pipeline: of both Tritons.
        journal: of the experiment.
        space: the workspace.
    """

    pipeline: MixedPipeline
    journal: Journal
    space: Workspace
    _rounds: dict[int, MixedPipeline] = field(default_factory=dict)

    def __call__(self, mixtures: Sequence[Mixture]) -> Iterator[Observation]:
        """Yield what each mixture compiles to.

        Raises:
            FactError: all of one side does not compile, so that there is nothing to compare with.
        """
        for mixture in mixtures:
            mixed = self._of_round(len(self.journal.observations[mixture.name]))
            mixed.notes.clear()  # a journal has the notes of each mixture, so a resumed run shows the same
            began = time.monotonic()
            try:
                figures, note = mixture.measure(mixed)
            except FactError as error:
                if mixture.pure:
                    raise
                test = Observation(Verdict.OTHER, why=": ".join(filter(None, (error.what, error.why))))
            else:
                values = ", ".join(f"{name} {value}" for name, value in figures.items())
                test = Observation(Verdict.GOOD, values, note, metrics=dict(figures))
            yield replace(test, seconds=time.monotonic() - began, notes=tuple(mixed.notes))

    def _of_round(self, number: int) -> MixedPipeline:
        """Return a pipeline that has made nothing for a test before: a step that is kept confirms nothing."""
        if number == 0:
            return self.pipeline
        if number not in self._rounds:
            work = self.pipeline.work / f"again-{number}"
            self.space.run(Plan(PHASE, (MakeDir(work, phase=PHASE),)), PHASE, quiet=True)
            self._rounds[number] = self.pipeline.afresh(work)
        return self._rounds[number]


def search(
    point: str, mixed: MixedPipeline, llcs: Sequence[Llc], assemblers: Sequence[tuple[str, Path]]
) -> Search[Mixture, MixedFigures]:
    """Ask for all mixtures of one compile.

    Args:
        point: name of the compile; names in the journal begin with it.
        mixed: the pipeline of both Tritons.
        llcs: of LLVMs.
        assemblers: versions and programs of ptxas; A's first, then B's. Empty for AMD.

    Raises:
        FactError: all of one side was not tested.
    """
    # Whatever is mixed is compared with these, as some Tritons are not repeated by single steps.
    ends = yield [_by_choice(f"{point}: all of {side}", mixed.pure(side), pure=True) for side in SIDES]
    if missing := [end for end in ends if end.verdict is not Verdict.GOOD]:
        raise FactError("there is nothing to compare the mixtures with", why=missing[0].why)
    groups = verdict.groups(mixed.components)
    alone = [
        _by_choice(
            f"{point}: {'+'.join(group.names)} of {other} in {base}",
            {**mixed.pure(base), **dict.fromkeys(group.names, other)},
        )
        for group in groups
        for base, other in (SIDES, SIDES[::-1])
    ]
    single = yield alone
    flips = tuple(
        Flip(group, _figures(in_a), _figures(in_b))
        for group, in_a, in_b in zip(groups, single[::2], single[1::2], strict=True)
    )
    rows = [*_tritons(point, mixed), *_llvms(point, mixed, llcs), *_assemblers(point, mixed, assemblers)]
    along = yield [mixture for _, mixture in rows]
    filled = tuple(
        replace(row, figures=_figures(test), note=test.why if test.verdict is Verdict.GOOD else "")
        for (row, _), test in zip(rows, along, strict=True)
    )
    notes = tuple(dict.fromkeys(note for test in (*ends, *single, *along) for note in test.notes))
    return MixedFigures((ends[0].metrics, ends[1].metrics), flips, filled, notes)


def _figures(test: Observation) -> Figures | str:
    return test.metrics if test.verdict is Verdict.GOOD else test.why


def _by_choice(name: str, choice: Choice, *, pure: bool = False) -> Mixture:
    return Mixture(name, lambda mixed: (mixed.figures(choice), ""), pure)


def _tritons(point: str, mixed: MixedPipeline) -> Iterator[tuple[AxisRow, Mixture]]:
    """Yield each text of one Triton, and the rest by the same or the other."""
    last = mixed.components[-1].name  # after which nothing is left for the other
    for stage in (name for name in mixed.stages if name != last):
        before = mixed.stages[: mixed.stages.index(stage) + 1]
        for text in SIDES:
            for by in SIDES:
                choice = {part.name: text if part.name in before else by for part in mixed.components}
                labels = [mixed.sides[side].label for side in (text, by)]
                row = AxisRow("Triton", f"{stage} of {labels[0]}", labels[1], {}, side=text)
                yield row, _by_choice(f"{point}: {stage} of {text} by {by}", choice)


def _llvms(point: str, mixed: MixedPipeline, llcs: Sequence[Llc]) -> Iterator[tuple[AxisRow, Mixture]]:
    """Yield the llir of both by each LLVM, then the assembler of its own Triton."""
    for side in SIDES:
        for llc in llcs:
            row = AxisRow("LLVM", f"llir of {mixed.sides[side].label}", llc.label, {}, side=side)
            yield row, Mixture(f"{point}: llir of {side} by {llc.label}", partial(_by_llc, side, llc))


def _by_llc(side: Side, llc: Llc, mixed: MixedPipeline) -> Measured:
    owner, last = mixed.sides[side], mixed.stages[-1]
    out = mixed.work / f"{digest(side, str(llc.program))[:12]}.{last}"
    lacks = mixed.by_llc(side, llc, out)
    note = f"without {', '.join(lacks)}" if lacks else ""
    if mixed.backend == "cuda":
        program, flags = mixed.assembler(side)
        return mixed.assembled(out, program, flags, owner.point), note
    path = mixed.step(side, last, out, "hsaco")[0]
    values = measure.values(path, owner.point.arch, owner.point.metadata, None)
    return pipeline.summary(values, "hip"), note


def _assemblers(
    point: str, mixed: MixedPipeline, programs: Sequence[tuple[str, Path]]
) -> Iterator[tuple[AxisRow, Mixture]]:
    """Yield the PTX of both by each ptxas, with the flags of its own Triton; from A's version to B's."""
    ends = [version_key(version) for version, _ in programs[:2]]
    down = bool(ends) and ends[0] > ends[-1]
    programs = sorted(programs, key=lambda program: version_key(program[0]), reverse=down)
    for side in SIDES:
        for version, program in programs:
            label = mixed.sides[side].label
            row = AxisRow("ptxas", f"ptx of {label}", f"ptxas {version}", {}, side=side)
            yield (
                row,
                Mixture(f"{point}: ptx of {side} by ptxas {version}", partial(_by_ptxas, side, program)),
            )


def _by_ptxas(side: Side, program: Path, mixed: MixedPipeline) -> Measured:
    owner = mixed.sides[side]
    return mixed.assembled(owner.file("ptx"), program, mixed.assembler(side)[1], owner.point), ""
