"""A product of packed fp4 with scales, tiles of 256.

triton-lang/triton#11763, about #11285: on MI350X, AGPRs go from 228 to 256, the main loop stores to and
loads from scratch 24 times each, and half the throughput is lost.
"""

import triton
import triton.language as tl


@triton.jit
def fp4_matmul(
    a, b, c, a_scales, b_scales, M, N, K, stride_a, stride_b, stride_c, stride_as, stride_bs,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    band = program // (GROUP * across)
    height = tl.minimum(down - band * GROUP, GROUP)
    tile_m = band * GROUP + (program % (GROUP * across)) % height
    tile_n = (program % (GROUP * across)) // height
    m = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    n = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K // 2)
    g = tl.arange(0, BLOCK_K // 32)
    left = a + m[:, None] * stride_a + k[None, :]
    right = b + k[:, None] + n[None, :] * stride_b
    left_scale = a_scales + m[:, None] * stride_as + g[None, :]
    right_scale = b_scales + n[:, None] * stride_bs + g[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(tl.cdiv(K, BLOCK_K // 2)):
        total = tl.dot_scaled(
            tl.load(left), tl.load(left_scale), "e2m1", tl.load(right), tl.load(right_scale), "e2m1", total
        )
        left += BLOCK_K // 2
        right += BLOCK_K // 2
        left_scale += BLOCK_K // 32
        right_scale += BLOCK_K // 32
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    at = c + m[:, None] * stride_c + n[None, :]
    tl.store(at, total.to(c.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])
