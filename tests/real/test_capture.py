"""`kernel.capture` with a real torch: its kernels compile for the GPU that the program was told of.

Needs TRITONSMITH_TORCH: the interpreter of a virtual environment that has Triton and a torch for the CPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

TORCH = "TRITONSMITH_TORCH"
SMITH = Path(sys.executable).with_name("tritonsmith")
PROGRAM = """
import torch
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": size}, num_warps=size // 64) for size in (256, 512)], key=["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(y + at, tl.load(x + at) * factor)
    else:
        tl.store(y + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return launch(x, factor)

    @staticmethod
    def backward(ctx, grad):
        return launch(grad.contiguous(), ctx.factor), None

def launch(x, factor):
    y = torch.empty_like(x)
    scale[lambda given: (triton.cdiv(x.numel(), given["BLOCK"]),)](x, y, x.numel(), factor)
    return y

@triton.jit
def shift(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

@torch.compile
def shifted(x):
    y = torch.empty_like(x)
    shift[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
    return y.relu()

@torch.compile(mode="max-autotune")
def product(a, b):
    return (a @ b).relu()

model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.LayerNorm(128), torch.nn.GELU()).cuda()
compiled = torch.compile(model)
for _ in range(2):
    x = torch.randn(48, 64, device="cuda", requires_grad=True)
    out = Scale.apply(compiled(x), 0.5)
    assert out.device == torch.device("cuda", 0) and out.shape == (48, 128)
    out.sum().backward()
shifted(torch.randn(1000, device="cuda"))
half = dict(device="cuda", dtype=torch.float16)
product(torch.randn(256, 128, **half), torch.randn(128, 512, **half))
"""


@pytest.fixture(scope="module", params=["h100", "mi300x"])
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The list of what the program launches on a GPU."""
    folder = tmp_path_factory.mktemp("captured")
    (folder / "program.py").write_text(PROGRAM)
    argv = ("kernel.capture", "--device", request.param, "--out", "captured.toml")
    run(folder, *argv, "--python", python(), "--", "program.py")
    return folder / "captured.toml"


def python() -> str:
    """The interpreter that has torch."""
    found = os.environ.get(TORCH)
    if not found:
        pytest.skip(f"{TORCH} names no interpreter with torch and Triton")
    return found


def run(folder: Path, *argv: str) -> None:
    environ = {**os.environ, "TRITONSMITH_HOME": str(folder / "home")}
    done = subprocess.run(
        (SMITH, *argv), cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_autograd_autotuners_and_torch_compile_launch_is_listed(captured: Path) -> None:
    listed = tomllib.loads(captured.read_text())
    kernels: dict[str, dict[str, Any]] = {one["name"]: one for one in listed["kernel"]}
    scale = kernels["scale"]
    assert (scale["count"], scale["where"]) == (4, ["program.py:28"])
    assert scale["configs"] == [
        {"BLOCK": size, "num_warps": size // 64, "num_stages": scale["options"]["num_stages"]}
        for size in (256, 512)
    ]
    assert "EVEN=True" in scale["signature"]
    assert kernels["shift"]["grid"] == [[8, 1, 1]]
    generated = [name for name in kernels if name.startswith("triton_")]
    norm = [name for name in generated if "native_layer_norm" in name and "backward" not in name]
    back = [name for name in generated if "native_layer_norm_backward" in name]
    assert norm
    assert back
    assert any(name.startswith("triton_tem_") for name in generated)
    assert all(kernels[name]["count"] == 2 for name in (*norm, *back))
    assert all((captured.parent / kernels[name]["file"]).is_file() for name in generated)
    assert any(kernels[name].get("configs") for name in generated)
    assert any("measure templates" in note for note in listed["captured"]["notes"])
    assert not any("missing" in note for note in listed["captured"]["notes"])


def test_what_is_listed_compiles(captured: Path) -> None:
    out = captured.parent / "compiled"
    run(captured.parent, "kernel.compile", "captured.toml", "--python", python(), "--out", str(out))
    names = [one["name"] for one in tomllib.loads(captured.read_text())["kernel"]]
    ends = {".cubin", ".hsaco"}
    assert all({path.suffix for path in (out / name).rglob("*")} & ends for name in names)
