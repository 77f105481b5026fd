"""Call the operations of stanford-stk 0.7.1."""

from __future__ import annotations

import stk
import torch
from operations import operation
from stk.backend import triton_kernels

BLOCK = 128


def sparse(rows: int, columns: int, dtype: torch.dtype) -> stk.Matrix:
    """A block-sparse matrix with every other block of a checkerboard."""
    height, width = rows // BLOCK, columns // BLOCK
    places = [(i, j) for i in range(height) for j in range(width) if (i + j) % 2 == 0]
    counts = [sum(i == row for row, _ in places) for i in range(height)]
    index = {"device": "cuda", "dtype": torch.int16}
    offsets = torch.tensor([0, *torch.tensor(counts).cumsum(0).tolist()], device="cuda", dtype=torch.int32)
    data = torch.randn(len(places), BLOCK, BLOCK, device="cuda").to(dtype)
    return stk.Matrix(
        (rows, columns),
        data.requires_grad_(True),
        torch.tensor([i for i, _ in places], **index),
        torch.tensor([j for _, j in places], **index),
        offsets,
    )


for dtype, size, inner in ((torch.float16, 512, 256), (torch.bfloat16, 256, 384), (torch.float32, 512, 640)):
    matrix = sparse(size, 512, dtype)
    left = torch.randn(size, inner, device="cuda").to(dtype).requires_grad_(True)
    right = torch.randn(inner, 512, device="cuda").to(dtype).requires_grad_(True)
    tall = torch.randn(512, inner, device="cuda").to(dtype).requires_grad_(True)
    wide = torch.randn(inner, size, device="cuda").to(dtype).requires_grad_(True)
    for name, call in {
        "dsd": lambda: stk.ops.dsd(matrix, tall),
        "dsd transposed": lambda: stk.ops.dsd(matrix.t(), left),
        "dds": lambda: stk.ops.dds(wide, matrix),
        "dds transposed": lambda: stk.ops.dds(right, matrix.t()),
        "sdd": lambda: stk.ops.sdd(left, right, matrix).data,
    }.items():
        with operation(f"{name} {dtype}"):
            result = call()
            result.backward(torch.ones_like(result))
    with operation(f"row_indices {dtype}"):
        out = torch.empty_like(matrix.column_indices)
        triton_kernels.row_indices(matrix.shape, matrix.data, matrix.offsets, matrix.column_indices, out)
