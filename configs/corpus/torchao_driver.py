"""Call the operations of torchao 0.18.0."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from pathlib import Path

import torch
import torchao
from operations import operation

HALF, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
FP8 = torch.float8_e4m3fn
SDPA, MOE = "prototype.attention.quantization.triton_", "prototype.moe_training."


def randn(*shape: int, dtype: torch.dtype = BF16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def ints(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int8) -> torch.Tensor:
    return torch.randint(low, high, shape, device="cuda", dtype=dtype)


def find(name: str) -> Callable:
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(f"torchao.{module}"), function)


def bare(*names: str) -> None:
    """Let modules of packages be imported whose __init__.py Triton 3.9.0 refuses (an autotuner's key)."""
    for name in names:
        package = types.ModuleType(f"torchao.{name}")
        package.__path__ = [str(Path(torchao.__file__).parent / name.replace(".", "/"))]
        sys.modules[package.__name__] = package


def attention(dtype: torch.dtype, length: int, dim: int) -> None:
    def qkv() -> list[torch.Tensor]:
        return [randn(2, heads, length, dim, dtype=dtype) for heads in (4, 2, 2)]

    cos, sin = randn(length, dim, dtype=FP32), randn(length, dim, dtype=FP32)
    for chunks in (None, 2):
        with operation(f"attention quantisation {dtype} {length} {dim}"):
            find(f"{SDPA}qkv_quantization.triton_fp8_sdpa_quantize")(*qkv(), num_chunks=chunks)
        with operation(f"fp8 attention quantisation {dtype} {length} {dim}"):
            equal = [randn(2, 4, length, dim, dtype=dtype) for _ in range(3)]
            find("prototype.fp8_sdpa_inference.fp8_sdpa_quantization.fp8_sdpa_quantize_func")(*equal, chunks)
            equal[0] = randn(2, 4, 2 * length, dim, dtype=dtype)
            find("prototype.fp8_sdpa_inference.fp8_sdpa_quantization.fp8_sdpa_quantize_func")(*equal, chunks)
        with operation(f"inverse Hadamard {dtype} {length} {dim}"):
            find(f"{SDPA}hadamard_utils.inverse_hadamard_transform")(
                randn(2, length, 4, dim, dtype=dtype), chunks
            )
    for values_only in (False, True):
        with operation(f"Hadamard attention quantisation {dtype} {length} {dim}"):
            find(f"{SDPA}hadamard_qkv_quantization.triton_fp8_hadamard_sdpa_quantize")(
                *qkv(), v_only=values_only
            )
    for interleaved in (False, True):
        sequence = [randn(2, length, 4, dim, dtype=dtype) for _ in range(3)]
        more = {"rope_interleaved": interleaved}
        with operation(f"rotary attention quantisation {dtype} {length} {dim}"):
            find(f"{SDPA}rope_qkv_quantization.triton_fp8_rope_sdpa_quantize")(*sequence, cos, sin, **more)
        with operation(f"Hadamard rotary attention quantisation {dtype} {length} {dim}"):
            rotary = find(f"{SDPA}hadamard_rope_qkv_quantization.triton_fp8_hadamard_rope_sdpa_quantize")
            rotary(*sequence, cos, sin, **more)


def microscaling(dtype: torch.dtype, rows: int, width: int) -> None:
    for dimension in (0, 1):
        for mode in ("rceil", "floor"):
            with operation(f"mxfp8 of dimension {dimension} {mode} {dtype} {rows} x {width}"):
                cast = find(f"prototype.mx_formats.kernels.triton_to_mxfp8_dim{dimension}")
                cast(randn(rows, width, dtype=dtype), 32, mode)
    with operation(f"mxfp8 dequantisation {dtype} {rows} x {width}"):
        scales = ints(100, 130, rows, width // 32, dtype=torch.uint8)
        data, out = randn(rows, width).to(FP8), FP32 if dtype is HALF else dtype
        find("prototype.mx_formats.kernels.triton_mxfp8_dequant_dim0")(data, scales, out, 32)
    with operation(f"mx scales {rows} x {width}"):
        scales = ints(100, 130, rows, width // 32, dtype=torch.uint8)
        find("prototype.mx_formats.kernels.triton_mx_block_rearrange")(scales.view(torch.float8_e8m0fnu))


def blockwise(dtype: torch.dtype, rows: int, width: int) -> None:
    name = "prototype.blockwise_fp8_training.kernels.triton_fp8_"
    for part in ("act_quant_lhs", "act_quant_rhs", "act_quant_transposed_lhs"):
        with operation(f"block-wise {part} {dtype} {rows} x {width}"):
            find(f"{name}blockwise_{part}")(randn(rows, width, dtype=dtype))
    for part in ("weight_quant_rhs", "weight_quant_transposed_rhs"):
        with operation(f"block-wise {part} {dtype} {width} x {width}"):
            find(f"{name}blockwise_{part}")(randn(width, width, dtype=dtype))
    for kind, scales in (("128x128", (width // 128, width // 128)), ("128x1", (width // 128, width))):
        with operation(f"block-wise product {kind} {rows} x {width}"):
            a, b = randn(rows, width).to(FP8), randn(width, width).to(FP8).t()
            scale = randn(width // 128, rows, dtype=FP32).t(), randn(*scales, dtype=FP32)
            if kind == "128x128":
                scale = scale[0], scale[1].t().contiguous().t()
            find(f"{name}gemm_1x128_{kind}")(a, b, *scale, out_dtype=dtype)
    name = "prototype.blockwise_fp8_training.deepgemm_quant.triton_fp8_blockwise_"
    for part in ("weight_quant_grouped_transposed_rhs", "weight_quant_grouped_rhs"):
        with operation(f"deepgemm {part} {dtype}"):
            find(f"{name}{part}_deepgemm")(randn(3, width, width, dtype=dtype).transpose(-2, -1))
    with operation(f"deepgemm groups {dtype}"):
        ends = torch.tensor([128, 256], dtype=torch.int32).cuda()
        find(f"{name}act_quant_k_grouped_deepgemm")(randn(256, width, dtype=dtype), ends)
    name = "kernel.blockwise_quantization."
    with operation(f"block-wise inference {dtype} {rows} x {width}"):
        find(f"{name}fp8_blockwise_act_quant")(randn(rows, width, dtype=dtype))
        find(f"{name}fp8_blockwise_weight_quant")(randn(width, width, dtype=dtype))
        weight, scale = randn(width, width).to(FP8), randn(width // 128, width // 128, dtype=FP32)
        find(f"{name}fp8_blockwise_weight_dequant")(weight, scale)
        find(f"{name}blockwise_fp8_gemm")(
            randn(rows, width).to(FP8), randn(rows, width // 128, dtype=FP32), weight, scale
        )


def experts(dtype: torch.dtype, rows: int, width: int) -> None:
    ends = torch.tensor([rows // 4, rows // 2, rows], dtype=torch.int32).cuda()
    for rounded in (False, True):
        more = {"round_scales_to_power_of_2": rounded}
        with operation(f"scales of groups {dtype} {rows} x {width}"):
            name = f"{MOE}kernels.jagged_float8_scales.triton_fp8_per_group_"
            find(f"{name}rowwise_scales")(randn(width, rows, dtype=dtype), ends, **more)
            find(f"{name}colwise_scales")(randn(rows, width, dtype=dtype), ends, **more)
            pair = randn(rows, width, dtype=dtype), randn(rows, 2 * width, dtype=dtype)
            find(f"{name}colwise_scales_dual")(*pair, ends, **more)
        name = f"{MOE}kernels.float8_rowwise.triton_fp8_"
        for part in (
            "rowwise_3d_transpose_rhs",
            "rowwise_3d_transpose_rhs_fused_reduction",
            "colwise_3d_scale_and_cast",
        ):
            with operation(f"{part} {dtype}"):
                find(f"{name}{part}")(
                    randn(3, width, 2 * width, dtype=dtype).transpose(-2, -1).contiguous(), **more
                )
        with operation(f"rowwise_2d_scale_and_cast {dtype}"):
            find(f"{name}rowwise_2d_scale_and_cast")(randn(rows, width, dtype=dtype), **more)
    name = f"{MOE}kernels.mxfp8.quant.triton_mx_block_rearrange_"
    for part, shape in (("2d_M_groups", (rows, width // 32)), ("2d_K_groups", (width, rows // 32))):
        with operation(f"scales of experts {part}"):
            scales = ints(100, 130, *shape, dtype=torch.uint8).view(torch.float8_e8m0fnu)
            find(f"{name}{part}")(scales, ends if "M" in part else ends // 32)
    with operation("scales of experts' weights"):
        find(f"{name}per_group_3d")(
            ints(100, 130, 3, width, width // 32, dtype=torch.uint8).view(torch.float8_e8m0fnu)
        )
    with operation("permutation of tokens"):
        counts = torch.full((8,), rows // 8, dtype=torch.int32).cuda()
        find(f"{MOE}ep.kernels.generate_permute_indices")(counts, 4, 2, 2 * rows, 32)
        index = torch.randperm(rows).to(torch.int32).cuda()
        find(f"{MOE}ep.permute._triton_permute_bwd")(randn(rows, width, dtype=dtype), index, rows + 1, width)
    signs = [1, -1] * 8
    with operation(f"nvfp4 training {rows} x {width}"):
        find(f"{MOE}nvfp4_training.hadamard_amax_triton.triton_rht_amax")(randn(rows, width), signs)
        amax = randn(1, dtype=FP32).abs()
        quantise = find(f"{MOE}nvfp4_training.hadamard_quantize_row_col_triton.triton_rht_quantize_row_col")
        quantise(randn(rows, width), amax, amax, signs)
        find(f"{MOE}nvfp4_training.quantize_2d_triton.triton_weight_quantize_2d")(randn(rows, width), amax)


def tensorwise(dtype: torch.dtype, rows: int, width: int) -> None:
    module = "prototype.float8nocompile.kernels.fp8_dynamic_tensorwise."
    for name in (
        "row_major",
        "row_major_t",
        "col_major",
        "col_major_t",
        "row_and_col_major",
        "row_major_t_and_non_t",
        "col_major_t_and_non_t",
    ):
        for algorithm in ("ATOMIC_MAX", "REDUCTION"):
            with operation(f"to fp8 {name} {algorithm} {dtype} {rows} x {width}"):
                config = find("float8.float8_training_tensor.LinearMMConfig")()
                algo = find(f"{module}KernelAlgorithm")[algorithm]
                find(f"{module}hp_to_fp8_{name}")(randn(rows, width, dtype=dtype), FP8, config, algo=algo)


def integers(dtype: torch.dtype, rows: int, width: int) -> None:
    a, b = ints(-8, 8, rows, width), ints(-8, 8, width, 128)
    with operation(f"int8 product {rows} x {width}"):
        scaled = find("prototype.quantized_training.int8_mm.scaled_int8_mm_cuda")
        for right in (b, ints(-8, 8, 128, width).t()):
            scaled(a, right, randn(rows, dtype=dtype), randn(128, dtype=dtype))
    with operation(f"int8 product of the autotuner {rows} x {width}"):
        name = "kernel.intmm_triton.int_"
        config = importlib.import_module("torchao.kernel.intmm_triton").int8_mm_kernel_configs[0]
        find(f"{name}matmul_kernel")(a, b, torch.empty(rows, 128, device="cuda", dtype=torch.int32), config)
        scales, out = randn(rows, 1, dtype=dtype), torch.empty(rows, 128, device="cuda", dtype=dtype)
        find(f"{name}scaled_matmul_kernel")(a, b, scales, out, config)
    with operation(f"mixed product {rows} x {width}"):
        for transposed in (False, True):
            packed = ints(0, 255, width // 2, 128, dtype=torch.uint8)
            scales = randn(128, width // 64, dtype=dtype)
            left = randn(rows, 128 if transposed else width, dtype=dtype)
            mixed = find("prototype.hqq.mixed_mm.triton_mixed_mm")
            mixed(left, packed, scales, scales, transposed=transposed, group_size=64, fp8_fast_accum=False)
    with operation(f"block-sparse product {rows} x {width}"):
        sparse = randn(256, width, dtype=dtype).cpu().to_sparse_bsr((64, 64)).cuda()
        find("kernel.bsr_triton_ops.bsr_dense_addmm")(
            randn(256, rows, dtype=dtype), sparse, randn(width, rows, dtype=dtype)
        )


def main() -> None:
    torch.manual_seed(0)
    bare("prototype.moe_training", "prototype.moe_training.kernels", "prototype.moe_training.ep")
    for dtype, rows, width in ((BF16, 256, 256), (HALF, 128, 384), (FP32, 384, 128)):
        microscaling(dtype, rows, width)
        blockwise(dtype, rows, width)
        experts(dtype, rows, width)
        tensorwise(dtype, rows, width)
        integers(dtype, rows, width)
    for dtype, length, dim in ((BF16, 128, 64), (HALF, 200, 128), (BF16, 77, 128)):
        attention(dtype, length, dim)


if __name__ == "__main__":
    main()
