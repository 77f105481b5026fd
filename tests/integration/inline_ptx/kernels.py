# mypy: ignore-errors
# ruff: noqa: N803 - as Triton kernels are written
"""Kernels to be inlined, in the spirit of Triton's tutorials."""

import triton
import triton.language as tl


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def softmax(out_ptr, in_ptr, stride, rows, columns, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        offsets = tl.arange(0, BLOCK)
        inside = offsets < columns
        x = tl.load(in_ptr + row * stride + offsets, mask=inside, other=-float("inf"))
        powers = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * stride + offsets, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    a_stride,
    b_stride,
    c_stride,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    across = tl.cdiv(n, BN)
    rows = tl.program_id(0) // across * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % across * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    a_at = a_ptr + (rows % m)[:, None] * a_stride + inner[None, :]
    b_at = b_ptr + inner[:, None] * b_stride + (columns % n)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(k, BK)):
        a = tl.load(a_at, mask=inner[None, :] < k - step * BK, other=0.0)
        b = tl.load(b_at, mask=inner[:, None] < k - step * BK, other=0.0)
        total = tl.dot(a, b, total)
        a_at += BK
        b_at += BK * b_stride
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * c_stride + columns[None, :], total.to(tl.float16), mask=inside)


@triton.jit
def arcsine(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Large arguments of a sine: a table of constants in the module."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.5)
    y = tl.extra.cuda.libdevice.asin(x) + tl.extra.cuda.libdevice.sin(x * 100000.0)
    tl.store(out_ptr + offsets, y, mask=offsets < n)


@triton.jit(noinline=True)
def helper(x, y):
    return x * y + 1.0


@triton.jit
def calling(x_ptr, y_ptr):
    tl.store(y_ptr, helper(tl.load(x_ptr), tl.load(x_ptr + 1)))


@triton.jit
def described(x_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    described = tl.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [BM, BN])
    described.store([0, 0], described.load([BM, 0]) + 1)
