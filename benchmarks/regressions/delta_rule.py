"""States of the gated delta rule, chunks of 64, heads of 128.

triton-lang/triton#9757: on H20, 35 % slower by 3.6.0 than by 3.5.0.
"""

import triton
import triton.language as tl


@triton.jit
def delta_rule(
    k, w, u, gate, states, v_new, final, tokens, H: tl.constexpr, HG: tl.constexpr, K: tl.constexpr,
    V: tl.constexpr, CHUNK: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0)
    head = tl.program_id(1)
    key_head = head // (H // HG)
    low = tl.zeros((64, BLOCK_V), tl.float32)
    high = tl.zeros((64, BLOCK_V), tl.float32)
    chunks = tl.cdiv(tokens, CHUNK)
    for chunk in range(chunks):
        state = states + (chunk * H + head).to(tl.int64) * K * V
        at_low = tl.make_block_ptr(state, (K, V), (V, 1), (0, part * BLOCK_V), (64, BLOCK_V), (1, 0))
        tl.store(at_low, low.to(states.dtype.element_ty), boundary_check=(0, 1))
        at_high = tl.make_block_ptr(state, (K, V), (V, 1), (64, part * BLOCK_V), (64, BLOCK_V), (1, 0))
        tl.store(at_high, high.to(states.dtype.element_ty), boundary_check=(0, 1))
        row = chunk * CHUNK
        at = tl.make_block_ptr(w + head * K, (tokens, K), (H * K, 1), (row, 0), (CHUNK, 64), (1, 0))
        change = tl.dot(tl.load(at, boundary_check=(0, 1)), low.to(w.dtype.element_ty))
        at = tl.make_block_ptr(w + head * K, (tokens, K), (H * K, 1), (row, 64), (CHUNK, 64), (1, 0))
        change += tl.dot(tl.load(at, boundary_check=(0, 1)), high.to(w.dtype.element_ty))
        at = tl.make_block_ptr(
            u + head * V, (tokens, V), (H * V, 1), (row, part * BLOCK_V), (CHUNK, BLOCK_V), (1, 0)
        )
        value = tl.load(at, boundary_check=(0, 1)) - change
        at = tl.make_block_ptr(
            v_new + head * V, (tokens, V), (H * V, 1), (row, part * BLOCK_V), (CHUNK, BLOCK_V), (1, 0)
        )
        tl.store(at, value.to(v_new.dtype.element_ty), boundary_check=(0, 1))
        last = tl.minimum(row + CHUNK, tokens) - 1
        decay = tl.load(gate + last * H + head)
        token = row + tl.arange(0, CHUNK)
        present = token < tokens
        here = tl.load(gate + token * H + head, mask=present, other=0.0)
        value = value * tl.where(present, tl.exp(decay - here), 0.0)[:, None]
        kept = tl.exp(decay)
        value = value.to(k.dtype.element_ty)
        at = tl.make_block_ptr(k + key_head * K, (K, tokens), (1, HG * K), (0, row), (64, CHUNK), (0, 1))
        low = low * kept + tl.dot(tl.load(at, boundary_check=(0, 1)), value)
        at = tl.make_block_ptr(k + key_head * K, (K, tokens), (1, HG * K), (64, row), (64, CHUNK), (0, 1))
        high = high * kept + tl.dot(tl.load(at, boundary_check=(0, 1)), value)
    state = final + head * K * V
    at_low = tl.make_block_ptr(state, (K, V), (V, 1), (0, part * BLOCK_V), (64, BLOCK_V), (1, 0))
    tl.store(at_low, low, boundary_check=(0, 1))
    at_high = tl.make_block_ptr(state, (K, V), (V, 1), (64, part * BLOCK_V), (64, BLOCK_V), (1, 0))
    tl.store(at_high, high, boundary_check=(0, 1))
