"""Call the operations of conch-triton-kernels 1.3."""

from __future__ import annotations

import torch
from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul
from conch.ops.activation.silu_and_mul import silu_and_mul
from conch.ops.attention.paged_attention import paged_attention
from conch.ops.attention.varlen_attention import varlen_attention
from conch.ops.embedding.rotary_embedding import rotary_embedding
from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm
from conch.ops.normalization.rms_norm import fused_add_rms_norm, rms_norm
from conch.ops.quantization.bitsandbytes.functional import (
    dequantize_4bit,
    dequantize_blockwise,
    quantize_4bit,
    quantize_blockwise,
)
from conch.ops.quantization.fp8 import scaled_fp8_quant
from conch.ops.quantization.gemm import mixed_precision_gemm, scaled_gemm
from conch.ops.quantization.int8 import scaled_int8_quant
from conch.ops.vision.bev_pool import bev_pool, bev_pool_backward
from conch.ops.vision.nms import nms
from conch.ops.vision.voxelization import VoxelizationParameter, generate_voxels
from conch.ops.vllm.copy_blocks import copy_blocks
from conch.ops.vllm.reshape_and_cache import reshape_and_cache
from operations import operation

FP8 = torch.float8_e4m3fn


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device="cuda")


def rows(dtype: torch.dtype, tokens: int, width: int) -> None:
    x, weight, scale = (
        random(tokens, width, dtype=dtype),
        random(width, dtype=dtype),
        torch.ones(1, device="cuda"),
    )
    flat = x.flatten()
    for name, call in {
        "silu_and_mul": lambda: silu_and_mul(x),
        "gelu_tanh_and_mul": lambda: gelu_tanh_and_mul(x),
        "rms_norm": lambda: rms_norm(x, weight, 1e-6),
        "fused_add_rms_norm": lambda: fused_add_rms_norm(x, x.clone(), weight, 1e-6),
        "gemma_rms_norm": lambda: gemma_rms_norm(x, weight, 1e-6),
        "gemma_rms_norm residual": lambda: gemma_rms_norm(x, weight, 1e-6, x.clone()),
        "scaled_int8_quant": lambda: scaled_int8_quant(x, scale),
        "scaled_fp8_quant": lambda: scaled_fp8_quant(x, scale),
    }.items():
        with operation(f"{name} {dtype}"):
            call()
    for kind in ("fp4", "nf4"):
        for size in (64, 256):
            with operation(f"quantize_4bit {kind} {dtype}"):
                packed, state = quantize_4bit(flat, blocksize=size, quant_type=kind)
                dequantize_4bit(packed, state, blocksize=size, quant_type=kind)
    with operation(f"quantize_blockwise fp8 {dtype}"):
        code = torch.linspace(-1, 1, 256, device="cuda")
        packed, state = quantize_blockwise(flat, code=code, blocksize=64, quant_type="fp8")
        dequantize_blockwise(packed, state, quant_type="fp8")


def attention(dtype: torch.dtype, dim: int, cache: str) -> None:
    stored = FP8 if cache.startswith("fp8") else dtype
    sequences, heads, shared, size, blocks = 3, 8, 2, 16, 24
    keys, values = (random(blocks, size, shared, dim).to(stored) for _ in range(2))
    table = torch.randint(0, blocks, (sequences, 8), device="cuda", dtype=torch.int32)
    lengths, starts, scale = ints(5, 100, 33), ints(0, 5, 9, 20), torch.ones(1, device="cuda")
    scales = {"k_scale": scale, "v_scale": scale, "kv_cache_dtype": cache}
    query, new = random(20, heads, dim, dtype=dtype), random(20, shared, dim, dtype=dtype)
    for softcap in (0.0, 30.0):
        with operation(f"paged_attention {dtype} {cache}"):
            paged_attention(query[:sequences], keys, values, table, lengths, softcap=softcap, **scales)
    for causal in (True, False):
        with operation(f"varlen_attention {dtype} {cache}"):
            varlen_attention(query, keys, values, starts, 11, lengths, 100, table, causal=causal, **scales)
            varlen_attention(
                query[:3], keys, values, ints(0, 1, 2, 3), 1, lengths, 100, table, causal=causal, **scales
            )
    with operation(f"reshape_and_cache {dtype} {cache}"):
        reshape_and_cache(new, new, keys, values, torch.arange(20, device="cuda"), **scales)
    with operation(f"copy_blocks {dtype}"):
        copy_blocks(
            [keys.flatten(1)] * 2, [values.flatten(1)] * 2, torch.tensor([[0, 1], [2, 3]], device="cuda")
        )
    with operation(f"rotary_embedding {dtype}"):
        flat = query.flatten(1).clone(), new.flatten(1).clone()
        rotary_embedding(torch.arange(20, device="cuda"), *flat, dim, random(128, dim, dtype=dtype))


def products(dtype: torch.dtype, rows: int) -> None:
    k, n = 256, 512
    x = random(rows, k, dtype=dtype)
    for bits, bias in ((4, 8), (8, 128), (4, 0)):
        with operation(f"mixed_precision_gemm {bits} {dtype}"):
            packed = torch.randint(0, 100, (k * bits // 32, n), device="cuda", dtype=torch.int32)
            zeros = None if bias else random(k // 128, n, dtype=dtype)
            mixed_precision_gemm(x, packed, random(k // 128, n, dtype=dtype), zeros, bits, bias, 128)
    for kind in (torch.int8, FP8):
        for bias in (None, random(n, dtype=dtype)):
            with operation(f"scaled_gemm {kind} {dtype}"):
                a, b = random(rows, k).to(kind), random(n, k).to(kind).t()
                scaled_gemm(a, b, random(rows, 1), random(1, n), dtype, bias)
                scaled_gemm(a, b, random(1, 1), random(1, 1), dtype, bias)


def vision(dtype: torch.dtype, channels: int, points: int) -> None:
    features = random(points, channels, dtype=dtype)
    places = torch.zeros(points, 4, dtype=torch.int32, device="cuda")
    starts, lengths = (
        ints(*range(0, points, 10)),
        torch.full((-(-points // 10),), 10, dtype=torch.int32, device="cuda"),
    )
    with operation(f"bev_pool {dtype}"):
        pooled = bev_pool(features, places, starts, lengths, 1, 2, 16, 16)
        bev_pool_backward(torch.ones_like(pooled), places, starts, lengths)
    with operation(f"nms {dtype}"):
        boxes = torch.rand(points, 4, device="cuda").to(dtype)
        nms(
            torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1),
            torch.rand(points, device="cuda").to(dtype),
            0.5,
        )
    with operation(f"generate_voxels {dtype}"):
        limits = VoxelizationParameter((0.0, 0.0, 0.0), (8.0, 8.0, 4.0), (0.5, 0.5, 4.0), 10)
        generate_voxels(torch.rand(points, 4, device="cuda").to(dtype) * 4, limits)


for dtype, tokens, width in ((torch.float16, 64, 1024), (torch.bfloat16, 33, 768), (torch.float32, 7, 512)):
    rows(dtype, tokens, width)
for dtype, dim, cache in (
    (torch.float16, 64, "auto"),
    (torch.bfloat16, 128, "auto"),
    (torch.bfloat16, 128, "fp8"),
):
    attention(dtype, dim, cache)
for dtype, count in ((torch.float16, 64), (torch.bfloat16, 1), (torch.bfloat16, 37)):
    products(dtype, count)
for dtype, channels, points in (
    (torch.float32, 64, 512),
    (torch.float16, 80, 333),
    (torch.bfloat16, 64, 512),
):
    vision(dtype, channels, points)
