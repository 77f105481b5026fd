"""Compile varied functions with TorchInductor of torch 2.13.0."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from operations import operation

HALF, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
FUNCTIONS: list[tuple[Callable, Callable[[torch.dtype, int, int], tuple], bool]] = []


def randn(*shape: int, dtype: torch.dtype = FP32, grad: bool = True) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_(grad)


def case(make: Callable[[torch.dtype, int, int], tuple], backward: bool = True) -> Callable:
    """Register a function of a compiled program and what makes its arguments from type, rows and width."""

    def register(function: Callable) -> Callable:
        FUNCTIONS.append((function, make, backward))
        return function

    return register


def one(dtype: torch.dtype, rows: int, width: int) -> tuple:
    return (randn(rows, width, dtype=dtype),)


def two(dtype: torch.dtype, rows: int, width: int) -> tuple:
    return randn(rows, width, dtype=dtype), randn(rows, width, dtype=dtype)


def weighted(dtype: torch.dtype, rows: int, width: int) -> tuple:
    return randn(rows, width, dtype=dtype), randn(width, dtype=dtype), randn(width, dtype=dtype)


def image(dtype: torch.dtype, rows: int, width: int) -> tuple:
    return randn(2, 8, rows, 33, dtype=dtype), randn(16, 8, 3, 3, dtype=dtype), randn(16, dtype=dtype)


def heads(dtype: torch.dtype, rows: int, width: int) -> tuple:
    return tuple(randn(1, 2, rows, 64, dtype=dtype) for _ in range(3))


def classes(dtype: torch.dtype, rows: int, width: int) -> tuple:
    return randn(rows, width, dtype=dtype), torch.randint(0, width, (rows,), device="cuda")


def table(dtype: torch.dtype, rows: int, width: int) -> tuple:
    return torch.randint(0, 100, (rows,), device="cuda"), randn(100, width, dtype=dtype)


@case(two)
def gelu_of_a_sum(x, y):
    return F.gelu(x + y) * torch.tanh(x)


@case(two)
def gated(x, y):
    return F.silu(x) * y + torch.sigmoid(y)


@case(two, backward=False)
def clipped(x, y):
    return torch.where(x > y, x.clamp(-1, 1), y.abs().sqrt())


@case(one, backward=False)
def transcendental(x):
    return torch.erf(x) + torch.exp(x.float()).log1p() + torch.rsqrt(x.abs() + 1)


@case(one, backward=False)
def integers(x):
    n = (x * 10).to(torch.int32)
    return (n // 3) ^ (n & 7), n % 5 == 0


@case(one)
def mean_of_rows(x):
    return x.mean(-1)


@case(one)
def sum_of_columns(x):
    return (x * x).sum(0)


@case(one, backward=False)
def all_elements(x):
    return x.float().sum(), x.amax(), x.amin()


@case(one, backward=False)
def arg_reductions(x):
    return x.argmax(-1), x.argmin(0)


@case(one)
def variance(x):
    return torch.var_mean(x.float(), dim=-1)


@case(one, backward=False)
def running_sums(x):
    return x.cumsum(-1), x.float().cumsum(0)


@case(one, backward=False)
def sorted_rows(x):
    return x[:, :64].sort(-1)[0]


@case(weighted)
def layer_norm(x, w, b):
    return F.layer_norm(x, (x.shape[-1],), w, b)


@case(weighted)
def rms_norm(x, w, b):
    return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype) * w + b


@case(
    lambda dtype, rows, width: (
        randn(2, 16, rows, dtype=dtype),
        randn(16, dtype=dtype),
        randn(16, dtype=dtype),
    )
)
def group_norm(x, w, b):
    return F.group_norm(x, 4, w, b)


@case(lambda dtype, rows, width: (randn(4, 8, rows, 8, dtype=dtype), randn(8), randn(8)))
def batch_norm(x, w, b):
    return F.relu(F.batch_norm(x.float(), None, None, w, b, training=True))


@case(one)
def softmax(x):
    return F.softmax(x, -1)


@case(one)
def masked_softmax(x):
    mask = (
        torch.arange(x.shape[-1], device=x.device)[None] <= torch.arange(x.shape[0], device=x.device)[:, None]
    )
    return F.softmax(x.masked_fill(~mask, -1e4).float(), -1).to(x.dtype)


@case(classes)
def cross_entropy(x, target):
    return F.cross_entropy(x.float(), target, label_smoothing=0.1)


@case(one)
def dropout(x):
    return F.dropout(x, 0.25)


@case(two)
def concatenated(x, y):
    return torch.cat([x, F.relu(y), x + y], -1) * 2


@case(one)
def padded_and_rolled(x):
    return F.pad(x, (3, 5)), torch.roll(x, 7, -1), x.flip(0)


@case(one, backward=False)
def transposed(x):
    return (x.t() * 2).contiguous(), x.t().sum(-1)


@case(table)
def embedding(index, weight):
    return F.embedding(index, weight) * math.sqrt(weight.shape[-1])


@case(table, backward=False)
def scattered(index, weight):
    out = torch.zeros_like(weight).index_add(0, index, weight[index])
    return out, weight.gather(0, index[:, None].expand(-1, weight.shape[-1]))


@case(image)
def convolution(x, w, b):
    return F.silu(F.conv2d(x, w, b, padding=1))


@case(image)
def pooled(x, w, b):
    return F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 2), F.interpolate(x, scale_factor=2, mode="bilinear")


@case(weighted)
def linear_and_bias(x, w, b):
    return F.gelu(x @ x.t() + w[: x.shape[0]].sum() + b.sum())


@case(heads)
def attention(q, k, v):
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
    keep = torch.ones(q.shape[-2], q.shape[-2], device=q.device, dtype=torch.bool).tril()
    return F.softmax(scores.masked_fill(~keep, float("-inf")).float(), -1).to(v.dtype) @ v


@case(heads)
def rotated(q, k, v):
    angles = (
        torch.arange(q.shape[-2], device=q.device)[:, None] * torch.arange(32, device=q.device)[None] * 0.01
    )
    cos, sin = angles.cos().to(q.dtype), angles.sin().to(q.dtype)
    a, b = q.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1) + k * v


@case(two, backward=False)
def quantised(x, y):
    scale = x.float().abs().amax(-1, keepdim=True) / 127
    return (x / scale).round().clamp(-128, 127).to(torch.int8), (y.float() * 0.1).to(torch.float8_e4m3fn)


@case(two, backward=False)
def updated(x, y):
    first, second = x.lerp(y, 0.1), (x * 0.999).addcmul(y, y, value=0.001)
    return x.sub(first / (second.abs().sqrt() + 1e-8) * 1e-3)


def run(function: Callable, arguments: tuple, differentiate: bool) -> None:
    outputs = function(*arguments)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    tensors = [o for o in outputs if o.requires_grad]
    if differentiate and tensors:
        torch.autograd.backward(tensors, [torch.ones_like(t) for t in tensors])


def main() -> None:
    torch.manual_seed(0)
    for function, make, differentiate in FUNCTIONS:
        for dtype, rows, width, dynamic in (
            (BF16, 64, 256, False),
            (FP32, 33, 1003, False),
            (HALF, 48, 640, True),
        ):
            with operation(f"{function.__name__} {dtype} {rows} x {width}, dynamic {dynamic}"):
                arguments = make(dtype, rows, width)
                if not differentiate:
                    arguments = tuple(a.detach() for a in arguments)
                run(torch.compile(function, dynamic=dynamic), arguments, differentiate)


if __name__ == "__main__":
    main()
