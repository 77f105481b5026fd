"""The torch and Triton of an interpreter, and whether they agree; neither is imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.facts import libtriton, package_owners, python_env, pytorch_pins
from tritonsmith.facts.package_owners import PACKAGE, Distribution
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.facts.pytorch_pins import PyTorchRelease, Torch

__all__ = ["InstalledTorch", "Owner", "Torch", "judge", "read", "release_of"]


@dataclass(frozen=True)
class Owner:
    """A distribution that owns `triton/`.

    Attributes:
        name: name of the distribution.
        version: its version, with the local part.
        commit: digits of Triton's commit, from the version or pip's record; else empty.
        known_by: source of the commit, if it is not in the version.
        llvm: the LLVM in its libtriton.so, as a commit or version; empty if there is a torch.
    """

    name: str
    version: str
    commit: str
    known_by: str = ""
    llvm: str = ""


@dataclass(frozen=True)
class InstalledTorch:
    """The torch and Triton of an interpreter.

    Attributes:
        python: the interpreter.
        torch: its torch; None for none.
        owners: distributions that own `triton/`; several overwrite each other's files.
        release: row of the table; None for a torch that is not a release.
        agrees: whether Triton matches this torch; None if undecided.
        reasons: the reasons, each a sentence.
    """

    python: Path
    torch: Torch | None
    owners: tuple[Owner, ...]
    release: PyTorchRelease | None
    agrees: bool | None
    reasons: tuple[str, ...]


def read(python: Path) -> InstalledTorch:
    """Read an interpreter's torch and Triton.

    Raises:
        FactError: the interpreter does not run, or has neither a torch nor a Triton.
    """
    packages = python_env.read(python)
    if packages is None:
        raise FactError(
            "this Python does not run",
            where=python,
            why=None if python.exists() else "no such file",
            hints=["choose another: --python PATH, or an environment: --env NAME"],
        )
    torch = pytorch_pins.read_torch(packages)
    if torch is None:
        return _without_torch(python, packages)
    owners = tuple(
        Owner(name, version, package_owners.commit_in(version))
        for name, version in packages.dists
        if name in packages.triton_owners
    )
    release = release_of(torch.version)
    agrees, reasons = judge(torch, owners, release)
    return InstalledTorch(python, torch, owners, release, agrees, reasons)


def _without_torch(python: Path, packages: PythonEnv) -> InstalledTorch:
    """Read the Triton of an interpreter without a torch, from its wheel's metadata and library."""
    owners = tuple(map(_described, package_owners.owners(packages.distributions)))
    if not owners:
        raise FactError(
            "no torch in this Python, and no Triton",
            where=python,
            hints=[
                "choose a Python that has one: --python PATH, or an environment: --env NAME",
                "or use the table: invoke pins --pytorch VERSION",
            ],
        )
    return InstalledTorch(python, None, owners, None, None, ("no torch here requires a Triton",))


def _described(distribution: Distribution) -> Owner:
    """Return a distribution with Triton's commit and LLVM, as far as they are known."""
    version = distribution.version
    commit, known_by = package_owners.commit_in(version), ""
    if not commit:
        # pip's record of a source in git is the only trace where the version has no commit.
        commit, known_by = package_owners.editable_commit(distribution.info), "direct_url.json"
    if not commit and distribution.name == "triton":
        rows = (row for row in pytorch_pins.releases() if row.cuda.version == version)
        row = next((row for row in rows if row.wheel.commit), None)
        commit = row.wheel.commit if row else ""
        known_by = f"the wheel that PyTorch {row.version} requires" if row else ""
    return Owner(distribution.name, version, commit, known_by if commit else "", _llvm(distribution))


def _llvm(distribution: Distribution) -> str:
    """Return the LLVM in a distribution's libtriton.so; empty if it is not recorded."""
    for path in libtriton.find(distribution.site / PACKAGE):
        with suppress(OSError):
            library = libtriton.read(path)
            return library.llvm_commit or library.llvm_version
    return ""


def release_of(version: str) -> PyTorchRelease | None:
    """Return the release of a torch; None for a nightly, or one that is newer than the table."""
    try:
        return pytorch_pins.find(version).release
    except UsageError:
        return None


def judge(
    torch: Torch, owners: tuple[Owner, ...], release: PyTorchRelease | None
) -> tuple[bool | None, tuple[str, ...]]:
    """Decide whether the owners of `triton/` match a torch and its row of the table, if any, and why."""
    judgements = tuple(_judged(torch, owners, release))
    verdicts = {agrees for agrees, _ in judgements}
    # One contradiction decides; a doubt only prevents a yes.
    doubtful = None if None in verdicts else True
    return (False if False in verdicts else doubtful), tuple(reason for _, reason in judgements)


def _judged(
    torch: Torch, owners: tuple[Owner, ...], release: PyTorchRelease | None
) -> Iterator[tuple[bool | None, str]]:
    if len(owners) > 1:
        names = ", ".join(f"{owner.name} {owner.version}" for owner in owners)
        yield False, f"several distributions own triton/ and overwrite each other's files: {names}"
    if torch.requires:
        yield _fits("torch", torch.requires, owners)
    elif owners and release is not None:
        who = f"this torch requires no Triton; PyTorch {release.version} for CUDA"
        yield _fits(who, release.cuda.requires, owners)
    else:
        yield None, "this torch requires no Triton, as CPU builds and builds from sources do not"
    for owner in owners:
        # The version alone proves little: many commits were built as 3.0.0.
        if release is not None and owner.commit:
            yield _commit_fits(owner, release)
    if release is None:
        unlisted = f"torch {torch.version} is not a release in the table"
        yield None, f"{unlisted}, so its pin is that of its own commit"


def _fits(who: str, line: str, owners: tuple[Owner, ...]) -> tuple[bool | None, str]:
    requirement = Requirement(line)
    specification = f"{requirement.name}{requirement.specifier}"
    named = [owner for owner in owners if owner.name == canonicalize_name(requirement.name)]
    if not named:
        instead = ", ".join(f"{owner.name} {owner.version}" for owner in owners) or "no Triton"
        return False, f"{who} requires {specification}; installed is {instead}"
    version = named[0].version
    try:
        fits = requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return None, f"{who} requires {specification}; {version!r} cannot be compared"
    return fits, f"{who} requires {specification}; installed is {version}"


def _commit_fits(owner: Owner, release: PyTorchRelease) -> tuple[bool | None, str]:
    """Compare the commit in a version with the release's pins and its wheel."""
    text = f"{owner.name} {owner.version} was built from {owner.commit}"
    pins = [pin for pin in release.own_pins.values() if pin is not None]
    if any(pin.commit.startswith(owner.commit) for pin in pins):
        return True, f"{text}, which PyTorch {release.version} pins"
    if any(candidate.startswith(owner.commit) for pin in pins for candidate in pin.candidates):
        return None, f"{text}, an unconfirmed candidate for the pin of PyTorch {release.version}"
    if not release.cuda.commit:
        return None, f"{text}; the pin of PyTorch {release.version} is unknown"
    return False, f"{text}, which PyTorch {release.version} does not pin"
