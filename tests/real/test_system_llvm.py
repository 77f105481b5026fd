"""Debian's LLVM 19, if it is installed with its development files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.facts import llvm_tree
from tritonsmith.facts.llvm_tree import LlvmTree

PREFIX = Path("/usr/lib/llvm-19")


@pytest.fixture
def tree() -> LlvmTree:
    """What is read from it."""
    config = PREFIX / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake"
    for needed in (config, PREFIX / "lib" / "cmake" / "mlir", PREFIX / "bin" / "mlir-tblgen"):
        if not needed.exists():
            pytest.skip(f"no {needed}: apt install llvm-19-dev llvm-19-tools libmlir-19-dev mlir-19-tools")
    return llvm_tree.read(PREFIX)


def test_what_a_distribution_installs(tree: LlvmTree) -> None:
    assert tree.version.startswith("19.1.")
    assert tree.major == 19
    assert "mlir" in tree.packages
    assert {"FileCheck", "mlir-tblgen"} <= tree.tools
    assert {"NVPTX", "AMDGPU"} <= tree.targets
    assert tree.commit == ""  # Debian strips it
    assert tree.static
    assert tree.dylib  # MLIR's libraries link libLLVM.so
    assert tree.rtti
    assert not tree.build_tree


def test_it_is_among_the_installed_ones(tree: LlvmTree) -> None:
    assert tree in llvm_tree.installed({})
