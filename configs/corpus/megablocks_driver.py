"""Call the operations of megablocks 0.10.0."""

from __future__ import annotations

import torch
from megablocks.backend import kernels
from operations import operation

for dtype, tokens, width, top_k in (
    (torch.float16, 256, 512, 1),
    (torch.bfloat16, 100, 768, 2),
    (torch.float32, 64, 1000, 2),
):
    experts, copies = 4, tokens * top_k
    x = torch.randn(tokens, width, device="cuda").to(dtype)
    weights = torch.rand(copies, device="cuda").to(dtype)
    ids, order = torch.sort(torch.randint(0, experts, (copies,), device="cuda", dtype=torch.int32))
    counts = torch.bincount(ids, minlength=experts)
    order, bins = order.to(torch.int32), counts.cumsum(0).to(torch.int32)
    padded = (-(-counts // 128) * 128).cumsum(0).to(torch.int32)
    capacity = int(counts.max())
    for scale in (weights, None):
        with operation(f"padded_gather {dtype}"):
            gathered = kernels.padded_gather(x, order, ids, None, bins, padded, top_k)
            kernels.padded_scatter(gathered, order, ids, scale, bins, padded, top_k)
        with operation(f"gather {dtype}"):
            gathered = kernels.gather(x, order, ids, None, bins, top_k)
            kernels.scatter(gathered, order, ids, scale, bins, top_k)
        with operation(f"binned_gather {dtype}"):
            binned = kernels.binned_gather(x, order, None, bins, capacity, top_k)
            kernels.binned_scatter(binned, order, scale, bins, top_k)
    with operation(f"weight gradients {dtype}"):
        kernels.padded_scatter_wgrad(
            kernels.padded_gather(x, order, ids, None, bins, padded, top_k),
            x,
            order,
            ids,
            bins,
            padded,
            top_k,
        )
        kernels.scatter_wgrad(kernels.gather(x, order, ids, None, bins, top_k), x, order, ids, bins, top_k)
        kernels.binned_scatter_wgrad(
            kernels.binned_gather(x, order, None, bins, capacity, top_k), x, order, bins, top_k
        )
