"""CMake calls that a person can replay: all variables in an initial-cache file, handed over with `-C`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.facts.tools import Compilers
from tritonsmith.plan import Run, Stamp, Step, Write
from tritonsmith.plan.steps import digest

CACHE_FILE = "tritonsmith-cache.cmake"
STAMP_FILE = ".tritonsmith-configured"


@dataclass(frozen=True)
class CmakeTools:
    """The programs that configure and build.

    Attributes:
        cmake: path of CMake.
        ninja: path of Ninja.
        cmake_version: dotted, or empty if unknown.
    """

    cmake: Path
    ninja: Path
    cmake_version: str = ""


def configure(
    source: Path,
    build: Path,
    variables: Mapping[str, str],
    tools: CmakeTools,
    *,
    phase: str,
    again: bool = False,
) -> tuple[Step, ...]:
    """Steps that configure `source` into `build`, skipped while nothing about the call changed.

    A changed call starts from a fresh cache: stale `-D` values and a cached `LLVM_DIR` are among
    the hardest bugs to see.

    Args:
        source: folder of the top CMakeLists.txt.
        build: build folder.
        variables: cache variables, in the order in which they should be read.
        tools: CMake and Ninja.
        phase: name of the phase.
        again: configure even if nothing changed.
    """
    text = render(source, build, variables, tools)
    cache = build / CACHE_FILE
    key = digest(text, str(tools.cmake))
    stamp = None if again else Stamp(build / STAMP_FILE, key, made=build / "CMakeCache.txt")
    argv = (str(tools.cmake), "--fresh", "-C", str(cache), "-G", "Ninja", "-S", str(source), "-B", str(build))
    return (
        Write(cache, text, phase=phase, stamp=stamp),
        Run(argv, cwd=build, phase=phase, stamp=stamp),
    )


def build_targets(build: Path, tools: CmakeTools, *, targets: tuple[str, ...], jobs: int, phase: str) -> Run:
    """The step that builds targets (all, if none is named)."""
    argv = (str(tools.ninja), "-C", str(build), f"-j{jobs}", *targets)
    return Run(argv, cwd=build, env=(("NINJA_STATUS", "[%f/%t] "),), phase=phase, ninja=True)


def render(source: Path, build: Path, variables: Mapping[str, str], tools: CmakeTools) -> str:
    """The text of the initial-cache file, with the command that replays it."""
    command = shlex.join(
        (str(tools.cmake), "-C", CACHE_FILE, "-G", "Ninja", "-S", str(source), "-B", str(build))
    )
    lines = [
        "# Written by tritonsmith. To configure by hand, in this folder:",
        f"#   {command}",
        _set("CMAKE_MAKE_PROGRAM", str(tools.ninja)),
        *(_set(name, value) for name, value in variables.items()),
    ]
    return "\n".join(lines) + "\n"


def compiler_variables(
    compilers: Compilers, *, system: str, flags: str = "", linker_flags: bool = True
) -> dict[str, str]:
    """Cache variables for compilers, launcher and linker.

    Args:
        compilers: what was found.
        system: `Linux` or `Darwin`; on macOS the platform's own linker is left alone.
        flags: for C and C++ alike.
        linker_flags: say `-fuse-ld` here (LLVM has a variable of its own for that).
    """
    variables: dict[str, str] = {}
    if compilers.cc and compilers.cxx:
        variables["CMAKE_C_COMPILER"] = str(compilers.cc.path)
        variables["CMAKE_CXX_COMPILER"] = str(compilers.cxx.path)
    if compilers.launcher:
        variables["CMAKE_C_COMPILER_LAUNCHER"] = str(compilers.launcher.path)
        variables["CMAKE_CXX_COMPILER_LAUNCHER"] = str(compilers.launcher.path)
    if flags:
        variables["CMAKE_C_FLAGS"] = variables["CMAKE_CXX_FLAGS"] = flags
    if linker_flags and compilers.linker and system != "Darwin":
        for kind in ("EXE", "MODULE", "SHARED"):
            variables[f"CMAKE_{kind}_LINKER_FLAGS"] = f"-fuse-ld={linker_name(compilers)}"
    return variables


def linker_name(compilers: Compilers) -> str:
    """What `-fuse-ld=` takes: `lld`, `mold`, or the path of a linker with a version in its name."""
    assert compilers.linker is not None  # noqa: S101 - callers check
    path = compilers.linker.path
    return {"ld.lld": "lld", "mold": "mold"}.get(path.name, str(path))


def _set(name: str, value: str) -> str:
    fence = ""
    while f"]{fence}]" in f"{value}]":
        fence += "="
    return f'set({name} [{fence}[{value}]{fence}] CACHE STRING "" FORCE)'
