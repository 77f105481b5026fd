"""Call the operations of xformers 0.0.35."""

from __future__ import annotations

import torch
import xformers.ops as xops
from operations import operation
from xformers.ops import fmha
from xformers.ops.rmsnorm import rms_norm, rms_norm_add
from xformers.ops.tiled_matmul import tiled_matmul


def random(*shape: int, dtype: torch.dtype, grad: bool = False) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").to(dtype).requires_grad_(grad)


for dtype, width, dim, length in (
    (torch.float16, 512, 64, 64),
    (torch.bfloat16, 768, 128, 100),
    (torch.float32, 500, 64, 33),
):
    x, weight = random(8, 16, width, dtype=dtype, grad=True), random(width, dtype=dtype)
    with operation(f"rms_norm {dtype}"):
        rms_norm(x.detach(), weight), rms_norm(x.detach(), None)
        rms_norm_add(x.detach().clone(), x.detach(), weight)
    with operation(f"scaled_index_add {dtype}"):
        source, scale = random(4, 16, width, dtype=dtype, grad=True), random(width, dtype=dtype, grad=True)
        for scaling in (scale, None):
            result = xops.scaled_index_add(
                x.clone(), torch.tensor([1, 0, 5, 3], device="cuda"), source, scaling, 0.5
            )
            result.backward(torch.ones_like(result))
    with operation(f"index_select_cat {dtype}"):
        flat = random(64, width, dtype=dtype, grad=True)
        result = xops.index_select_cat(
            [flat, flat], [torch.arange(9, device="cuda"), torch.arange(20, device="cuda")]
        )
        result.backward(torch.ones_like(result))
    for heads, shared in ((8, 8), (8, 2)):
        with operation(f"rope_padded {dtype}"):
            bias = fmha.attn_bias.BlockDiagonalCausalWithOffsetPaddedKeysMask.from_seqlens(
                [4, 3], 32, [20, 17]
            )
            new, cache = random(1, 7, shared, dim, dtype=dtype), random(1, 64, shared, dim, dtype=dtype)
            xops.rope_padded(random(1, 7, heads, dim, dtype=dtype), new, new, cache, cache.clone(), bias)
    with operation(f"tiled_matmul {dtype}"):
        parts = [[random(128, 256, dtype=dtype) for _ in range(2)] for _ in range(2)]
        tiled_matmul(parts, [[random(256, 128, dtype=dtype) for _ in range(2)] for _ in range(2)])
    for operator in (fmha.triton_splitk.FwOp_S2, fmha.triton_splitk.FwOp_S8, fmha.triton_splitk.FwOp):
        with operation(f"{operator.__name__} {dtype}"):
            q, k, v = (random(2, size, 4, dim, dtype=dtype) for size in (1, length, length))
            inputs = fmha.Inputs(q, k, v, None)
            operator.apply(inputs, needs_gradient=False)
    with operation(f"merge_attentions {dtype}"):
        parts, sums = random(3, 2, 5, 4, dim, dtype=dtype), torch.rand(3, 2, 4, 5, device="cuda")
        fmha.merge_attentions(list(parts), list(sums))
