"""The file of an environment that replaces LLVM's libraries by debug libraries.

CMake includes it after Triton's `project()`. When it changes, Ninja runs CMake again, without `--fresh`, and
then repeats the links whose libraries changed; no file of Triton's is compiled.
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
    """A debug library that Triton links in place of one of LLVM's.

    Attributes:
        archive: the debug library.
        objects: the objects in debug, relative to the archive's folder; empty if all are.
    """

    archive: Path
    objects: tuple[str, ...] = ()


def folder(env: EnvDir) -> Path:
    """Return the folder of an environment's debug libraries, which holds one folder for each."""
    return env.path / "debug-libraries"


def file(env: EnvDir) -> Path:
    """Return the file that CMake includes.

    It stays when the last library is undone, so CMake need not run.
    """
    return folder(env) / "relink.cmake"


def existing(env: EnvDir) -> Path | None:
    """Return that file if this environment ever had a debug library; None otherwise."""
    # A file without libraries counts: CMake's call stays the same, and no build is configured anew.
    path = file(env)
    return path if path.is_file() else None


def variables(path: Path) -> dict[str, str]:
    """Return the CMake variables that make Triton include that file, with one_llvm.cmake if needed."""
    return {"CMAKE_PROJECT_triton_INCLUDE": str(_CMAKE), "TRITONSMITH_DEBUG_LIBRARIES": str(path)}


def render(tree: LlvmTree, replaced: Mapping[str, Replacement]) -> str:
    """Return the text of the file.

    Args:
        tree: the LLVM whose libraries these are.
        replaced: library to its replacement; may be empty.
    """
    lines = ["# Written by tritonsmith: `invoke debug-library`; to remove: `invoke debug-library --undo`."]
    for name, replacement in sorted(replaced.items()):
        files = " ".join(f"[[{path}]]" for path in (replacement.archive, *replacement.objects))
        words = f"[[{tree.cmake_dir('llvm')}]] {name} {files}"
        # Deferred to the end of Triton's configure: only then do LLVM's imported targets exist.
        lines.append(f"cmake_language(DEFER CALL tritonsmith_debug_library {words})")
    return "\n".join(lines) + "\n"


def read(env: EnvDir, tree: LlvmTree) -> dict[str, Replacement]:
    """Return the libraries of an LLVM that an environment's Triton has in debug, with their replacements."""
    try:
        text = file(env).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    # From the file and not from a receipt, which a killed run does not leave.
    of, replaced = str(tree.cmake_dir("llvm")), {}
    for llvm, name, files in _LINE.findall(text):
        if llvm == of:
            archive, *objects = files[2:-2].split("]] [[")
            replaced[name] = Replacement(Path(archive), tuple(objects))
    return replaced


def made(env: EnvDir) -> tuple[str, ...]:
    """Return the libraries that have a folder in an environment: finished or not, of any LLVM."""
    place = folder(env)
    if not place.is_dir():
        return ()
    return tuple(
        sorted(path.name for path in place.iterdir() if path.is_dir() and path.name != CONFIG_HEADER)
    )


def of_llvm(name: str) -> bool:
    """Report whether a library is one of LLVM itself, whose code is also in the shared libLLVM."""
    return name.startswith("LLVM")
