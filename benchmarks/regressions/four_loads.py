"""A loop with four pipelined loads, and four stages.

triton-lang/triton#9815: it crashes TritonAMDGPUPipeline of 3.6.0, on MI300X.
"""

import triton
import triton.language as tl


@triton.jit
def four_loads(
    q, k, v, gain, offset, out, length, stride, D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    d = tl.arange(0, D)
    n = tl.arange(0, BLOCK_K)
    query = tl.load(q + m[:, None] * stride + d[None, :])
    result = tl.zeros((BLOCK_Q, D), tl.float32)
    for start in range(0, length, BLOCK_K):
        keys = tl.load(k + (start + n)[:, None] * stride + d[None, :])
        values = tl.load(v + (start + n)[:, None] * stride + d[None, :])
        scale = tl.load(gain + start + n)
        shift = tl.load(offset + start + n)
        score = tl.dot(query, tl.trans(keys)) * scale[None, :] + shift[None, :]
        result += tl.dot(score.to(values.dtype), values)
    tl.store(out + m[:, None] * stride + d[None, :], result.to(out.dtype.element_ty))
