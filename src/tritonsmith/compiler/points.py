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
    """One compile to be run.

    Attributes:
        id: name of its folder: the target, and what differs between points.
        target: what for.
        bound: types, constants and hints of the kernel's parameters; None where the source is IR.
        options: of the backend.
        surgery: on the compiler's pipelines; None for none.
    """

    id: str
    target: Target
    bound: BoundSignature | None
    options: Mapping[str, Any] = field(default_factory=dict)
    surgery: Surgery | None = None


def expand(
    asked: CompileRequest, kernel: KernelSource | None, configs: Iterable[Config] = ()
) -> tuple[CompilePoint, ...]:
    """All points, targets outermost.

    Args:
        asked: what is wanted.
        kernel: its parameters; None where the source is IR.
        configs: of its autotuner, if they are to be compiled; the recorded ones if none.

    Raises:
        UsageError: the signature does not fit the kernel, a swept value its parameter, or an option
            the configs.
    """
    chosen: tuple[Config | None, ...] = (*configs,) or tuple(_recorded(asked, kernel)) or (None,)
    told = _telling(one for one in chosen if one)
    names = [sweep.name for sweep in asked.sweeps]
    choices = list(itertools.product(*(sweep.texts for sweep in asked.sweeps)))
    found: dict[str, CompilePoint] = {}
    variants = asked.variants or (asked.surgery,)
    for target, config, texts, surgery in itertools.product(asked.targets, chosen, choices, variants):
        swept = dict(zip(names, texts, strict=True))
        one = _point(asked, kernel, target, config, swept, told)
        label = surgery.label if surgery and asked.variants else ""
        one = replace(one, id=_id(one.id, {"surgery": label} if label else {}), surgery=surgery)
        found.setdefault(one.id, one)
    return tuple(found.values())


def summary(wanted: Sequence[CompilePoint]) -> Iterator[str]:
    """Many points in a few lines: what differs between them, how many values it has, and the first points."""
    seen: dict[str, dict[str, None]] = {"target": {}}
    for one in wanted:
        bound = one.bound
        named = {**bound.signature, **bound.constexprs} if bound else {}
        for name, value in {"target": str(one.target), **named, **one.options}.items():
            seen.setdefault(name, {})[value if isinstance(value, str) else values.spell(value)] = None
    for name, found in seen.items():
        if len(found) > 1:
            few = list(found)[:_FEW]
            yield f"{name}: {len(found)} values: {', '.join(few)}{', ...' if len(found) > len(few) else ''}"
    for one in wanted[:_FEW]:
        yield one.id
    if len(wanted) > _FEW:
        yield f"... and {len(wanted) - _FEW} more"


def _recorded(asked: CompileRequest, kernel: KernelSource | None) -> Iterator[Config]:
    names = {parameter.name for parameter in kernel.parameters} if kernel else set()
    for table in asked.configs:
        known = {name: values.parse(one) if isinstance(one, str) else one for name, one in table.items()}
        inside = {name: value for name, value in known.items() if name in names}
        yield Config(inside, {name: value for name, value in known.items() if name not in names})


def _telling(configs: Iterable[Config]) -> frozenset[str]:
    """Names of what is not the same in all configs."""
    tables = [{**one.values, **one.options} for one in configs]
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
    given: dict[str, Any] = {}
    labels = {}
    if config:
        given |= config.values
        if twice := sorted(set(options) & set(config.options)):
            raise UsageError(
                f"both a flag and the configs of @triton.autotune set {', '.join(twice)}",
                hints=[f"omit the flag; --sweep {twice[0]}=... overrides the configs"],
            )
        options |= config.options
        every = given | dict(config.options)
        labels = {name: values.spell(value) for name, value in every.items() if name in told}
    options |= {name: values.parse(text) for name, text in swept.items() if name not in parameters}
    labels |= swept
    bound = None
    if kernel:
        texts = {name: text for name, text in swept.items() if name in parameters}
        bound = signature.bind(asked.signature, kernel, given, texts)
    return CompilePoint(_id(target, labels), target, bound, options)


def _id(head: Target | str, labels: Mapping[str, str]) -> str:
    """`cuda-90-32`, `cuda-90-32,BLOCK=64,num_warps=4`: a name that every file system takes."""
    full = ",".join([str(head).replace(":", "-"), *(f"{name}={text}" for name, text in labels.items())])
    name = re.sub(r"[^\w.,=+-]", "_", full)
    if name == full and len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 9]}-{hashlib.sha256(full.encode()).hexdigest()[:8]}"
