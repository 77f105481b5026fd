"""Dumps by released wheels and by builds: every byte, every pass, its time and its stage.

Needs TRITONSMITH_TRITON_WHEELS: a folder with one virtual environment for each version, named by it. Those
with other names (`debug`) have builds of a checkout.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.real.test_kernels import python
from tests.support import REAL_WHEELS
from tritonsmith.compiler import run, targets
from tritonsmith.compiler.dump import run as dump_run
from tritonsmith.compiler.dump.run import Choices
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.inspect import pipeline_table

KERNEL = Path(run.__file__).parent / "examples" / "tiled_matmul.py"
TYPES = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16"
SIGNATURE = f"{TYPES},TILE_M=64,TILE_N=64,TILE_K=32"


VERSIONS = ("3.0.0", "3.2.0", "3.4.0", "3.6.0", "3.9.0")
BUILDS = [path.name for path in Path(os.environ.get(REAL_WHEELS) or os.devnull).glob("[a-z]*")]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
@pytest.mark.parametrize("version", [*VERSIONS, *BUILDS])
def test_every_triton_tells_all_of_a_matmul(version: str, target: str, tmp_path: Path) -> None:
    where = choose_interpreter("wheel", str(python(version)), jobs=1)
    asked = CompileRequest(KERNEL, "tiled_matmul", SIGNATURE, targets.parse_all([target]))
    what = dump_run.of_kernel(asked, where, Choices(llvm=True, backend=True), tmp_path / "out")
    index, manifest = dump_run.dump_kernel(what, silent=True)
    assert manifest.triton == index.triton
    assert version in (manifest.triton, *BUILDS)

    (kernel,) = index.kernels
    assert (kernel.target, kernel.failed) == (target, "")
    assert sum(map(len, index.pieces())) == index.size
    assert all(dump.whole for dump in index.dumps)

    assembly = "ptx" if target.startswith("cuda") else "amdgcn"
    stages = [dump.stage for dump in index.dumps]
    assert list(dict.fromkeys(stages)) == ["ttir", "ttgir", "llir", "llvm", assembly]
    assert stages == sorted(stages, key=["ttir", "ttgir", "llir", "llvm", assembly].index)

    passes = [dump for dump in index.dumps if dump.path.endswith(".mlir") and not dump.inside]
    untimed = [dump for dump in passes if dump.seconds is None]
    assert all(dump.operation != "builtin.module" or dump.argument == "canonicalize" for dump in untimed)
    assert len(untimed) < 0.1 * len(passes)  # one row for all functions, and for a pipeline inside two passes
    assert all(dump.changed is not None for dump in passes[:-1])

    rows = dict(zip(index.dumps, pipeline_table.pass_changes(index, kernel.name), strict=True))
    first = next(dump for dump in passes if dump.argument == "convert-triton-to-tritongpu")
    assert first.stage == "ttgir"
    row = rows[first]
    assert row is not None
    assert any(name.endswith("convert_layout") and more > 0 for name, more in row.operations.items())
