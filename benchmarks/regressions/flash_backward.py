"""Backward pass of attention, heads of 64.

triton-lang/triton#7268: by 3.3, L4 and A10G have too little shared memory for it.
"""

import triton
import triton.language as tl


@triton.jit
def flash_backward(
    q, k, v, d_out, d_q, d_k, d_v, lse, delta, scale, rows, stride_row, stride_head, padded,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m0 = tl.arange(0, BLOCK_M)
    d = tl.arange(0, HEAD)
    base = head * stride_head
    tile = base + n[:, None] * stride_row + d[None, :]
    real = (n < rows)[:, None]
    keys = tl.load(k + tile, mask=real, other=0.0)
    values = tl.load(v + tile, mask=real, other=0.0)
    grad_k = tl.zeros((BLOCK_N, HEAD), tl.float32)
    grad_v = tl.zeros((BLOCK_N, HEAD), tl.float32)
    for start in range(0, rows, BLOCK_M):
        m = start + m0
        at = base + m[:, None] * stride_row + d[None, :]
        present = (m < rows)[:, None]
        query = tl.load(q + at, mask=present, other=0.0)
        score = tl.dot(query, tl.trans(keys))
        score = tl.where((n < rows)[None, :], score, float("-inf"))
        weight = tl.exp(score * scale - tl.load(lse + head * padded + m)[:, None])
        grad = tl.load(d_out + at, mask=present, other=0.0)
        grad_v += tl.dot(tl.trans(weight.to(grad.dtype)), grad)
        through = tl.dot(grad, tl.trans(values))
        slope = (weight * (through - tl.load(delta + head * padded + m)[:, None]) * scale).to(query.dtype)
        grad_k += tl.dot(tl.trans(slope), query)
        so_far = tl.load(d_q + at, mask=present, other=0.0, eviction_policy="evict_last")
        so_far += tl.dot(slope, keys)
        tl.store(d_q + at, so_far, mask=present, eviction_policy="evict_last")
    tl.store(d_k + tile, grad_k, mask=real)
    tl.store(d_v + tile, grad_v, mask=real)
