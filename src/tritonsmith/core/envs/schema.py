"""The schema of env files. Unknown keys are errors; every key has a default."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

BuildType = Literal["Debug", "RelWithDebInfo", "Release", "MinSizeRel"]
TritonBuildType = Literal[
    "Debug", "RelWithDebInfo", "Release", "MinSizeRel", "TritonRelBuildWithAsserts", "TritonBuildWithO1"
]
Provider = Literal["auto", "system", "store", "prebuilt", "source"]
DebugInfo = Literal["split", "full", "lines", "none"]
Sanitizer = Literal["", "address", "undefined", "thread"]
Linker = Literal["lld", "mold", "default"]
Launcher = Literal["ccache", "sccache", "recc", "none"]
Scope = Literal["closure", "python-module", "all"]
Headers = Literal["auto", "on", "off"]
Purpose = Literal["opt", "python", "tests", "all"]
Distribute = Literal["", "icecc"]


@dataclass(frozen=True)
class TritonSettings:
    """`[triton]`: which Triton, and how to build it.

    Attributes:
        wheel: a released wheel instead of a checkout: `newest` or a version; empty for a checkout.
        source: a path of a checkout, or a git URL.
        revision: branch, tag or commit to fetch from a URL.
        build_type: CMake build type, Triton's own two included.
        backends: folders of `third_party/` to build.
        plugin_dirs: out-of-tree backends (`TRITON_PLUGIN_DIRS`).
        proton: build the profiler.
        sanitizer: instrument Triton (for tools such as `triton-opt`; not for GPU code).
        targets: Ninja targets; empty for those of `for`.
        for_: what to build: `triton-opt`, the Python module, what the lit tests run, or all.
        cmake_args: more `-DNAME=VALUE`, appended last.
        werror: keep upstream's `-Werror` for warnings that newer compilers are known to add.
        precompiled_headers: inject precompiled headers of what most sources include; `auto` if it saves time.
    """

    wheel: str = ""
    source: str = ""
    revision: str = "main"
    build_type: TritonBuildType = "TritonRelBuildWithAsserts"
    backends: tuple[str, ...] = ("nvidia", "amd")
    plugin_dirs: tuple[str, ...] = ()
    proton: bool = False
    sanitizer: Sanitizer = ""
    targets: tuple[str, ...] = ()
    for_: Purpose = "all"
    cmake_args: tuple[str, ...] = ()
    werror: bool = False
    precompiled_headers: Headers = "auto"


@dataclass(frozen=True)
class LlvmSettings:
    """`[llvm]`: where LLVM/MLIR comes from.

    Attributes:
        provider: `auto` uses the first that fits the pin.
        source: git URL, checkout, or tarball (path or URL) for the provider `source`; empty for upstream.
        sha256: of a tarball, or of a prebuilt archive that upstream gives no checksum for.
        dir: prefix of an installed LLVM for the provider `system`.
        prebuilt_url: folder URL of a mirror of upstream's archives; empty for upstream's own.
        any_commit: accept an LLVM that is not at the pin.
        build_type: CMake build type.
        assertions: build with assertions.
        targets: LLVM code generators; `Native` is the host's.
        scope: what to build: what this Triton links and tests with, what its Python module links, or all.
        ninja_targets: what to build of LLVM instead of a scope.
        debug_info: split DWARF, full, line tables only, or none.
        debug_libraries: single libraries that are recompiled at `-O0 -g` (`debug-library`).
        precompiled_headers: inject a precompiled header of LLVM's common includes; `auto` if it saves time.
        optimized_tablegen: build the table generator optimised, separately from the rest.
        thin_archives: archives that reference their objects instead of containing them.
        shared: one shared object per library (`BUILD_SHARED_LIBS`): links faster, not for wheels.
        store: folder of LLVM builds that several environments or users share; empty for the workspace's.
    """

    provider: Provider = "auto"
    source: str = ""
    sha256: str = ""
    dir: str = ""
    prebuilt_url: str = ""
    any_commit: bool = False
    build_type: BuildType = "RelWithDebInfo"
    assertions: bool = True
    targets: tuple[str, ...] = ("Native", "NVPTX", "AMDGPU")
    scope: Scope = "closure"
    ninja_targets: tuple[str, ...] = ()
    debug_info: DebugInfo = "split"
    debug_libraries: tuple[str, ...] = ()
    precompiled_headers: Headers = "auto"
    optimized_tablegen: bool = True
    thin_archives: bool = True
    shared: bool = False
    store: str = ""


@dataclass(frozen=True)
class PythonSettings:
    """`[python]`: the env's interpreter.

    Attributes:
        interpreter: version (`3.11`) or path; empty for the one that runs the tool.
        torch: `cpu` for the newest PyTorch for the CPU, `2.13.0+cpu` for that one: `up` installs it.
    """

    interpreter: str = ""
    torch: str = "none"


@dataclass(frozen=True)
class ToolchainSettings:
    """`[toolchain]`: the compiler and the linker.

    Attributes:
        compiler: path of a clang++; empty to search for one, the LLVM's own version first.
        linker: `lld`, `mold`, or the compiler's default.
        jobs: compile jobs; 0 for what cores and memory allow.
        link_jobs: link jobs; 0 for what memory allows.
    """

    compiler: str = ""
    linker: Linker = "lld"
    jobs: int = 0
    link_jobs: int = 0


@dataclass(frozen=True)
class CacheSettings:
    """`[cache]`: the compiler cache.

    Attributes:
        launcher: program that runs each compile; ignored if it is not installed.
        remote: ccache's second storage: `redis://`, `http://` or `file://`; empty for none.
        remote_write: also put results there; for the one trusted writer (CI).
        distribute: send compiles that miss the cache to other machines.
    """

    launcher: Launcher = "ccache"
    remote: str = ""
    remote_write: bool = False
    distribute: Distribute = ""


@dataclass(frozen=True)
class Settings:
    """The settings of an environment.

    Attributes:
        name: name of the environment.
        origin: key (`llvm.build-type`) to the origin of its value; a missing key has its default.
    """

    name: str
    triton: TritonSettings = field(default_factory=TritonSettings)
    llvm: LlvmSettings = field(default_factory=LlvmSettings)
    python: PythonSettings = field(default_factory=PythonSettings)
    toolchain: ToolchainSettings = field(default_factory=ToolchainSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    origin: tuple[tuple[str, str], ...] = ()
