"""Components that setup.py would download, taken from registry packages (`configs/toolchain.toml`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import Copy, Plan, Stamp, Step, digest
from tritonsmith.core.versions import version_key
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.machine import Machine
from tritonsmith.wheels import cuda_package

PHASE = "CUDA headers and tools"


@dataclass(frozen=True)
class Component:
    """A part of CUDA that Triton's build or runtime uses.

    Attributes:
        name: name of the row in `configs/toolchain.toml`.
        requirement: the registry package, with its exact version.
        source: path inside that package, once unpacked.
        dest: destination in the checkout, where Triton looks for it.
        variable: environment or CMake variable for its location.
        tree: whether it is a folder, not a program.
    """

    name: str
    requirement: str
    source: Path
    dest: Path
    variable: str
    tree: bool


def components(checkout: TritonCheckout, workspace: Workspace, *, proton: bool) -> tuple[Component, ...]:
    """Return the components for which a checkout names a version.

    Args:
        checkout: checkout that names the versions and the destinations.
        workspace: workspace for unpacked packages.
        proton: include what only the profiler needs.
    """
    versions = dict(checkout.nvidia)
    parts: list[Component] = []
    for row in configs.load("toolchain")["component"]:
        version = versions.get(row["wanted"])
        if version is None or (row.get("proton") and not proton):
            continue
        package, at = cuda_package.package_of(row, version)
        unpacked = workspace.toolchain / f"{package['name']}-{at}"
        source = unpacked / str(package["path"]).format(major=version_key(at)[0])
        requirement, dest = f"{package['name']}=={at}", _home(checkout) / row["dest"]
        parts.append(
            Component(
                row["name"],
                requirement,
                source,
                dest,
                row["variable"],
                tree=not row["dest"].startswith("bin/"),
            )
        )
    return tuple(parts)


def json_prefix(checkout: TritonCheckout, workspace: Workspace) -> Path:
    """Return a prefix with `include/nlohmann/json.hpp`, for `JSON_SYSPATH`."""
    table = configs.load("toolchain")["json"]
    return cuda_package.unpacked(_json_requirement(checkout), workspace) / str(table["path"])


def plan(
    checkout: TritonCheckout, workspace: Workspace, machine: Machine, python: Path, *, proton: bool
) -> Plan:
    """Plan to unpack the packages into the workspace and copy the files to where Triton looks for them.

    The destinations are those that upstream's own setup.py fills; its .gitignore lists them.

    Args:
        checkout: checkout that names the versions.
        workspace: workspace for unpacked packages.
        machine: macOS takes the Linux packages, as upstream does.
        python: interpreter with pip.
        proton: include what only the profiler needs.
    """
    parts = components(checkout, workspace, proton=proton)
    requirements = dict.fromkeys((*(part.requirement for part in parts), _json_requirement(checkout)))
    steps = [
        cuda_package.unpack(requirement, workspace, machine, python, PHASE) for requirement in requirements
    ]
    steps += [_copy(part, workspace, checkout.root) for part in parts]
    return Plan("CUDA headers and tools", tuple(steps))


def _copy(part: Component, workspace: Workspace, checkout: Path) -> Step:
    """Copy a component, unless its files are unchanged since the last copy of the same version."""
    # Comparing 40 MB in every build would be slow, so sizes and time stamps stand for the content. A copy
    # changes them: the next run compares once more, and later ones skip it.
    files = (part.dest, *sorted(part.dest.rglob("*"))) if part.dest.is_dir() else (part.dest,)
    states = [(str(file), *_state(file)) for file in files]
    stamp = workspace.toolchain / f".copied-{part.name}-{digest(str(part.dest))}"
    return Copy(
        part.source,
        part.dest,
        part.tree,
        checkout,
        phase=PHASE,
        stamp=Stamp(stamp, digest(str(part.source), states), made=part.dest),
    )


def _state(file: Path) -> tuple[int, int]:
    """Return size and time stamp; zeros if the file does not exist."""
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _home(checkout: TritonCheckout) -> Path:
    if checkout.has("nvidia-backend"):
        return checkout.root / "third_party" / "nvidia" / "backend"
    return checkout.root / "python" / "triton" / "third_party" / "cuda"


def _json_requirement(checkout: TritonCheckout) -> str:
    table = configs.load("toolchain")["json"]
    return f"{table['package']}=={checkout.json_version or table['default']}"
