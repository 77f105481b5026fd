"""The components between a kernel and its binary, each of which may be that of A or of B."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

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
        return tuple(one.name for one in self.parts)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of its components, each once."""
        return tuple(dict.fromkeys(one.axis for one in self.parts))

    @property
    def title(self) -> str:
        """In words: the axis, and what of it."""
        if len(self.parts) == 1:
            one = self.parts[0]
            return one.what if one.axis.partition(" ")[0] in one.what else f"{one.axis} ({one.what})"
        return " and ".join(self.axes)


def of(backend: str, texts: Iterable[str]) -> tuple[BlameComponent, ...]:
    """The components of a vendor's pipeline, for the stages that both compiles have."""
    here = set(texts)
    names = [*(name for name in TEXTS[backend] if name in here), *ENDS[backend]]
    table = {row["name"]: BlameComponent(**row) for row in configs.load("blame")["component"]}
    return tuple(table[name] for name in names)


def groups(components: Sequence[BlameComponent]) -> tuple[ComponentGroup, ...]:
    """Return the groups to exchange: each component, each axis, and all before the last axis, each once."""
    single = [(one,) for one in components]
    axes = list(dict.fromkeys(one.axis for one in components))
    whole = [tuple(one for one in components if one.axis == axis) for axis in axes]
    front = tuple(one for one in components if one.axis != axes[-1])
    return tuple(ComponentGroup(parts) for parts in dict.fromkeys([*single, *whole, front]))


def partitions(components: Sequence[BlameComponent]) -> tuple[tuple[ComponentGroup, ...], ...]:
    """Ways to cut the pipeline into parts, the finest first: steps, axes, all before the last axis."""
    every = groups(components)
    axes = list(dict.fromkeys(one.axis for one in components))
    single = every[: len(components)]
    whole = tuple(group for axis in axes for group in every if group.parts == _of_axis(axis, components))
    front = every[-1]
    return tuple(dict.fromkeys((single, whole, (front, whole[-1]))))


def _of_axis(axis: str, components: Sequence[BlameComponent]) -> tuple[BlameComponent, ...]:
    return tuple(one for one in components if one.axis == axis)
