"""Rows of the worker of `kernel.time`, with samples that are drawn."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

STATE = {"sm_mhz": 1980, "memory_mhz": 3201, "celsius": 40, "watts": 350.0, "reasons": []}
DEVICE = {"name": "NVIDIA H200", "driver": 13000, "capability": 90, "processors": 132, "l2_bytes": 62914560}


def row(
    times: Mapping[str, float],
    *,
    name: str = "matmul",
    spread: float = 0.01,
    drift: float = 0.0,
    rounds: int = 30,
    seed: int = 0,
    states: Sequence[Mapping[str, Any]] = (STATE,),
    **more: Any,
) -> dict[str, Any]:
    """A row for binaries with these milliseconds; each round is slower than the one before by `drift`."""
    rule = random.Random(seed)  # noqa: S311 - no secret
    first = next(iter(times))
    labels = {**times, "": times[first]}
    samples = [
        {
            label: [milliseconds * (1 + drift * number) * rule.gauss(1, spread) for _ in range(8)]
            for label, milliseconds in labels.items()
        }
        for number in range(rounds)
    ]
    result = {
        "first": first,
        "rounds": samples,
        "states": list(states),
        "flushed": 125829120,
        "restored": False,
        "device": DEVICE,
    }
    outputs = {"written": ["c_ptr"], "empty": [], "steady": True, "adds": False}
    return {"name": name, "result": result, "outputs": outputs, "compared": {}, "failed": {}, **more}
