"""Consent to what an env file in a source tree names to run.

A tree that somebody sent may bring an env file that names an interpreter, a compiler, or sources whose CMake
files a build runs. It is heeded once the user has seen these values and agreed to them (`env.allow`); other
values of the file may change since, these may not. An env file elsewhere is the user's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tritonsmith import configs
from tritonsmith.command_line import command
from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import ConfigError
from tritonsmith.plan import Plan, Write, digest

# Each leads to a program that is run, to sources or libraries that are built, or to objects that are linked.
KEYS = (
    "cache.remote",
    "llvm.dir",
    "llvm.prebuilt-url",
    "llvm.source",
    "llvm.store",
    "python.interpreter",
    "toolchain.compiler",
    "triton.cmake-args",
    "triton.plugin-dirs",
    "triton.source",
)


def named(file: Path, table: Mapping[str, Any], around: Iterable[Path] = ()) -> dict[str, Any]:
    """What an env file names to run, where that needs consent: `section.key` to its value.

    Args:
        file: resolved.
        table: its keys and values.
        around: folders above the path that was typed, which may be a link.
    """
    marks = configs.load("source-trees")
    names = (*marks["version-control"], *marks["build"])
    if not any((folder / name).exists() for folder in (*file.parents, *around) for name in names):
        return {}
    return {key: table[key] for key in KEYS if table.get(key)}


def check(file: Path, table: Mapping[str, Any], space: Workspace, around: Iterable[Path] = ()) -> None:
    """See that the user agreed to what an env file names to run; see `named`.

    Raises:
        ConfigError: nobody has.
    """
    wanted = named(file, table, around)
    if wanted and not _record(file, wanted, space).is_file():
        raise ConfigError(
            "this env file lies in a source tree, names what to run, and nobody has agreed to that",
            where=file,
            why="\n".join(f"{key} = {value!r}" for key, value in wanted.items()),
            hints=[
                f"if you trust these values: {command('env.allow', file)}",
                "or name others by flags, with an environment of your own: invoke env.list",
            ],
        )


def allow(file: Path, wanted: Mapping[str, Any], space: Workspace) -> None:
    """Write down that the user agrees.

    Raises:
        SmithError: the workspace cannot be written to.
    """
    space.claim()
    record = Write(_record(file, wanted, space), f"{file}\n", phase="allow")
    space.run(Plan("allow", (record,)), "env.allow", quiet=True)


def _record(file: Path, wanted: Mapping[str, Any], space: Workspace) -> Path:
    return space.root / "allowed" / digest(str(file), dict(wanted))
