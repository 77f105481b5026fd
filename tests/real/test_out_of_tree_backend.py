"""A backend out of Triton's tree (`tally/`): built into libtriton, installed, and compiled for.

Needs TRITONSMITH_TRITON_SOURCE, and Debian's LLVM 19 with MLIR. It builds all of Triton: a quarter of an hour
on two cores, a minute where the compiler cache has most of it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, Smith, capture, git, require_llvm
from tests.support import REAL_SOURCE

from .regenerate_checkouts import COMMITS, History

pytestmark = pytest.mark.real

VERSION = "2024-08-29"  # of LLVM 19's time
BACKEND = Path(__file__).parent / "tally"
KERNEL = """import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)

signature = {0: "*fp32", 1: "*fp32", 2: "*fp32", 3: "i32"}
source = ASTSource(add, signature, {"B": 64})
print(triton.compile(source, target=GPUTarget("tally", 0, 32)).asm["tally"].decode())
"""


def test_it_is_built_and_compiles_a_kernel(history: History, tmp_path: Path) -> None:
    require_llvm()
    if not history.has(COMMITS[VERSION]):
        pytest.skip(f"{os.environ[REAL_SOURCE]} lacks {COMMITS[VERSION][:10]}, the commit of {VERSION}")
    clone, source = tmp_path / "triton", Path(os.environ[REAL_SOURCE]).expanduser().absolute()
    git(tmp_path, "clone", "--quiet", "--shared", "--no-checkout", str(source), str(clone))
    git(clone, "checkout", "--quiet", "--detach", COMMITS[VERSION])
    cache = os.environ.get("CCACHE_DIR", str(Path.home() / ".cache" / "ccache"))
    smith = Smith(tmp_path, cwd=clone, more={"CCACHE_DIR": cache}, patience=3 * 3600)
    smith("build-triton", "--debug", "--llvm-dir", LLVM, "--plugin-dir", BACKEND)
    smith("install-triton")  # with the settings of that build; it compiles a kernel for NVIDIA
    assert (clone / "python" / "triton" / "backends" / "tally").resolve() == BACKEND / "backend"
    (tmp_path / "kernels").mkdir()  # not beside the clone: its folder has the name of the package
    (tmp_path / "kernels" / "add.py").write_text(KERNEL)
    python = smith.env("dev") / "venv" / "bin" / "python"
    counts = json.loads(capture(python, tmp_path / "kernels" / "add.py", env=smith.environ))
    assert {name: counts[name] for name in ("tt.load", "tt.store", "arith.addf", "tt.func")} == {
        "tt.load": 2,
        "tt.store": 1,
        "arith.addf": 1,
        "tt.func": 1,
    }
