"""Snapshots of an environment and its machine, without personal data, and the changes between two of them.

`configs/doctor-setup.toml` lists the facts. A snapshot has every fact; an empty text means none.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.core import configs, redact
from tritonsmith.core.text import version_key
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.doctor.check import DoctorContext
from tritonsmith.doctor.python_triton import installed_ptxas, package_of
from tritonsmith.facts import gpus, libtriton, pytorch_pins, variables

VARIABLE = "$"  # prefix of variables among the facts
EMPTY = "(empty)"  # an empty variable
SET = "(set)"  # replaces the value of a variable that Triton does not know

Snapshot = dict[str, str]


def read(subject: DoctorContext) -> Snapshot:
    """Return the facts of a subject, without secrets, names and home folders."""
    hide = redact.redactor({subject.space.root: "$TRITONSMITH_HOME"})
    known = {**_machine(subject), **dict(_python(subject)), **_sources(subject)}
    # The table decides, not what is at hand: a report from anywhere has the same facts in the same order.
    facts = {name: known.get(name, "") for name in configs.load("doctor-setup")["fact"]}
    return {name: _short(hide.in_place(value)) for name, value in {**facts, **_variables(subject)}.items()}


def _machine(subject: DoctorContext) -> Snapshot:
    host, gpu_facts = subject.host, subject.gpus
    nvidia, amd = gpu_facts.nvidia, gpu_facts.amd
    return {
        "os": " ".join(filter(None, (host.system, host.os_id, _os_version()))),
        "kernel": platform.release(),
        "arch": host.arch,
        "glibc": host.glibc,
        "glibcxx": host.glibcxx,
        "gpu": ", ".join(f"{gpu.name} ({gpu.arch})" for gpu in gpu_facts.all),
        "driver": nvidia.version if nvidia else "",
        "driver-cuda": nvidia.cuda if nvidia else "",
        "amd-driver": amd.version or "of the kernel" if amd else "",
        "rocm": gpus.rocm(Path(subject.environ.get("ROCM_PATH") or "/opt/rocm")).version,
    }


def _os_version() -> str:
    try:
        return platform.freedesktop_os_release().get("VERSION_ID", "")
    except OSError:
        return platform.release()


def _python(subject: DoctorContext) -> Iterator[tuple[str, str]]:
    python = subject.packages
    if not python:
        return
    versions, package, torch = dict(python.dists), package_of(python), pytorch_pins.read_torch(python)
    owners = [(name, versions[name]) for name in python.triton_owners]
    yield "interpreter", str(python.executable)
    yield "python", python.version
    yield (
        "triton",
        ", ".join(release if name == "triton" else f"{name} {release}" for name, release in owners),
    )
    yield "triton-llvm", ", ".join(map(_llvm_in, libtriton.find(package))) if package else ""
    yield from _assemblers(subject, package)
    if torch:
        yield "torch", torch.version
        yield "torch-cuda", torch.cuda
        yield "torch-hip", torch.hip
    yield "cuda-runtime", gpus.runtime_wheels(python.dists, "cuda-runtime")
    yield "cudnn", gpus.runtime_wheels(python.dists, "cudnn")


def _llvm_in(library: Path) -> str:
    try:
        contents = libtriton.read(library)
    except OSError as error:
        return f"{library.name}: {error.strerror}"
    return f"{contents.llvm_version} {contents.llvm_commit}".strip()


def _assemblers(subject: DoctorContext, package: Path | None) -> Iterator[tuple[str, str]]:
    """Yield the CUDA releases of the programs; a variable may replace the one that came with Triton."""
    programs = {path.name: path for path in installed_ptxas(package)} if package else {}
    for row in configs.load("gpus")["nvidia"]["ptxas"]:
        named = Path(subject.environ.get(row["variable"], ""))
        if named.is_file():
            programs[row["name"]] = named
    for name, path in programs.items():
        yield name, gpus.cuda_release(path)


def _sources(subject: DoctorContext) -> Snapshot:
    tree, llvm = subject.checkout, subject.llvm
    return {
        "checkout": f"{tree.version} {tree.commit[:12]}".rstrip() if tree else "",
        "llvm": f"{llvm.version} {llvm.commit[:12]}".rstrip() if llvm else "",
    }


def _variables(subject: DoctorContext) -> Snapshot:
    known = set(configs.load("doctor-setup")["variables"]["names"])
    # Of variables that Triton does not know only the presence is recorded: their values may be anything.
    ours = {*variables.about_triton(subject.environ), *(known & set(subject.environ))}
    return {
        f"{VARIABLE}{name}": redact.variable(name, subject.environ[name]) or EMPTY
        if name in known or variables.find(name)
        else SET
        for name in sorted(ours)
    }


def _short(value: str) -> str:
    most = configs.load("doctor-setup")["history"]["characters"]
    if len(value) <= most:
        return value
    # Two long values that differ at the end must not look the same.
    mark = hashlib.sha256(value.encode(errors="replace")).hexdigest()[:8]
    return f"{value[:most]}… ({len(value)} characters, {mark})"


_NONE = "none"
_ABOUT_CACHES = "part of the cache's key: kernels compile again"


@dataclass(frozen=True)
class SetupChange:
    """A fact that differs.

    Attributes:
        what: the name of the fact: `driver`, or `$TRITON_HOME`.
        title: the name in words.
        then: its value in the first snapshot; empty for none.
        now: its value in the second snapshot.
        means: a possible consequence of the change; empty if unknown.
    """

    what: str
    title: str
    then: str
    now: str
    means: str = ""


def changes_between(then: Snapshot, now: Snapshot) -> tuple[SetupChange, ...]:
    """Return the facts that differ, in the order of `configs/doctor-setup.toml`, variables last."""
    facts = configs.load("doctor-setup")["fact"]
    rest = sorted((then.keys() | now.keys()) - facts.keys())
    # A fact in only one of them comes from another version of this tool, and says nothing about the
    # machine. A variable that is absent is unset.
    both = [name for name in (*facts, *rest) if name.startswith(VARIABLE) or (name in then and name in now)]
    return tuple(_change(name, then, now) for name in both if then.get(name, "") != now.get(name, ""))


def not_compared(then: Snapshot, now: Snapshot) -> tuple[str, ...]:
    """Return a remark on facts that only one of them has, if there are any."""
    names = sorted(name for name in then.keys() ^ now.keys() if not name.startswith(VARIABLE))
    return (f"only one side knows, so not compared: {', '.join(names)}",) if names else ()


def _change(name: str, then: Snapshot, now: Snapshot) -> SetupChange:
    before, after = then.get(name, ""), now.get(name, "")
    if name.startswith(VARIABLE):
        return SetupChange(name, name, before, after, _variable_meaning(name.removeprefix(VARIABLE)))
    row = configs.load("doctor-setup")["fact"].get(name, {"title": name})
    # A fact that is gone can mean something other than one that changed: no second ptxas, not another one.
    meaning = row.get("gone", "") if before and not after else row.get("means", "")
    return SetupChange(
        name, row["title"], before, after, "; ".join((*_newer_than_meanings(name, now), meaning)).strip("; ")
    )


def _newer_than_meanings(name: str, now: Snapshot) -> Iterator[str]:
    """Yield the consequences if a fact has a newer major version than another, whichever of them changed."""
    for rule in configs.load("doctor-setup")["above"]:
        than = now.get(rule["than"], "")
        for fact in rule["facts"]:
            newer = now.get(fact, "")
            if name in (fact, rule["than"]) and newer and than and _major(newer) > _major(than):
                subject = "" if name == fact else f"{fact} {newer}: "
                yield subject + rule["means"].format(than=than)


def _major(version: str) -> int:
    return (version_key(version) or (0,))[0]


def _variable_meaning(name: str) -> str:
    row, others = variables.find(name), configs.load("doctor-setup")["variables"]
    if row is None:
        return str(others["means"] if name in others["names"] else others["unknown"])
    return "; ".join((row.what, *([_ABOUT_CACHES] if row.cache == "invalidates" else ())))


def changes_table(changes: tuple[SetupChange, ...], then: str, now: str) -> Grid:
    """Return a table of the changes, with the names of both sides as heads."""
    rows = [
        [change.title, _shown(change.then, change), _shown(change.now, change), change.means]
        for change in changes
    ]
    return tables.plain("", ["what", then, now, "can mean"], rows)


def _shown(value: str, change: SetupChange) -> str:
    return value or ("not set" if change.what.startswith(VARIABLE) else _NONE)


def changes_as_json(changes: tuple[SetupChange, ...]) -> list[dict[str, Any]]:
    """Return the changes as JSON data."""
    return [
        {"what": change.what, "then": change.then, "now": change.now, "means": change.means}
        for change in changes
    ]
