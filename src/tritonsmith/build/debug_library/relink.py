"""The file of an environment that puts debug libraries into the places of LLVM's own.

CMake includes it after Triton's `project()`. Ninja runs CMake again when it changes, without `--fresh`, and
then does the links again whose libraries changed; no file of Triton's is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tritonsmith.envs.workspace import EnvDir
from tritonsmith.facts.llvm_tree import LlvmTree

_CMAKE = Path(__file__).with_name("relink.cmake")


def folder(env: EnvDir) -> Path:
    """Where an environment's debug libraries lie, one folder each."""
    return env.path / "debug-libraries"


def file(env: EnvDir) -> Path:
    """The file that CMake includes; it stays when the last library is undone: nothing is configured anew."""
    return folder(env) / "relink.cmake"


def existing(env: EnvDir) -> Path | None:
    """That file, if this environment ever had a debug library."""
    path = file(env)
    return path if path.is_file() else None


def variables(path: Path) -> dict[str, str]:
    """What Triton's CMake is given to include that file; one_llvm.cmake comes with it where need be."""
    return {"CMAKE_PROJECT_triton_INCLUDE": str(_CMAKE), "TRITONSMITH_DEBUG_LIBRARIES": str(path)}


def render(tree: LlvmTree, archives: Mapping[str, Path]) -> str:
    """The text of the file.

    Args:
        tree: the LLVM whose libraries these are.
        archives: library to its archive; may be empty.
    """
    static = tree.dylib and any(of_llvm(name) for name in archives)
    lines = ["# Written by tritonsmith: `invoke debug-library`, and back: `invoke debug-library --undo`."]
    if tree.dylib and not static:
        lines.append("set(TRITONSMITH_ONE_LLVM ON)")
    if archives:
        pairs = " ".join(f"{name} {_quoted(path)}" for name, path in sorted(archives.items()))
        call = f"{_quoted(tree.cmake_dir('llvm'))} {'ON' if static else 'OFF'} {pairs}"
        lines.append(f"cmake_language(DEFER CALL tritonsmith_debug_libraries {call})")
    return "\n".join(lines) + "\n"


def of_llvm(name: str) -> bool:
    """Whether a library is one of LLVM itself, whose code the shared libLLVM holds too."""
    return name.startswith("LLVM")


def _quoted(path: Path) -> str:
    return f"[[{path}]]"
