"""`kernel.capture` with a real torch: its kernels compile for the GPU that the program was told of.

Needs TRITONSMITH_TORCH: the interpreter of a virtual environment that has Triton and a torch for the CPU.
"""

from __future__ import annotations

import json
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


OPERATORS = """
import torch
import triton
import triton.language as tl

@triton.jit
def twice(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)

def launch(x, block):
    assert x.device == torch.device("cuda", 0) and x.is_cuda and x.get_device() == 0, x.device
    y = torch.empty_like(x)
    twice[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), block)
    return y

@torch.library.custom_op("smith::everywhere", mutates_args=())
def everywhere(x: torch.Tensor) -> torch.Tensor:
    return launch(x, 16)

@torch.library.custom_op("smith::on_gpus", mutates_args=(), device_types="cuda")
def on_gpus(x: torch.Tensor) -> torch.Tensor:
    return launch(x, 32)

everywhere.register_autograd(lambda ctx, grad: launch(grad, 64))

@torch.library.triton_op("smith::traced", mutates_args=())
def traced(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    torch.library.wrap_triton(twice)[(1,)](x, y, x.numel(), 128)
    return y

x = torch.ones(1000, device="cuda", requires_grad=True)
everywhere(x).sum().backward()
on_gpus(x.detach())
traced(x.detach())
torch.library.wrap_triton(twice)[(1,)](x.detach(), torch.empty_like(x), 1000, 256)

library = torch.library.Library("smith", "FRAGMENT")
library.define("defined(Tensor x) -> Tensor")
library.impl("defined", lambda x: launch(x, 512), "CUDA")
torch.ops.smith.defined(x.detach())
override = torch.library.Library("aten", "IMPL")
override.impl("silu", lambda x: launch(x, 1024), "CUDA")
torch.nn.functional.silu(x.detach())
torch.nn.functional.silu(torch.ones(4))  # of the CPU: torch's own
override.impl("mul.Tensor", lambda x, y: launch(x, 2048) if y.dtype == torch.int64 else None, "CUDA")
assert (x.detach() * 2).is_cuda  # a number for a tensor
"""
RUNTIME = """
import pickle

import torch
import triton
import triton.language as tl

@triton.jit
def fill(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)

class Boxed(torch.Tensor):  # as quantised weights of torchao
    @staticmethod
    def __new__(cls, data):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype, device=data.device)

    def __init__(self, data):
        self.data_inside = data

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        assert func is torch.ops.aten.mul.Tensor, func
        return Boxed(args[0].data_inside * args[1])

boxed = Boxed(torch.ones(4, device="cuda")) * 2
assert type(boxed) is Boxed and boxed.device.type == "cuda" and boxed.data_inside.is_cuda
assert boxed.data_inside.cpu().tolist() == [2, 2, 2, 2]

model = torch.nn.Linear(4, 4).cuda()
torch.save(model.state_dict(), "model.pt")
kept = model.weight.detach().cpu()
assert torch.load("model.pt")["weight"].is_cuda
there = torch.load("model.pt", map_location="cpu")["weight"]
assert not there.is_cuda and torch.equal(there, kept)
assert pickle.loads(pickle.dumps(model)).weight.is_cuda

generator = torch.Generator(device="cuda").manual_seed(0)
assert generator.device == torch.device("cuda", 0)
assert torch.randn(3, device="cuda", generator=generator).is_cuda
torch.cuda.manual_seed(7)
seed, offset = torch.cuda.get_rng_state().view(torch.int64)
assert (seed, offset) == (torch.cuda.default_generators[0].initial_seed(), 0) == (7, 0)
listed = torch.tensor([1], pin_memory=True)
for pinned in (listed, torch.zeros(2, pin_memory=True), torch.ones(1).pin_memory()):
    assert pinned.is_pinned() and not pinned.is_cuda
assert not torch.zeros(2).is_pinned()
assert isinstance(torch.cuda.FloatTensor(2, 3), torch.cuda.FloatTensor)
assert torch.zeros(3, device="cuda").half().type() == "torch.cuda.HalfTensor"
properties = torch.cuda.get_device_properties(0)
assert (properties.is_integrated, str(properties.uuid).count("-")) == (0, 4)
assert torch.cuda.get_arch_list() == ["sm_90"]
assert torch.cuda.device(0).idx == 0
here = torch.cuda.current_device()
with torch.accelerator.device_index(here):
    alike = torch.zeros_like(listed, device=here)
for made in (alike, torch.arange(3, device=here), listed.new_ones(2, device=0), torch.tensor([1], device=0)):
    assert made.is_cuda
assert torch.nn.Linear(3, 3, device=here).weight.is_cuda
torch.set_default_device(0)
assert torch.zeros(3).is_cuda
torch.set_default_device("cpu")
assert not torch.zeros(3).is_cuda
half = torch.full((16, 16), 0.5, device="cuda", dtype=torch.float16)
summed = torch.addmm(half.float(), half, half, out_dtype=torch.float32)
assert (summed.dtype, summed[0, 0].item()) == (torch.float32, 4.5)
assert torch.mm(half, half, out_dtype=torch.float32).dtype == torch.float32
torch._dynamo.reset()
with torch.cuda.nvtx.range("a"), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        fill[(1,)](torch.zeros(16, device="cuda"), 16)
    graph.replay()
"""

QUANTISED = """
import torch
import triton
import triton.language as tl

@triton.jit
def fill(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)

class Weight(torch.Tensor):  # as torchao's Float8Tensor: both protocols
    @staticmethod
    def __new__(cls, data):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype, device=data.device)

    def __init__(self, data):
        self.inside = data

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.linear:
            assert types == (cls,), types
            x, weight, bias = args
            y = torch.empty(x.shape[0], weight.shape[0], device="cuda")
            fill[(1,)](y, 16)
            return y + bias
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        assert func is torch.ops.aten.mul.Tensor, func
        assert args[0].is_cuda and not isinstance(args[0], cls)
        fill[(2,)](args[0], 32)
        return args[0] * args[1].inside

weight, x = Weight(torch.ones(4, 4, device="cuda")), torch.ones(2, 4, device="cuda")
assert torch.nn.functional.linear(x, weight, torch.ones(4, device="cuda")).shape == (2, 4)
assert (torch.ones(4, 4, device="cuda") * weight).is_cuda

@torch.compile
def folded(x):  # TorchInductor folds constants with all modes of torch off
    zero = torch.scalar_tensor(0, dtype=torch.int64, device=x.device)
    return torch.where(zero >= 0, x + 1, x)

assert folded(x).is_cuda
"""


def launched(folder: Path, program: str) -> dict[str, Any]:
    (folder / "program.py").write_text(program)
    argv = ("kernel.capture", "--device", "h100", "--out", "captured.toml", "--python", python())
    run(folder, *argv, "--", "program.py")
    return tomllib.loads((folder / "captured.toml").read_text())


def test_operators_that_are_registered_for_a_gpu_run_with_its_tensors(tmp_path: Path) -> None:
    kernels = launched(tmp_path, OPERATORS)["kernel"]
    blocks = [int(one["signature"].rpartition("BLOCK=")[2]) for one in kernels]
    assert blocks == [16, 64, 32, 128, 256, 512, 1024, 2048]
    assert all(one["count"] == 1 for one in kernels)


def test_what_a_program_asks_of_the_cuda_runtime_is_there(tmp_path: Path) -> None:
    listed = launched(tmp_path, RUNTIME)
    assert [(one["kernel"], one["count"]) for one in listed["kernel"]] == [("fill", 1)]
    assert any("replays a CUDA graph" in note for note in listed["captured"]["notes"])
    assert any("there are no times of kernels" in note for note in listed["captured"]["notes"])


def test_tensor_subclasses_run_their_own_operations_on_tensors_of_the_gpu(tmp_path: Path) -> None:
    listed = launched(tmp_path, QUANTISED)
    first, second, *generated = [(one["kernel"], one["signature"], one["grid"]) for one in listed["kernel"]]
    assert first == ("fill", "x=*fp32:16,BLOCK=16", [[1, 1, 1]])
    assert second == ("fill", "x=*fp32:16,BLOCK=32", [[2, 1, 1]])
    assert len(generated) == 1
    assert not any("missing" in note for note in listed["captured"]["notes"])


MAKES_TENSORS = """
import torch
import triton
import triton.language as tl
from torch.utils._triton import has_triton

TABLE = torch.tensor([1.5, 2.5], device="cuda")  # gemlite has tables of its host code on the GPU
SAME = torch.ones(2).cuda(), torch.ones(2).to("cuda:0"), torch.zeros(2).to(torch.device("cuda"))
N: tl.constexpr = tl.constexpr(int(TABLE.sum().item()))

if has_triton():  # as torchao
    @triton.jit
    def fill(x):
        tl.store(x + tl.arange(0, N), 1.0)
"""


def test_a_file_that_makes_tensors_of_the_gpu_compiles_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "makes.py").write_text(MAKES_TENSORS)
    argv = (str(SMITH), "kernel.compile", "makes.py", "--target", "h100", "--signature", "*fp32", "--json")
    environ = {**os.environ, "TRITONSMITH_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        (*argv, "--python", python()), cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert any("torch.tensor() on the GPU returns a tensor of the CPU" in text for text in answer["warnings"])
    (ttir,) = tmp_path.rglob("*.ttir")
    assert "end = 4 : i32" in ttir.read_text()
