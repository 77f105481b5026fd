"""Expand a request into points: one per target, config and combination of swept values."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tritonsmith.compiler import signature, values
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.signature import BoundSignature
from tritonsmith.compiler.source import KernelSource
from tritonsmith.compiler.surgery import Surgery
from tritonsmith.compiler.targets import Target
from tritonsmith.core.errors import UsageError

_FEW = 8  # values, and points, of a summary
_LONGEST = 120  # characters of a folder's name


@dataclass(frozen=True)
class Config:
    """One config of `@triton.autotune`.

    Attributes:
        values: of the kernel's parameters.
        options: num_warps, num_stages ...
    """

    values: Mapping[str, Any]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class CompilePoint:
    """A compile to run.

    Attributes:
        id: name of its folder: the target, and the values that differ between points.
        target: the GPU.
        bound: types, constants and hints of the kernel's parameters; None if the source is IR.
        options: of the backend.
        surgery: changes to the compiler's pipelines; None for none.
    """

    id: str
    target: Target
    bound: BoundSignature | None
    options: Mapping[str, Any] = field(default_factory=dict)
    surgery: Surgery | None = None


def expand(
    asked: CompileRequest, kernel: KernelSource | None, configs: Iterable[Config] = ()
) -> tuple[CompilePoint, ...]:
    """Return all points, targets outermost.

    Args:
        asked: the request.
        kernel: its parameters; None if the source is IR.
        configs: of its autotuner, if they are to be compiled; the recorded ones if empty.

    Raises:
        UsageError: the signature does not fit the kernel, a swept value its parameter, or an option
            the configs.
    """
    chosen: tuple[Config | None, ...] = (*configs,) or tuple(_recorded(asked, kernel)) or (None,)
    varying = _telling(point for point in chosen if point)
    names = [sweep.name for sweep in asked.sweeps]
    choices = list(itertools.product(*(sweep.texts for sweep in asked.sweeps)))
    points: dict[str, CompilePoint] = {}
    variants = asked.variants or (asked.surgery,)
    for target, config, texts, surgery in itertools.product(asked.targets, chosen, choices, variants):
        swept = dict(zip(names, texts, strict=True))
        point = _point(asked, kernel, target, config, swept, varying)
        label = surgery.label if surgery and asked.variants else ""
        point = replace(point, id=_id(point.id, {"surgery": label} if label else {}), surgery=surgery)
        points.setdefault(point.id, point)
    return tuple(points.values())


def summary(wanted: Sequence[CompilePoint]) -> Iterator[str]:
    """Summarize many points in a few lines: the number of values of each name, and the first points."""
    by_name: dict[str, dict[str, None]] = {"target": {}}
    for point in wanted:
        bound = point.bound
        named = {**bound.signature, **bound.constexprs} if bound else {}
        for name, value in {"target": str(point.target), **named, **point.options}.items():
            by_name.setdefault(name, {})[value if isinstance(value, str) else values.spell(value)] = None
    for name, taken in by_name.items():
        if len(taken) > 1:
            few = list(taken)[:_FEW]
            yield f"{name}: {len(taken)} values: {', '.join(few)}{', ...' if len(taken) > len(few) else ''}"
    for point in wanted[:_FEW]:
        yield point.id
    if len(wanted) > _FEW:
        yield f"... and {len(wanted) - _FEW} more"


def _recorded(asked: CompileRequest, kernel: KernelSource | None) -> Iterator[Config]:
    names = {parameter.name for parameter in kernel.parameters} if kernel else set()
    for table in asked.configs:
        known = {name: values.parse(each) if isinstance(each, str) else each for name, each in table.items()}
        inside = {name: value for name, value in known.items() if name in names}
        yield Config(inside, {name: value for name, value in known.items() if name not in names})


def _telling(configs: Iterable[Config]) -> frozenset[str]:
    """Return the names whose values differ between configs."""
    tables = [{**config.values, **config.options} for config in configs]
    names = {name for table in tables for name in table}
    return frozenset(name for name in names if len({values.spell(table.get(name)) for table in tables}) > 1)


def _point(
    asked: CompileRequest,
    kernel: KernelSource | None,
    target: Target,
    config: Config | None,
    swept: Mapping[str, str],
    told: frozenset[str],
) -> CompilePoint:
    parameters = {parameter.name for parameter in kernel.parameters} if kernel else set()
    options = dict(asked.options)
    fixed: dict[str, Any] = {}
    labels = {}
    if config:
        fixed |= config.values
        if twice := sorted(set(options) & set(config.options)):
            raise UsageError(
                f"both a flag and the configs of @triton.autotune set {', '.join(twice)}",
                hints=[f"omit the flag; --sweep {twice[0]}=... overrides the configs"],
            )
        options |= config.options
        every = fixed | dict(config.options)
        labels = {name: values.spell(value) for name, value in every.items() if name in told}
    options |= {name: values.parse(text) for name, text in swept.items() if name not in parameters}
    labels |= swept
    bound = None
    if kernel:
        texts = {name: text for name, text in swept.items() if name in parameters}
        bound = signature.bind(asked.signature, kernel, fixed, texts)
    return CompilePoint(_id(target, labels), target, bound, options)


def _id(head: Target | str, labels: Mapping[str, str]) -> str:
    """Return a name that every file system accepts: `cuda-90-32`, `cuda-90-32,BLOCK=64,num_warps=4`."""
    full = ",".join([str(head).replace(":", "-"), *(f"{name}={text}" for name, text in labels.items())])
    name = re.sub(r"[^\w.,=+-]", "_", full)
    if name == full and len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 9]}-{hashlib.sha256(full.encode()).hexdigest()[:8]}"
