"""Merge the records that a program's processes wrote into one list of kernels."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.compiler import call, signature
from tritonsmith.compiler.signature import parse_value, spell_value
from tritonsmith.core import untrusted
from tritonsmith.worker.messages import CaptureRow, LaunchesRow, SpecializedKernel

_FEW = 8  # grids and call sites of one kernel


@dataclass
class Launches:
    """A kernel specialization and its launches.

    Attributes:
        kernel: the kernel, and what it was specialised for.
        count: number of launches.
        grids: each grid, with its number of launches.
        sites: each call site, with its number of launches.
        configs: the configs of its autotuner.
    """

    kernel: SpecializedKernel
    count: int = 0
    grids: Counter[str] = field(default_factory=Counter)
    sites: Counter[str] = field(default_factory=Counter)
    configs: tuple[dict[str, Any], ...] = ()


@dataclass
class Recording:
    """The merged record of all processes of a program.

    Attributes:
        kernels: in the order of their first launch.
        texts: sources that are in no file, such as a notebook cell, by the name that Python gives them.
        notes: messages for the user, in order; the values are unused.
        versions: of Triton, torch and Python.
        processes: number of processes that ran Python.
    """

    kernels: list[Launches] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    processes: int = 0


def read(folder: Path) -> Recording:
    """Read the records in a folder, one file per process, and merge them."""
    recording = Recording()
    merged: dict[str, Launches] = {}
    for path in sorted(folder.glob("*.jsonl"), key=_begun):
        launches: dict[str, LaunchesRow] = {}
        ended = False
        for row in call.recorded(path, CaptureRow):
            ended = ended or row.end
            if (
                row.launches
            ):  # a process writes the counts of a kernel again and again: the last ones are right
                launches[_key(row.launches.kernel)] = row.launches
            if row.note:
                recording.notes[row.note] = None
            recording.texts |= row.texts
            recording.versions |= row.versions
        recording.processes += 1
        for key, counted in launches.items():
            if counted.count:
                _add(merged.setdefault(key, Launches(counted.kernel)), counted)
        if launches and not ended:
            recording.notes["a process ended before it could write its last counts: they may be low"] = None
    recording.kernels = list(merged.values())
    return recording


def _key(kernel: SpecializedKernel) -> str:
    return json.dumps(asdict(kernel), sort_keys=True)


def _begun(path: Path) -> tuple[int, str]:
    _, _, time = path.stem.partition("-")
    return int(time) if time.isdecimal() else 0, path.name


def _add(to: Launches, row: LaunchesRow) -> None:
    to.count += row.count
    to.grids.update(row.grids)
    to.sites.update(row.sites)
    to.configs = to.configs or row.configs


def entries(recording: Recording, files: Mapping[str, Path], target: str, near: Path) -> list[dict[str, Any]]:
    """Return the entries of the kernel list; add a note for each kernel that cannot be written.

    Args:
        recording: the recording; notes are added to it.
        files: the present place of a kernel's file, where it differs from the recorded one.
        target: the GPU, as the user spelled it.
        near: the folder of the list: paths in it are written relative to this folder.
    """
    listed: list[dict[str, Any]] = []
    names: Counter[str] = Counter()
    for launches in recording.kernels:
        kernel = launches.kernel
        name = kernel.function
        if not kernel.kernel:
            place = f"{kernel.file}:{kernel.line}"
            recording.notes[f"{name} ({place}) is left out: no name in its file refers to it"] = None
            continue
        if kernel.unwritten:
            recording.notes[f"{name} is left out: {', '.join(kernel.unwritten)} cannot be written"] = None
            continue
        try:
            text = signature_text(kernel)
        except ValueError as error:
            recording.notes[f"{name} is left out: {error}"] = None
            continue
        file = files.get(kernel.file, Path(kernel.file))
        names[name] += 1
        inside = file.is_relative_to(near)
        entry = {
            "name": name if names[name] == 1 else f"{name}-{names[name]}",
            "file": str(file.relative_to(near) if inside else file),
            "kernel": kernel.kernel,
            "signature": text,
            "targets": [target],
            "options": _spelled(kernel.options),
            "sha256": hashlib.sha256(untrusted.read_bytes(file)).hexdigest(),
            "count": launches.count,
            "grid": [[int(part) for part in text.split(",")] for text, _ in launches.grids.most_common(_FEW)],
            "where": [place for place, _ in launches.sites.most_common(_FEW)],
        }
        if kernel.module not in ("", "__main__") and kernel.file not in files:
            entry["module"] = kernel.module
        if launches.configs:
            entry["configs"] = [_spelled(config) for config in launches.configs]
        listed.append(entry)
    return listed


def _spelled(options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values for a list: None, dicts and strings become texts that `values.parse` reads."""
    return {
        name: signature.spell_value(value) if value is None or isinstance(value, (dict, str)) else value
        for name, value in options.items()
    }


def moved(kernels: Iterable[Launches], texts: Mapping[str, str], passing: Iterable[Path]) -> dict[str, str]:
    """Return the sources that will be gone after the run: generated code, and code that is in no file.

    Args:
        kernels: the kernels.
        texts: sources that are in no file, by name.
        passing: folders that are deleted after the run.

    Returns:
        Recorded file name to text.
    """
    gone = [folder.resolve() for folder in passing]
    sources: dict[str, str] = {}
    for launches in kernels:
        name = launches.kernel.file
        if name in texts:
            sources[name] = texts[name]
        elif any(Path(name).resolve().is_relative_to(folder) for folder in gone):
            sources[name] = untrusted.read_text(Path(name))
    return sources


def signature_text(kernel: SpecializedKernel) -> str:
    """Return a kernel's signature: entries by name, in the order of its parameters.

    Raises:
        ValueError: a signature cannot express a constant.
    """
    return ",".join(
        f"{row.name}={_entry(kernel, row.name, kernel.signature[row.name], row.constexpr)}"
        for row in kernel.parameters
    )


def _entry(kernel: SpecializedKernel, path: str, kind: Any, constexpr: bool) -> str:
    if path in kernel.constexprs:
        value = kernel.constexprs[path]
        # Triton makes a constant of an argument that is 1; in a signature it is a type with that hint.
        # Triton makes a constant of each integer argument that is 1; written as `i32:1` it stays an
        # argument, so that the list fits the launch.
        specialised = type(value) is int and value == 1 and not constexpr
        return f"{'i32' if kind == 'constexpr' else kind}:1" if specialised else spell_constant(value)
    if isinstance(kind, list):
        parts = [_entry(kernel, f"{path}.{number}", part, constexpr) for number, part in enumerate(kind)]
        return f"({','.join(parts)}{',' if len(parts) == 1 else ''})"
    hint = kernel.hints.get(path)
    return f"{kind}{f':{hint}' if hint else ''}{':r32' if path in kernel.ranges else ''}"


def spell_constant(value: Any) -> str:
    """Spell a constant; strings are quoted, so that none is taken for a type or a number.

    Raises:
        ValueError: a signature cannot express the value.
    """
    text = "".join(_spelling(value))
    if parse_value(text) != (list_free := _tuples(value)):
        raise ValueError(f"{list_free!r} cannot be written in a signature")
    return text


def _spelling(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield repr(value)
    elif isinstance(value, list):
        yield f"({','.join(map(spell_constant, value))}{',' if len(value) == 1 else ''})"
    elif isinstance(value, dict):
        yield spell_value(value)
    else:
        yield repr(value)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
