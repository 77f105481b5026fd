"""Update `configs/pytorch-pins.toml` from PyTorch's own pin files, keeping comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import AoT, Table

from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import Plan, Write
from tritonsmith.core.versions import version_key
from tritonsmith.doctor.pins import read_upstream
from tritonsmith.doctor.pins.read_upstream import LivePin, Reading
from tritonsmith.facts import pytorch_pins
from tritonsmith.facts.pytorch_pins import CHANNELS, READ, UNKNOWN, WHEEL

PHASE = "table of pins"
_SHORT = 10
_STALE = ("commit", "grade", "candidates", "same-file", "note", "source")  # replaced by the new reading
_PIN = ("version", "requires", "same-file", "commit", "grade", "candidates")
_ORDER = (*_PIN, "llvm", "llvm-grade", "how", "note", "source")


@dataclass(frozen=True)
class Revision:
    """A changed table.

    Attributes:
        text: new text of the whole file.
        changes: a line for each pin that changed.
    """

    text: str
    changes: tuple[str, ...]


def target() -> Path:
    """Return the table's file, in the running checkout of this tool.

    Raises:
        SmithError: the tool runs from an installed package.
    """
    folder = configs.data_dir("configs")
    if not (folder.parent / "pyproject.toml").is_file():
        raise SmithError(
            "the table can only be updated in a checkout of tritonsmith",
            where=folder,
            why="this is an installed package; an upgrade would overwrite the table",
            hints=[
                "clone tritonsmith and run the command there: ./bootstrap pins ...",
                "or use the output of --json",
            ],
        )
    return folder / f"{pytorch_pins.CONFIG}.toml"


def plan(file: Path, revision: Revision) -> Plan:
    """Plan to write the table."""
    steps = (Write(file, revision.text, phase=PHASE),) if revision.changes else ()
    return Plan(f"write {file}", steps, notes=revision.changes)


def revise(text: str, version: str, reading: Reading) -> Revision:
    """Update the text of the table from the pins at one release's own tag."""
    # tomlkit and not a dump: comments, order and quotes of a table that people edit must stay.
    document = tomlkit.parse(text)
    rows = document["release"]
    assert isinstance(rows, AoT)  # noqa: S101 - the file's shape, held by a test
    row = next((row for row in rows if row["pytorch"] == version), None)
    if row is None:
        row = _new_row(version)
        rows.insert(sum(version_key(entry["pytorch"]) < version_key(version) for entry in rows), row)
    changes = [
        f"{version} {pytorch_pins.titles()[channel]}: {change}"
        for channel in CHANNELS
        if (pin := reading.pin(channel)) and (change := _put(row, channel, pin, reading))
    ]
    return Revision(_spaced(tomlkit.dumps(document)) if changes else text, tuple(changes))


def _spaced(text: str) -> str:
    """Normalize to one empty line between rows."""
    return re.sub(r"\n+(\[\[?release\b)", r"\n\n\1", text).rstrip("\n") + "\n"


def _new_row(version: str) -> Table:
    row = tomlkit.table()
    row.add("pytorch", version)
    row.add(tomlkit.nl())
    for name in ("cuda", "rocm", WHEEL):
        row.add(name, _table({"grade": UNKNOWN}))
    return row


def _table(values: dict[str, Any]) -> Table:
    """Return a table followed by an empty line."""
    table = tomlkit.table()
    for key, value in values.items():
        table.add(key, value)
    table.add(tomlkit.nl())
    return table


def _put(row: Any, channel: str, pin: LivePin, reading: Reading) -> str:
    """Change one channel of a row; return a description of the change, or nothing."""
    before = row.get(channel)
    old = dict(before.unwrap()) if before is not None else {}
    new = {key: value for key, value in old.items() if key not in _STALE}
    new["grade"] = READ
    new["source"] = [f"pytorch {reading.ref} = {reading.commit}, {pin.file}"]
    if pin.same_as:
        new["same-file"] = True
        for key in ("version", "llvm", "llvm-grade"):
            new.pop(key, None)
    else:
        new["commit"] = pin.commit
        if pin.version:
            new["version"] = pin.version
        _put_llvm(new, old, pin)
    if "note" in old and _same_pin(old, new):
        new["note"] = old["note"]
    if new == old:
        return ""
    kept = {key: before.item(key) for key in old} if before is not None else {}  # with their quotes
    table = _table({key: kept[key] if new[key] == old.get(key) else new[key] for key in _ORDER if key in new})
    if before is not None:
        row[channel] = table
    else:
        # Before the wheel, as in every row.
        wheel = row[WHEEL]
        row.remove(WHEEL)
        row.add(channel, table)
        row.add(WHEEL, wheel)
    return f"{_told(old)} -> {_told(new)}"


def _put_llvm(new: dict[str, Any], old: dict[str, Any], pin: LivePin) -> None:
    """Set the LLVM at the pin: as just read, as known before for this commit, or nothing."""
    if pin.llvm:
        new["llvm"] = pin.llvm
        new["llvm-grade"] = "read-at-commit"
    # One of the candidates was right, and all of them have the same LLVM: so it is known now.
    elif pin.commit in old.get("candidates", ()) and old.get("llvm-grade") == "same-at-every-candidate":
        new["llvm-grade"] = "read-at-commit"
    elif not _same_pin(old, new):
        new.pop("llvm", None)
        new.pop("llvm-grade", None)


def _same_pin(old: dict[str, Any], new: dict[str, Any]) -> bool:
    return all(old.get(key) == new.get(key) for key in ("commit", "same-file"))


def _told(channel: dict[str, Any]) -> str:
    text = "the same file as CUDA" if channel.get("same-file") else str(channel.get("commit", ""))[:_SHORT]
    return f"{text} ({channel['grade']})" if text and "grade" in channel else text or UNKNOWN


def readings(
    versions: Iterable[str], repository: str, space: Workspace, triton: Path | None = None
) -> tuple[dict[str, Reading], tuple[str, ...]]:
    """Read the tags of several releases.

    Args:
        versions: releases of PyTorch.
        repository: URL or path, as for `live.read`.
        space: the workspace.
        triton: a clone of Triton, for the LLVM at each commit; None for none.

    Returns:
        The reading of each release's tag, and the releases whose tag could not be read.

    Raises:
        SmithError: the first tag could not be read, so the repository is at fault.
    """
    by_version: dict[str, Reading] = {}
    missing: list[str] = []
    for version in versions:
        try:
            by_version[version] = read_upstream.read(repository, f"v{version}", space, triton)
        except SmithError:
            if not by_version:
                raise
            missing.append(version)
    return by_version, tuple(missing)


def revise_all(text: str, found: Mapping[str, Reading]) -> Revision:
    """Update the table from the tags of several releases."""
    changes: list[str] = []
    for version, reading in found.items():
        revision = revise(text, version, reading)
        text = revision.text
        changes += revision.changes
    return Revision(text, tuple(changes))


def execute(what: Plan, space: Workspace) -> None:
    """Run the plan.

    Raises:
        SmithError: the file cannot be written.
    """
    space.claim()
    space.run(what, "pins", quiet=True)
