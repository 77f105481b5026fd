"""Backward pass of layer norm, several rows a program.

meta-pytorch/tritonbench#264, triton-lang/triton#7449: slower by 3.4 than by 3.3, some such kernels by spills.
"""

import triton
import triton.language as tl


@triton.jit
def layer_norm_backward(
    x, weight, mean, inverse, d_out, d_x, d_weight, d_bias, stride, rows, columns, per_program,
    BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    gain = tl.load(weight + at, mask=inside, other=0.0)
    sum_weight = tl.zeros((BLOCK,), tl.float32)
    sum_bias = tl.zeros((BLOCK,), tl.float32)
    first = program * per_program
    for row in range(first, tl.minimum(first + per_program, rows)):
        value = tl.load(x + row * stride + at, mask=inside, other=0.0)
        grad = tl.load(d_out + row * stride + at, mask=inside, other=0.0)
        scale = tl.load(inverse + row)
        normal = (value - tl.load(mean + row)) * scale
        scaled = gain * grad
        along = tl.sum(normal * scaled, axis=0) / columns
        average = tl.sum(scaled, axis=0) / columns
        result = (scaled - (normal * along + average)) * scale
        tl.store(d_x + row * stride + at, result.to(d_x.dtype.element_ty), mask=inside)
        sum_weight += (grad * normal).to(tl.float32)
        sum_bias += grad.to(tl.float32)
    tl.store(d_weight + program * columns + at, sum_weight, mask=inside)
    tl.store(d_bias + program * columns + at, sum_bias, mask=inside)
