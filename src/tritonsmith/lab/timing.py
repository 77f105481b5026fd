"""Plan the timing of compiled kernels: which binaries, with which arguments, as a job of the worker.

Binaries come from output folders of `kernel.compile`. What the compiler does not know, the sizes of tensors,
the values of scalars and the grid, is said by flags or by a captured kernels file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.inspect.export_c.c_types import scratch_names
from tritonsmith.worker.time_binaries import Binary, Buffer, Parameter, TimedKernel, element_size

_CONSTEXPR = "constexpr"
_ONE = 1
BINARY = {"cuda": "cubin", "hip": "hsaco"}


@dataclass(frozen=True)
class Contents:
    """What a tensor holds: `random` from `low` to `high`, `zeros`, or `steps` of `high`."""

    fill: str = "random"
    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class Launch:
    """The arguments of a launch.

    Attributes:
        grid: number of programs along each axis.
        sizes: pointer to the number of its elements.
        values: scalar to its value.
        contents: pointer to what its memory holds; -1 to 1, or 0 for integers, where there is nothing.
    """

    grid: tuple[int, int, int]
    sizes: Mapping[str, int]
    values: Mapping[str, float]
    contents: Mapping[str, Contents] = field(default_factory=dict)


@dataclass(frozen=True)
class Member:
    """One binary to time: its label, the output folder it is in, the compile, and known figures of its code."""

    label: str
    manifest: Manifest
    point: Point
    figures: Mapping[str, Any] = field(default_factory=dict)


def kernel(name: str, members: Sequence[Member], launch: Launch, folder: Path) -> TimedKernel:
    """Return a kernel of a job.

    Args:
        name: its name in tables.
        members: its binaries; the first is what others are compared with.
        launch: the arguments, for all of them.
        folder: the folder of the job, to which paths of binaries are relative.

    Raises:
        FactError: a binary is missing.
        UsageError: an argument is missing, or has a type that cannot be passed.
    """
    # Binaries may leave out parameters, as releases or hints make them constants: all that any takes are
    # listed, in the order of the source.
    kinds: dict[str, str] = {}
    for member in members:
        kinds |= {each: kind for each, kind in member.point.signature.items() if kind != _CONSTEXPR}
    order = list(members[0].point.signature)
    buffers: list[Buffer] = []
    parameters: list[Parameter] = []
    for each, kind in sorted(kinds.items(), key=lambda item: order.index(item[0]) if item[0] in order else 0):
        parameters.append(_parameter(name, each, kind, launch, buffers))
    numbers = {parameter.name: number for number, parameter in enumerate(parameters)}
    return TimedKernel(
        name,
        tuple(buffers),
        tuple(parameters),
        tuple(_binary(each, numbers, launch, folder) for each in members),
    )


def _parameter(kernel: str, name: str, kind: str, launch: Launch, buffers: list[Buffer]) -> Parameter:
    if kind.startswith("*"):
        dtype = kind[1:].removeprefix("k")
        if name not in launch.sizes:
            hints = [f"say how many elements it has: --size {name}=4096"]
            raise UsageError(f"{kernel}: the size of {name} is not known", hints=hints)
        whole = dtype[:1] in "iu"
        held = launch.contents.get(name) or (Contents("zeros") if whole else Contents())
        buffers.append(Buffer(name, dtype, launch.sizes[name], held.fill, held.low, held.high))
        return Parameter(name, kind, buffer=len(buffers) - 1)
    try:
        element_size(kind)
    except ValueError:
        hints = ["pass a pointer and its strides", "time a kernel without it"]
        raise UsageError(
            f"{kernel}: {name} has the type {kind}, which cannot be passed here", hints=hints
        ) from None
    if name not in launch.values:
        raise UsageError(f"{kernel}: the value of {name} is not known", hints=[f"--size {name}=1024"])
    return Parameter(name, kind, value=launch.values[name])


def _binary(member: Member, numbers: Mapping[str, int], launch: Launch, folder: Path) -> Binary:
    point, manifest = member.point, member.manifest
    path = manifest.path(point, BINARY[point.backend])
    if path is None:
        why = point.gist or f"its stages: {', '.join(point.stages) or 'none'}"
        raise FactError(f"{point.id} has no binary to time", where=manifest.folder, why=why)
    known = point.metadata
    warp = int(known.get("warp_size") or point.target.rsplit(":", 1)[1])
    # A parameter whose hint is 1 is a constant of the code, and no parameter of the binary.
    taken = [
        numbers[each]
        for each, kind in point.signature.items()
        if kind != _CONSTEXPR and point.hints.get(each) != _ONE
    ]
    clusters = known.get("cluster_dims") or [known.get("num_ctas") or 1]
    ctas = 1
    for size in clusters:
        ctas *= int(size)
    return Binary(
        label=member.label,
        path=str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path),
        symbol=str(known.get("name") or manifest.kernel),
        parameters=tuple(taken),
        grid=launch.grid,
        threads=int(known.get("num_warps") or 4) * warp,
        shared=int(known.get("shared") or 0),
        ctas=ctas,
        cooperative=bool(known.get("launch_cooperative_grid")),
        scratch=tuple(int(known.get(f"{each}_size") or 0) for each in scratch_names(manifest.triton, point)),
        figures=member.figures,
    )
