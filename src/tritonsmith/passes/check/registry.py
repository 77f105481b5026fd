"""The operations that are known, each by its name in MLIR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

OPERATIONS: dict[str, Callable[..., Any]] = {}


def known(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that runs operations: it gets the run, the operation and the operands' values."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return register
