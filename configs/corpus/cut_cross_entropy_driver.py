"""Call the operations of cut-cross-entropy 25.1.1."""

from __future__ import annotations

import torch
from cut_cross_entropy import LinearCrossEntropy, linear_cross_entropy
from operations import operation

# tokens, width, vocabulary
SHAPES = ((256, 128, 2048), (100, 192, 1003), (64, 256, 4096), (33, 100, 500))
VARIANTS = (
    {},
    {"reduction": "sum", "softcap": 30.0},
    {"reduction": "none", "filter_eps": None},
    {"reduction": "mean", "softcap": 15.0, "filter_eps": "auto"},
)


def randn(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)


def main() -> None:
    torch.manual_seed(0)
    for dtype in (torch.float16, torch.bfloat16):
        for tokens, width, vocabulary in SHAPES:
            for options in VARIANTS:
                with operation(f"linear cross entropy {dtype} {tokens} x {width} x {vocabulary} {options}"):
                    e, c = randn(tokens, width, dtype=dtype), randn(vocabulary, width, dtype=dtype)
                    targets = torch.randint(0, vocabulary, (tokens,), device="cuda")
                    if "filter_eps" in options:
                        targets[::3] = -100
                    loss = linear_cross_entropy(e, c, targets, **options)
                    loss.backward(torch.ones_like(loss))
        with operation(f"shifted targets {dtype}"):
            e, c = randn(2, 65, 128, dtype=dtype), randn(2048, 128, dtype=dtype)
            targets = torch.randint(0, 2048, (2, 65), device="cuda")
            LinearCrossEntropy(shift=True, softcap=20.0)(e, c, targets).backward()
        with operation(f"only the gradient of the embeddings {dtype}"):
            e, c = randn(128, 128, dtype=dtype), randn(2048, 128, dtype=dtype).detach()
            linear_cross_entropy(e, c, torch.randint(0, 2048, (128,), device="cuda")).backward()


if __name__ == "__main__":
    main()
