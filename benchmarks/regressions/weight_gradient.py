"""Gradient of experts' weights: a product whose K is each expert's rows.

AMD-AGI/Primus-Turbo#471: on MI300X, 65 spills by 3.8.0, and 5.4 times the time by 3.7.1.
"""

import triton
import triton.language as tl


@triton.jit
def weight_gradient(
    x, dy, dw, offsets, rows, columns, stride_x, stride_dy, stride_expert, stride_dw,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    expert = tl.program_id(1)
    across = tl.cdiv(columns, BLOCK_N)
    tile_m = tl.program_id(0) // across
    tile_n = tl.program_id(0) % across
    first = tl.load(offsets + expert)
    last = tl.load(offsets + expert + 1)
    m = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % rows
    n = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % columns
    token = tl.arange(0, BLOCK_K)
    left = x + (first + token)[None, :] * stride_x + m[:, None]
    right = dy + (first + token)[:, None] * stride_dy + n[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, last - first, BLOCK_K):
        present = token < last - first - k
        a = tl.load(left, mask=present[None, :], other=0.0)
        b = tl.load(right, mask=present[:, None], other=0.0)
        total = tl.dot(a, b, total)
        left += BLOCK_K * stride_x
        right += BLOCK_K * stride_dy
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    at = dw + expert.to(tl.int64) * stride_expert + m[:, None] * stride_dw + n[None, :]
    tl.store(at, total.to(dw.dtype.element_ty), mask=(m < rows)[:, None] & (n < columns)[None, :])
