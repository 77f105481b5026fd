"""Kernels of a kernels file, as a command line names them: `captured.toml`, `captured.toml:layer_norm`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tritonsmith.compiler.folder_name import folder_name
from tritonsmith.compiler.kernels import kernel_list, tritonparse_trace
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.request import AUTOTUNE, CompileRequest
from tritonsmith.compiler.targets import Target
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.plan import Plan, Write

_NAMED = re.compile(r"(.+?\.(?:toml|ndjson(?:\.gz)?))(?::(.+))?")


def named(text: str) -> tuple[Path, str] | None:
    """The file and the kernel's name, empty for all of the file; None if the text names no kernels file."""
    match = _NAMED.fullmatch(text)
    return (Path(match[1]).expanduser().absolute(), match[2] or "") if match else None


def read(path: Path) -> tuple[tuple[ListedKernel, ...], tuple[str, ...]]:
    """The kernels of a file, and notes; texts that only a trace has are written to the workspace.

    Raises:
        SmithError: as `kernel_list.read` and `tritonparse_trace.read`.
    """
    if ".ndjson" not in path.suffixes:
        return kernel_list.read(path), ()
    space = workspace.default()
    found = tritonparse_trace.read(path, space.root / "kernels" / "sources")
    if found.texts:
        space.claim()
        steps = (Write(place, text, phase="sources") for place, text in found.texts.items())
        space.run(Plan("sources", tuple(steps)), "kernels", quiet=True)
    return found.entries, found.notes


def choose(entries: Sequence[ListedKernel], path: Path, name: str) -> tuple[ListedKernel, ...]:
    """The entries of a name; all if it is empty.

    Raises:
        UsageError: there is none of this name; or it is a function's, and several entries are of that.
    """
    if not name:
        return tuple(entries)
    found = [one for one in entries if one.name == name] or [one for one in entries if one.kernel == name]
    names = list(dict.fromkeys(one.name for one in entries))
    if not found:
        hints = did_you_mean(name, names) or [f"this file lists {', '.join(names)}"]
        raise UsageError(f"this file lists no kernel {name!r}", where=path, hints=hints)
    if len({one.name for one in found}) > 1:
        raise several(path, [one.name for one in found])
    return tuple(found)


def changes(entries: Sequence[ListedKernel], path: Path) -> Iterator[str]:
    """Notes on files that are not what was captured."""
    for file in dict.fromkeys(one.file for one in entries if one.changed(path.parent)):
        yield f"{file} has changed since it was captured"


def own_targets(entries: Sequence[ListedKernel], given: Sequence[object]) -> Iterator[str]:
    """A note where `--target` does not reach kernels that have targets of their own."""
    count = sum(bool(one.targets) for one in entries)
    if given and count:
        yield f"--target applies to kernels without targets; {count} of {len(entries)} have their own"


def requests(
    entries: Sequence[ListedKernel], path: Path, flags: CompileRequest, default: tuple[Target, ...]
) -> tuple[CompileRequest, ...]:
    """What is asked for, one request for each entry.

    Args:
        entries: of the file.
        path: the file.
        flags: what flags ask for; they win over the file.
        default: targets of what neither flags nor the file give targets for.

    Raises:
        SmithError: a kernel cannot be asked for, or a flag is not for many kernels.
    """
    many = len(entries) > 1
    one = f"choose one: {path}:{entries[0].name}"
    if many and flags.signature:
        what = "--signature applies to one kernel, but a TOML file lists many"
        raise UsageError(what, where=path, hints=["omit it", one])
    if many and flags.autotune and not any(entry.configs for entry in entries):
        what = f"--sweep {AUTOTUNE} applies to one kernel, or to configs that a kernels file has recorded"
        raise UsageError(what, where=path, hints=["omit it", one])
    return tuple(
        _request(entry, path, flags, default, autotune=flags.autotune and (bool(entry.configs) or not many))
        for entry in entries
    )


def _request(
    entry: ListedKernel, path: Path, flags: CompileRequest, default: tuple[Target, ...], *, autotune: bool
) -> CompileRequest:
    given = replace(entry, signature=flags.signature) if flags.signature else entry
    asked = given.asked(path.parent, default, autotune=autotune)
    return replace(
        asked,
        signature=flags.signature or asked.signature,  # what a flag sets does not give way to the configs
        targets=flags.targets or asked.targets,
        options={**asked.options, **flags.options},
        sweeps=flags.sweeps,
        stages=flags.stages,
        surgery=flags.surgery,
        name=entry.name,
        listed=path,
    )


def check_folders(asked: Sequence[CompileRequest]) -> None:
    """Check that each kernel gets its own output folder.

    Raises:
        UsageError: two have names that are the same for a file system, or one for several Tritons.
    """
    folders = [folder_name(one.name) for one in asked]
    times = Counter(folders)
    twice = [one for one, folder in zip(asked, folders, strict=True) if times[folder] > 1]
    if twice:
        names = " and ".join(dict.fromkeys(one.name for one in twice))
        hints = ['give one of them another name: name = "..."', f"or choose one: {twice[0].listed}:NAME"]
        raise UsageError(
            f"two kernels would use the same folder: {names}", where=twice[0].listed, hints=hints
        )


def several(path: Path, names: Sequence[str]) -> UsageError:
    """The error where one kernel is taken, and the file lists several."""
    what = f"this file lists {len(names)} kernels, and one must be chosen"
    return UsageError(what, where=path, hints=[f"choose one: {path}:{name}" for name in names])
