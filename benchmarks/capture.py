"""What `kernel.capture` costs: CPU seconds of a captured program, and of its own run on the CPU.

    python benchmarks/capture.py PYTHON [--steps N] [--width N] [--runs N]

PYTHON has Triton and torch. The program trains a model of linear layers, attention, and a norm and an
activation that are Triton kernels, forward and backward. On the CPU these launch nothing, and all else is the
same. So the difference is what the capture costs: the fake GPU below each operation, the recording, and the
start of the tool.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SMITH = Path(sys.executable).with_name("tritonsmith")
PROGRAM = """
import sys
import torch
import triton
import triton.language as tl

device, steps, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

@triton.jit
def norm_forward(x, w, y, rstd, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0)
    scale = tl.rsqrt(tl.sum(value * value, 0) / n + eps)
    tl.store(rstd + row, scale)
    tl.store(y + row * n + at, value * scale * tl.load(w + at, mask=at < n), mask=at < n)

@triton.jit
def norm_backward(g, x, w, rstd, d, dw, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    grad = tl.load(g + row * n + at, mask=at < n) * tl.load(w + at, mask=at < n)
    tl.store(d + row * n + at, grad * tl.load(rstd + row), mask=at < n)
    tl.atomic_add(dw + at, grad * tl.load(x + row * n + at, mask=at < n), mask=at < n)

@triton.jit
def swiglu_forward(a, b, c, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(a + at, mask=at < n)
    tl.store(c + at, value * tl.sigmoid(value) * tl.load(b + at, mask=at < n), mask=at < n)

@triton.jit
def swiglu_backward(g, a, b, da, db, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    grad = tl.load(g + at, mask=at < n)
    tl.store(da + at, grad * tl.load(b + at, mask=at < n), mask=at < n)
    tl.store(db + at, grad * tl.load(a + at, mask=at < n), mask=at < n)

def launch(kernel, grid, *args, **constants):
    if device == "cuda":
        kernel[grid](*args, **constants)

class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        n = x.shape[-1]
        rows = x.numel() // n
        y, rstd = torch.zeros_like(x), torch.zeros(rows, device=x.device)
        launch(norm_forward, (rows,), x, w, y, rstd, n, 1e-6, BLOCK=triton.next_power_of_2(n))
        ctx.save_for_backward(x, w, rstd)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, rstd = ctx.saved_tensors
        n = x.shape[-1]
        d, dw = torch.zeros_like(x), torch.zeros_like(w)
        launch(norm_backward, (rstd.numel(),), g, x, w, rstd, d, dw, n, BLOCK=triton.next_power_of_2(n))
        return d, dw

class SwiGlu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        c = torch.zeros_like(a)
        launch(swiglu_forward, (triton.cdiv(a.numel(), 1024),), a, b, c, a.numel(), BLOCK=1024)
        ctx.save_for_backward(a, b)
        return c

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        da, db = torch.zeros_like(a), torch.zeros_like(b)
        launch(swiglu_backward, (triton.cdiv(a.numel(), 1024),), g, a, b, da, db, a.numel(), BLOCK=1024)
        return da, db

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ParameterList([torch.ones(width), torch.ones(width)])
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.gate, self.up = torch.nn.Linear(width, 2 * width), torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        heads = self.qkv(Norm.apply(x, self.norms[0])).unflatten(-1, (3, 8, -1)).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        y = Norm.apply(x, self.norms[1])
        return x + self.down(SwiGlu.apply(self.gate(y), self.up(y)))

model = torch.nn.Sequential(*[Block() for _ in range(4)]).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(steps):
    loss = model(torch.randn(8, 128, width, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "python", type=Path, metavar="PYTHON", help="an interpreter that has Triton and torch"
    )
    parser.add_argument("--steps", type=int, default=10, metavar="N", help="of the training (10)")
    parser.add_argument("--width", type=int, default=512, metavar="N", help="of the model (512)")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="of each; the medians count (3)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "program.py").write_text(PROGRAM, encoding="utf-8")
        words = ("program.py", "{}", str(arguments.steps), str(arguments.width))
        capture = (str(SMITH), "kernel.capture", "--python", str(arguments.python), "--device", "h100", "--")
        pairs = [
            (
                run(place, str(arguments.python), *(word.format("cpu") for word in words)),
                run(place, *capture, *(word.format("cuda") for word in words)),
            )
            for _ in range(arguments.runs)
        ]
    own, captured = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(
        f"{arguments.steps} steps of width {arguments.width}, CPU seconds, medians of {arguments.runs} runs"
    )
    print(f"the program on the CPU   {own:7.1f} s")
    print(f"captured                 {captured:7.1f} s   {captured / own:.2f} times as much")
    return 0


def run(folder: Path, *argv: str) -> float:
    """CPU seconds of a program and all that it starts."""
    environ = {**os.environ, "TRITONSMITH_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
