"""Call the Triton operations of deepspeed 0.19.8."""

from __future__ import annotations

from importlib import import_module

import torch
from operations import operation

TRITON = "deepspeed.ops.transformer.inference.triton"


def random(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


for dtype, batch, length, width in (
    (torch.float16, 2, 128, 1024),
    (torch.bfloat16, 1, 50, 768),
    (torch.float32, 2, 16, 512),
):
    x, weight = random(batch, length, width, dtype=dtype), random(width, dtype=dtype)
    with operation(f"gelu {dtype}"):
        import_module(f"{TRITON}.gelu").gelu(x)
    with operation(f"layer_norm {dtype}"):
        norms = import_module(f"{TRITON}.layer_norm")
        norms.layer_norm(x, weight, weight, 1e-6)
        norms.layer_norm_residual(x, weight, x, weight, weight, 1e-6)
    for after, bias, pre in ((True, True, True), (True, False, False), (False, True, True)):
        with operation(f"residual_add_bias {dtype}"):
            import_module(f"{TRITON}.residual_add").residual_add_bias(
                x, x, x, weight, weight, 1, after, bias, pre
            )
    with operation(f"softmax {dtype}"):
        softmax = import_module(f"{TRITON}.softmax").softmax
        scores = random(batch, 4, length, length, dtype=dtype)
        softmax(scores), softmax(scores, random(batch, 1, 1, length, dtype=dtype))
    with operation(f"matmul_fp8_triton {dtype}"):
        fp8 = import_module("deepspeed.ops.fp_quantizer.fp8_gemm_triton").matmul_fp8_triton
        packed = torch.zeros(width, 512, dtype=torch.uint8, device="cuda")
        fp8(x[0].contiguous(), packed, torch.rand(width * 4, device="cuda"), 128)
    with operation(f"matmul {dtype}"):
        products = import_module(f"{TRITON}.matmul_ext")
        for kind in ("", "relu", "gelu"):
            products.fp16_matmul.forward(
                x, random(width, 512, dtype=dtype), True, random(512, dtype=dtype), kind
            )
    with operation(f"4d matmul {dtype}"):
        products = import_module(TRITON)
        products.score_4d_matmul(
            random(batch, length, 768, dtype=dtype), 64, random(batch, 1, 1, length, dtype=dtype), 0.1
        )
        products.context_4d_matmul(
            random(batch, 4, length, length, dtype=dtype), random(batch, length, 768, dtype=dtype), 64
        )
        products.matmul_4d(
            random(batch, 4, length, 64, dtype=dtype), random(batch, 4, 64, length, dtype=dtype)
        )
    with operation(f"triton_flash_attn {dtype}"):
        attention = import_module("deepspeed.ops.transformer.inference.triton_ops").triton_flash_attn()
        q = random(batch, 4, 128, 64, dtype=dtype)
        attention(q, q, q, 0.1), attention(q, q, q, 0.1, False)
