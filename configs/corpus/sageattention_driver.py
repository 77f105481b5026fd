"""Call the operations of sageattention 1.0.6."""

from __future__ import annotations

import torch
from operations import operation
from sageattention import sageattn, sageattn_varlen

# batch, heads, heads of keys, length, length of keys
SHAPES = ((1, 4, 4, 256, 256), (2, 4, 2, 256, 384), (1, 4, 1, 197, 197), (1, 4, 4, 1, 333))


def randn(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def attention(layout: str, dim: int, causal: bool, dtype: torch.dtype) -> None:
    for batch, heads, pairs, length, keys in SHAPES:
        if causal and length != keys:
            continue
        with operation(f"sageattn {layout} {dim} causal {causal} {dtype} {length} x {keys}"):

            def make(count: int, time: int, batch: int = batch) -> torch.Tensor:
                shape = (batch, count, time, dim) if layout == "HND" else (batch, time, count, dim)
                return randn(*shape, dtype=dtype)

            q, k, v = make(heads, length), make(pairs, keys), make(pairs, keys)
            sageattn(q, k, v, tensor_layout=layout, is_causal=causal, smooth_k=length != 197)


def packed(dim: int, causal: bool, dtype: torch.dtype) -> None:
    for heads, pairs, lengths in ((4, 4, (128, 256)), (4, 2, (100, 37, 199)), (8, 1, (64, 64))):
        with operation(f"sageattn_varlen {dim} causal {causal} {dtype} {lengths}"):
            ends = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32).cuda()
            total, longest = sum(lengths), max(lengths)
            q = randn(total, heads, dim, dtype=dtype)
            k, v = randn(total, pairs, dim, dtype=dtype), randn(total, pairs, dim, dtype=dtype)
            sageattn_varlen(q, k, v, ends, ends, longest, longest, is_causal=causal)


def main() -> None:
    torch.manual_seed(0)
    half, bf16, fp32 = torch.float16, torch.bfloat16, torch.float32
    for causal in (False, True):
        for layout, dim, dtype in (
            ("HND", 64, half),
            ("NHD", 128, bf16),
            ("HND", 128, fp32),
            ("HND", 96, half),
            ("NHD", 96, bf16),
        ):
            attention(layout, dim, causal, dtype)
        for dim, dtype in ((64, half), (128, bf16)):
            packed(dim, causal, dtype)


if __name__ == "__main__":
    main()
