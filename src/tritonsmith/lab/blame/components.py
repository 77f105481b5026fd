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
