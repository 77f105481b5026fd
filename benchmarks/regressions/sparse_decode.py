"""Decoding over gathered tokens, heads of 512, four warps.

triton-lang/triton#11373: on A100, half as fast by 3.7.1 as by 3.6.0.
"""

import triton
import triton.language as tl


@triton.jit
def sparse_decode(
    q, cache, chosen, counts, out, scale, heads, stride_q, stride_cache, stride_chosen,
    HEAD: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.arange(0, HEAD)
    n = tl.arange(0, BLOCK_N)
    at = row * stride_q + h[:, None] * HEAD + d[None, :]
    query = tl.load(q + at, mask=(h < heads)[:, None], other=0.0)
    count = tl.load(counts + row)
    peak = tl.full((BLOCK_H,), -1.0e30, tl.float32)
    total = tl.zeros((BLOCK_H,), tl.float32)
    result = tl.zeros((BLOCK_H, HEAD), tl.float32)
    for start in range(0, count, BLOCK_N):
        inside = start + n < count
        slot = tl.load(chosen + row * stride_chosen + start + n, mask=inside, other=-1)
        inside = inside & (slot >= 0)
        place = slot.to(tl.int64)[:, None] * stride_cache + d[None, :]
        latent = tl.load(cache + place, mask=inside[:, None], other=0.0)
        score = tl.where(inside[None, :], tl.dot(query, tl.trans(latent)) * scale, float("-inf"))
        highest = tl.maximum(peak, tl.max(score, 1))
        shrink = tl.exp(peak - highest)
        weight = tl.exp(score - highest[:, None])
        total = total * shrink + tl.sum(weight, 1)
        result = result * shrink[:, None] + tl.dot(weight.to(latent.dtype), latent)
        peak = highest
    tl.store(out + at, (result / total[:, None]).to(out.dtype.element_ty), mask=(h < heads)[:, None])
