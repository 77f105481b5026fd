"""Which component explains a change: from figures of pipelines in which some components are those of B.

A component is changed alone in A, towards B, and alone in B, back to A. Only if both agree, it is blamed.

The components between a kernel and its binary, each of which may be that of A or of B.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tritonsmith.compiler.resources.measure import Value
from tritonsmith.core import configs

Side = Literal["A", "B"]
Choice = Mapping[str, Side]  # component to whose it is

TEXTS = {"cuda": ("ttir", "ttgir", "llir", "ptx"), "hip": ("ttir", "ttgir", "llir", "amdgcn")}
ENDS = {
    "cuda": ("flags", "ptxas"),
    "hip": (),
}  # what makes the binary of the last text; for AMD that LLVM itself


@dataclass(frozen=True)
class BlameComponent:
    """One step of the pipeline.

    Attributes:
        name: `ttgir`, `ptxas`.
        axis: that the result is told by: `Triton's passes`, `LLVM`, `ptxas`.
        what: in words: `ttir to ttgir`.
    """

    name: str
    axis: str
    what: str


@dataclass(frozen=True)
class ComponentGroup:
    """Components that are changed together.

    Attributes:
        parts: in the order of the pipeline.
    """

    parts: tuple[BlameComponent, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its components."""
        return tuple(part.name for part in self.parts)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of its components, each once."""
        return tuple(dict.fromkeys(part.axis for part in self.parts))

    @property
    def title(self) -> str:
        """In words: the axis, and what of it."""
        if len(self.parts) == 1:
            part = self.parts[0]
            return part.what if part.axis.partition(" ")[0] in part.what else f"{part.axis} ({part.what})"
        return " and ".join(self.axes)


def of(backend: str, texts: Iterable[str]) -> tuple[BlameComponent, ...]:
    """The components of a vendor's pipeline, for the stages that both compiles have."""
    here = set(texts)
    names = [*(name for name in TEXTS[backend] if name in here), *ENDS[backend]]
    table = {row["name"]: BlameComponent(**row) for row in configs.load("blame")["component"]}
    return tuple(table[name] for name in names)


def groups(components: Sequence[BlameComponent]) -> tuple[ComponentGroup, ...]:
    """Return the groups to exchange: each component, each axis, and all before the last axis, each once."""
    single = [(part,) for part in components]
    axes = list(dict.fromkeys(part.axis for part in components))
    whole = [tuple(part for part in components if part.axis == axis) for axis in axes]
    front = tuple(part for part in components if part.axis != axes[-1])
    return tuple(ComponentGroup(parts) for parts in dict.fromkeys([*single, *whole, front]))


def partitions(components: Sequence[BlameComponent]) -> tuple[tuple[ComponentGroup, ...], ...]:
    """Ways to cut the pipeline into parts, the finest first: steps, axes, all before the last axis."""
    every = groups(components)
    axes = list(dict.fromkeys(part.axis for part in components))
    single = every[: len(components)]
    whole = tuple(group for axis in axes for group in every if group.parts == _of_axis(axis, components))
    front = every[-1]
    return tuple(dict.fromkeys((single, whole, (front, whole[-1]))))


def _of_axis(axis: str, components: Sequence[BlameComponent]) -> tuple[BlameComponent, ...]:
    return tuple(part for part in components if part.axis == axis)


Figures = Mapping[str, Value]  # metric to value


@dataclass(frozen=True)
class Flip:
    """A group of components changed alone, in both directions.

    Attributes:
        group: what was changed.
        in_a: the figures of A with that of B, or why there are none.
        in_b: the figures of B with that of A, or why there are none.
    """

    group: ComponentGroup
    in_a: Figures | str
    in_b: Figures | str


@dataclass(frozen=True)
class Share:
    """The share of a change that a group explains; 1 is all of it.

    Attributes:
        group: it.
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
    """The answer for one metric.

    Attributes:
        metric: `spills`.
        a: value by A.
        b: by B.
        culprits: what explains the change: one group, or several that share it; none if that is not decided.
        words: the answer in a sentence.
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
    """Decide who changed a metric; None if it did not change.

    Args:
        metric: of the figures.
        ends: by A and by B.
        replayed: by A and by B, step by step as the mixtures of both are made.
        flips: of all groups.
    """
    a, b = (figures.get(metric) for figures in ends)
    if a == b and a is not None:
        return None
    if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return BlameFinding(metric, a, b, (), f"not decided: {metric} {_spelled(a)} -> {_spelled(b)}", ())
    shares = tuple(_share(metric, replayed, b - a, flip) for flip in flips)
    rest = _rest(metric, (a, b), replayed)
    table = configs.load("blame")["share"]
    # What single steps do not repeat belongs to no component: too much of it, and nobody can be blamed.
    if rest is not None and abs(rest) <= 1 - table["low"]:
        for share in shares:  # single ones come first
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
        if len(members) != len(parts) or not all(_agrees(share, table) for share in members):
            continue
        sums = (sum(share.from_a or 0 for share in members), sum(share.from_b or 0 for share in members))
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
