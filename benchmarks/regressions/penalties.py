"""Penalties for sampled tokens, with drafted ones.

pytorch/pytorch#180908, vllm-project/vllm#40657: by 3.7.0, TritonGPURemoveLayoutConversions fails on L4 with
ten drafted tokens or more.
"""

import triton
import triton.language as tl


@triton.jit
def penalties(
    logits, stride_logits, requests, tokens, positions, repetition, frequency, presence, prompt_bits,
    stride_bits, counts, stride_counts, vocabulary, BLOCK: tl.constexpr, DRAFTS: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0)
    request = tl.load(requests + token)
    repeat = tl.load(repetition + request)
    often = tl.load(frequency + request)
    once = tl.load(presence + request)
    if (repeat == 1.0) & (often == 0.0) & (once == 0.0):
        return
    word = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = word < vocabulary
    value = tl.load(logits + token * stride_logits + word, mask=inside).to(tl.float32)
    seen = tl.load(counts + request * stride_counts + word, mask=inside, other=0)
    position = tl.load(positions + token)
    drafted = tl.zeros((BLOCK,), tl.int32)
    for draft in tl.static_range(DRAFTS):
        if draft < position:
            earlier = tl.load(tokens + token - position + draft + 1)
            drafted += (word == earlier).to(tl.int32)
    seen += drafted
    if repeat != 1.0:
        group = tl.program_id(1) * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
        real = group < tl.cdiv(vocabulary, 32)
        packed = tl.load(prompt_bits + request * stride_bits + group, mask=real, other=0)
        bits = ((packed[:, None] >> tl.arange(0, 32)[None, :]) & 1).to(tl.int1).reshape(BLOCK)
        factor = tl.where(bits | (seen > 0), repeat, 1.0)
        value *= tl.where(value > 0, 1.0 / factor, factor)
    value -= often * seen
    value -= once * (seen > 0)
    tl.store(logits + token * stride_logits + word, value, mask=inside)
