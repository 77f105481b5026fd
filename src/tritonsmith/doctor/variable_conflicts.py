"""The check `variables.contradictory`: variables that conflict although each is fine alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tritonsmith.core.command_line import command
from tritonsmith.doctor import env_vars
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding, note, warning
from tritonsmith.facts import cmake_cache, variables


def find(subject: DoctorContext) -> Iterator[Finding]:
    """Find variables that conflict although each is fine alone."""
    for look in (_build_types, _offline, _build_dir, _llvm_debug, _override, _interpreted, _alone):
        yield from look(subject)


def _build_types(subject: DoctorContext) -> Iterator[Finding]:
    rows = [row for row in env_vars.on(subject).values() if row.effect == "build-type"]
    if len(rows) > 1:
        yield warning(
            f"{', '.join(env_vars.shown(subject, row.name) for row in rows)}: several build types",
            affects=f"{env_vars.BY_HAND}: the first wins, {rows[0].what}",
            commands=tuple(env_vars.unset(row.name) for row in rows[1:]),
        )


def _offline(subject: DoctorContext) -> Iterator[Finding]:
    if "TRITON_OFFLINE_BUILD" not in env_vars.on(subject):
        return
    missing = [name for name in ("LLVM_SYSPATH", "JSON_SYSPATH") if not subject.environ.get(name)]
    if missing:
        yield warning(
            f"TRITON_OFFLINE_BUILD without {' and '.join(missing)}",
            affects=f"{env_vars.BY_HAND}: fails with a RuntimeError (triton#4461, triton#10540)",
            remedy="set both, and NVIDIA's tools: without TRITON_PTXAS_PATH they are silently left out",
            commands=tuple(f"export {name}=..." for name in missing),
        )


def _build_dir(subject: DoctorContext) -> Iterator[Finding]:
    named = subject.environ.get("TRITON_BUILD_DIR", "")
    cache = cmake_cache.read(Path(named)) if named and subject.checkout else None
    source = cache.get("CMAKE_HOME_DIRECTORY") if cache else ""
    if cache and source and subject.checkout and Path(source) != subject.checkout.root:
        yield warning(
            f"TRITON_BUILD_DIR={named} was configured for {source}, not for {subject.checkout.root}",
            str(cache.file),
            affects=f"{env_vars.BY_HAND}: CMake fails, or the worktrees overwrite each other's build",
            remedy="use one build folder per worktree",
            commands=(env_vars.unset("TRITON_BUILD_DIR"),),
        )


def _llvm_debug(subject: DoctorContext) -> Iterator[Finding]:
    names = [name for name in env_vars.on(subject) if "LLVM_DEBUG" in name]
    built = (subject.receipt("build-triton") or {}).get("build_type", "")
    reasons = []
    if subject.llvm and not subject.llvm.assertions:
        reasons.append(f"the LLVM in {subject.llvm.prefix} has no assertions")
    if built in ("Release", "RelWithDebInfo", "MinSizeRel"):
        reasons.append(f"Triton's build type is {built}")
    if names and reasons:
        yield warning(
            f"{', '.join(names)}, but {' and '.join(reasons)}",
            affects="LLVM_DEBUG is compiled out there, so nothing is printed",
            remedy="use an LLVM with assertions, and a build type of Triton with assertions",
            commands=(command("setup-mlir", env=subject.named),),
        )


def _override(subject: DoctorContext) -> Iterator[Finding]:
    if "TRITON_KERNEL_OVERRIDE" not in env_vars.on(subject):
        return
    folder = env_vars.folder(subject, "TRITON_OVERRIDE_DIR", "override")
    if not env_vars.has_entries(folder):
        yield warning(
            "TRITON_KERNEL_OVERRIDE is on, but there are no kernels to override with",
            str(folder),
            affects="kernels are compiled as usual",
            remedy="dump once (TRITON_KERNEL_DUMP=1 TRITON_ALWAYS_COMPILE=1), copy the kernel's folder there",
            commands=(env_vars.unset("TRITON_KERNEL_OVERRIDE"),),
        )


def _interpreted(subject: DoctorContext) -> Iterator[Finding]:
    dumps = env_vars.dumps(subject)
    if dumps and "TRITON_INTERPRET" in env_vars.on(subject):
        yield warning(
            f"TRITON_INTERPRET=1 with {', '.join(row.name for row in dumps)}",
            affects="nothing is compiled, so nothing is dumped",
            commands=(env_vars.unset("TRITON_INTERPRET"),),
        )


def _alone(subject: DoctorContext) -> Iterator[Finding]:
    on = env_vars.on(subject)
    for row, _ in env_vars.given(subject):
        partner = variables.needs().get(row.name)
        if partner and partner not in on:
            yield note(f"{env_vars.shown(subject, row.name)} does nothing without {partner}", remedy=row.what)
