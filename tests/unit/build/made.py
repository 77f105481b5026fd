"""Facts made by hand: a Linux workstation and a Mac, LLVMs, and the checkouts of golden/checkouts.json."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tritonsmith.build.cmake import CmakeTools, Jobs, bounded_jobs
from tritonsmith.build.llvm.source import BuildTools
from tritonsmith.build.store.store import Store
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.compiler.interpreter import HostPrograms
from tritonsmith.core import configs
from tritonsmith.core.envs.settings import LlvmSettings, Settings, TritonSettings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import Plan
from tritonsmith.facts.checkout import LlvmPin, TritonCheckout
from tritonsmith.facts.llvm_tree import LlvmRequest, LlvmTree
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.facts.tools import Compilers, Tool

System = Literal["linux", "macos"]

GOLDEN = Path(__file__).parent / "golden"
PIN = "a66376b0dc3b2ea8a84fda26faca287980986f78"
OTHER = "0123456789abcdef0123456789abcdef01234567"
GIB = 1 << 30

_HOMES = {"linux": Path("/home/dev"), "macos": Path("/Users/dev")}
_WORKSPACES = {"linux": ".local/share/tritonsmith", "macos": "Library/Application Support/tritonsmith"}
_LLVMS = {"linux": Path("/usr/lib/llvm-19"), "macos": Path("/opt/homebrew/opt/llvm")}
_INCLUDES = {
    "linux": Path("/usr/include/python3.11"),
    "macos": Path("/opt/homebrew/Frameworks/Python.framework/Versions/3.11/include/python3.11"),
}


@cache
def stored() -> dict[str, dict[str, Any]]:
    """What golden/checkouts.json says, by version."""
    facts: dict[str, dict[str, Any]] = json.loads((GOLDEN / "checkouts.json").read_text(encoding="utf-8"))
    return facts


def checkout(version: str, root: Path = Path("/home/dev/triton")) -> TritonCheckout:
    """The facts of a real checkout, as if it lay in `root`."""
    facts = stored()[version]
    pins = tuple(LlvmPin(**{**pin, "sha256": tuple(sorted(pin["sha256"].items()))}) for pin in facts["pins"])
    oldest, newest = facts["python"]
    return TritonCheckout(
        root=root,
        version=facts["version"],
        features=frozenset(facts["features"]),
        options=frozenset(facts["options"]),
        pins=pins,
        requires=tuple(facts["requires"]),
        nvidia=tuple(sorted(facts["nvidia"].items())),
        json_version=facts["json_version"],
        python=(oldest, newest),
        commit=facts["commit"],
        committed=facts["committed"],
    )


def machine(system: System = "linux", **changes: Any) -> Machine:
    """A workstation with 16 cores and 64 GiB, or a Mac with 10 and 32."""
    if system == "macos":
        seen = Machine("Darwin", "arm64", cores=10, memory=32 * GIB)
    else:
        seen = Machine("Linux", "x86_64", 16, 64 * GIB, os_id="ubuntu", glibc="2.39", glibcxx="3.4.33")
    return replace(seen, **changes)


def programs(system: System) -> HostPrograms:
    """The linker of the LLVM that `compilers` are of."""
    return HostPrograms(linker=(("TRITON_HIP_LLD_PATH", str(_LLVMS[system] / "bin" / "ld.lld")),))


def compilers(system: System = "linux", **changes: Tool | None) -> Compilers:
    """clang and lld of LLVM 19, and ccache; the Mac has them from Homebrew."""
    folder = _LLVMS[system] / "bin"
    launcher = Path("/usr/bin/ccache" if system == "linux" else "/opt/homebrew/bin/ccache")
    found = Compilers(
        cc=Tool("clang", folder / "clang", "19.1.7"),
        cxx=Tool("clang++", folder / "clang++", "19.1.7"),
        linker=Tool("ld.lld", folder / "ld.lld", "19.1.7"),
        launcher=Tool("ccache", launcher, "4.9.1"),
    )
    return replace(found, **changes)


def llvm(prefix: Path = Path("/usr/lib/llvm-19"), commit: str = "", **changes: Any) -> LlvmTree:
    """An LLVM that lacks nothing; installed by a distribution, so without its commit."""
    tree = LlvmTree(
        prefix=prefix,
        version="19.1.7",
        commit=commit,
        build_type="RelWithDebInfo",
        assertions=False,
        rtti=True,
        targets=frozenset({"X86", "NVPTX", "AMDGPU"}),
        packages=frozenset({"mlir", "lld", "clang"}),
        tools=frozenset({"FileCheck", "clang++", "mlir-tblgen", "opt", "llc", "not", "split-file"}),
        static=True,
        build_tree=False,
    )
    return replace(tree, **changes)


def installed(system: System) -> LlvmTree:
    """The LLVM of the distribution, or of Homebrew."""
    return llvm(_LLVMS[system])


def python(system: System = "linux", **changes: Any) -> PythonEnv:
    """Python 3.11, which every version from 2.1 to main supports."""
    folder = "/usr/bin" if system == "linux" else "/opt/homebrew/bin"
    seen = PythonEnv(
        executable=Path(folder) / "python3.11",
        version="3.11.9",
        include=_INCLUDES[system],
        headers=True,
        purelib=Path(folder).parent / "lib" / "python3.11" / "site-packages",
        platform="linux-x86_64" if system == "linux" else "macosx-14.0-arm64",
    )
    return replace(seen, **changes)


def workspace(system: System = "linux") -> Workspace:
    """Where the platform puts it: on macOS its path has a space."""
    return Workspace(_HOMES[system] / _WORKSPACES[system])


def store(system: System = "linux") -> Store:
    """The workspace's own, empty."""
    space = workspace(system)
    return Store(space.llvm, space.root)


def tools(system: System = "linux") -> CmakeTools:
    """CMake and Ninja of the tool's own."""
    folder = _HOMES[system] / "tritonsmith" / ".venv" / "bin"
    return CmakeTools(folder / "cmake", folder / "ninja", "3.31.10")


def root(system: System) -> Path:
    """Where the checkout lies."""
    return _HOMES[system] / "triton"


def tool_checkout(system: System) -> Path:
    """Where the tool itself lies."""
    return _HOMES[system] / "tritonsmith"


def settings(llvm: LlvmSettings | None = None, **triton: Any) -> Settings:
    """The environment `dev`, with changes to its `[triton]`."""
    return Settings(name="dev", triton=TritonSettings(**triton), llvm=llvm or LlvmSettings())


def request(pin: str | None = PIN, *features: str, version: str = "3.3.0", **llvm: Any) -> LlvmRequest:
    """What a Triton of the 3.3 era asks for."""
    named = LlvmPin(pin, "cmake/llvm-hash.txt") if pin else None
    return LlvmRequest(named, frozenset(features), version, LlvmSettings(**llvm))


def inputs(
    version: str = "3.5",
    system: System = "linux",
    chosen: Settings | None = None,
    tree: LlvmTree | None = None,
    **changes: Any,
) -> Inputs:
    """Everything that Triton's recipe takes; `changes` replace single facts."""
    wanted, host = chosen or settings(), machine(system)
    space = workspace(system)
    made = Inputs(
        settings=wanted,
        checkout=checkout(version, root(system)),
        llvm=tree or installed(system),
        python=python(system),
        machine=host,
        compilers=compilers(system),
        tools=tools(system),
        jobs=bounded_jobs(host, wanted.toolchain, wanted.llvm.debug_info),
        workspace=space,
        env=space.env(wanted.name),
    )
    return replace(made, **changes)


def precompiled() -> dict[str, str]:
    """The precompiled headers that a checkout of two sources and one header of its own would get."""
    return {
        "TRITONSMITH_PCH": "compiler",
        "TRITONSMITH_PCH_compiler_FOLDERS": "bin;lib;third_party/nvidia/lib",
        "TRITONSMITH_PCH_compiler_HEADERS": '"mlir/IR/BuiltinOps.h";"triton/Dialect/Triton/IR/Dialect.h"',
        "TRITONSMITH_PCH_WITHOUT": "bin/triton-llvm-opt.cpp",
    }


def jobs() -> Jobs:
    """Bounds that differ, so that a mix-up shows."""
    return Jobs(compile=16, link=5)


def means(system: System = "linux", **changes: Any) -> BuildTools:
    """What LLVM is built with."""
    host = machine(system)
    made = BuildTools(host, compilers(system), tools(system), jobs(), precompiled=system == "linux")
    return replace(made, **changes)


def shell(plan: Plan, system: System = "linux") -> str:
    """The plan as text, with the tool where a user would have it."""
    here, there = str(configs.data_dir("configs").parent), str(tool_checkout(system))
    text = plan.shell()
    for old, new in ((sys.executable, f"{there}/.venv/bin/python"), (here, there)):
        for path in re.findall(rf"'({re.escape(old)}[^']*)'", text):  # this checkout's path has a space
            text = text.replace(f"'{path}'", path.replace(old, new))
        text = text.replace(old, new).replace(json.dumps(old)[1:-1], new)  # an é is \\u00e9 in JSON
    return text
