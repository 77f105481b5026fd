"""The file of an environment that replaces LLVM's libraries by debug libraries.

CMake includes it after Triton's `project()`. Ninja runs CMake again when it changes, without `--fresh`, and
then does the links again whose libraries changed; no file of Triton's is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.facts.llvm_tree import LlvmTree

CONFIG_HEADER = "config-header"  # the folder of llvm/Config/config.h, beside those of the libraries
_CMAKE = Path(__file__).with_name("relink.cmake")
_LINE = re.compile(r"tritonsmith_debug_library \[\[(.+?)\]\] (\S+) (\[\[.+\]\])\)$", re.MULTILINE)


@dataclass(frozen=True)
class Replacement:
    """What Triton links in place of a library of LLVM's.

    Attributes:
        archive: the debug library.
        objects: those of it that are in debug, relative to the archive's folder; empty if all are.
    """

    archive: Path
    objects: tuple[str, ...] = ()


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


def render(tree: LlvmTree, replaced: Mapping[str, Replacement]) -> str:
    """The text of the file.

    Args:
        tree: the LLVM whose libraries these are.
        replaced: library to what replaces it; may be empty.
    """
    lines = ["# Written by tritonsmith: `invoke debug-library`; to remove: `invoke debug-library --undo`."]
    for name, one in sorted(replaced.items()):
        files = " ".join(f"[[{path}]]" for path in (one.archive, *one.objects))
        words = f"[[{tree.cmake_dir('llvm')}]] {name} {files}"
        lines.append(f"cmake_language(DEFER CALL tritonsmith_debug_library {words})")
    return "\n".join(lines) + "\n"


def read(env: EnvDir, tree: LlvmTree) -> dict[str, Replacement]:
    """Libraries of an LLVM that an environment's Triton has in debug, and what replaces them.

    Read from the file and not from a receipt, which a run that was killed does not leave.
    """
    try:
        text = file(env).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    of, found = str(tree.cmake_dir("llvm")), {}
    for llvm, name, files in _LINE.findall(text):
        if llvm == of:
            archive, *objects = files[2:-2].split("]] [[")
            found[name] = Replacement(Path(archive), tuple(objects))
    return found


def made(env: EnvDir) -> tuple[str, ...]:
    """Libraries that have a folder in an environment: finished or not, of this LLVM or of another."""
    place = folder(env)
    if not place.is_dir():
        return ()
    return tuple(
        sorted(path.name for path in place.iterdir() if path.is_dir() and path.name != CONFIG_HEADER)
    )


def of_llvm(name: str) -> bool:
    """Whether a library is one of LLVM itself, whose code the shared libLLVM holds too."""
    return name.startswith("LLVM")
