"""Call the operations of bitsandbytes 0.50.2: those of its Triton backend."""

from __future__ import annotations

import torch
from bitsandbytes.backends.triton import kernels_4bit, ops
from bitsandbytes.functional import create_dynamic_map, get_4bit_type
from operations import operation

HALF, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
OPTIMIZERS = ("adam", "momentum", "rmsprop", "adagrad", "lion", "lars", "lamb", "ademamix")


def randn(*shape: int, dtype: torch.dtype = FP32) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def eight_bits(dtype: torch.dtype, rows: int, width: int, block: int) -> None:
    code, blocks = create_dynamic_map().cuda(), -(-rows * width // block)
    with operation(f"quantise to 8 bits {dtype} {rows} x {width} by {block}"):
        ops.quantize_blockwise(randn(rows, width, dtype=dtype), code, block)
    packed, scales = (
        torch.randint(0, 256, (rows, width), device="cuda", dtype=torch.uint8),
        randn(blocks).abs(),
    )
    with operation(f"dequantise from 8 bits {dtype} {rows} x {width} by {block}"):
        ops.dequantize_blockwise(packed, scales, code, block, dtype)
        ops.dequantize_blockwise_inplace(packed, scales, code, block, dtype, randn(rows, width, dtype=dtype))


def four_bits(dtype: torch.dtype, rows: int, width: int, block: int) -> None:
    blocks = -(-rows * width // block)
    scales, shape = randn(blocks).abs(), (rows, width)
    packed = torch.randint(0, 256, ((rows * width + 1) // 2, 1), device="cuda", dtype=torch.uint8)
    for kind in ("nf4", "fp4"):
        with operation(f"quantise to {kind} {dtype} {rows} x {width} by {block}"):
            ops.quantize_4bit(randn(*shape, dtype=dtype), block, kind, torch.uint8)
        with operation(f"dequantise from {kind} {dtype} {rows} x {width} by {block}"):
            ops.dequantize_4bit(packed, scales, block, kind, shape, dtype)
            ops.dequantize_4bit_inplace(packed, scales, block, kind, shape, dtype, randn(*shape, dtype=dtype))
        code = get_4bit_type(kind, device="cpu").cuda()
        with operation(f"dequantise by the code of {kind} {dtype} {rows} x {width} by {block}"):
            out = randn(*shape, dtype=dtype)
            kernels_4bit.dequantize_4bit_impl_passing_code(packed, scales, block, code, dtype, out)
        with operation(f"vector by matrix of {kind} {dtype} {rows} x {width} by {block}"):
            ops.gemv_4bit(randn(1, width, dtype=dtype), packed, shape, scales, code, block)


def optimizers(dtype: torch.dtype, size: int) -> None:
    signed, unsigned = create_dynamic_map().cuda(), create_dynamic_map(signed=False).cuda()
    for name in OPTIMIZERS:
        stack = (2, size) if name == "ademamix" else (size,)
        two = name in ("adam", "lamb", "ademamix")
        with operation(f"{name} of 32 bits {dtype} {size}"):
            second = torch.zeros(size, device="cuda") if two else None
            norm, limit = (torch.zeros(1, device="cuda"), 1.0) if name in ("lamb", "lars") else (None, 0.0)
            states = torch.zeros(*stack, device="cuda"), second, norm, limit
            numbers = 1.0, 0.9, 0.999, 0.99, 5.0, 1e-8, 0.01, 3, 1e-3, 1.0
            ops.optimizer_update_32bit(
                name, randn(size, dtype=dtype), randn(size, dtype=dtype), *states, *numbers
            )
        with operation(f"{name} of 8 bits {dtype} {size}"):
            blocks = -(-size // 256)
            first = torch.zeros(*stack, device="cuda", dtype=torch.uint8)
            second = torch.zeros(size, device="cuda", dtype=torch.uint8) if two else None
            scales = (
                torch.ones(2, blocks, device="cuda")
                if name == "ademamix"
                else torch.ones(blocks, device="cuda")
            )
            more = torch.ones(blocks, device="cuda") if two else None
            numbers = 0.9, 0.999, 0.99, 5.0, 1e-8, 3, 1e-3
            maps = signed, unsigned if two else None, scales, more
            values = randn(size, dtype=dtype), randn(size, dtype=dtype)
            ops.optimizer_update_8bit_blockwise(
                name, *values, first, second, *numbers, *maps, weight_decay=0.01
            )


def main() -> None:
    torch.manual_seed(0)
    for dtype in (HALF, BF16, FP32):
        for rows, width, block in ((64, 256, 64), (32, 1024, 256), (33, 102, 128)):
            eight_bits(dtype, rows, width, block)
            four_bits(dtype, rows, width, block)
        for size in (4096, 5003):
            optimizers(dtype, size)


if __name__ == "__main__":
    main()
