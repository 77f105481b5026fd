"""Decoding over a latent cache, 512 and a rotated 64, in fp32.

ROCm/aiter#4632: on gfx950, it spills 120 bytes by 3.8, and is slower than by 3.4.
"""

import triton
import triton.language as tl


@triton.jit
def latent_decode(
    q, cache, positions, table, out, starts, slots, scale, heads, stride_q, stride_q_head,
    stride_cache, stride_out, stride_out_head, stride_table,
    LATENT: tl.constexpr, ROPE: tl.constexpr, SPLITS: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0)
    split = tl.program_id(2)
    h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.arange(0, LATENT)
    r = tl.arange(0, ROPE)
    half = tl.where(r < ROPE // 2, r + ROPE // 2, r - ROPE // 2)
    present = (h < heads)[:, None]
    row = sequence * stride_q + h[:, None] * stride_q_head
    query = tl.load(q + row + d[None, :], mask=present, other=0.0)
    straight = tl.load(q + row + (LATENT + r)[None, :], mask=present, other=0.0)
    crossed = tl.load(q + row + (LATENT + half)[None, :], mask=present, other=0.0)
    angle = table + tl.load(positions + sequence) * stride_table + r % (ROPE // 2)
    sign = tl.where(r < ROPE // 2, -1.0, 1.0)
    turned = straight * tl.load(angle)[None, :] + crossed * (tl.load(angle + ROPE // 2) * sign)[None, :]
    start = tl.load(starts + sequence)
    count = tl.load(starts + sequence + 1) - start
    part = tl.cdiv(count, SPLITS)
    end = tl.minimum(part * (split + 1), count)
    peak = tl.full((BLOCK_H,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_H,), tl.float32)
    result = tl.zeros((BLOCK_H, LATENT), tl.float32)
    for at in range(part * split, end, BLOCK_N):
        n = at + tl.arange(0, BLOCK_N)
        inside = n < end
        slot = tl.load(slots + start + n, mask=inside, other=0)
        keys = tl.load(cache + slot[None, :] * stride_cache + d[:, None], mask=inside[None, :], other=0.0)
        at_rotated = slot[None, :] * stride_cache + (LATENT + r)[:, None]
        rotated = tl.load(cache + at_rotated, mask=inside[None, :], other=0.0)
        score = tl.dot(query, keys) + tl.dot(turned.to(keys.dtype), rotated)
        score = tl.where(present & inside[None, :], score * scale, float("-inf"))
        values = tl.load(cache + slot[:, None] * stride_cache + d[None, :], mask=inside[:, None], other=0.0)
        highest = tl.maximum(peak, tl.max(score, 1))
        shrink = tl.exp(peak - highest)
        weight = tl.exp(score - highest[:, None])
        result = result * shrink[:, None] + tl.dot(weight.to(values.dtype), values)
        total = total * shrink + tl.sum(weight, 1)
        peak = highest
    row = sequence * stride_out + h * stride_out_head + split * (LATENT + 1)
    tl.store(out + row[:, None] + d[None, :], result / total[:, None], mask=present)
    tl.store(out + row + LATENT, peak + tl.log(total), mask=h < heads)
