"""Require consent to the programs that an env file in a source tree runs.

An untrusted tree may contain an env file that names an interpreter, a compiler, or sources whose CMake files
a build runs. The file is used only after the user has seen and allowed these values (`env --allow`); a change
of these values needs consent again. Env files elsewhere belong to the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import ConfigError
from tritonsmith.core.plan import Plan, Write, digest

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
    """Return the values of an env file that need consent: `section.key` to value.

    Args:
        file: resolved.
        table: keys and values of the file.
        around: folders above the path as given, which may be a link.
    """
    marks = configs.load("source-trees")
    names = (*marks["version-control"], *marks["build"])
    # Any folder above counts: an unpacked archive has no `.git`, and may be below one that has. What lies
    # elsewhere the user wrote.
    if not any((folder / name).exists() for folder in (*file.parents, *around) for name in names):
        return {}
    return {key: table[key] for key in KEYS if table.get(key)}


def check(file: Path, table: Mapping[str, Any], space: Workspace, around: Iterable[Path] = ()) -> None:
    """Check that the user has agreed to the values from `named`.

    Raises:
        ConfigError: the user has not.
    """
    values = named(file, table, around)
    if values and not _record(file, values, space).is_file():
        raise ConfigError(
            "this env file is in a source tree, names programs or code to run, and is not allowed yet",
            where=file,
            why="\n".join(f"{key} = {value!r}" for key, value in values.items()),
            hints=[
                f"if you trust these values: {command('env --allow', file)}",
                "or set other values by flags, with an environment of your own: invoke env",
            ],
        )


def allow(file: Path, values: Mapping[str, Any], space: Workspace) -> None:
    """Record the user's consent.

    Raises:
        SmithError: the workspace is not writable.
    """
    space.claim()
    record = Write(_record(file, values, space), f"{file}\n", phase="allow")
    space.run(Plan("allow", (record,)), "env.allow", quiet=True)


def _record(file: Path, values: Mapping[str, Any], space: Workspace) -> Path:
    # By the values themselves: a change of any of them, by a `git pull` for example, needs consent again.
    return space.root / "allowed" / digest(str(file), dict(values))
