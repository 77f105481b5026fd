"""`ir-env`: named sets of debug variables, as one version of Triton supports them.

The sets are `configs/ir-profiles.toml`; what each variable does is `configs/triton-variables.toml`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.facts import eras, variables

_KERNEL = "{kernel}"
_OUT = "{out}"


@dataclass(frozen=True)
class Profile:
    """A named set.

    Attributes:
        name: what it is asked for by.
        what: what it makes Triton say or do.
        set: variable to value; `{kernel}` and `{out}` are filled in.
    """

    name: str
    what: str
    set: Mapping[str, str]


@dataclass(frozen=True)
class Environment:
    """What to set for one version.

    Attributes:
        set: variable to value.
        notes: variables that this version does not know, and what is set instead.
        folders: that have to be there, because values name files in them.
    """

    set: Mapping[str, str]
    notes: tuple[str, ...]
    folders: tuple[Path, ...] = ()

    def exports(self) -> str:
        """Lines for a POSIX shell's `eval`."""
        made = "".join(f"mkdir -p {shlex.quote(str(folder))}\n" for folder in self.folders)
        return made + "".join(f"export {name}={shlex.quote(value)}\n" for name, value in self.set.items())


def known() -> Mapping[str, Profile]:
    """All profiles, by name."""
    rows: dict[str, dict[str, Any]] = configs.load("ir-profiles")["profile"]
    return {name: Profile(name, row["what"], row["set"]) for name, row in rows.items()}


def chosen(names: Iterable[str]) -> tuple[Profile, ...]:
    """Profiles by their names.

    Raises:
        UsageError: there is no such profile.
    """
    rows = known()
    for name in names:
        if name not in rows:
            hints = [*did_you_mean(name, rows), "invoke ir-env lists the profiles"]
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
    if len(parts) <= 1:
        raise UsageError(f"--triton cannot be {text!r}", hints=["give a version: --triton 3.4.0"])
    return text


def environment(profiles: Iterable[Profile], version: str, *, kernel: str = "", out: Path) -> Environment:
    """The variables of some profiles together.

    Args:
        profiles: later ones win.
        version: of Triton; the newest if it is empty.
        kernel: the only one to dump; all if empty.
        out: folder for what is written.
    """
    profiles = tuple(profiles)
    values, notes = _values(profiles, version, kernel)
    newest = eras.releases()[-1].version
    if version and Version(version).release[:2] > Version(newest).release:
        notes.append(f"the variables of Triton {version} are not known yet; these are those of {newest}")
    if kernel and not any(_KERNEL in value for profile in profiles for value in profile.set.values()):
        notes.append("no variable of these profiles uses --kernel")
    folders = (out,) if any(_OUT in value for value in values.values()) else ()
    values = {name: value.replace(_OUT, str(out)) for name, value in values.items()}
    return Environment(values, tuple(dict.fromkeys(notes)), folders)


def _values(profiles: Iterable[Profile], version: str, kernel: str) -> tuple[dict[str, str], list[str]]:
    """What to set, with the kernel filled in, and what is different in this version."""
    found: dict[str, str] = {}
    notes = []
    for name, value in (item for profile in profiles for item in profile.set.items()):
        asked = value.replace(_KERNEL, kernel or "1")
        if other := _before(name, value, version, kernel):
            found |= {key: text.replace(_KERNEL, kernel or "1") for key, text in other["set"].items()}
            names = ", ".join(other["set"])
            notes.append(f"Triton {version}: {names} instead of {name}={asked}: {other['why']}")
        elif _exists(name, version):
            found[name] = asked
        else:
            instead = variables.instead(name)
            rest = f"; instead: {instead}" if instead else ""
            span = variables.table()[name].span
            notes.append(f"Triton {version} does not support {name} ({span}){rest}")
    return found, notes


def _exists(name: str, version: str) -> bool:
    row = variables.table()[name]
    return row.exists(version) and not row.is_inert(version)


def _before(name: str, value: str, version: str, kernel: str) -> dict[str, Any] | None:
    """The substitute where a version lacks a variable or its value; None if it supports both."""
    for row in configs.load("ir-profiles")["before"]:
        if row["name"] != name or not variables.covers(version, row.get("since", "0"), row["until"]):
            continue
        if row.get("when") != _KERNEL or (kernel and value == _KERNEL):
            found: dict[str, Any] = row
            return found
    return None
