"""CMake and Ninja: calls that a person can replay, and what changed in one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.settings import DebugInfo, ToolchainSettings
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import (
    NINJA_STATUS,
    Copy,
    Plan,
    Remove,
    Run,
    Stamp,
    Step,
    Write,
    digest,
)
from tritonsmith.core.text import describe_changed_words
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.tools import Compilers, own

CACHE_FILE = "tritonsmith-cache.cmake"
STAMP_FILE = ".tritonsmith-configured"
ABOUT_FILE = ".tritonsmith-about"
_INDEXING = ("ld.lld", "lld", "mold", "ld.gold")  # linkers with --gdb-index; GNU ld has none
BUILT_FOLDER = "tritonsmith-built"
_INCLUDES = ("CMAKE_PROJECT_INCLUDE", "CMAKE_PROJECT_LLVM_INCLUDE", "CMAKE_PROJECT_triton_INCLUDE")  # our own
_SET = re.compile(r"^set\((\w+) \[(=*)\[(.*?)\]\2\] CACHE STRING \"\" FORCE\)$", re.MULTILINE | re.DOTALL)
_ABOUT = re.compile(r"^# (\w[\w ]*): (.*)$", re.MULTILINE)


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
    about: Mapping[str, str] | None = None,
    root: Path | None = None,
    again: bool = False,
) -> tuple[Step, ...]:
    """Return the steps that configure `source` into `build`, skipped while nothing about the call changed.

    A changed call starts from a fresh cache.

    Args:
        source: folder of the top CMakeLists.txt.
        build: build folder.
        variables: cache variables, in the order in which they should be read.
        tools: CMake and Ninja.
        phase: name of the phase.
        about: facts about what the variables name only by path: name to version, commit, options.
        root: the marked folder that `build` lies in.
        again: configure even if nothing changed.
    """
    # The variables go through an initial-cache file (`-C`) and not through `-D`: a person can replay the
    # call by hand, and no command line gets too long.
    text = render(source, build, variables, tools, about)
    cache = build / CACHE_FILE
    # Included files are part of the call: a change in one must reconfigure.
    included = [Path(value).read_text("utf-8") for name, value in variables.items() if name in _INCLUDES]
    key = digest(text, str(tools.cmake), included)
    stamp = Stamp(build / STAMP_FILE, key, result=build / "CMakeCache.txt", again=again)
    # A fresh cache for each changed call: stale `-D` values and a cached `LLVM_DIR` are among the hardest
    # bugs to see. CMake keeps what a call no longer sets.
    call = ("-C", str(cache), "-G", "Ninja", "-S", str(source), "-B", str(build))
    if root is None:
        return (
            Write(cache, text, phase=phase, stamp=stamp),
            Run((str(tools.cmake), "--fresh", *call), cwd=build, phase=phase, stamp=stamp),
        )
    # `--fresh` removes all of CMakeFiles, and with it the objects of the top folder's targets: Triton's
    # Python module and LLVM's precompiled headers. The cache and the compiler checks are enough.
    memory = (build / "CMakeCache.txt", build / "CMakeFiles" / tools.cmake_version)
    headers: tuple[Remove, ...] = ()
    if about:
        # Something may have changed though its path has not: an LLVM that was unpacked over another one has
        # headers with the dates of its archive, which may be older than the objects. Without its list of
        # recorded headers Ninja builds all objects again; unchanged ones come from the compiler cache.
        named = Stamp(build / ABOUT_FILE, digest(about))
        headers = (Remove((build / ".ninja_deps",), root, phase=phase, stamp=named),)
    return (
        *headers,
        Remove(memory, root, phase=phase, stamp=stamp),
        Write(cache, text, phase=phase, stamp=stamp),
        Run((str(tools.cmake), *call), cwd=build, phase=phase, stamp=stamp),
    )


def keep_graph(build: Path, *, phase: str) -> tuple[Copy, ...]:
    """Return the steps that keep Ninja's graph of a successful build, for `build-triton --explain`."""
    kept = build / BUILT_FOLDER
    files = ("build.ninja", "CMakeFiles/rules.ninja")
    return tuple(Copy(build / name, kept / name, phase=phase) for name in files)


def build_targets(build: Path, tools: CmakeTools, *, targets: tuple[str, ...], jobs: int, phase: str) -> Run:
    """Return the step that builds targets (all, if none is named)."""
    argv = (str(tools.ninja), "-C", str(build), f"-j{jobs}", *targets)
    return Run(argv, cwd=build, env=(("NINJA_STATUS", NINJA_STATUS),), phase=phase)


def render(
    source: Path,
    build: Path,
    variables: Mapping[str, str],
    tools: CmakeTools,
    about: Mapping[str, str] | None = None,
) -> str:
    """Return the text of the initial-cache file, with the command that replays it."""
    command = shlex.join(
        (str(tools.cmake), "-C", CACHE_FILE, "-G", "Ninja", "-S", str(source), "-B", str(build))
    )
    lines = [
        "# Written by tritonsmith. To configure by hand, in this folder:",
        f"#   {command}",
        *(f"# {name}: {words}" for name, words in (about or {}).items()),
        _set("CMAKE_MAKE_PROGRAM", str(tools.ninja)),
    ]
    return "\n".join(lines) + "\n" + settings(variables)


def settings(variables: Mapping[str, str]) -> str:
    """Return the lines of an initial-cache file."""
    return "".join(f"{_set(name, value)}\n" for name, value in variables.items())


def compiler_variables(
    compilers: Compilers,
    *,
    system: str,
    launcher: tuple[str, ...] = (),
    flags: str = "",
    linker_flags: bool = True,
    gdb_index: bool = False,
) -> dict[str, str]:
    """Return cache variables for compilers, launcher and linker.

    Args:
        compilers: the compilers and the linker of this machine.
        system: `Linux` or `Darwin`; on macOS the platform's own linker is left alone.
        launcher: words before each compile, from `compiler_cache.launcher`.
        flags: flags for both C and C++.
        linker_flags: pass `-fuse-ld` here (LLVM has a variable of its own for that).
        gdb_index: have the linker write gdb's index; without it, gdb reads all debug information at startup.
    """
    variables: dict[str, str] = {}
    if compilers.cc and compilers.cxx:
        variables["CMAKE_C_COMPILER"] = str(compilers.cc.path)
        variables["CMAKE_CXX_COMPILER"] = str(compilers.cxx.path)
    if launcher:
        variables["CMAKE_C_COMPILER_LAUNCHER"] = variables["CMAKE_CXX_COMPILER_LAUNCHER"] = ";".join(launcher)
    if flags:
        variables["CMAKE_C_FLAGS"] = variables["CMAKE_CXX_FLAGS"] = flags
    if linker_flags and compilers.linker and system != "Darwin":
        # Not LLVM_USE_LINKER or CMAKE_LINKER_TYPE: the first is LLVM's own, the
        # second came with CMake 3.29.
        words = [f"-fuse-ld={linker_name(compilers)}"]
        if gdb_index and compilers.linker.path.name.startswith(_INDEXING):
            words.append("-Wl,--gdb-index")
        for kind in ("EXE", "MODULE", "SHARED"):
            variables[f"CMAKE_{kind}_LINKER_FLAGS"] = " ".join(words)
    return variables


def linker_name(compilers: Compilers) -> str:
    """Return the value for `-fuse-ld=`: `lld`, `mold`, or the path of a linker with a version in its name."""
    assert compilers.linker is not None  # noqa: S101 - callers check
    path = compilers.linker.path
    return {"ld.lld": "lld", "mold": "mold"}.get(path.name, str(path))


def _set(name: str, value: str) -> str:
    # CMake's bracket arguments need more `=` than any closing bracket in the value.
    fence = ""
    while f"]{fence}]" in f"{value}]":
        fence += "="
    return f'set({name} [{fence}[{value}]{fence}] CACHE STRING "" FORCE)'


def own_tools() -> CmakeTools:
    """Return CMake and Ninja from the tool's own `.venv`.

    Raises:
        SmithError: one is missing.
    """
    cmake, ninja = own("cmake"), own("ninja")
    if cmake is None or ninja is None:
        raise SmithError(
            "CMake or Ninja is missing", hints=["./bootstrap installs both into the tool's .venv"]
        )
    return CmakeTools(cmake.path, ninja.path, cmake.version)


@dataclass(frozen=True)
class CMakeChange:
    """A changed CMake variable, `LLVM` or `compiler`; None if it had no value before, or has none after."""

    name: str
    before: str | None
    after: str | None

    @property
    def in_words(self) -> str:
        """The change in words: `CMAKE_BUILD_TYPE: Debug -> Release`; of long lists only what differs."""
        if self.before is None:
            return f"{self.name}: new, {self.after}"
        if self.after is None:
            return f"{self.name}: removed, was {self.before}"
        return f"{self.name}: {describe_changed_words(_parts(self.before), _parts(self.after))}"


def recorded_values(text: str) -> dict[str, str]:
    """Return the names and values of an initial-cache file: the facts in its comments, then its variables."""
    about = {match[1]: match[2] for match in _ABOUT.finditer(text) if match[1] != "Written by tritonsmith"}
    about.pop("To configure by hand, in this folder", None)
    return about | changed_variables(text)


def changed_variables(text: str) -> dict[str, str]:
    """Return the names and values of the variables alone."""
    return {match[1]: match[3] for match in _SET.finditer(text)}


def call_changes(before: str, after: str) -> tuple[CMakeChange, ...]:
    """Return the differences between two initial-cache files."""
    old, new = recorded_values(before), recorded_values(after)
    names = dict.fromkeys((*new, *old))
    return tuple(
        CMakeChange(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)
    )


def pending_changes(plan: Plan) -> Iterator[CMakeChange]:
    """Yield the changes since the recorded call, for each configure step of a plan that will run.

    Yields nothing if there was no call yet, or if only the tool's own files or CMake changed.
    """
    for step in plan.steps:
        if not isinstance(step, Write) or step.path.name != CACHE_FILE:
            continue
        if step.stamp and not step.stamp.holds() and step.path.is_file():
            yield from call_changes(untrusted.read_text(step.path), step.text)


def change_notes(changes: Iterable[CMakeChange]) -> Iterator[str]:
    """Yield a sentence for each change, for `build-triton`."""
    return (f"CMake runs again: {change.in_words}" for change in changes)


def _parts(value: str) -> list[str]:
    """Split a value: a CMake list, flags, or a sentence about an LLVM."""
    for separator in (", ", ";"):
        if separator in value:
            return value.split(separator)
    return value.split(" ")


@dataclass(frozen=True)
class Jobs:
    """The bounds for one build, each at least 1."""

    compile: int
    link: int


def bounded_jobs(machine: Machine, settings: ToolchainSettings, debug_info: DebugInfo) -> Jobs:
    """Return the jobs that cores and memory (with the cgroup's limit) allow; settings override unless 0."""
    need = configs.load("resources")["memory"]
    # Cores alone say too little: Ninja's default of cores + 2 jobs gets a laptop's or a container's
    # compiles killed (triton#4249).
    by_memory = int(machine.memory_gib / need["compile-job"])
    compile_jobs = settings.jobs or max(1, min(machine.cores, by_memory))
    links = int(machine.memory_gib / need["link-job"][debug_info])
    return Jobs(compile_jobs, settings.link_jobs or max(1, min(compile_jobs, links)))
