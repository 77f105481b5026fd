"""The checks. Each is a function from a subject to findings; one that crashes becomes a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from tritonsmith import configs
from tritonsmith.build.jobs import bound
from tritonsmith.doctor.finding import Finding
from tritonsmith.envs import receipts
from tritonsmith.envs.schema import Settings
from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import FactError
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts import llvm_tree, machine, tools
from tritonsmith.facts.machine import Machine


@dataclass(frozen=True)
class Subject:
    """What the doctor looks at.

    Attributes:
        settings: the env.
        space: the workspace.
        host: the machine.
    """

    settings: Settings
    space: Workspace
    host: Machine


Check = Callable[[Subject], Iterator[Finding]]


def examine(subject: Subject) -> tuple[Finding, ...]:
    """Run every check."""
    findings: list[Finding] = []
    for check in (machine_memory, machine_disk, tools_versions, builds_llvm, builds_triton):
        try:
            findings += check(subject)
        except Exception as error:  # noqa: BLE001 - a crash of one check is a finding, not a traceback
            name = check.__name__.replace("_", ".", 1)
            text = f"{type(error).__name__}: {error}"
            findings.append(
                Finding(name, "crashed", text, remedy=("report this: it is a bug of the doctor",))
            )
    return tuple(findings)


def machine_memory(subject: Subject) -> Iterator[Finding]:
    """Memory against one compile job, and the jobs that would run."""
    host = subject.host
    need = configs.load("resources")["memory"]["compile-job"]
    jobs = bound(host, subject.settings.toolchain, subject.settings.llvm.debug_info)
    seen = f"{host.memory_gib:.1f} GiB, {host.cores} cores: {jobs.compile} compile and {jobs.link} link jobs"
    if host.memory_gib < 2 * need:
        yield Finding(
            "machine.memory", "warning", seen, "compiles may be killed", ("add swap, or build elsewhere",)
        )
    else:
        yield Finding("machine.memory", "ok", seen)


def machine_disk(subject: Subject) -> Iterator[Finding]:
    """Free space where builds go."""
    free = machine.disk_free(subject.space.root)
    need = configs.load("resources")["disk"]
    seen = f"{free:.0f} GiB free at {subject.space.root}"
    build_type = subject.settings.llvm.build_type
    if free < need["triton-build"]:
        remedy = ("free some space, or set TRITONSMITH_HOME",)
        yield Finding("machine.disk", "error", seen, "not even Triton alone can be built", remedy)
    elif not subject.settings.triton.wheel and free < need["llvm-build"][build_type]:
        affects = f"LLVM from source ({build_type}) needs about {need['llvm-build'][build_type]:.0f} GiB"
        yield Finding("machine.disk", "note", seen, affects, ("set TRITONSMITH_HOME to a larger disk",))
    else:
        yield Finding("machine.disk", "ok", seen)


def tools_versions(subject: Subject) -> Iterator[Finding]:
    """Programs against the floors and ceilings of `configs/tools.toml`."""
    for row in configs.load("tools")["tool"]:
        yield _tool(row, building=not subject.settings.triton.wheel)


def _tool(row: dict[str, Any], *, building: bool) -> Finding:
    name = row["name"]
    finder = tools.own(name) if row.get("own") else tools.find(name, names=_versioned(row))
    remedy = tuple(row["remedy"])
    if finder is None:
        status = "error" if building and row["needed"] else "note"
        return Finding(f"tools.{name}", status, "not installed", row["affects"], remedy)  # type: ignore[arg-type]
    seen = f"{finder.version or 'unknown version'} at {finder.path}"
    if finder.version and not SpecifierSet(row["range"]).contains(finder.version):
        return Finding(f"tools.{name}", "warning", f"{seen}; wanted {row['range']}", row["affects"], remedy)
    return Finding(f"tools.{name}", "ok", seen)


def _versioned(row: dict[str, Any]) -> list[str]:
    return [f"{row['name']}-{major}" for major in range(30, 10, -1)] if row.get("versioned") else []


def builds_llvm(subject: Subject) -> Iterator[Finding]:
    """The env's LLVM: is it still there, and is it at the pin?"""
    name = subject.settings.name
    receipt = receipts.read(subject.space.env(name).receipt("setup-mlir"))
    if receipt is None:
        return
    remedy = (f"invoke setup-mlir --env {name}",)
    try:
        tree = llvm_tree.read(Path(receipt["prefix"]))
    except FactError as error:
        yield Finding(
            "builds.llvm", "error", f"{receipt['prefix']}: {error.why}", "Triton cannot be built", remedy
        )
        return
    seen = f"LLVM {tree.version} ({tree.build_type or '?'}) in {tree.prefix}"
    pin = str(receipt.get("pin", ""))
    if pin and not llvm_tree.same_commit(tree.commit, pin):
        about = tree.commit[:12] or "unknown"
        affects = f"its commit is {about}, the pin {pin[:12]}: changed APIs do not compile"
        yield Finding("builds.llvm", "warning", seen, affects, remedy)
    else:
        yield Finding("builds.llvm", "ok", seen)


def builds_triton(subject: Subject) -> Iterator[Finding]:
    """The env's Triton: does the build still match its sources?"""
    name = subject.settings.name
    receipt = receipts.read(subject.space.env(name).receipt("build-triton"))
    if receipt is None:
        return
    remedy = (f"invoke build-triton --env {name} --source {receipt['source']}",)
    try:
        checkout = checkouts.read(Path(receipt["source"]))
    except FactError as error:
        yield Finding(
            "builds.triton",
            "error",
            f"{receipt['source']}: {error.why or error.what}",
            "the build has no sources",
            remedy,
        )
        return
    seen = f"Triton {receipt['version']} ({receipt['build_type']}) of {checkout.root}"
    if checkout.commit != receipt["commit"]:
        affects = f"built at {receipt['commit'][:12]}, the checkout is at {checkout.commit[:12]}"
        yield Finding("builds.triton", "warning", seen, affects, remedy)
    elif checkout.pin and not llvm_tree.same_commit(checkout.pin.commit, str(receipt["pin"])):
        affects = f"built for LLVM {str(receipt['pin'])[:12]}, the checkout pins {checkout.pin.commit[:12]}"
        yield Finding("builds.triton", "warning", seen, affects, (f"invoke setup-mlir --env {name}", *remedy))
    else:
        yield Finding("builds.triton", "ok", seen)
