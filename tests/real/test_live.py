"""`tritonsmith.live` and `%%triton_stages` in a real Jupyter kernel, without a GPU.

Needs TRITONSMITH_JUPYTER: the interpreter of a virtual environment that has Triton, ipykernel, nbclient and
this tritonsmith (`pip install -e .`).
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

JUPYTER = "TRITONSMITH_JUPYTER"
RUN = """
import json, sys
import nbformat
from nbclient import NotebookClient

cells = json.load(sys.stdin)
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
NotebookClient(book, timeout=300, kernel_name="python3", allow_errors=True).execute()
json.dump([one.outputs for one in book.cells], sys.stdout)
"""
HELPER = "import triton\n\n@triton.jit\ndef two():\n    return 2.0\n"
DEFINE = """%%triton_stages --signature '*fp32:16,i32,BLOCK=64' --target h100,mi300x
@triton.jit
def fill(x, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, two(), mask=offsets < n)
"""
WRONG = """%%triton_stages --signature '*fp32:16'
@triton.jit
def wrong(x):
    tl.store(x, nothing)
"""
LIVE = """from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from tritonsmith.live import resources, show

@triton.jit
def double(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)) * 2)

source = ASTSource(double, {"x": "*fp32", "BLOCK": "constexpr"}, {(1,): 64})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
show(compiled)
show(compiled, "ptx")
resources(compiled)
"""
DRIVER = """class Driver:
    utils = None

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

triton.runtime.driver.set_active(Driver())
"""
LAUNCH = """%%triton_stages --stage ttgir,sass
_ = double.warmup(triton.runtime.jit.MockTensor(tl.float32), BLOCK=128, grid=(1,))
"""
CELLS = (
    "%load_ext tritonsmith",
    "import triton\nimport triton.language as tl\nfrom helper import two",
    DEFINE,
    WRONG,
    "%%triton_stages\nx = 3",
    LIVE,
    "resources(compiled)['registers_per_thread']",
    DRIVER,
    LAUNCH,
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """What each cell shows."""
    python = os.environ.get(JUPYTER)
    if not python:
        pytest.skip(f"{JUPYTER} names no interpreter with Jupyter and Triton")
    folder = tmp_path_factory.mktemp("a notebook")
    (folder / "helper.py").write_text(HELPER)
    environ = {**os.environ, "TRITONSMITH_HOME": str(folder / "home")}
    text = json.dumps(CELLS)
    done = subprocess.run(
        (python, "-c", RUN), input=text, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def data(output: dict[str, Any], kind: str = "text/plain") -> str:
    return "".join(output["data"][kind])


def test_a_cell_s_kernel_for_two_gpus(outputs: list[list[dict[str, Any]]]) -> None:
    nvidia, amd = outputs[2]
    assert data(nvidia).startswith("fill, cuda:90:32\n")
    assert data(amd).startswith("fill, hip:gfx942:64\n")
    html = data(nvidia, "text/html")
    assert "registers per thread" in html
    for stage in ("ttir", "ttgir", "llir", "ptx", "sass"):
        assert f"<summary>{stage}, " in html
    assert ".visible .entry fill(" in html
    assert "s_endpgm" in data(amd, "text/html")


def test_an_error_names_the_cell(outputs: list[list[dict[str, Any]]]) -> None:
    (failed,) = outputs[3]
    assert "NameError(&#x27;nothing is not defined&#x27;)" in data(failed, "text/html")
    assert data(failed).endswith("at this notebook, cell 4, line 4")
    (said,) = outputs[4]
    assert "this cell launches no kernel" in said["text"]


def test_a_compiled_kernel(outputs: list[list[dict[str, Any]]]) -> None:
    shown, printed, table = (one for one in outputs[5] if one.get("name") != "stderr")
    assert "<summary>ttgir, " in data(shown, "text/html")
    assert ".visible .entry double(" in printed["text"]
    assert "registers per thread" in data(table)
    assert int(data(outputs[6][0])) > 0


def test_what_a_cell_launches(outputs: list[list[dict[str, Any]]]) -> None:
    """`warmup` goes the way of a launch, up to the launch itself, which needs a GPU."""
    (shown,) = (one for one in outputs[8] if one.get("name") != "stderr")
    html = data(shown, "text/html")
    assert "<summary>ttgir, " in html
    assert "tensor&lt;128xf32" in html
    assert "<summary>ptx, " not in html
