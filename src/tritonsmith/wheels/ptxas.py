"""Install parts of CUDA from registry packages, above all the ptxas of any CUDA besides those in Triton.

`configs/toolchain.toml` maps each part to its packages.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan, Stamp, Step, UnpackPackage, digest, files
from tritonsmith.core.process import query
from tritonsmith.core.text import version_key
from tritonsmith.facts import checkout
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.variables import covers
from tritonsmith.wheels import venv

PHASE = "ptxas"
_REQUESTED = re.compile(r"\d+\.\d+(\.\d+)?", re.ASCII)
_AVAILABLE = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
_OWN_VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)")
_NEWEST_PTX = re.compile(r"current version is '(\d+\.\d+)'")
_PATIENCE = 60.0  # seconds for the index
_MACOS_PLATFORMS = {"arm64": "manylinux2014_aarch64", "x86_64": "manylinux2014_x86_64"}


def package_folder(requirement: str, workspace: Workspace) -> Path:
    """Return the folder in which a package is unpacked."""
    return workspace.toolchain / requirement.replace("==", "-")


def unpack_step(
    requirement: str,
    workspace: Workspace,
    machine: Machine,
    python: Path,
    phase: str,
    verify: tuple[str, ...] = (),
) -> Step:
    """Return the step that unpacks a package, once for all environments.

    Args:
        requirement: the package, with its exact version.
        workspace: workspace for unpacked packages.
        machine: the machine whose packages are chosen.
        python: interpreter with pip.
        phase: phase of the step.
        verify: a program of the package and its arguments, which must succeed.
    """
    target = package_folder(requirement, workspace)
    platform: tuple[str, ...] = ()
    # NVIDIA has no packages for macOS. Upstream takes those for Linux there, too.
    if machine.system == "Darwin" and requirement.startswith("nvidia-"):
        platform = ("--platform", _MACOS_PLATFORMS[machine.arch])
    # Only the files of this package are wanted: no other distributions beside them, and no source archive,
    # whose setup.py would run.
    pip = (
        *(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"),
        *("--only-binary=:all:", *platform),
    )
    # The key has the package and not the pip that unpacks it: environments have their own interpreters, and
    # share this folder.
    stamp = Stamp(
        workspace.toolchain / f".{target.name}.done",
        digest(requirement, machine.arch, platform),
        result=target,
    )
    return UnpackPackage(pip, requirement, target, workspace.root, verify, phase=phase, stamp=stamp)


def package_of(row: dict[str, Any], version: str) -> tuple[dict[str, Any], str]:
    """Return the registry package that holds a version, and the version of it to use."""
    for package in row["packages"]:
        if SpecifierSet(package["range"]).contains(version):
            # PyPI has no disassembler as old as some CUDAs; a newer one reads older cubins.
            first = package.get("first")
            at = first if first and version_key(version) < version_key(first) else version
            return package, at
    raise LookupError(f"configs/toolchain.toml has no package for {row['name']} {version}")


@dataclass(frozen=True)
class RegistryPtxas:
    """A ptxas from the registry.

    Attributes:
        version: full version: `12.9.86`.
        path: its path, before and after installation.
        requirement: its package.
        plan: steps that install it; none if it exists.
    """

    version: str
    path: Path
    requirement: str
    plan: Plan


def known() -> tuple[str, ...]:
    """Return the versions that `configs/toolchain.toml` lists, the oldest first."""
    return tuple(configs.load("toolchain")["ptxas"]["versions"])


def available(version: str, python: Path) -> tuple[str, ...]:
    """Return the versions on the index of the package that holds a version, the oldest first.

    Raises:
        FactError: the index does not answer.
    """
    package = _package(version)["name"]
    argv = (str(python), "-m", "pip", "index", "versions", package, "--disable-pip-version-check")
    answer = query(argv, timeout=_PATIENCE)
    # With an index that does not answer, pip lists the versions of the others, and ends with 0.
    complete = answer and answer.code == 0 and not venv.gave_up_on_an_index(answer.err)
    match = _AVAILABLE.search(answer.out) if answer and complete else None
    if match is None:
        last_line = answer.err.splitlines()[-1:] if answer else []
        hints = ["check that pip can reach its index; behind a proxy, set https_proxy"]
        raise FactError(
            f"the package index lists no versions of {package}", why="\n".join(last_line), hints=hints
        )
    return tuple(sorted(match[1].split(", "), key=version_key))


def resolve(version: str, python: Path) -> str:
    """Complete a version: `13.0` becomes the newest known 13.0; the index is queried for others.

    Raises:
        UsageError: the text is not a version, or there is no such ptxas.
        FactError: the index does not answer.
    """
    if not _REQUESTED.fullmatch(version):
        raise UsageError(f"no version of ptxas: {version!r}", hints=["give a CUDA release: 12.9, or 13.0.88"])
    # The table first: versions that it lists need no network.
    newest = _newest(version, known())
    if newest is None:
        there = available(version, python)
        newest = _newest(version, there)
        if newest is None:
            hints = [*did_you_mean(version, there), f"there are {', '.join(there)}"]
            raise UsageError(f"the package index has no ptxas {version}", hints=hints)
    return newest


def prepare(version: str, space: Workspace, machine: Machine, python: Path) -> RegistryPtxas:
    """Prepare the ptxas of a full version, with the steps that unpack and run it once.

    Args:
        version: version of the package.
        space: workspace to install it in.
        machine: machine to install it for.
        python: an interpreter with pip.
    """
    package = _package(version)
    requirement = f"{package['name']}=={version}"
    inside = str(package["path"]).format(major=version_key(version)[0])
    # It is run before the folder gets its name: one that does not run here is not taken for installed.
    step = unpack_step(requirement, space, machine, python, PHASE, (inside, "--version"))
    todo = () if step.stamp and step.stamp.holds() else (step,)
    path = package_folder(requirement, space) / inside
    return RegistryPtxas(version, path, requirement, Plan(f"ptxas {version}", todo))


def install(package: RegistryPtxas, space: Workspace, *, silent: bool = False) -> None:
    """Install it, and compare its reported version with that of its package.

    Raises:
        SmithError: pip failed, or the program does not run here.
        LockedError: another run has been unpacking the same package for a quarter of an hour.
        FactError: the program is another version.
    """
    if package.plan.steps:
        space.claim()
        space.run(package.plan, "toolchain.ptxas", quiet=silent)
    if (says := version_of(package.path)) != package.version:
        what = f"this ptxas reports {says or 'no version'}, its package is {package.version}"
        raise FactError(what, where=package.path, hints=[f"remove {package.path.parent}, and run again"])


def version_of(program: Path) -> str:
    """Return the version from `ptxas --version`, as in `12.9.86`; empty if it does not run or report one."""
    answer = query((str(program), "--version"))
    match = _OWN_VERSION.search(answer.out) if answer and answer.code == 0 else None
    return match[1] if match else ""


def newest_ptx(program: Path, scratch: Path) -> str:
    """Return the newest PTX that a ptxas accepts, as in `8.8`; empty if it is unknown."""
    # ptxas names its newest PTX version in the error for a newer one.
    text = scratch / "newer-than-all.ptx"
    files.write(text, ".version 99.9\n.target sm_80\n.address_size 64\n")
    answer = query((str(program), "--gpu-name=sm_80", str(text), "-o", os.devnull))
    match = _NEWEST_PTX.search(answer.err + answer.out) if answer else None
    return match[1] if match else ""


def row_for(triton: str, capability: str) -> Mapping[str, Any]:
    """Return the row of the ptxas that a Triton runs for a GPU: its `name` and the `variable` to replace it.

    Args:
        triton: version of Triton; empty for the newest.
        capability: compute capability: `9.0`.
    """
    # The last row that fits: some releases since 3.3 have a second ptxas for newer GPUs, which comes later.
    rows: list[dict[str, Any]] = configs.load("gpus")["nvidia"]["ptxas"]
    return [
        row
        for row in rows
        if covers(triton, row["since"], row.get("until", ""))
        and version_key(capability) >= version_key(row["capability"])
    ][-1]


def newest_accepted(triton: str) -> str:
    """Return the newest known version of a CUDA that a release of Triton accepts."""
    rows = configs.load("gpus")["nvidia"]["newest-cuda"]
    most = min((row["major"] for row in rows if covers(triton, "0", row["until"])), default=None)
    return [version for version in known() if most is None or version_key(version)[0] <= most][-1]


def shipped_before(triton: str, capability: str, version: str) -> str:
    """Return the last earlier release's ptxas for a GPU if it is older than a version; else empty."""
    # Row by row of the releases, since the table names a ptxas only where it changed.
    table = configs.load("gpus")["nvidia"]["shipped"]
    lines = [
        row.version
        for row in checkout.triton_releases()
        if version_key(row.version) < version_key(triton)[:2]
    ]
    for line in reversed(lines):
        rows = table[row_for(line, capability)["name"]]
        had = [rows[since] for since in rows if covers(line, since)]
        if had and version_key(had[-1]) < version_key(version):
            return str(had[-1])
    return ""


def variables(program: Path, version: str | None = None) -> Mapping[str, str]:
    """Return the variables that make a release of Triton run this ptxas for every GPU.

    Args:
        program: the ptxas.
        version: version of Triton; empty for the newest, None for all of them.
    """
    # All of them: Triton reads one variable for each kind of GPU, and 3.3 spelled the second with a hyphen.
    rows = configs.load("gpus")["nvidia"]["ptxas"]
    own = [row for row in rows if version is None or covers(version, row["since"], row.get("until", ""))]
    return dict.fromkeys((row["variable"] for row in own), str(program))


def pip_python(other: Path) -> Path:
    """Return an interpreter with pip: the tool's own, or another."""
    # `uv tool install` puts the tool into an environment without pip.
    return Path(sys.executable) if find_spec("pip") else other


def _newest(prefix: str, versions: tuple[str, ...]) -> str | None:
    fitting = [version for version in versions if version == prefix or version.startswith(f"{prefix}.")]
    return max(fitting, key=version_key) if fitting else None


def _package(version: str) -> dict[str, Any]:
    """Return the row of the package that holds a version.

    Raises:
        UsageError: the version is too old.
    """
    table = configs.load("toolchain")
    if version_key(version) < version_key(table["ptxas"]["oldest"]):
        raise UsageError(
            f"no package has ptxas {version}", hints=[f"the oldest is {table['ptxas']['oldest']}"]
        )
    row = next(row for row in table["component"] if row["name"] == "ptxas")
    return package_of(row, version)[0]


def versions(python: Path, space: Workspace, host: Machine) -> list[dict[str, str]]:
    """Return all versions, of the package index and of this machine, with the paths of the installed ones.

    Args:
        python: an interpreter with pip.
        space: the workspace.
        host: this machine.
    """
    tables = known()
    # The package was renamed, so its oldest and its newest release are of different names in the index.
    every = {*tables, *available(tables[0], python), *available(tables[-1], python)}
    rows = []
    for version in sorted(every, key=version_key):
        prepared = prepare(version, space, host, python)
        rows.append({"version": version, "path": "" if prepared.plan.steps else str(prepared.path)})
    return rows
