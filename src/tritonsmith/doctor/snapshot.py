"""The versions and variables of an environment and its machine, for comparing two times or machines.

`configs/doctor-setup.toml` lists the facts. A snapshot has every fact; an empty text means none.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.ui import redact as ui_redact
from tritonsmith.doctor import redact
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.python_triton import installed_ptxas, package_of
from tritonsmith.facts import gpu_runtimes, gpus, libtriton, torch_install, variables

VARIABLE = "$"  # prefix of variables among the facts
EMPTY = "(empty)"  # an empty variable
SET = "(set)"  # replaces the value of a variable that Triton does not know

Snapshot = dict[str, str]


def read(subject: DoctorContext) -> Snapshot:
    """Return the facts of a subject, without secrets, names and home folders."""
    hide = redact.redactor({subject.space.root: "$TRITONSMITH_HOME"})
    known = {**_machine(subject), **dict(_python(subject)), **_sources(subject)}
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
        "rocm": gpu_runtimes.rocm(Path(subject.environ.get("ROCM_PATH") or "/opt/rocm")).version,
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
    versions, package, torch = dict(python.dists), package_of(python), torch_install.read(python)
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
    yield "cuda-runtime", gpu_runtimes.wheels(python.dists, "cuda-runtime")
    yield "cudnn", gpu_runtimes.wheels(python.dists, "cudnn")


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
    ours = {*variables.about_triton(subject.environ), *(known & set(subject.environ))}
    return {
        f"{VARIABLE}{name}": ui_redact.variable(name, subject.environ[name]) or EMPTY
        if name in known or variables.find(name)
        else SET
        for name in sorted(ours)
    }


def _short(value: str) -> str:
    most = configs.load("doctor-setup")["history"]["characters"]
    if len(value) <= most:
        return value
    mark = hashlib.sha256(value.encode(errors="replace")).hexdigest()[:8]
    return f"{value[:most]}… ({len(value)} characters, {mark})"
