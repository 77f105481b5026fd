"""Environment variables that Triton reads, and how findings show them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from tritonsmith.core.ui import redact
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.facts import eras, variables
from tritonsmith.facts.variables import TritonVariable

BY_HAND = "a manual `pip install` (`invoke install-triton` sets or removes what setup.py reads)"
_SHORT = 40  # maximum length of a value on the screen


def given(subject: DoctorContext) -> list[tuple[TritonVariable, str]]:
    """Return the variables that are set and that this version reads, in the table's order, with values."""
    rows = variables.table().values()
    version = subject.triton_version
    return [
        (row, subject.environ[row.name])
        for row in rows
        if subject.environ.get(row.name) and row.exists(version) and not row.is_inert(version)
    ]


def on(subject: DoctorContext) -> dict[str, TritonVariable]:
    """Return the given variables that are on: a true flag, or any other value that is not a clear no."""
    version = subject.triton_version
    return {
        row.name: row
        for row, value in given(subject)
        if (row.kind == "flag" and variables.is_true(row, value, version))
        or (row.kind != "flag" and value.lower() not in ("0", "off", "false"))
    }


def dumps(subject: DoctorContext) -> list[TritonVariable]:
    """Return the variables that dump something while a kernel is compiled."""
    return [row for row in on(subject).values() if row.effect == "dump"]


def folder(subject: DoctorContext, name: str, default: str) -> Path:
    """Return a run-time folder of Triton: the one that a variable names, else one in `.triton`."""
    rows, version = variables.table(), subject.triton_version
    if subject.environ.get(name) and rows[name].exists(version):
        return Path(subject.environ[name])
    home = subject.environ.get("HOME", "")
    if rows["TRITON_HOME"].exists(version):
        home = subject.environ.get("TRITON_HOME", home)
    return Path(home) / ".triton" / default


def has_entries(path: Path) -> bool:
    """Report whether the folder exists and is not empty."""
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def triton(version: str) -> str:
    """Return the name and version: `Triton 3.5.0`; the newest known version if none is given."""
    return f"Triton {version}" if version else f"Triton {eras.releases()[-1].version} (the newest known)"


def whom(row: TritonVariable | None) -> str:
    """Return the builds or runs that a variable affects."""
    return BY_HAND if row and "build" in row.at and "run" not in row.at else "every run of Triton"


def shown(subject: DoctorContext, name: str) -> str:
    """Return `NAME=value`, with a long value shortened."""
    return f"{name}={short(redact.variable(name, subject.environ[name]))}"


def short(value: str) -> str:
    """Return a value for a line of text, without secrets, quoted where needed."""
    value = redact.hidden(value)  # before it is cut, which could remove the @ after a password
    return shlex.quote(value if len(value) <= _SHORT else f"{value[: _SHORT - 3]}...")


def unset(name: str) -> str:
    """Return the command that unsets a variable."""
    return f"unset {shlex.quote(name)}"
