"""The results of a worker run: one JSON line about Triton, and one per point."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tritonsmith import configs
from tritonsmith.errors import SmithError
from tritonsmith.kernels.compile import disassemblers
from tritonsmith.kernels.compile.manifest import Manifest
from tritonsmith.kernels.compile.request import CompileRequest

_SHOWN = 4  # names of a package; the manifest has all


def read(path: Path) -> list[dict[str, Any]]:
    """All lines, the one about Triton first.

    Raises:
        SmithError: there are none.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines:
        raise SmithError("the worker wrote no results", where=path)
    return [json.loads(line) for line in lines]


def replaced(lines: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What stand-ins answered for, by full name, to the place of its first use."""
    found: dict[str, str] = {}
    for line in lines:
        found |= line.get("stand-ins", {})
    return {name: place for name, place in found.items() if name.partition(".")[0] != "setuptools"}


def warnings(lines: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Decisions of stand-ins, and unknown GPU properties; each once."""
    found: dict[str, None] = {}
    for line in lines:
        found |= {
            f"{text}; without it, the code takes another path": None for text in _gone(line.get("gone", {}))
        }
        found |= dict.fromkeys(line.get("doubts", ()))
    return tuple(found)


def _gone(places: Mapping[str, str]) -> Iterator[str]:
    yield from (f"{place}: {name} is not installed" for name, place in places.items())


def _replaced(stand_ins: Mapping[str, str]) -> Iterator[str]:
    """One line for each package, with the first names."""
    packages: dict[str, list[str]] = {}
    for name, place in stand_ins.items():
        packages.setdefault(name.partition(".")[0], []).append(f"{name} ({place})")
    for package, names in packages.items():
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield f"{package} is not installed, and stand-ins replaced {', '.join(names[:_SHOWN])}{more}"


def notes(head: Mapping[str, Any], made: Manifest, asked: CompileRequest) -> Iterator[str]:
    """Notes about a successful run.

    Args:
        head: the line about Triton.
        made: what came out.
        asked: what was wanted.
    """
    yield from made.warnings
    yield from head["notes"]
    yield from _replaced(made.stand_ins)
    texts = configs.load("kernels")["disassemblers"]
    for binary, row in texts.items() if asked.disassemble else ():
        stage = row["stage"]
        without = [one for one in made.points if binary in one.stages and stage not in one.stages]
        if without and stage in head["missing"]:
            yield disassemblers.remedy(stage)
        elif without and not asked.stages:
            yield f"no {stage} for {', '.join(one.id for one in without)}: see the log of each point"
    good = [one for one in made.points if one.status == "ok"]
    here = {name for one in good for name in one.stages}
    binaries = {row["stage"]: binary for binary, row in texts.items()}
    for name in asked.stages if good else ():
        if name not in here and binaries.get(name) not in here:
            yield f"no point has a stage {name}: none of these targets produces it"
