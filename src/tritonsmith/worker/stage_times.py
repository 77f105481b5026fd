"""Measure the CPU seconds of each stage of a compile; started programs count, other load does not."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .json_types import Table

REST = "rest"  # the front end, which makes the first IR, and Triton's caches


@contextlib.contextmanager
def counted() -> Iterator[dict[str, float]]:
    """Measure the compiles in the body: stage to seconds, for stages that ran to their end."""
    import triton.backends

    seconds: dict[str, float] = {}
    kinds = [backend.compiler for backend in getattr(triton.backends, "backends", {}).values()]
    before = [kind.add_stages for kind in kinds]
    for kind in kinds:
        kind.add_stages = _counted_stages(kind.add_stages, seconds)
    began = _now()
    try:
        yield seconds
    finally:
        seconds[REST] = round(_now() - began - sum(seconds.values()), 3)
        for kind, real in zip(kinds, before):
            kind.add_stages = real


def _now() -> float:
    return sum(os.times()[:4])


def _counted_stages(real: Callable[..., Any], seconds: dict[str, float]) -> Callable[..., Any]:
    @functools.wraps(real)
    def add_stages(self: Any, stages: Table, *arguments: Any, **named: Any) -> Any:
        found = real(self, stages, *arguments, **named)
        for name, make in list(stages.items()):
            stages[name] = functools.partial(_made, seconds, name, make)
        return found

    return add_stages


def _made(seconds: dict[str, float], name: str, make: Callable[..., Any], *arguments: Any) -> Any:
    began = _now()
    found = make(*arguments)
    seconds[name] = round(_now() - began, 3)
    return found
