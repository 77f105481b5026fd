"""Choose debug variables for `passes.dump --print-env`: named sets, as one version of Triton supports them.

The sets are `configs/ir-profiles.toml`; what each variable does is `configs/triton-variables.toml`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from tritonsmith.core import configs
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.facts import checkout, installed_tritons, variables

# Placeholders in the values of a profile.
_KERNEL = "{kernel}"
_OUT = "{out}"


@dataclass(frozen=True)
class Profile:
    """A named set of variables.

    Attributes:
        name: its name on a command line.
        what: its effect on Triton.
        set: variable to value; `{kernel}` and `{out}` are placeholders.
    """

    name: str
    what: str
    set: Mapping[str, str]


@dataclass(frozen=True)
class Environment:
    """The variables to set for one version.

    Attributes:
        set: variable to value.
        notes: variables that this version does not support, and their substitutes.
        folders: folders to create, because values name files in them.
    """

    set: Mapping[str, str]
    notes: tuple[str, ...]
    folders: tuple[Path, ...] = ()

    def exports(self) -> str:
        """Return lines for a POSIX shell's `eval`."""
        folders = "".join(f"mkdir -p {shlex.quote(str(folder))}\n" for folder in self.folders)
        return folders + "".join(f"export {name}={shlex.quote(value)}\n" for name, value in self.set.items())


def known() -> Mapping[str, Profile]:
    """Return all profiles, by name."""
    rows: dict[str, dict[str, Any]] = configs.load("ir-profiles")["profile"]
    return {name: Profile(name, row["what"], row["set"]) for name, row in rows.items()}


def chosen(names: Iterable[str]) -> tuple[Profile, ...]:
    """Return profiles by their names.

    Raises:
        UsageError: there is no such profile.
    """
    rows = known()
    for name in names:
        if name not in rows:
            hints = [*did_you_mean(name, rows), "invoke passes.dump --print-env lists the profiles"]
            raise UsageError(f"no profile {name!r}", hints=hints)
    return tuple(rows[name] for name in names)


def version_of(text: str) -> str:
    """Check a version of Triton given by the user: `3.4`, `3.4.0`.

    Raises:
        UsageError: not a version.
    """
    try:
        parts = Version(text).release
    except InvalidVersion:
        parts = ()
    # `3` would be taken for 3.0, whose variables are not those of 3.9.
    if len(parts) <= 1:
        raise UsageError(f"--triton cannot be {text!r}", hints=["give a version: --triton 3.4.0"])
    return text


def installed_version(env: str, python: Path | None) -> tuple[str, str]:
    """Return the version of the selected Triton, and a note that names it; without one, the newest release.

    Args:
        env: name of an environment; empty for the current one, or `wheel`.
        python: an interpreter; None for the environment's.

    Raises:
        FactError: the environment or interpreter has no Triton.
    """
    space = workspace.default()
    hints = ["--triton 3.9.0 names a version"]
    if python:
        triton = installed_tritons.of_python(python)
        if not triton:
            raise FactError("this Python has no Triton", where=python, hints=hints)
    elif env:
        triton = installed_tritons.of_env(space.env(settings.load(env).name))
        if not triton:
            where = space.env(env).path
            raise FactError(f"the environment {env} has no Triton yet", where=where, hints=hints)
    else:
        # The Triton that a user's own command would import comes first: the variables are for that command.
        triton = installed_tritons.here(os.environ) or installed_tritons.of_env(space.env("wheel"))
    if not triton:
        newest = checkout.triton_releases()[-1].version
        return newest, (
            f"no Triton is installed: these are the variables of {newest}, the newest known version"
        )
    return triton.version, f"for Triton {triton.version} in {triton.where}"


def environment(profiles: Iterable[Profile], version: str, *, kernel: str = "", out: Path) -> Environment:
    """Combine the variables of some profiles.

    Args:
        profiles: later ones override earlier ones.
        version: a version of Triton; the newest if empty.
        kernel: the only kernel to dump; all if empty.
        out: folder for output files.
    """
    profiles = tuple(profiles)
    values, notes = _values(profiles, version, kernel)
    # A later version is likely to be like the newest one: better its variables with a note than none.
    newest = checkout.triton_releases()[-1].version
    if version and Version(version).release[:2] > Version(newest).release:
        notes.append(f"the variables of Triton {version} are not known yet; these are those of {newest}")
    if kernel and not any(_KERNEL in value for profile in profiles for value in profile.set.values()):
        notes.append("no variable of these profiles uses --kernel")
    # Triton does not create the folders of files that its variables name.
    folders = (out,) if any(_OUT in value for value in values.values()) else ()
    values = {name: value.replace(_OUT, str(out)) for name, value in values.items()}
    # Two profiles may set the same variable, and a note about it is read once.
    return Environment(values, tuple(dict.fromkeys(notes)), folders)


def _values(profiles: Iterable[Profile], version: str, kernel: str) -> tuple[dict[str, str], list[str]]:
    """Return the variables with the kernel filled in, and notes on what differs in this version."""
    result: dict[str, str] = {}
    notes = []
    for name, value in (item for profile in profiles for item in profile.set.items()):
        # Triton takes `1` for all kernels where it takes the name of one.
        filled = value.replace(_KERNEL, kernel or "1")
        if other := _before(name, value, version, kernel):
            result |= {key: text.replace(_KERNEL, kernel or "1") for key, text in other["set"].items()}
            names = ", ".join(other["set"])
            notes.append(f"Triton {version}: {names} instead of {name}={filled}: {other['why']}")
        elif _exists(name, version):
            result[name] = filled
        else:
            instead = variables.instead(name)
            rest = f"; instead: {instead}" if instead else ""
            span = variables.table()[name].span
            notes.append(f"Triton {version} does not support {name} ({span}){rest}")
    return result, notes


def _exists(name: str, version: str) -> bool:
    row = variables.table()[name]
    return row.exists(version) and not row.is_inert(version)


def _before(name: str, value: str, version: str, kernel: str) -> dict[str, Any] | None:
    """Return the substitute where a version lacks a variable or its value; None if it supports both."""
    for row in configs.load("ir-profiles")["before"]:
        if row["name"] != name or not variables.covers(version, row.get("since", "0"), row["until"]):
            continue
        if row.get("when") != _KERNEL or (kernel and value == _KERNEL):
            substitute: dict[str, Any] = row
            return substitute
    return None
