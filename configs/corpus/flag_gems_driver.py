"""Call the operations of flag_gems 5.0.2."""

from __future__ import annotations

import math
from collections.abc import Callable

import flag_gems
import torch
import torch.nn.functional as F
from operations import operation

SETS = [(torch.float16, (64, 512)), (torch.bfloat16, (33, 77)), (torch.float32, (4, 16, 128))]

FLOAT_UNARY = [
    "abs",
    "acos",
    "angle",
    "arcsinh",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "log",
    "log10",
    "logit",
    "nan_to_num",
    "neg",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "signbit",
    "sin",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "logical_not",
    "isreal",
    "i0",
    "conj_physical",
    "selu",
    "celu",
    "absolute",
    "alias_copy",
    "clone",
    "zeros_like",
    "ones_like",
    "rand_like",
    "randn_like",
    "count_nonzero",
    "all",
    "any",
    "nonzero",
    "trunc",
    "sign",
    "frac",
]
INPLACE = [
    "abs_",
    "atan_",
    "ceil_",
    "cos_",
    "exp_",
    "exp2_",
    "expm1_",
    "floor_",
    "i0_",
    "logit_",
    "neg_",
    "reciprocal_",
    "relu_",
    "round_",
    "rsqrt_",
    "sigmoid_",
    "sin_",
    "sinh_",
    "sqrt_",
    "square_",
    "tan_",
    "tanh_",
    "zero_",
    "erf_",
    "asinh_",
    "arcsinh_",
    "arctanh_",
    "cosh_",
    "digamma_",
    "log10_",
    "log1p_",
    "sgn_",
    "absolute_",
    "logical_not_",
    "uniform_",
    "normal_",
    "exponential_",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "atan2",
    "copysign",
    "fmin",
    "maximum",
    "minimum",
    "floor_divide",
    "remainder",
    "pow",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "hypot",
    "logaddexp",
    "isclose",
    "true_divide",
    "greater",
]
SCALAR = [
    "add",
    "sub",
    "mul",
    "div",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "floor_divide",
    "remainder",
    "pow",
    "fmod",
    "greater",
]
INPLACE_BINARY = [
    "add_",
    "sub_",
    "mul_",
    "div_",
    "pow_",
    "remainder_",
    "floor_divide_",
    "true_divide_",
    "logical_and_",
    "logical_or_",
]
INTEGER = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "add",
    "mul",
    "remainder",
    "floor_divide",
]
REDUCE = [
    "sum",
    "mean",
    "amax",
    "argmax",
    "argmin",
    "prod",
    "var",
    "std",
    "all",
    "any",
    "max",
    "min",
    "cumsum",
    "cummax",
    "cummin",
    "var_mean",
    "median",
]
ACTIVATIONS = [
    "gelu",
    "silu",
    "elu",
    "celu",
    "selu",
    "glu",
    "hardsigmoid",
    "leaky_relu",
    "logsigmoid",
    "relu",
    "relu6",
    "softplus",
    "softshrink",
    "hardswish",
]


def random(shape: tuple[int, ...], dtype: torch.dtype, grad: bool = False) -> torch.Tensor:
    return torch.rand(shape, device="cuda").to(dtype).add(0.1).detach().requires_grad_(grad)


def backward(result: torch.Tensor) -> None:
    result.backward(torch.ones_like(result))


def pointwise(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x, y = random(shape, dtype), random(shape, dtype)
    calls: dict[str, Callable[[], object]] = {}
    for name in FLOAT_UNARY:
        calls[name] = lambda name=name: getattr(torch, name)(x)
    for name in INPLACE:
        calls[name] = lambda name=name: getattr(x.clone(), name)()
    for name in BINARY:
        calls[name] = lambda name=name: getattr(torch, name)(x, y)
        calls[f"{name} broadcast"] = lambda name=name: getattr(torch, name)(x, y[..., :1])
    for name in SCALAR:
        calls[f"{name} scalar"] = lambda name=name: getattr(torch, name)(x, 2.5)
    for name in INPLACE_BINARY:
        calls[name] = lambda name=name: getattr(x.clone(), name)(y)
    integers = (x * 8).to(torch.int32)
    for name in INTEGER:
        calls[f"{name} int"] = lambda name=name: getattr(torch, name)(integers, integers + 1)
        calls[f"{name} int scalar"] = lambda name=name: getattr(torch, name)(integers, 3)
    width = shape[-1] // 2 * 2
    for name in ACTIVATIONS:
        calls[name] = lambda name=name: backward(
            getattr(F, name)(x[..., :width].contiguous().requires_grad_(True))
        )
    mask = x > 0.5
    calls |= {
        "bitwise_not": lambda: torch.bitwise_not(integers),
        "addcdiv": lambda: torch.addcdiv(x, x, y, value=0.5),
        "addcmul": lambda: torch.addcmul(x, x, y, value=0.5),
        "clamp": lambda: torch.clamp(x, 0.2, 0.8),
        "clamp tensor": lambda: torch.clamp(x, x * 0.5, y),
        "clamp_": lambda: x.clone().clamp_(0.2, 0.8),
        "clamp_min": lambda: torch.clamp_min(x, 0.3),
        "div floor": lambda: torch.div(x, y, rounding_mode="floor"),
        "div trunc": lambda: torch.div(x, y, rounding_mode="trunc"),
        "lerp": lambda: (torch.lerp(x, y, 0.3), torch.lerp(x, y, x)),
        "masked_fill": lambda: (torch.masked_fill(x, mask, 0.0), x.clone().masked_fill_(mask, 1.0)),
        "masked_select": lambda: torch.masked_select(x, mask),
        "masked_scatter": lambda: torch.masked_scatter(x, mask, y),
        "where": lambda: (torch.where(mask, x, y), torch.where(mask, x, 0.0)),
        "polar": lambda: torch.polar(x.float(), y.float()),
        "to": lambda: (x.to(torch.float32), x.to(torch.float64), x.to(torch.int32), x.half()),
        "threshold": lambda: backward(F.threshold(x.clone().requires_grad_(True), 0.3, 0.0)),
        "prelu": lambda: F.prelu(x, random((1,), dtype)),
        "dropout": lambda: backward(F.dropout(x.clone().requires_grad_(True), 0.3)),
        "rrelu": lambda: backward(F.rrelu(x.clone().requires_grad_(True), training=True)),
        "isin": lambda: (torch.isin(integers, integers[0].flatten()[:9]), torch.isin(integers, 3)),
        "special": lambda: (torch.special.i1(x), torch.special.i0e(x)),
        "bernoulli_": lambda: x.clone().bernoulli_(0.3),
        "fill_": lambda: (x.clone().fill_(2.0), x.clone().fill_(y.flatten()[0]), torch.full_like(x, 3.0)),
        "equal": lambda: (torch.equal(x, y), torch.allclose(x, y)),
        "copy_": lambda: torch.empty_like(x).copy_(y),
        "mse_loss": lambda: [F.mse_loss(x, y, reduction=r) for r in ("mean", "sum", "none")],
        "soft_margin_loss": lambda: [F.soft_margin_loss(x, y, reduction=r) for r in ("mean", "none")],
        "margin_ranking_loss": lambda: F.margin_ranking_loss(x, y, torch.ones_like(x), margin=0.1),
        "create": lambda: (
            torch.zeros(shape, dtype=dtype, device="cuda"),
            torch.ones(shape, device="cuda"),
            torch.full(shape, 2.0, device="cuda"),
            torch.rand(shape, device="cuda"),
            torch.randn(shape, device="cuda"),
            x.new_full(shape, 1.5),
        ),
        "range": lambda: (
            torch.arange(shape[-1], device="cuda"),
            torch.eye(shape[-1], 48, device="cuda"),
            torch.arange(2, 900, 3, device="cuda", dtype=dtype),
            torch.linspace(0, 1, shape[-1], device="cuda", dtype=dtype),
            torch.logspace(0, 1, shape[-1], device="cuda"),
            torch.eye(shape[-1], device="cuda"),
        ),
        "normal": lambda: (torch.normal(x, y), torch.normal(x, std=2.0), torch.normal(0.5, y)),
        "randperm": lambda: torch.randperm(shape[-1] * 8, device="cuda"),
    }
    for name, call in calls.items():
        with operation(f"{name} {dtype}"):
            call()


def shaped(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x, y = random(shape, dtype), random(shape, dtype)
    flat, width = x.flatten(), shape[-1]
    square = random((width, width + 16), dtype)
    index = torch.randint(0, shape[0], (shape[0],), device="cuda")
    along = torch.randint(0, shape[-1], shape, device="cuda")
    calls: dict[str, Callable[[], object]] = {}
    for name in REDUCE:
        calls[name] = lambda name=name: getattr(torch, name)(x, -1)
        calls[f"{name} dim 0"] = lambda name=name: getattr(torch, name)(x, 0)
        if not name.startswith("cum"):
            calls[f"{name} all"] = lambda name=name: getattr(torch, name)(x)
    for dims in (-1, 0):
        for name in ("softmax", "log_softmax"):
            calls[f"{name} {dims}"] = lambda name=name, dims=dims: backward(
                getattr(torch, name)(x.clone().requires_grad_(True), dims)
            )
        calls[f"sort {dims}"] = lambda dims=dims: (torch.sort(x, dims), torch.sort(x, dim=dims, stable=True))
        calls[f"cat {dims}"] = lambda dims=dims: (torch.cat([x, y], dims), torch.stack([x, y], dims))
        calls[f"flip {dims}"] = lambda dims=dims: (torch.flip(x, [dims]), torch.roll(x, 3, dims))
    small = index.remainder(7)
    calls |= {
        "aminmax": lambda: torch.aminmax(x, dim=-1),
        "topk": lambda: (torch.topk(x, 8), torch.topk(x, 3, largest=False)),
        "norm": lambda: [torch.linalg.vector_norm(x, p, dim=-1) for p in (2, 1, 0, math.inf, 3)],
        "norm all": lambda: [torch.linalg.vector_norm(x, p) for p in (2, 1, math.inf)],
        "gather": lambda: backward(torch.gather(x.clone().requires_grad_(True), -1, along)),
        "scatter": lambda: [
            torch.scatter(x, -1, along, y),
            torch.scatter(x, -1, along, y, reduce="add"),
            torch.scatter(x, -1, along, y, reduce="multiply"),
            x.clone().scatter_add_(-1, along, y),
        ],
        "index_select": lambda: (
            torch.index_select(x, 0, index),
            torch.index_select(x, -1, along.flatten()[:9]),
        ),
        "index": lambda: (x[index], x[index, index.remainder(shape[1])]),
        "index_put": lambda: (
            torch.index_put(x, (index,), y),
            x.clone().index_put_((index,), y, accumulate=True),
        ),
        "diag": lambda: (torch.diag(flat[:64]), torch.diag(square), torch.diag_embed(x), torch.trace(square)),
        "diagonal": lambda: backward(torch.diagonal(square.clone().requires_grad_(True))),
        "triangular": lambda: (torch.tril(square), torch.triu(square, 1), square.clone().triu_(-1)),
        "tile": lambda: (
            torch.tile(x, (2, 1)),
            x.repeat(3, *[1] * (x.dim() - 1)),
            torch.kron(flat[:9], flat[:5]),
        ),
        "repeat_interleave": lambda: (
            torch.repeat_interleave(x, 3, dim=0),
            torch.repeat_interleave(x, torch.full_like(index, 2), dim=0),
        ),
        "stacks": lambda: (torch.hstack([x, y]), torch.vstack([x, y])),
        "pad": lambda: [F.pad(x[None], (1, 2), mode=m) for m in ("constant", "reflect", "replicate")],
        "select_scatter": lambda: (
            torch.select_scatter(x, y[0], 0, 1),
            torch.slice_scatter(x, y[2:4], 0, 2, 4),
        ),
        "slice": lambda: (
            backward(x.clone().requires_grad_(True)[1:3]),
            backward(x.clone().requires_grad_(True)[1]),
        ),
        "unfold": lambda: backward(flat.clone().requires_grad_(True).unfold(0, 5, 3)),
        "contiguous": lambda: (x.transpose(0, -1).contiguous(), torch.t_copy(square)),
        "unique": lambda: (
            torch.unique(along, return_inverse=True, return_counts=True),
            torch.unique_consecutive(along.flatten()),
        ),
        "bincount": lambda: (torch.bincount(along.flatten()), torch.bincount(along.flatten(), flat)),
        "one_hot": lambda: F.one_hot(small, 7),
        "multinomial": lambda: torch.multinomial(x.flatten(0, -2), 4),
        "embedding": lambda: backward(F.embedding(along, square.clone().requires_grad_(True), padding_idx=1)),
        "layer_norm": lambda: backward(
            F.layer_norm(
                x.clone().requires_grad_(True),
                (width,),
                random((width,), dtype, True),
                random((width,), dtype, True),
            )
        ),
        "rms_norm": lambda: backward(
            flag_gems.rms_norm(x.clone().requires_grad_(True), (width,), random((width,), dtype, True))
        ),
        "skip_layer_norm": lambda: flag_gems.skip_layer_norm(x, y, (width,), flat[:width], flat[:width]),
        "fused_add_rms_norm": lambda: flag_gems.fused_add_rms_norm(x, y, (width,), flat[:width]),
        "weight_norm": lambda: [
            backward(torch._weight_norm(square.clone().requires_grad_(True), g, d))
            for d, g in ((0, random((width, 1), dtype)), (1, random((1, width + 16), dtype)))
        ],
        "silu_and_mul": lambda: backward(flag_gems.silu_and_mul(x.clone().requires_grad_(True), y)),
        "gelu_and_mul": lambda: [
            backward(flag_gems.gelu_and_mul(x.clone().requires_grad_(True), y, a)) for a in ("none", "tanh")
        ],
        "mm": lambda: (
            square @ square.t(),
            square.t() @ square,
            torch.mv(square, square[0]),
            square[0].dot(square[1]),
        ),
        "addmm": lambda: (
            torch.addmm(square[:, 0], square, square.t()),
            torch.addmv(flat[:width], square, square[0]),
            torch.addr(square, square[:, 0], square[0]),
            torch.vdot(square[0], square[0]),
        ),
        "bmm": lambda: (
            torch.bmm(square[None], square.t()[None]),
            torch.baddbmm(square[None, :, :1], square[None], square.t()[None]),
        ),
        "outer": lambda: backward(flag_gems.outer(flat[:64].clone().requires_grad_(True), flat[:48])),
    }
    for pair in ("geglu", "reglu", "swiglu"):
        even = x[..., : width // 2 * 2].contiguous()
        calls[pair] = lambda pair=pair, even=even: getattr(flag_gems, pair)(even)
        calls["d" + pair] = lambda pair=pair, even=even: getattr(flag_gems, "d" + pair)(
            even[..., : even.shape[-1] // 2].contiguous(), even
        )
    target, rows = along[..., 0].flatten().contiguous(), x.flatten(0, -2)
    for reduction in ("mean", "sum", "none"):
        finish = (
            backward if reduction != "mean" else torch.Tensor.detach
        )  # that divides by a sum of its kernel
        calls[f"cross_entropy {reduction}"] = lambda reduction=reduction, finish=finish: [
            finish(
                flag_gems.cross_entropy_loss(
                    rows.clone().requires_grad_(True), *labels, reduction=reduction, label_smoothing=s
                )
            )
            for labels, s in (((target,), 0.0), ((target, flat[:width]), 0.1), ((rows.softmax(-1),), 0.0))
        ]
        calls[f"nll_loss {reduction}"] = lambda reduction=reduction: backward(
            F.nll_loss(rows.clone().requires_grad_(True), target, reduction=reduction)
        )
    for name, call in calls.items():
        with operation(f"{name} {dtype}"):
            call()


def images(dtype: torch.dtype, channels: int, size: int) -> None:
    x = random((2, channels, size, size), dtype, True)
    row, volume = x[:, :, 0].detach(), x[:, :, None].detach()
    weights = [random((16, channels, *[3] * n), dtype, True) for n in (1, 2, 3)]
    ones = torch.ones(channels, device="cuda", dtype=dtype, requires_grad=True)
    calls: dict[str, Callable[[], object]] = {
        "conv1d": lambda: backward(F.conv1d(row.requires_grad_(True), weights[0], padding=1)),
        "conv2d": lambda: [backward(F.conv2d(x, weights[1], random((16,), dtype), s, 1)) for s in (1, 2)],
        "conv3d": lambda: F.conv3d(volume, weights[2], padding=1),
        "depthwise": lambda: torch._C._nn._conv_depthwise2d(
            x, random((channels, 1, 3, 3), dtype), 3, None, 1, 1, 1
        ),
        "avg_pool2d": lambda: backward(F.avg_pool2d(x, 3, 2, 1)),
        "max_pool2d": lambda: backward(F.max_pool2d(x, 3, 2, 1)),
        "batch_norm": lambda: backward(F.batch_norm(x, ones.detach() * 0, ones.detach(), ones, ones, True)),
        "batch_norm eval": lambda: F.batch_norm(x, ones.detach() * 0, ones.detach(), ones, ones, False),
        "group_norm": lambda: backward(F.group_norm(x, 4, ones, ones)),
        "instance_norm": lambda: backward(flag_gems.instance_norm(x, ones, ones)),
        "instance_norm running": lambda: [
            flag_gems.instance_norm(x, ones, ones, ones.detach() * 0, ones.detach(), u) for u in (True, False)
        ],
        "upsample nearest": lambda: [
            F.interpolate(t, scale_factor=2, mode="nearest") for t in (row, x, volume)
        ],
        "upsample exact": lambda: F.interpolate(row, scale_factor=2, mode="nearest-exact"),
        "upsample linear": lambda: F.interpolate(row, scale_factor=2, mode="linear"),
        "upsample bicubic": lambda: F.interpolate(x, scale_factor=2, mode="bicubic"),
        "upsample antialias": lambda: backward(F.interpolate(x, size=17, mode="bicubic", antialias=True)),
        "pad2d": lambda: [
            F.pad(x, (1, 2, 1, 1), mode=m) for m in ("reflect", "replicate", "constant", "circular")
        ],
        "pad3d": lambda: F.pad(volume, (1, 1, 1, 1, 0, 1), mode="replicate"),
        "pixel_unshuffle": lambda: F.pixel_unshuffle(x[..., : size // 2 * 2, : size // 2 * 2], 2),
        "nll_loss2d": lambda: backward(
            F.nll_loss(x, torch.zeros(2, size, size, dtype=torch.int64, device="cuda"))
        ),
    }
    for name, call in calls.items():
        with operation(f"{name} {dtype}"):
            call()


def attention(dtype: torch.dtype, dim: int, length: int) -> None:
    q, k, v = (random((2, heads, length, dim), dtype, True) for heads in (4, 4, 4))
    block, pages = 16, 8
    cache = random((pages, block, 4, dim), dtype)
    keys = random((length, 4, dim), dtype)
    slots = torch.arange(length, device="cuda") % (pages * block)
    one = torch.ones(1, device="cuda")
    angles = random((length, dim // 2), dtype)
    scores = random((length, 64), dtype)
    ids = torch.randint(0, 8, (length, 2), device="cuda", dtype=torch.int32)
    hidden, up, down = (
        random((length, dim), dtype),
        random((8, 256, dim), dtype),
        random((8, dim, 128), dtype),
    )
    topk = torch.rand(length, 2, device="cuda")
    latent, rope = random((length, 512), dtype), random((length, 64), dtype)
    calls: dict[str, Callable[[], object]] = {}
    for causal in (False, True):
        calls[f"attention {causal}"] = lambda causal=causal: backward(
            flag_gems.scaled_dot_product_attention(q, k, v, None, 0.0, causal)
        )
        calls[f"flash {causal}"] = lambda causal=causal: flag_gems.flash_attention_forward(
            *(t.detach().transpose(1, 2).contiguous() for t in (q, k, v)),
            None,
            None,
            length,
            length,
            0.0,
            causal,
            False,
        )
        calls[f"rotary {causal}"] = lambda causal=causal: (
            flag_gems.apply_rotary_pos_emb(keys[None], keys[None], angles, angles, rotary_interleaved=causal),
            flag_gems.apply_rotary_pos_emb(keys[None], keys[None], angles, angles, slots[None], causal),
        )
        calls[f"topk_softmax {causal}"] = lambda causal=causal: flag_gems.topk_softmax(
            topk, ids, ids.clone(), scores.float(), causal
        )
        calls[f"grouped_topk {causal}"] = lambda causal=causal: [
            flag_gems.grouped_topk(scores, 8, 4, 6, causal, 1.0, random((64,), dtype), f) for f in (0, 1)
        ]
    calls |= {
        "flash_mla": lambda: flag_gems.flash_mla(
            random((2, 1, 16, 576), dtype),
            torch.arange(2 * 2, device="cuda", dtype=torch.int32).view(2, 2),
            random((4, 64, 1, 576), dtype),
            128,
            64,
            2,
            1,
            torch.full((2,), 100, device="cuda", dtype=torch.int32),
            16,
            1,
            576,
            512,
            True,
        ),
        "flash_mla_sparse_fwd": lambda: flag_gems.flash_mla_sparse_fwd(
            random((length, 64, 576), dtype),
            random((128, 1, 576), dtype),
            torch.randint(0, 128, (length, 1, 64), device="cuda", dtype=torch.int32),
            0.1,
        ),
        "sparse_attention": lambda: flag_gems.sparse_attn_triton(
            random((1, length, 16, dim), dtype),
            random((1, 128, dim), dtype),
            torch.rand(16, device="cuda"),
            torch.randint(0, 128, (1, length, 64), device="cuda", dtype=torch.int32),
            0.1,
        ),
        "reshape_and_cache": lambda: flag_gems.reshape_and_cache(
            keys,
            keys,
            random((pages, 4, dim // 8, block, 8), dtype),
            random((pages, 4, dim, block), dtype),
            slots,
            "auto",
            one,
            one,
        ),
        "reshape_and_cache_flash": lambda: flag_gems.reshape_and_cache_flash(
            keys, keys, cache, cache.clone(), slots, "auto", one, one
        ),
        "concat_and_cache_mla": lambda: flag_gems.concat_and_cache_mla(
            latent, rope, random((pages, block, 576), dtype), slots, "auto", one
        ),
        "repetition": lambda: flag_gems.apply_repetition_penalties(
            scores, scores > 0.5, scores > 0.7, torch.rand(length, device="cuda")
        ),
        "moe_align": lambda: (
            flag_gems.moe_align_block_size(ids, 16, 8),
            flag_gems.moe_align_block_size(ids, 64, 8),
        ),
        "moe_sum": lambda: flag_gems.moe_sum(random((length, 2, dim), dtype), hidden.clone()),
        "fused_experts": lambda: flag_gems.outplace_fused_experts(hidden, up, down, topk, ids),
        "fused_experts int8": lambda: flag_gems.outplace_fused_experts(
            hidden,
            up.to(torch.int8),
            down.to(torch.int8),
            topk,
            ids,
            use_int8_w8a16=True,
            w1_scale=torch.rand(8, 256, device="cuda"),
            w2_scale=torch.rand(8, dim, device="cuda"),
        ),
        "fused_experts fp8": lambda: flag_gems.outplace_fused_experts(
            hidden,
            up.to(torch.float8_e4m3fn),
            down.to(torch.float8_e4m3fn),
            topk,
            ids,
            use_fp8_w8a8=True,
            w1_scale=torch.rand(8, device="cuda"),
            w2_scale=torch.rand(8, device="cuda"),
        ),
        "rwkv": lambda: (
            flag_gems.rwkv_ka_fusion(hidden, hidden[0], hidden, hidden[0], 1, dim),
            flag_gems.rwkv_mm_sparsity(hidden[0].relu(), random((dim, 256), dtype)),
        ),
        "scaled_softmax": lambda: flag_gems.scaled_softmax_backward(
            q.detach(), flag_gems.scaled_softmax_forward(q.detach(), 0.5), 0.5
        ),
        "mhc": lambda: (
            flag_gems.mhc_bwd(
                flag_gems.sinkhorn_forward(torch.rand(length, 4, 4, device="cuda"))[0],
                torch.rand(length, 4, 4, device="cuda"),
            ),
            flag_gems.mhc_post(
                hidden,
                random((length, 4, dim), dtype),
                torch.rand(length, 4, 1, device="cuda"),
                torch.rand(length, 4, 4, device="cuda"),
            ),
        ),
        "mhc_pre": lambda: flag_gems.mhc_pre(
            random((length, 4, dim), torch.bfloat16),
            torch.rand(24, 4 * dim, device="cuda"),
            torch.rand(3, device="cuda"),
            torch.rand(24, device="cuda"),
            1e-6,
            1e-6,
            1e-6,
            1.0,
            3,
        ),
        "bucket_sort_topk": lambda: flag_gems.bucket_sort_topk(
            torch.rand(4, 4096, device="cuda"),
            torch.zeros(4, device="cuda", dtype=torch.int32),
            torch.full((4,), 4096, device="cuda", dtype=torch.int32),
            256,
        ),
        "delta rule": lambda: flag_gems.chunk_gated_delta_rule_fwd(
            *(random((1, length, 4, dim), dtype) for _ in range(3)),
            torch.rand(1, length, 4, device="cuda"),
            random((1, length, 4), dtype),
            0.1,
            torch.zeros(1, 4, dim, dim, device="cuda"),
            True,
        ),
        "recurrent delta rule": lambda: flag_gems.fused_recurrent_gated_delta_rule_fwd(
            *(random((1, length, 4, dim), dtype) for _ in range(3)),
            torch.rand(1, length, 4, device="cuda"),
            random((1, length, 4), dtype),
            0.1,
            torch.zeros(1, 4, dim, dim, device="cuda"),
            False,
            torch.tensor([0, length], device="cuda"),
        ),
        "scaled_mm": lambda: flag_gems.cutlass_scaled_mm(
            torch.empty(length, 256, device="cuda", dtype=dtype),
            hidden.to(torch.float8_e4m3fn),
            random((256, dim), dtype).to(torch.float8_e4m3fn).t(),
            one,
            one,
        ),
        "scaled_mm int8": lambda: flag_gems.cutlass_scaled_mm(
            torch.empty(length, 256, device="cuda", dtype=dtype),
            hidden.to(torch.int8),
            random((256, dim), dtype).to(torch.int8).t(),
            torch.rand(length, 1, device="cuda"),
            torch.rand(1, 256, device="cuda"),
        ),
        "fp8 block": lambda: flag_gems.w8a8_block_fp8_matmul(
            hidden.to(torch.float8_e4m3fn),
            random((256, dim), dtype).to(torch.float8_e4m3fn),
            torch.rand(length, math.ceil(dim / 128), device="cuda"),
            torch.rand(2, 1, device="cuda"),
            [128, 128],
        ),
        "index_add": lambda: (
            flag_gems.index_add(hidden, 0, slots % 9, hidden),
            flag_gems.index_add_(hidden.clone(), 0, slots % 9, hidden),
        ),
        "quantile": lambda: flag_gems.quantile(hidden.float(), torch.tensor([0.1, 0.5], device="cuda"), -1),
        "per_token_group_quant_fp8": lambda: flag_gems.per_token_group_quant_fp8(hidden, 64),
    }
    for name, call in calls.items():
        with operation(f"{name} {dtype}"):
            call()


with flag_gems.use_gems():
    for dtype, shape in SETS:
        pointwise(dtype, shape)
        shaped(dtype, shape)
    for dtype, channels, size in ((torch.float16, 16, 32), (torch.bfloat16, 8, 21), (torch.float32, 16, 16)):
        images(dtype, channels, size)
for dtype, dim, length in ((torch.float16, 64, 64), (torch.bfloat16, 128, 64), (torch.bfloat16, 128, 37)):
    attention(dtype, dim, length)
