"""Select kernels of a kernels file by a command line: `captured.toml`, `captured.toml:layer_norm`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tritonsmith.compiler.kernels import kernel_list, tritonparse_trace
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.request import AUTOTUNE, CompileRequest
from tritonsmith.compiler.targets import Target
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.plan import Plan, Write

_NAMED = re.compile(r"(.+?\.(?:toml|ndjson(?:\.gz)?))(?::(.+))?")


def named(text: str) -> tuple[Path, str] | None:
    """Split a text into a kernels file and a kernel's name, empty for all kernels; None for other texts."""
    match = _NAMED.fullmatch(text)
    return (Path(match[1]).expanduser().absolute(), match[2] or "") if match else None


def read(path: Path) -> tuple[tuple[ListedKernel, ...], tuple[str, ...]]:
    """Read the kernels of a file, and notes; sources that only a trace holds are written to the workspace.

    Raises:
        SmithError: as `kernel_list.read` and `tritonparse_trace.read`.
    """
    if ".ndjson" not in path.suffixes:
        return kernel_list.read(path), ()
    space = workspace.default()
    trace = tritonparse_trace.read(path, space.root / "kernels" / "sources")
    if trace.texts:
        space.claim()
        steps = (Write(place, text, phase="sources") for place, text in trace.texts.items())
        space.run(Plan("sources", tuple(steps)), "kernels", quiet=True)
    return trace.entries, trace.notes


def choose(entries: Sequence[ListedKernel], path: Path, name: str) -> tuple[ListedKernel, ...]:
    """Return the entries with a name, or else with this function; all if the name is empty.

    Raises:
        UsageError: there is none, or it is a function of several differently named entries.
    """
    if not name:
        return tuple(entries)
    matches = [entry for entry in entries if entry.name == name]
    matches = matches or [entry for entry in entries if entry.kernel == name]
    names = list(dict.fromkeys(entry.name for entry in entries))
    if not matches:
        hints = did_you_mean(name, names) or [f"this file lists {', '.join(names)}"]
        raise UsageError(f"this file lists no kernel {name!r}", where=path, hints=hints)
    if len({entry.name for entry in matches}) > 1:
        raise several(path, [entry.name for entry in matches])
    return tuple(matches)


def changes(entries: Sequence[ListedKernel], path: Path) -> Iterator[str]:
    """Yield notes on files that have changed since they were captured."""
    for file in dict.fromkeys(entry.file for entry in entries if entry.changed(path.parent)):
        yield f"{file} has changed since it was captured"


def own_targets(entries: Sequence[ListedKernel], flag_targets: Sequence[object]) -> Iterator[str]:
    """Yield a note if `--target` does not apply to kernels that have targets of their own."""
    count = sum(bool(entry.targets) for entry in entries)
    if flag_targets and count:
        yield f"--target applies to kernels without targets; {count} of {len(entries)} have their own"


def requests(
    entries: Sequence[ListedKernel], path: Path, flags: CompileRequest, default: tuple[Target, ...]
) -> tuple[CompileRequest, ...]:
    """Return one compile request per entry.

    Args:
        entries: of the file.
        path: the file.
        flags: the request of the flags; it overrides the file.
        default: targets for entries without any, if the flags have none either.

    Raises:
        SmithError: a request cannot be made, or a flag does not apply to several kernels.
    """
    many = len(entries) > 1
    hint = f"choose one: {path}:{entries[0].name}"
    if many and flags.signature:
        what = "--signature applies to one kernel, but a TOML file lists many"
        raise UsageError(what, where=path, hints=["omit it", hint])
    if many and flags.autotune and not any(entry.configs for entry in entries):
        what = f"--sweep {AUTOTUNE} applies to one kernel, or to configs that a kernels file has recorded"
        raise UsageError(what, where=path, hints=["omit it", hint])
    return tuple(
        _request(entry, path, flags, default, autotune=flags.autotune and (bool(entry.configs) or not many))
        for entry in entries
    )


def _request(
    entry: ListedKernel, path: Path, flags: CompileRequest, default: tuple[Target, ...], *, autotune: bool
) -> CompileRequest:
    effective = replace(entry, signature=flags.signature) if flags.signature else entry
    request = effective.asked(path.parent, default, autotune=autotune)
    return replace(
        request,
        signature=flags.signature or request.signature,  # what a flag sets does not give way to the configs
        targets=flags.targets or request.targets,
        options={**request.options, **flags.options},
        sweeps=flags.sweeps,
        stages=flags.stages,
        surgery=flags.surgery,
        name=entry.name,
        listed=path,
    )


def check_folders(requests: Sequence[CompileRequest]) -> None:
    """Check that each kernel gets its own output folder.

    Raises:
        UsageError: two names give the same folder on some file system, or one entry is for several Tritons.
    """
    folders = [folder_name(request.name) for request in requests]
    times = Counter(folders)
    twice = [request for request, folder in zip(requests, folders, strict=True) if times[folder] > 1]
    if twice:
        names = " and ".join(dict.fromkeys(request.name for request in twice))
        hints = ['give one of them another name: name = "..."', f"or choose one: {twice[0].listed}:NAME"]
        raise UsageError(
            f"two kernels would use the same folder: {names}", where=twice[0].listed, hints=hints
        )


def several(path: Path, names: Sequence[str]) -> UsageError:
    """Return the error for a command that takes one kernel, when the file lists several."""
    what = f"this file lists {len(names)} kernels, and one must be chosen"
    return UsageError(what, where=path, hints=[f"choose one: {path}:{name}" for name in names])
