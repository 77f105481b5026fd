"""What the processes of a program recorded, merged into one list of kernels."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.compiler import values
from tritonsmith.compiler.capture import signature_text
from tritonsmith.core import untrusted

_FEW = 8  # grids and call sites of one kernel


@dataclass
class Launches:
    """A kernel as it was specialised, with its launches.

    Attributes:
        about: what the worker wrote: the file, the function, types, constants, hints and options.
        count: launches.
        grids: each with its number.
        sites: call sites likewise.
        configs: of its autotuner.
    """

    about: Mapping[str, Any]
    count: int = 0
    grids: Counter[str] = field(default_factory=Counter)
    sites: Counter[str] = field(default_factory=Counter)
    configs: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass
class Recording:
    """What a program did.

    Attributes:
        kernels: in the order of their first launch.
        texts: of files that are none: a cell of a notebook.
        notes: what a person should know.
        versions: of Triton, torch and Python.
        processes: that ran Python.
    """

    kernels: list[Launches] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    processes: int = 0


def read(folder: Path) -> Recording:
    """What was recorded in a folder, one file for each process."""
    found = Recording()
    merged: dict[str, Launches] = {}
    for path in sorted(folder.glob("*.jsonl"), key=_begun):
        rows: dict[str, Mapping[str, Any]] = {}
        ended = False
        for line in untrusted.read_text(path).splitlines():
            try:
                said = json.loads(line)
            except ValueError:  # the process was killed while it wrote
                break
            ended = ended or "end" in said
            if "row" in said:
                rows[json.dumps(said["row"]["about"], sort_keys=True)] = said["row"]
            elif "note" in said:
                found.notes[said["note"]] = None
            elif "text" in said:
                found.texts[said["file"]] = said["text"]
            found.versions |= {key: said[key] for key in ("triton", "torch", "python") if key in said}
        found.processes += 1
        for key, row in rows.items():
            if row["count"]:
                _add(merged.setdefault(key, Launches(row["about"])), row)
        if rows and not ended:
            found.notes["a process ended before it could write its last counts: they may be low"] = None
    found.kernels = list(merged.values())
    return found


def _begun(path: Path) -> tuple[int, str]:
    _, _, time = path.stem.partition("-")
    return int(time) if time.isdecimal() else 0, path.name


def _add(to: Launches, row: Mapping[str, Any]) -> None:
    to.count += row["count"]
    to.grids.update(row["grids"])
    to.sites.update(row["sites"])
    to.configs = to.configs or row["configs"]


def entries(found: Recording, files: Mapping[str, Path], target: str, near: Path) -> list[dict[str, Any]]:
    """The entries of the list; what cannot be written is noted.

    Args:
        found: the recording, whose notes grow.
        files: where a kernel's file lies now, if that is another place than it was.
        target: how the GPU was asked for.
        near: the folder of the list: paths in it are relative.
    """
    made: list[dict[str, Any]] = []
    names: Counter[str] = Counter()
    for one in found.kernels:
        about = one.about
        name = about["function"]
        if not about["kernel"]:
            found.notes[
                f"{name} ({about['file']}:{about['line']}) is left out: no name in its file refers to it"
            ] = None
            continue
        if about["unwritten"]:
            found.notes[f"{name} is left out: {', '.join(about['unwritten'])} cannot be written"] = None
            continue
        try:
            text = signature_text.signature(about)
        except ValueError as error:
            found.notes[f"{name} is left out: {error}"] = None
            continue
        file = files.get(about["file"], Path(about["file"]))
        names[name] += 1
        inside = file.is_relative_to(near)
        entry = {
            "name": name if names[name] == 1 else f"{name}-{names[name]}",
            "file": str(file.relative_to(near) if inside else file),
            "kernel": about["kernel"],
            "signature": text,
            "targets": [target],
            "options": _spelled(about["options"]),
            "sha256": hashlib.sha256(untrusted.read_bytes(file)).hexdigest(),
            "count": one.count,
            "grid": [[int(part) for part in text.split(",")] for text, _ in one.grids.most_common(_FEW)],
            "where": [place for place, _ in one.sites.most_common(_FEW)],
        }
        if about["module"] not in ("", "__main__") and about["file"] not in files:
            entry["module"] = about["module"]
        if one.configs:
            entry["configs"] = [_spelled(config) for config in one.configs]
        made.append(entry)
    return made


def _spelled(options: Mapping[str, Any]) -> dict[str, Any]:
    """Values as a list has them: what TOML cannot say, and texts, as `values.parse` takes them."""
    return {
        name: values.spell(value) if value is None or isinstance(value, (dict, str)) else value
        for name, value in options.items()
    }


def moved(found: Iterable[Launches], texts: Mapping[str, str], passing: Iterable[Path]) -> dict[str, str]:
    """Files that are gone after the run, to their texts: of generated code, and what is no file.

    Args:
        found: the kernels.
        texts: of what is no file.
        passing: folders that go.
    """
    gone = [folder.resolve() for folder in passing]
    wanted: dict[str, str] = {}
    for one in found:
        name = str(one.about["file"])
        if name in texts:
            wanted[name] = texts[name]
        elif any(Path(name).resolve().is_relative_to(folder) for folder in gone):
            wanted[name] = untrusted.read_text(Path(name))
    return wanted
