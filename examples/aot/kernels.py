"""Kernels for `kernel.aot`: what main.c launches."""

import triton
import triton.language as tl


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, scale, n, BLOCK: tl.constexpr):
    """Compute out = scale * x + y."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    y = tl.load(y_ptr + at, mask=mask)
    tl.store(out_ptr + at, scale * x + y, mask=mask)


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr,
    m, n, k,
    stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Compute c = a @ b, of row-major matrices of fp16, in fp32."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for begin in range(0, k, BLOCK_K):
        left = (rows[:, None] < m) & (begin + inner[None, :] < k)
        right = (begin + inner[:, None] < k) & (columns[None, :] < n)
        a = tl.load(a_ptr + rows[:, None] * stride_am + begin + inner[None, :], mask=left, other=0.0)
        b = tl.load(b_ptr + (begin + inner[:, None]) * stride_bk + columns[None, :], mask=right, other=0.0)
        sums = tl.dot(a, b, sums)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * stride_cm + columns[None, :], sums, mask=inside)
