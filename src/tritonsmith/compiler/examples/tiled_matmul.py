"""A small matrix product, for benchmarks/kernel_compile.py."""

import triton
import triton.language as tl


@triton.jit
def tiled_matmul(
    a_ptr, b_ptr, c_ptr, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr
):
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    columns = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    depth = tl.arange(0, TILE_K)
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, k, TILE_K):
        inner = start + depth
        left = tl.load(a_ptr + rows[:, None] * k + inner[None, :], mask=inner[None, :] < k, other=0.0)
        right = tl.load(b_ptr + inner[:, None] * n + columns[None, :], mask=inner[:, None] < k, other=0.0)
        total = tl.dot(left, right, total)
    tl.store(
        c_ptr + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n)
    )
