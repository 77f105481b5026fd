"""New passes in upstream's trees: TableGen reads the entries, and makes what the C++ relies on."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tritonsmith.build import new_pass
from tritonsmith.core.process import capture
from tritonsmith.facts import llvm_tree

pytestmark = pytest.mark.real

FAMILIES = {"2.1": ("ttir", "ttgpu"), "2.2": ("ttir", "ttgpu", "ttnvgpu")}
VERSIONS = ("2.1", "2.2", "3.1", "2024-08-29", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "main")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pass_in_each_family(tree: Callable[[str], Path], tmp_path: Path, version: str) -> None:
    llvm = next((one.prefix for one in llvm_tree.installed() if one.major == 19), None)  # Debian's
    if llvm is None or not (llvm / "bin" / "mlir-tblgen").is_file():
        pytest.skip("no LLVM 19 with an mlir-tblgen is installed")
    root = tree(version)
    for family in FAMILIES.get(version, tuple(new_pass.families())):
        one = new_pass.design_pass(root, "hoist-loads", family)
        after = {name: text for name, _, text in one.changed}
        row = new_pass.families()[family]
        (tmp_path / "Passes.td").write_text(after[row.td])
        tablegen = (str(llvm / "bin" / "mlir-tblgen"), "-gen-pass-decls", "-I", str(llvm / "include"))
        made = capture((*tablegen, str(tmp_path / "Passes.td")), timeout=60)
        assert made is not None
        cpp = dict(one.written)[one.cpp]
        base = re.search(r"impl::(\w+)Base<", cpp)
        assert base
        assert f"class {base[1]}Base" in made
        assert f'"{one.argument}"' in made
        by_hand = f"create{base[1]}Pass"
        assert (by_hand in cpp) == (by_hand in after.get(row.header, "")) == (f"{by_hand}()" in made)
        assert (f" create{base[1]}();" in made) != (by_hand in cpp)
