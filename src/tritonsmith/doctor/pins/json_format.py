"""The forms of `pins --json`, which docs/pins.md documents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tritonsmith.doctor.pins.installed_torch import InstalledTorch
from tritonsmith.doctor.pins.picks import Picks
from tritonsmith.doctor.pins.read_upstream import Reading
from tritonsmith.doctor.pins.releases_with import Holders
from tritonsmith.facts import pytorch_pins
from tritonsmith.facts.package_pins import PackageRelease
from tritonsmith.facts.pytorch_pins import PyTorchRelease

SCHEMA = 1


def table(releases: Iterable[PyTorchRelease]) -> dict[str, Any]:
    """Return all releases, the meaning of the grades, and the wheel names of all eras."""
    return {
        **_head("table"),
        "releases": [release_table(release) for release in releases],
        "grades": pytorch_pins.grades(),
        "wheel_names": [asdict(name) for name in pytorch_pins.wheel_names()],
    }


def one(release: PyTorchRelease, note: str) -> dict[str, Any]:
    """Return one release."""
    return {**_head("release"), "note": note, "release": release_table(release)}


def live(reading: Reading) -> dict[str, Any]:
    """Return the pins of a commit of PyTorch."""
    return {**_head("live"), **asdict(reading), "pins": [_nulls(asdict(pin)) for pin in reading.pins]}


def update(file: Path, changes: Iterable[str], missing: Iterable[str]) -> dict[str, Any]:
    """Return the changes to the table."""
    return {**_head("update"), "file": str(file), "changes": list(changes), "missing": list(missing)}


def installed(found: InstalledTorch) -> dict[str, Any]:
    """Return a torch and its Triton."""
    return {
        **_head("installed"),
        "python": str(found.python),
        "torch": _nulls(asdict(found.torch)) if found.torch else None,
        "triton": [_nulls(asdict(owner)) for owner in found.owners],
        "agrees": found.agrees,
        "reasons": list(found.reasons),
        "release": release_table(found.release) if found.release else None,
    }


def holders(found: Holders) -> dict[str, Any]:
    """Return the releases that have a commit."""
    return {
        **_head("holders"),
        "commit": found.commit,
        "subject": found.subject,
        "committed": found.committed,
        "pins": [
            {
                "release": holding.release,
                "where": holding.where,
                "pin": holding.pin or None,
                "relation": holding.standing.relation,
                "holds": holding.standing.holds,
                "why": holding.standing.why,
            }
            for holding in found.holdings
        ],
    }


def picks(found: Picks) -> dict[str, Any]:
    """Return a release branch, and its commits since its branch point."""
    return {
        **_head("picks"),
        "branch": found.branch,
        "tip": found.tip,
        "main": found.main,
        "branch_point": found.point,
        "picks": [{name: value or None for name, value in asdict(pick).items()} for pick in found.picks],
    }


def packages(found: Iterable[PackageRelease]) -> dict[str, Any]:
    """Return the releases of a package, and the torch that each requires."""
    return {**_head("packages"), "releases": [asdict(package) for package in found]}


def release_table(release: PyTorchRelease) -> dict[str, Any]:
    """Return a release: its channels, its wheel, and the wheel names."""
    return {
        "pytorch": release.version,
        **{where: _nulls(asdict(pin)) if pin else None for where, pin in release.own_pins.items()},
        "llvms_differ": release.llvms_differ,
        "wheel_names": [asdict(name) for name in pytorch_pins.wheel_names(release.version)],
    }


def _nulls(table: dict[str, Any]) -> dict[str, Any]:
    """Replace empty texts, which mean unknown, by null."""
    return {key: None if value == "" else value for key, value in table.items()}


def _head(kind: str) -> dict[str, Any]:
    return {"schema": SCHEMA, "kind": kind}
