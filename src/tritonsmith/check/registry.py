"""The registry of known operations, by their names in MLIR."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

OPERATIONS: dict[str, Callable[..., Any]] = {}


THREADED: dict[str, Callable[..., Any]] = {}  # those of lowered IR, where a value is an array over threads


def known(
    *names: str, table: dict[str, Callable[..., Any]] = OPERATIONS
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that runs operations: it gets the run, the operation and the operands' values."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        table.update(dict.fromkeys(names, function))
        return function

    return register


threaded = partial(known, table=THREADED)
