"""Kernels and refactorings of them: right ones, and some with a planted bug.

`refactored.mlir` has their `ttir` for cuda:90 by Triton 3.9.0, in generic form and without locations.
"""

from __future__ import annotations

import re
from pathlib import Path

from tritonsmith.check.versions import KernelVersion

KERNELS = """\
import triton
import triton.language as tl


@triton.jit
def subtract(X, Y, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < n)
    y = tl.load(Y + at, mask=at < n)
    tl.store(OUT + at, x - y, mask=at < n)


@triton.jit
def subtract_in_a_loop(X, Y, OUT, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(X + at, mask=at < n, other=0.0)
        y = tl.load(Y + at, mask=at < n, other=0.0)
        tl.store(OUT + at, x - y, mask=at < n)


@triton.jit
def subtract_negated(X, Y, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < n)
    y = tl.load(Y + at, mask=at < n)
    tl.store(OUT + at, -(y - x), mask=at < n)


@triton.jit
def subtract_without_a_mask(X, Y, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at)
    y = tl.load(Y + at, mask=at < n)
    tl.store(OUT + at, x - y, mask=at < n)


@triton.jit
def subtract_one_more(X, Y, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at <= n)
    y = tl.load(Y + at, mask=at <= n)
    tl.store(OUT + at, x - y, mask=at <= n)


@triton.jit
def subtract_swapped(X, Y, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < n)
    y = tl.load(Y + at, mask=at < n)
    tl.store(OUT + at, y - x, mask=at < n)


@triton.jit
def subtract_from_the_second_block(X, Y, OUT, n, BLOCK: tl.constexpr):
    at = (tl.program_id(0) + 1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < n)
    y = tl.load(Y + at, mask=at < n)
    tl.store(OUT + at, x - y, mask=at < n)


@triton.jit
def norm(X, OUT, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        total += x * x
    scale = 1 / tl.sqrt(tl.sum(total, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(OUT + row * stride + at, x * scale, mask=at < n)


@triton.jit
def norm_by_rsqrt(X, OUT, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        total += tl.sum(x * x, axis=0)
    scale = tl.rsqrt(total / n + eps)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * stride + at, mask=at < n).to(tl.float32)
        tl.store(OUT + row * stride + at, x * scale, mask=at < n)


@triton.jit
def norm_without_eps(X, OUT, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        total += x * x
    scale = 1 / tl.sqrt(tl.sum(total, axis=0) / n)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(OUT + row * stride + at, x * scale, mask=at < n)


@triton.jit
def norm_without_the_last_block(X, OUT, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for block in range(0, n // BLOCK):
        at = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(X + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        total += x * x
    scale = 1 / tl.sqrt(tl.sum(total, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(OUT + row * stride + at, x * scale, mask=at < n)


@triton.jit
def norm_in_fp16(X, OUT, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float16)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * stride + at, mask=at < n, other=0.0)
        total += x * x
    scale = 1 / tl.sqrt(tl.sum(total.to(tl.float32), axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(OUT + row * stride + at, x * scale, mask=at < n)


@triton.jit
def largest(X, OUT, m, n, stride_m, stride_n, SIZE: tl.constexpr):
    rows, cols = tl.program_id(0) * SIZE + tl.arange(0, SIZE), tl.arange(0, SIZE)
    best = tl.full((SIZE,), -float("inf"), tl.float32)
    for start in range(0, n, SIZE):
        mask = (rows < m)[:, None] & (start + cols < n)[None, :]
        at = rows[:, None] * stride_m + (start + cols)[None, :] * stride_n
        best = tl.maximum(best, tl.max(tl.load(X + at, mask=mask, other=-float("inf")), axis=1))
    tl.store(OUT + rows, best, mask=rows < m)


@triton.jit
def largest_of_blocks(X, OUT, m, n, stride_m, stride_n, SIZE: tl.constexpr):
    rows, cols = tl.program_id(0) * SIZE + tl.arange(0, SIZE), tl.arange(0, SIZE)
    best = tl.full((SIZE, SIZE), -float("inf"), tl.float32)
    for block in range(0, tl.cdiv(n, SIZE)):
        mask = (rows < m)[:, None] & (block * SIZE + cols < n)[None, :]
        at = rows[:, None] * stride_m + (block * SIZE + cols)[None, :] * stride_n
        best = tl.maximum(best, tl.load(X + at, mask=mask, other=-float("inf")))
    tl.store(OUT + rows, tl.max(best, axis=1), mask=rows < m)


@triton.jit
def largest_with_another_stride(X, OUT, m, n, stride_m, stride_n, SIZE: tl.constexpr):
    rows, cols = tl.program_id(0) * SIZE + tl.arange(0, SIZE), tl.arange(0, SIZE)
    best = tl.full((SIZE,), -float("inf"), tl.float32)
    for start in range(0, n, SIZE):
        mask = (rows < m)[:, None] & (start + cols < n)[None, :]
        at = rows[:, None] * stride_m + (start + cols)[None, :] * stride_m
        best = tl.maximum(best, tl.max(tl.load(X + at, mask=mask, other=-float("inf")), axis=1))
    tl.store(OUT + rows, best, mask=rows < m)


@triton.jit
def largest_along_the_other_axis(X, OUT, m, n, stride_m, stride_n, SIZE: tl.constexpr):
    rows, cols = tl.program_id(0) * SIZE + tl.arange(0, SIZE), tl.arange(0, SIZE)
    best = tl.full((SIZE,), -float("inf"), tl.float32)
    for start in range(0, n, SIZE):
        mask = (rows < m)[:, None] & (start + cols < n)[None, :]
        at = rows[:, None] * stride_m + (start + cols)[None, :] * stride_n
        best = tl.maximum(best, tl.max(tl.load(X + at, mask=mask, other=-float("inf")), axis=0))
    tl.store(OUT + rows, best, mask=rows < m)


@triton.jit
def largest_without_other(X, OUT, m, n, stride_m, stride_n, SIZE: tl.constexpr):
    rows, cols = tl.program_id(0) * SIZE + tl.arange(0, SIZE), tl.arange(0, SIZE)
    best = tl.full((SIZE,), -float("inf"), tl.float32)
    for start in range(0, n, SIZE):
        mask = (rows < m)[:, None] & (start + cols < n)[None, :]
        at = rows[:, None] * stride_m + (start + cols)[None, :] * stride_n
        best = tl.maximum(best, tl.max(tl.load(X + at, mask=mask), axis=1))
    tl.store(OUT + rows, best, mask=rows < m)


@triton.jit
def total(X, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(OUT, tl.sum(tl.load(X + at, mask=at < n, other=0.0)), mask=tl.program_id(0) * BLOCK < n)


@triton.jit
def total_by_a_store(X, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(X + at, mask=at < n, other=0.0))
    has_work = tl.program_id(0) * BLOCK < n
    tl.store(OUT, tl.load(OUT, mask=has_work) + total, mask=has_work)


@triton.jit
def causal(X, OUT, n, BLOCK: tl.constexpr):
    if tl.program_id(0) <= tl.program_id(1):
        rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = (rows < n)[:, None] & (cols < n)[None, :]
        at = rows[:, None] * n + cols[None, :]
        tl.store(OUT + at, tl.load(X + at, mask=mask) * 2, mask=mask)


@triton.jit
def causal_off_the_diagonal(X, OUT, n, BLOCK: tl.constexpr):
    if tl.program_id(0) <= tl.program_id(1):
        rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = (rows < n)[:, None] & (cols < n)[None, :]
        at = rows[:, None] * n + cols[None, :]
        more = tl.program_id(0)
        tl.store(OUT + at, tl.load(X + at, mask=mask) * 2 + more, mask=mask)


@triton.jit
def halves(X, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < n, other=0.0)
    tl.store(OUT + at // 2, x, mask=at < n)


@triton.jit
def halves_of_the_last(X, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < n, other=0.0)
    tl.store(OUT + at // 2, x, mask=(at < n) & ((at % 2 == 1) | (at == n - 1)))


@triton.jit
def halves_doubled(X, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < n, other=0.0)
    tl.store(OUT + at // 2, x * 2, mask=at < n)


@triton.jit
def pairs(X, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at // 2, mask=at < n, other=0.0)
    tl.store(OUT + at // 2, x, mask=at < n)


@triton.jit
def pairs_read_too_early(X, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = tl.program_id(0) * BLOCK + tl.zeros((BLOCK,), tl.int32)
    tl.store(X + n + here, tl.load(X + at, mask=at < n, other=0.0), mask=at < n)
    early = tl.load(X + n + here, mask=at < n, other=0.0)
    x = tl.load(X + at // 2, mask=at < n, other=0.0)
    tl.store(OUT + at // 2, tl.where(early > 1000, early, x), mask=at < n)


@triton.jit
def alternating(X, OUT, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(X + tl.program_id(0) % 2 * BLOCK + at, mask=at < n, other=0.0)
    tl.store(OUT + at, x, mask=at < n)


@triton.jit
def alternating_by_a_multiple(X, OUT, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(X + tl.program_id(0) % 2 * BLOCK + at, mask=at < n, other=0.0)
    tl.store(OUT + at, x * 2 * 0.5, mask=at < n)


@triton.jit
def scatter(X, INDEX, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    to = tl.load(INDEX + at, mask=at < n, other=0)
    tl.store(OUT + to, tl.load(X + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def scatter_by_a_multiple(X, INDEX, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < n, other=0.0)
    tl.store(OUT + tl.load(INDEX + at, mask=at < n, other=0), x * 2 * 0.5, mask=at < n)


@triton.jit
def scatter_of_one_less(X, INDEX, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < n - 1, other=0.0)
    tl.store(OUT + tl.load(INDEX + at, mask=at < n, other=0), x, mask=at < n - 1)


@triton.jit
def exchange(X, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_xchg(OUT + at // 2, tl.load(X + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def exchange_by_a_multiple(X, OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_xchg(OUT + at // 2, tl.load(X + at, mask=at < n, other=0.0) * 2 * 0.5, mask=at < n)
"""
SIGNATURES = {
    "subtract": "X=*fp32:16,Y=*fp32:16,OUT=*fp32:16,n=i32,BLOCK=64",
    "norm": "X=*fp16:16,OUT=*fp32:16,stride=i32:16,n=i32,eps=fp32,BLOCK=64",
    "largest": "X=*fp32:16,OUT=*fp32:16,m=i32,n=i32,stride_m=i32:16,stride_n=i32,SIZE=16",
    "total": "X=*fp32:16,OUT=*fp32:16,n=i32,BLOCK=64",
    "causal": "X=*fp32:16,OUT=*fp32:16,n=i32,BLOCK=16",
    "halves": "X=*fp32:16,OUT=*fp32:16,n=i32,BLOCK=64",
    "pairs": "X=*fp32:16,OUT=*fp32:16,n=i32,BLOCK=64",
    "alternating": "X=*fp32:16,OUT=*fp32:16,n=i32,BLOCK=64",
    "exchange": "X=*fp32:16,OUT=*fp32:16,n=i32,BLOCK=64",
    "scatter": "X=*fp32:16,INDEX=*i32:16,OUT=*fp32:16,n=i32,BLOCK=64",
}
GRIDS = {"subtract": "cdiv(n, BLOCK)", "norm": "3", "largest": "cdiv(m, SIZE)", "alternating": "3"}
# By the kernel that they are to be the same as.
RIGHT = {
    "subtract": ("subtract_in_a_loop", "subtract_negated"),
    "norm": ("norm_by_rsqrt",),
    "largest": ("largest_of_blocks",),
}
PLANTED = {
    "subtract": (
        "subtract_without_a_mask",
        "subtract_one_more",
        "subtract_swapped",
        "subtract_from_the_second_block",
    ),
    "norm": ("norm_without_eps", "norm_without_the_last_block", "norm_in_fp16"),
    "largest": (
        "largest_with_another_stride",
        "largest_along_the_other_axis",
        "largest_without_other",
    ),
}


def family(name: str) -> str:
    """The kernel that another one is a refactoring of."""
    return name.partition("_")[0]


def version(name: str, grid: str | None = None) -> KernelVersion:
    """A kernel as a side of a comparison."""
    text = (Path(__file__).parent / "refactored.mlir").read_text(encoding="utf-8")
    (module,) = [
        part for part in re.split(r"^// kernel: ", text, flags=re.MULTILINE) if part.startswith(f"{name}\n")
    ]
    entries = dict(entry.split("=") for entry in SIGNATURES[family(name)].split(","))
    names = tuple(parameter for parameter, kind in entries.items() if not kind.isdigit())
    constants = {parameter: int(kind) for parameter, kind in entries.items() if kind.isdigit()}
    grid = GRIDS.get(family(name), "") if grid is None else grid
    return KernelVersion(name, module.partition("\n")[2], names, {}, constants, grid)
