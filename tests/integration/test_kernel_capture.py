"""`kernel.capture` of programs that launch kernels, with the newest wheel and no torch."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith

PROGRAM = """
import os
import subprocess
import sys
import triton
import triton.language as tl

class Array:
    dtype = "float32"
    def __init__(self, address):
        self.address = address
    def data_ptr(self):
        return self.address

@triton.autotune([triton.Config({"BLOCK": size}, num_warps=size // 64) for size in (256, 512)], key=["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def scale(x, y, n, one, nothing, factor, BLOCK: tl.constexpr, EVEN: tl.constexpr, KIND: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, (value * factor + one).to(KIND), mask=at < n)

def make(width):
    @triton.jit
    def fill(x, WIDTH: tl.constexpr):
        tl.store(x + tl.arange(0, WIDTH), 0.0)
    return fill

fill = make(16)

def launch(x, n):
    grid = lambda given: (triton.cdiv(n, given["BLOCK"]), 2)
    scale[grid](x, Array(512), n, 1, None, 0.5, KIND=tl.float32)

if __name__ == "__main__":
    assert triton.runtime.driver.active.get_current_target().arch == int(os.environ["ARCH"])
    for _ in range(3):
        launch(Array(256), 768)
    launch(Array(260), 512)
    if len(sys.argv) == 1:
        fill[(4,)](Array(0), WIDTH=16)
        fill.warmup(Array(0), WIDTH=32, grid=(1,))
        subprocess.run([sys.executable, __file__, "again"], check=True)
        raise SystemExit(3)
"""


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool beside a program, with the newest wheel in the environment `wheel`."""
    root = tmp_path_factory.mktemp("programs to capture")
    (root / "program.py").write_text(PROGRAM)
    (root / "site").mkdir()
    (root / "site" / "sitecustomize.py").write_text("import os\nos.environ['ARCH'] = '90'\n")
    more = {"PYTHONPATH": str(root / "site")}  # of the user's own
    return Smith(root, cwd=root, more=more, shared=with_wheel.home)


@pytest.fixture(scope="module")
def captured(smith: Smith) -> dict[str, Any]:
    """What the program launches, in its own process and in another."""
    done = smith("kernel.capture", "--env", "wheel", "--json", "--", "python", "program.py", code=3)
    content: dict[str, Any] = json.loads(done.out)
    return content


def test_each_specialisation_is_listed_once(captured: dict[str, Any], smith: Smith) -> None:
    rest = "one=i32:1,nothing=None,factor=fp32,BLOCK=256"
    found = {one["name"]: one for one in captured["kernels"]}
    assert [one["signature"] for one in found.values()] == [
        f"x=*fp32:16,y=*fp32:16,n=i32:16,{rest},EVEN=True,KIND=tl.float32",
        f"x=*fp32,y=*fp32:16,n=i32:16,{rest},EVEN=True,KIND=tl.float32",
        "x=*fp32:16,WIDTH=16",
    ]
    assert {name: one["count"] for name, one in found.items()} == {"scale": 6, "scale-2": 2, "fill": 1}
    assert {name: one["grid"] for name, one in found.items()} == {
        "scale": [[3, 2, 1]], "scale-2": [[2, 2, 1]], "fill": [[4, 1, 1]],
    }  # fmt: skip
    (line,) = [number for number, text in enumerate(PROGRAM.split("\n"), 1) if "scale[grid]" in text]
    assert found["scale"]["where"] == [f"program.py:{line}"]
    assert found["fill"]["kernel"] == "fill"
    assert found["scale"]["options"] == {"num_warps": 4, "num_stages": 3}
    assert captured["exit"] == 3
    listed = tomllib.loads((smith.cwd / "captured.toml").read_text(encoding="utf-8"))
    assert listed["kernel"] == captured["kernels"]
    assert listed["captured"]["target"] == "cuda:90:32"


def test_configs_have_what_heuristics_make_of_them(captured: dict[str, Any]) -> None:
    assert captured["kernels"][0]["configs"] == [
        {"EVEN": True, "BLOCK": 256, "num_warps": 4, "num_stages": 3},
        {"EVEN": False, "BLOCK": 512, "num_warps": 8, "num_stages": 3},
    ]


def test_the_list_compiles_unchanged(captured: dict[str, Any], smith: Smith) -> None:
    assert len(captured["kernels"]) == 3
    done = smith("kernel.compile", "captured.toml", "--sweep", "autotune", "--json", "--out", "compiled")
    points = [point for one in json.loads(done.out)["kernels"] for point in one["points"]]
    assert len(points) == 5
    assert all(point["status"] == "ok" for point in points)


def test_what_is_missing_is_named(smith: Smith, tmp_path: Path) -> None:
    # Without the traceback, which only a bug of the tool may print
    (tmp_path / "wants_torch.py").write_text(
        "import sys\ntry:\n    import torch\n"
        "except ImportError as error:\n    sys.exit(f'{type(error).__name__}: {error}')\n"
    )
    done = smith("kernel.capture", "--env", "wheel", "--", "python", tmp_path / "wants_torch.py", code=1)
    assert 'in an env file: [python] torch = "cpu"' in done.error
    (tmp_path / "quiet.py").write_text("print('done')\n")
    done = smith("kernel.capture", "--env", "wheel", "--", "python", tmp_path / "quiet.py", code=1)
    assert "the program did not import Triton" in done.error
