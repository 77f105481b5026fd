"""The two small libraries that the integration tests build, and an LLVM whose options they are read with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support import REPOSITORY
from tests.unit.build import made
from tritonsmith.facts.llvm_tree import LlvmTree

SOURCES = REPOSITORY / "tests" / "integration" / "mini_libraries" / "sources"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the sources, laid out as llvm-project is."""
    return Path(shutil.copytree(SOURCES, tmp_path / "llvm project"))


@pytest.fixture
def tree(tmp_path: Path) -> LlvmTree:
    """An installed LLVM: the parts of its package and its headers that are read."""
    prefix = tmp_path / "my llvm"
    files = {
        "lib/cmake/llvm/LLVMConfig.cmake": """\
set(LLVM_PACKAGE_VERSION 19.1.7)
set(LLVM_TARGETS_TO_BUILD X86;NVPTX)
set(LLVM_ENABLE_EH OFF)
set(LLVM_ENABLE_PIC ON)
set(LLVM_ENABLE_ASSERTIONS OFF)
set(LLVM_DEFINITIONS "-D_GNU_SOURCE -D__STDC_LIMIT_MACROS")
""",
        "lib/cmake/mlir/MLIRConfig.cmake": 'set(MLIR_ENABLE_EXECUTION_ENGINE "1")\n',
        "include/llvm/Config/abi-breaking.h": "#define LLVM_ENABLE_ABI_BREAKING_CHECKS 0\n",
        "include/mlir/Config/mlir-config.h": "#define MLIR_ENABLE_PDL_IN_PATTERNMATCH 1\n",
    }
    for name, text in files.items():
        path = prefix / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return made.llvm(prefix)
