"""Kernels whose last ttgir `benchmarks/passes_check.py --gpu` mutates."""

import triton
import triton.language as tl


@triton.jit
def softmax(out, x, x_stride, out_stride, n_rows, n_cols, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=2):
        columns = tl.arange(0, BLOCK)
        inside = columns < n_cols
        values = tl.load(x + row * x_stride + columns, mask=inside, other=-float("inf"))
        numerator = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * out_stride + columns, numerator / tl.sum(numerator, axis=0), mask=inside)


@triton.jit
def layer_norm_backward(
    dx, dy, dw, db, x, w, mean, rstd, lock, stride, N, GROUP: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < N
    lock_id = row % GROUP
    lock += lock_id
    count = lock + GROUP
    dw += lock_id * N + columns
    db += lock_id * N + columns
    xs = tl.load(x + row * stride + columns, mask=mask, other=0).to(tl.float32)
    dys = tl.load(dy + row * stride + columns, mask=mask, other=0).to(tl.float32)
    ws = tl.load(w + columns, mask=mask).to(tl.float32)
    centre = tl.load(mean + row)
    scale = tl.load(rstd + row)
    normal = tl.where(mask, (xs - centre) * scale, 0.0)
    weighted = tl.where(mask, ws * dys, 0.0)
    c1 = tl.sum(normal * weighted, axis=0) / N
    c2 = tl.sum(weighted, axis=0) / N
    tl.store(dx + row * stride + columns, (weighted - (normal * c1 + c2)) * scale, mask=mask)
    partial_dw = dys * normal
    partial_db = dys
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        partial_dw += tl.load(dw, mask=mask)
        partial_db += tl.load(db, mask=mask)
    tl.store(dw, partial_dw, mask=mask)
    tl.store(db, partial_db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def grouped_matmul(
    a, b, c, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP * tiles_n
    first = program // in_group * GROUP
    size = min(tiles_m - first, GROUP)
    tile_m = first + (program % in_group) % size
    tile_n = (program % in_group) // size
    rows = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    columns = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K)
    left = a + rows[:, None] * stride_am + k[None, :]
    right = b + k[:, None] * stride_bk + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        x = tl.load(left, mask=k[None, :] < K - step * BLOCK_K, other=0.0)
        y = tl.load(right, mask=k[:, None] < K - step * BLOCK_K, other=0.0)
        total = tl.dot(x, y, total)
        left += BLOCK_K
        right += BLOCK_K * stride_bk
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * stride_cm + columns[None, :], total.to(tl.float16), mask=inside)


@triton.jit
def causal_attention(
    q, k, v, out, scale, stride_head, stride_row, length,
    DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1) * stride_head
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    queries = tl.load(
        q + head + rows[:, None] * stride_row + dims[None, :], mask=rows[:, None] < length, other=0.0
    )
    best = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK_M,), tl.float32)
    total = tl.zeros((BLOCK_M, DIM), tl.float32)
    end = min((tl.program_id(0) + 1) * BLOCK_M, length)
    for start in range(0, end, BLOCK_N):
        at = start + tl.arange(0, BLOCK_N)
        there = at < length
        keys = tl.load(k + head + at[None, :] * stride_row + dims[:, None], mask=there[None, :], other=0.0)
        scores = tl.dot(queries, keys) * scale
        scores = tl.where((rows[:, None] >= at[None, :]) & there[None, :], scores, -1.0e30)
        larger = tl.maximum(best, tl.max(scores, axis=1))
        shares = tl.exp2(scores - larger[:, None])
        factor = tl.exp2(best - larger)
        weight = weight * factor + tl.sum(shares, axis=1)
        values = tl.load(v + head + at[:, None] * stride_row + dims[None, :], mask=there[:, None], other=0.0)
        total = tl.dot(shares.to(tl.float16), values, total * factor[:, None])
        best = larger
    total = total / weight[:, None]
    tl.store(
        out + head + rows[:, None] * stride_row + dims[None, :],
        total.to(tl.float16),
        mask=rows[:, None] < length,
    )


@triton.jit
def split_k_int4(
    a, packed, scales, c, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(N, BLOCK_N)
    tile_m = tl.program_id(0) // tiles_n
    tile_n = tl.program_id(0) % tiles_n
    part = tl.program_id(1)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = part * BLOCK_K + tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K * SPLIT)):
        at = k + step * BLOCK_K * SPLIT
        x = tl.load(
            a + rows[:, None] * stride_am + at[None, :],
            mask=(rows[:, None] < M) & (at[None, :] < K),
            other=0.0,
        )
        there = (at[:, None] < K) & (columns[None, :] < N)
        nibbles = tl.load(packed + at[:, None] // 8 * stride_bk + columns[None, :], mask=there, other=0)
        scale = tl.load(scales + columns, mask=columns < N, other=0.0)
        weights = ((nibbles >> (at[:, None] % 8 * 4)) & 0xF) - 8
        total = tl.dot(x, (weights.to(tl.float16) * scale[None, :]).to(tl.float16), total)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.atomic_add(c + rows[:, None] * stride_cm + columns[None, :], total, mask=inside)


@triton.jit
def scan_and_histogram(x, sums, most, counts, stride, n_cols, BLOCK: tl.constexpr, BINS: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_cols
    values = tl.load(x + row * stride + columns, mask=inside, other=0)
    tl.store(sums + row * stride + columns, tl.cumsum(values, 0), mask=inside)
    largest = tl.associative_scan(values, 0, _larger, reverse=True)
    tl.store(most + row * stride + columns, largest, mask=inside)
    bins = tl.where(inside, values & (BINS - 1), BINS)
    found = tl.histogram(bins, BINS)
    tl.atomic_add(counts + tl.arange(0, BINS), found)


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)
