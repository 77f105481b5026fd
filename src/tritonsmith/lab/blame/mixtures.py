"""The mixtures of two Tritons that `blame` compiles, and what their figures say of each component."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import Value
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import MakeDir, Plan, digest
from tritonsmith.core.text import version_key
from tritonsmith.lab.blame import pipeline
from tritonsmith.lab.blame.llc import Llc
from tritonsmith.lab.blame.pipeline import (
    PHASE,
    BlameComponent,
    Choice,
    ComponentGroup,
    Figures,
    MixedPipeline,
    Side,
    partitions,
)
from tritonsmith.lab.experiment import Search
from tritonsmith.lab.journal import Journal, Observation, Verdict

SIDES: tuple[Side, Side] = ("A", "B")
WORDS = {
    Verdict.GOOD: "compiles",
    Verdict.BAD: "differs",
    Verdict.OTHER: "does not compile",
    Verdict.SKIP: "not tested",
}

Measured = tuple[Figures, str]  # figures, and a remark where they deviate from Triton's own way


@dataclass(frozen=True)
class Mixture:
    """One way from the kernel to a binary; a change that the experiment of a blame tests.

    Attributes:
        name: in the journal, and of `--skip`.
        measure: makes it, and returns its figures, and a remark where it deviates from Triton's own way.
        pure: whether it is all of one side, and so has to compile.
    """

    name: str
    measure: Callable[[MixedPipeline], Measured]
    pure: bool = False


@dataclass(frozen=True)
class AxisRow:
    """One text, and what it becomes.

    Attributes:
        axis: `Triton`, `LLVM`, `ptxas`.
        text: its stage and its Triton: `ttgir of 3.6.0`.
        by: the program that compiled it: `3.9.0`, `llc 19.1.7`, `ptxas 12.9.86`.
        figures: registers, spills, code; or the reason why there are none.
        note: a remark where this deviates from Triton's own way.
        side: the side that the text is from.
    """

    axis: str
    text: str
    by: str
    figures: Figures | str
    note: str = ""
    side: Side = "A"


@dataclass(frozen=True)
class Flip:
    """A group of components changed alone, in both directions.

    Attributes:
        group: the group.
        in_a: the figures of A with B's components of the group, or the reason why there are none.
        in_b: the figures of B with A's, or the reason why there are none.
    """

    group: ComponentGroup
    in_a: Figures | str
    in_b: Figures | str


@dataclass(frozen=True)
class MixedFigures:
    """The figures of all mixtures of one compile.

    Attributes:
        replayed: of A and of B, made step by step.
        flips: of each group of components changed alone.
        rows: of the axes.
        notes: texts that were read in another spelling.
    """

    replayed: tuple[Figures, Figures]
    flips: tuple[Flip, ...]
    rows: tuple[AxisRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class MixtureTests:
    """Tests mixtures, each by the steps that no mixture before it has taken.

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
        """Return a pipeline that keeps no step of an earlier test: a step that is kept confirms nothing."""
        # The first test of each mixture shares its steps with the other mixtures.
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
    # Whatever is mixed is compared with these, not with the compiles of both: single steps do not repeat each
    # compile, so the difference would be taken for that of a component.
    ends = yield [_by_choice(f"{point}: all of {side}", mixed.pure(side), pure=True) for side in SIDES]
    if missing := [end for end in ends if end.verdict is not Verdict.GOOD]:
        raise FactError("there is nothing to compare the mixtures with", why=missing[0].why)
    # Whole axes, too: steps that only change something together have no effect alone.
    groups = pipeline.groups_of(mixed.components)
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
    # The program names the file, as several of these LLVMs may have one version.
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
    """Yield the PTX of both by each ptxas, with the flags of its own Triton."""
    # From A's version to B's, so that the step between two neighbours is read in the direction of the change.
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


@dataclass(frozen=True)
class Share:
    """The share of a change that a group explains; 1 is all of it.

    Attributes:
        group: the group.
        from_a: what it does in A; None if that is not known.
        from_b: what it undoes in B; None if that is not known.
    """

    group: ComponentGroup
    from_a: float | None
    from_b: float | None

    @property
    def known(self) -> bool:
        """Report whether both directions were measured."""
        return self.from_a is not None and self.from_b is not None

    @property
    def words(self) -> str:
        """`38 %`, or `13 to 38 %`."""
        known = sorted(round(100 * share) for share in (self.from_a, self.from_b) if share is not None)
        if not known:
            return "unknown"
        return f"{known[0]} %" if known[0] == known[-1] else f"{known[0]} to {known[-1]} %"


@dataclass(frozen=True)
class BlameFinding:
    """The finding for one metric.

    Attributes:
        metric: `spills`.
        a: value by A.
        b: by B.
        culprits: what explains the change: one group, or several that share it; none if that is not decided.
        words: the finding in a sentence.
        shares: of all groups.
    """

    metric: str
    a: Value
    b: Value
    culprits: tuple[ComponentGroup, ...]
    words: str
    shares: tuple[Share, ...]

    @property
    def decided(self) -> bool:
        """Report whether the culprit is known."""
        return bool(self.culprits)


def decide(
    metric: str, ends: tuple[Figures, Figures], replayed: tuple[Figures, Figures], flips: Sequence[Flip]
) -> BlameFinding | None:
    """Decide which component changed a metric; None if it did not change.

    Args:
        metric: of the figures.
        ends: by A and by B.
        replayed: by A and by B, step by step as the mixtures of both are made.
        flips: of all groups.
    """
    # A component is changed alone in A, towards B, and alone in B, back to A. Only where both agree it is
    # blamed: one direction alone may show what another component made of it.
    a, b = (figures.get(metric) for figures in ends)
    # Two values that are unknown are not equal: that is left undecided.
    if a == b and a is not None:
        return None
    if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return BlameFinding(metric, a, b, (), f"not decided: {metric} {_spelled(a)} -> {_spelled(b)}", ())
    shares = tuple(_share(metric, replayed, b - a, flip) for flip in flips)
    rest = _rest(metric, (a, b), replayed)
    table = configs.load("blame")["share"]
    # What single steps do not repeat belongs to no component: if it is too much, none can be blamed.
    if rest is not None and abs(rest) <= 1 - table["low"]:
        for share in shares:  # single ones come first
            # A group of several axes that explains everything only says that it was one of them.
            if _explains(share, table) and len(share.group.axes) == 1:
                return BlameFinding(metric, a, b, (share.group,), share.group.title, shares)
        if shared := _shared(shares, flips, table):
            words = ", ".join(f"{share.group.title} {share.words}" for share in shared)
            return BlameFinding(metric, a, b, tuple(share.group for share in shared), words, shares)
    return BlameFinding(metric, a, b, (), f"not decided: {'; '.join(_doubts(shares, rest, table))}", shares)


def _share(metric: str, replayed: tuple[Figures, Figures], change: float, flip: Flip) -> Share:
    first, last = (figures.get(metric) for figures in replayed)
    changed = (_value(figures, metric) for figures in (flip.in_a, flip.in_b))
    in_a, in_b = changed
    known_a = isinstance(first, (int, float)) and in_a is not None
    known_b = isinstance(last, (int, float)) and in_b is not None
    # Both are shares of the change between the compiles, not between their replays: what single steps do not
    # repeat has to show, in `_rest`.
    return Share(
        flip.group,
        (in_a - first) / change if known_a else None,  # type: ignore[operator]
        (last - in_b) / change if known_b else None,  # type: ignore[operator]
    )


def _rest(metric: str, ends: tuple[float, float], replayed: tuple[Figures, Figures]) -> float | None:
    """Return the share that single steps do not repeat, such as that of the version of PTX."""
    known = [_value(figures, metric) for figures in replayed]
    if known[0] is None or known[1] is None:
        return None
    return 1 - (known[1] - known[0]) / (ends[1] - ends[0])


def _value(figures: Figures | str, metric: str) -> float | None:
    value = None if isinstance(figures, str) else figures.get(metric)
    return value if isinstance(value, (int, float)) else None


def _explains(share: Share, table: Mapping[str, float]) -> bool:
    both = (share.from_a, share.from_b)
    return all(explained is not None and table["low"] <= explained <= table["high"] for explained in both)


def _shared(shares: Sequence[Share], flips: Sequence[Flip], table: Mapping[str, float]) -> list[Share]:
    """Return the finest parts that add up, each with the same share in both directions."""
    # Components that depend on each other have one share in A and another in B: coarser parts may not.
    for parts in partitions(_components(flips)):
        members = [share for group in parts for share in shares if share.group == group]
        # A part that could not be exchanged alone is not among the flips, and the others do not add up to the
        # whole.
        if len(members) != len(parts) or not all(_agrees(share, table) for share in members):
            continue
        sums = (sum(share.from_a or 0 for share in members), sum(share.from_b or 0 for share in members))
        # A part that explains next to nothing belongs to the sum, but not to the answer.
        culprits = [share for share in members if abs(share.from_a or 0) > table["agree"]]
        if all(abs(total - 1) <= table["agree"] for total in sums) and all(
            len(share.group.axes) == 1 for share in culprits
        ):
            return culprits
    return []


def _agrees(share: Share, table: Mapping[str, float]) -> bool:
    if share.from_a is None or share.from_b is None:
        return False
    return abs(share.from_a - share.from_b) <= table["agree"]


def _doubts(shares: Sequence[Share], rest: float | None, table: Mapping[str, float]) -> Iterator[str]:
    """Describe what is known without a culprit: the finest parts that both directions measured."""
    if rest is None or abs(rest) > 1 - table["low"]:
        missing = "an unknown share" if rest is None else f"{round(100 * rest)} %"
        yield f"{missing} of the change is not reproduced step by step"
    by_group = {share.group: share for share in shares}
    together = next(
        (share for share in shares if len(share.group.axes) > 1 and _explains(share, table)), None
    )
    if together:
        yield f"{together.group.title} explain {together.words} together; their effects cannot be separated"
        return
    components = [share.group.parts[0] for share in shares if len(share.group.parts) == 1]
    for parts in partitions(components):
        members = [by_group[group] for group in parts if group in by_group]
        if members and all(share.known for share in members):
            effects = ", ".join(
                f"{share.group.title} {share.words}" for share in members if share.words != "0 %"
            )
            yield f"{effects or 'none of them has an effect alone'}: they depend on each other"
            break
    else:
        yield "not every step can be changed alone"
    known = [share for share in shares if share.known and len(share.group.parts) == 1]
    most = max(known, key=_certain, default=None)
    if most and _certain(most) > table["agree"]:
        yield f"the largest share of one step alone: {most.group.title} {most.words}"


def _certain(share: Share) -> float:
    """Return the share that a group explains at least."""
    return min(share.from_a or 0.0, share.from_b or 0.0)


def _components(flips: Sequence[Flip]) -> list[BlameComponent]:
    return [flip.group.parts[0] for flip in flips if len(flip.group.parts) == 1]


def _spelled(value: Value) -> str:
    return "unknown" if value is None else str(value)
