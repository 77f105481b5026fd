"""Prefill over a paged cache, heads of 256.

ROCm/aiter#4137, ROCm/aiter#5409, triton-lang/triton#11249: on gfx950 the kernel needs about 470 registers
and may have 256; 5 values spill by 3.6, 87 by 3.7, and it takes 3 to 4 times as long.
"""

import triton
import triton.language as tl


@triton.jit
def paged_attention(
    q, k_cache, v_cache, out, pages, lengths, q_start, scale,
    stride_q, stride_q_head, stride_pages, stride_k, stride_k_slot, stride_k_head, stride_v, stride_v_slot,
    stride_v_head, GROUP: tl.constexpr, HEAD: tl.constexpr, PADDED: tl.constexpr, PAGE: tl.constexpr,
    BLOCK_M: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0)
    kv_head = tl.program_id(1)
    per_block: tl.constexpr = BLOCK_M // GROUP
    start = tl.load(q_start + sequence)
    new = tl.load(q_start + sequence + 1) - start
    first = tl.program_id(2) * per_block
    if first >= new:
        return
    length = tl.load(lengths + sequence)
    before = length - new
    m = tl.arange(0, BLOCK_M)
    d = tl.arange(0, PADDED)
    n = tl.arange(0, TILE)
    position = first + m // GROUP
    head = kv_head * GROUP + m % GROUP
    real = d < HEAD
    row = (start + position)[:, None] * stride_q + head[:, None] * stride_q_head + d[None, :]
    present = (position < new)[:, None] & real[None, :]
    query = tl.load(q + row, mask=present, other=0.0)
    peak = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.full((BLOCK_M,), 1.0, tl.float32)
    result = tl.zeros((BLOCK_M, PADDED), tl.float32)
    reach = tl.minimum(before + first + (BLOCK_M - 1) // GROUP + 1, length)
    for tile in range(tl.cdiv(reach, TILE)):
        place = tile * TILE + n
        inside = place < reach
        page = tl.load(pages + sequence * stride_pages + place // PAGE).to(tl.int64)
        slot = place % PAGE
        k_at = page[None, :] * stride_k + kv_head * stride_k_head + d[:, None] + slot[None, :] * stride_k_slot
        v_at = page[:, None] * stride_v + kv_head * stride_v_head + d[None, :] + slot[:, None] * stride_v_slot
        keys = tl.load(k_cache + k_at, mask=real[:, None] & inside[None, :], other=0.0)
        values = tl.load(v_cache + v_at, mask=real[None, :] & inside[:, None], other=0.0)
        score = scale * tl.dot(query, keys)
        visible = (place[None, :] < (before + position + 1)[:, None]) & (position < new)[:, None]
        score = tl.where(visible, score, float("-inf"))
        highest = tl.maximum(peak, tl.max(score, 1))
        highest = tl.where(highest > float("-inf"), highest, 0.0)
        weight = tl.exp(score - highest[:, None])
        shrink = tl.exp(peak - highest)
        result = result * shrink[:, None]
        total = total * shrink + tl.sum(weight, 1)
        peak = highest
        result += tl.dot(weight.to(values.dtype), values)
    tl.store(out + row, result / total[:, None], mask=present)
