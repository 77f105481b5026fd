"""Facts about an LLVM's build that decide how to recompile one of its libraries."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.llvm_tree import LlvmTree

_VERSION_FILES = ("cmake/Modules/LLVMVersion.cmake", "llvm/CMakeLists.txt")  # the first since LLVM 19
_CXX = re.compile(r"set\((?:LLVM_REQUIRED_)?(?:CMAKE_)?CXX_STANDARD (\d+)")


@dataclass(frozen=True)
class LlvmOptions:
    """Build options that an LLVM records, besides the facts in `LlvmTree`.

    Attributes:
        checks: ABI-breaking checks are in (`llvm/Config/abi-breaking.h`).
        exceptions: compiled with exceptions.
        pic: position-independent.
        definitions: `-D` flags with which every file was compiled.
        includes: folders of its headers.
    """

    checks: bool
    exceptions: bool
    pic: bool
    definitions: tuple[str, ...]
    includes: tuple[Path, ...]


@dataclass(frozen=True)
class LlvmSources:
    """A local llvm-project source tree.

    Attributes:
        path: the folder that holds `llvm/` and `mlir/`.
        version: `19.1.7`.
        commit: HEAD; empty if it is not under git.
        standard: C++ standard of its files: `17`.
    """

    path: Path
    version: str
    commit: str
    standard: str


def read(tree: LlvmTree) -> LlvmOptions:
    """Read an LLVM's CMake package and headers.

    Raises:
        FactError: a header is missing.
    """
    text = untrusted.read_text(tree.cmake_dir("llvm") / "LLVMConfig.cmake")
    source = llvm_tree.source_of(tree.prefix)
    # A build folder has generated headers only, MLIR's below tools/mlir; the others are in the sources.
    own = [tree.prefix / "include", tree.prefix / "tools" / "mlir" / "include"]
    of_sources = [source / "llvm" / "include", source / "mlir" / "include"] if source else []
    header = tree.prefix / "include" / "llvm" / "Config" / "abi-breaking.h"
    try:
        checks = "#define LLVM_ENABLE_ABI_BREAKING_CHECKS 1" in untrusted.read_text(header)
    except OSError as error:
        raise FactError("cannot determine the ABI of this LLVM", where=header, why=error.strerror) from error
    return LlvmOptions(
        checks=checks,
        exceptions=_on(text, "LLVM_ENABLE_EH"),
        pic=_on(text, "LLVM_ENABLE_PIC"),
        definitions=tuple(_value(text, "LLVM_DEFINITIONS").split()),
        includes=tuple(folder for folder in (*own, *of_sources) if folder.is_dir()),
    )


def sources(path: Path) -> LlvmSources:
    """Read the version and commit of sources.

    Raises:
        FactError: they do not contain their version.
    """
    texts = [untrusted.read_text(path / name) for name in _VERSION_FILES if (path / name).is_file()]
    text = "\n".join(texts)
    parts = [re.search(rf"set\(LLVM_VERSION_{part} (\d+)\)", text) for part in ("MAJOR", "MINOR", "PATCH")]
    standard = _CXX.search(text)
    if not all(parts) or standard is None:
        raise FactError("cannot determine the LLVM version of these sources", where=path / _VERSION_FILES[1])
    version = ".".join(part[1] for part in parts if part)
    return LlvmSources(path, version, llvm_tree.source_commit(path), standard[1])


def _value(text: str, name: str) -> str:
    match = re.search(rf'^\s*set\({name} "?([^")]*)"?\)', text, re.MULTILINE)
    return match[1].strip() if match else ""


def _on(text: str, name: str) -> bool:
    return _value(text, name).upper() in {"ON", "1", "TRUE", "YES"}
