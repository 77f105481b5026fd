"""Parts of CUDA from registry packages; `configs/toolchain.toml` maps each part to its packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import Stamp, Step, UnpackPackage, digest
from tritonsmith.core.versions import version_key
from tritonsmith.facts.machine import Machine

_MACOS_PLATFORMS = {"arm64": "manylinux2014_aarch64", "x86_64": "manylinux2014_x86_64"}


def unpacked(requirement: str, workspace: Workspace) -> Path:
    """Return the folder in which a package is unpacked."""
    return workspace.toolchain / requirement.replace("==", "-")


def unpack(
    requirement: str,
    workspace: Workspace,
    machine: Machine,
    python: Path,
    phase: str,
    verify: tuple[str, ...] = (),
) -> Step:
    """Return the step that unpacks a package, once for all environments.

    The stamp identifies the package, not the pip that unpacks it: environments have their own interpreters.

    Args:
        requirement: the package, with its exact version.
        workspace: workspace for unpacked packages.
        machine: macOS takes the Linux packages, as upstream does.
        python: interpreter with pip.
        phase: phase of the step.
        verify: a program of the package and its arguments, which must succeed.
    """
    target = unpacked(requirement, workspace)
    platform: tuple[str, ...] = ()
    if machine.system == "Darwin" and requirement.startswith("nvidia-"):
        platform = ("--platform", _MACOS_PLATFORMS[machine.arch])
    pip = (
        *(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"),
        *("--only-binary=:all:", *platform),
    )
    stamp = Stamp(
        workspace.toolchain / f".{target.name}.done", digest(requirement, machine.arch, platform), made=target
    )
    return UnpackPackage(pip, requirement, target, workspace.root, verify, phase=phase, stamp=stamp)


def package_of(row: dict[str, Any], version: str) -> tuple[dict[str, Any], str]:
    """Return the registry package that holds a version, and the version of it to use."""
    for package in row["packages"]:
        if SpecifierSet(package["range"]).contains(version):
            first = package.get("first")
            at = first if first and version_key(version) < version_key(first) else version
            return package, at
    raise LookupError(f"configs/toolchain.toml has no package for {row['name']} {version}")
