"""What the worker leaves of a run: a line of JSON about Triton, and one for each point."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tritonsmith import configs
from tritonsmith.errors import SmithError
from tritonsmith.kernels import disassembly
from tritonsmith.kernels.manifest import Manifest


def read(path: Path) -> list[dict[str, Any]]:
    """All lines, the one about Triton first.

    Raises:
        SmithError: there are none.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines:
        raise SmithError("the worker left no results", where=path)
    return [json.loads(line) for line in lines]


def notes(head: Mapping[str, Any], made: Manifest, keep: tuple[str, ...]) -> Iterator[str]:
    """What a person should know of a run that was a success.

    Args:
        head: the line about Triton.
        made: what came out.
        keep: stages that are wanted; empty for all.
    """
    yield from head["notes"]
    if head["stand-ins"]:
        names = ", ".join(head["stand-ins"])
        yield f"not installed, and replaced while the file was loaded: {names}"
    for binary, row in configs.load("kernels")["disassemblers"].items():
        stage = row["stage"]
        without = [one for one in made.points if binary in one.stages and stage not in one.stages]
        if without and stage in head["missing"]:
            yield disassembly.remedy(stage)
        elif without and not keep:
            yield f"no {stage} for {', '.join(one.id for one in without)}: the log of a point has the reason"
    good = [one for one in made.points if one.status == "ok"]
    here = {name for one in good for name in one.stages}
    binaries = {row["stage"]: binary for binary, row in configs.load("kernels")["disassemblers"].items()}
    for name in keep if good else ():
        if name not in here and binaries.get(name) not in here:
            yield f"no point has a stage {name}: none of these targets makes one"
