"""A small product, tiles of 64x128x64, four warps and stages.

triton-lang/triton#7096: slower by 3.3 than by 3.1. triton-lang/triton#8473: 3.5.0 aborts for GB300,
as `gb300-matmul` of the list.
"""

import triton
import triton.language as tl


@triton.jit
def small_matmul(
    a, b, c, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(N, BLOCK_N)
    m = (tl.program_id(0) // across) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (tl.program_id(0) % across) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    left = a + (m % M)[:, None] * stride_am + k[None, :]
    right = b + k[:, None] * stride_bk + (n % N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        remaining = K - step * BLOCK_K
        x = tl.load(left, mask=k[None, :] < remaining, other=0.0)
        y = tl.load(right, mask=k[:, None] < remaining, other=0.0)
        total = tl.dot(x, y, total)
        left += BLOCK_K
        right += BLOCK_K * stride_bk
    at = c + m[:, None] * stride_cm + n[None, :]
    tl.store(at, total.to(tl.float16), mask=(m < M)[:, None] & (n < N)[None, :])
