"""Call the layers and utilities of fla-core 0.6.0: those of sequences are in fla_core.py."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import torch
from fla import modules as nn
from operations import operation
from torch.nn.functional import logsigmoid

HALF, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
HEADS = 2


def randn(*shape: int, dtype: torch.dtype = FP32, grad: bool = True) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_(grad)


def backward(outputs: object) -> None:
    """Differentiate all floating-point outputs that are part of a graph."""
    tensors = [o for o in outputs if o is not None] if isinstance(outputs, (tuple, list)) else [outputs]
    tensors = [t for t in tensors if isinstance(t, torch.Tensor) and t.requires_grad]
    if tensors:
        torch.autograd.backward(tensors, [torch.randn_like(t) for t in tensors])


def find(name: str) -> Callable:
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(f"fla.{module}"), function)


def others(dtype: torch.dtype, time: int, dim: int) -> None:
    """Call what has arguments of its own."""

    def x(*shape: int, grad: bool = True) -> torch.Tensor:
        return randn(*shape, dtype=dtype, grad=grad)

    ends = torch.tensor([0, 40, time], dtype=torch.int32).cuda()
    with operation("cyfa"):
        for kind in ("chunk", "fused_recurrent"):
            args = [x(1, time, HEADS, dim) for _ in range(3)]
            args += [
                logsigmoid(randn(1, time, HEADS)),
                randn(1, time, HEADS).sigmoid(),
                randn(1, time, HEADS).sigmoid(),
            ]
            weights = [randn(HEADS, 3, 3), randn(dim), randn(dim)]
            backward(find(f"ops.cyfa.{kind}_cyfa")(*args, *weights, 1e-6, 1e-6, output_final_state=True))
    with operation("attention of one step"):
        q, k, v = (
            x(1, 2, 4, dim, grad=False),
            x(1, time, HEADS, dim, grad=False),
            x(1, time, HEADS, dim, grad=False),
        )
        find("ops.attn.decoding.attn_decoding_one_step")(q, k, v, cu_seqlens=ends)
    with operation("attention residuals"):
        residuals = [x(2, time, dim) for _ in range(3)]
        for level in (0, 1):
            backward(
                find("ops.attnres.fused_attnres")(x(dim), residuals, x(dim), x(dim), checkpoint_level=level)
            )
    with operation("native sparse attention"):
        nsa = find("ops.nsa.parallel_nsa")
        q, k, v = x(1, time, 32, dim), x(1, time, 2, dim), x(1, time, 2, dim)
        gates = [x(1, time, 32) for _ in range(3)]
        blocks = torch.randint(0, max(time // 32, 1), (1, time, 2, 4), device="cuda")
        backward(nsa(q, k, v, *gates, block_indices=blocks, block_counts=4, block_size=32))
        backward(nsa(q, k, v, *gates, block_counts=4, block_size=32, cu_seqlens=ends))
    for name in ("parallax_decode", "parallax_decode_one_step"):
        with operation(name):
            q, k = x(1, 1, HEADS, dim, grad=False), x(1, time, HEADS, dim, grad=False)
            find(f"ops.parallax.decode.{name}")(q, q, k, k)
    with operation("wall attention of one step"):
        k, g = (
            x(1, time, HEADS, dim, grad=False),
            logsigmoid(randn(1, time, HEADS, dim, grad=False)).cumsum(1),
        )
        kt, cache = find("ops.wall_attn.decode.build_wall_kv_cache")(k, g, 32)
        decode = find("ops.wall_attn.parallel_wall_attn_decode")
        decode(x(1, 1, HEADS, dim, grad=False), k, g[:, -1:].contiguous(), kt, cache, None, 0.1, 32)
    with operation("mesa net of one step"):
        q, k, v = (x(2, HEADS, dim, grad=False) for _ in range(3))
        g, b = logsigmoid(randn(2, HEADS, grad=False)), randn(2, HEADS, grad=False).sigmoid()
        lamb = randn(HEADS, dim, grad=False).sigmoid()
        states = randn(2, HEADS, dim, dim, grad=False), randn(2, HEADS, dim, dim, grad=False)
        find("ops.mesa_net.decoding_one_step.mesa_net_decoding_one_step")(q, k, v, g, lamb, b, *states)
    with operation("rwkv4"):
        w, u, k, v = randn(dim), randn(dim), randn(2, time, dim), randn(2, time, dim)
        backward(find("ops.rwkv4.fused_recurrent_rwkv4")(w, u, k, v, randn(2, 3, 1, dim)))
    with operation("rwkv7 channel mixing"):
        width = 4 * dim
        args = x(2, time, width), x(2, width), x(width), x(width, 2 * width), x(2 * width, width)
        out = find("ops.rwkv7.channel_mixing.channel_mixing_rwkv7")(*args, inplace=False)
        backward(out)
    with operation("rwkv7 token shift"):
        parts = [x(1, 1, 4 * dim) for _ in range(6)]
        backward(
            find("ops.rwkv7.fused_addcmul.fused_addcmul_rwkv7")(
                x(2, time, 4 * dim), x(2, time, 4 * dim), *parts
            )
        )
    with operation("rwkv7 key update"):
        k_update = find("ops.rwkv7.fused_k_update.fused_k_rwkv7")
        backward(k_update(x(2, time, 4 * dim), x(2, time, 4 * dim), x(1, 1, 4 * dim)))
    with operation("rwkv7 output"):
        o, g = x(2, time, HEADS * dim), x(2, time, HEADS * dim)
        r, k, v = (x(2, time, HEADS, dim) for _ in range(3))
        correct = find("ops.rwkv7.gate_output_correction.gate_output_correction")
        backward(correct(o, r, k, x(HEADS, dim), v, g))
    for name in ("kda.gate.fused_kda_gate", "gated_delta_rule.gate.fused_gdn_gate"):
        with operation(name):
            shape = (2, time, HEADS, dim) if "kda" in name else (2, time, HEADS)
            bias = randn(HEADS * dim) if "kda" in name else randn(HEADS)
            backward(find(f"ops.{name}")(x(*shape), randn(HEADS), bias))
    with operation("gates"):
        backward(find("ops.common.gate.fused_beta_sigmoid")(x(2, time, HEADS)))
        gate = find("ops.gsa.gate.fused_additive_gate")
        backward(gate(x(2, time, HEADS, 64)))
    with operation("chunk gates"):
        for name, shape in (
            ("kda.gate.kda_gate_chunk_cumsum", (1, time, HEADS, dim)),
            ("gated_delta_rule.gate.gdn_gate_chunk_cumsum", (1, time, HEADS)),
        ):
            find(f"ops.{name}")(x(*shape, grad=False), A_log=randn(HEADS, grad=False), chunk_size=64)
    utilities(dtype, time, dim, ends)


def utilities(dtype: torch.dtype, time: int, dim: int, ends: torch.Tensor) -> None:
    def x(*shape: int, grad: bool = True) -> torch.Tensor:
        return randn(*shape, dtype=dtype, grad=grad)

    for kind in ("local", "global"):
        for shape in ((2, time, HEADS), (2, time, HEADS, dim)):
            for reverse in (False, True):
                with operation(f"chunk {kind} cumsum"):
                    more = {"chunk_size": 32} if kind == "local" else {}
                    find(f"ops.utils.cumsum.chunk_{kind}_cumsum")(
                        randn(*shape, grad=False), reverse=reverse, **more
                    )
    with operation("utilities of matrices"):
        find("ops.utils.matmul.matmul")(x(time, dim, grad=False), x(dim, time, grad=False), activation="silu")
        find("ops.utils.matmul.addmm")(
            x(time, grad=False), x(time, dim, grad=False), x(dim, time, grad=False)
        )
        for size in (16, 32, 64):
            find("ops.utils.solve_tril.solve_tril")(
                randn(1, time, HEADS, size, grad=False), output_dtype=dtype
            )
    with operation("utilities of rows"):
        find("ops.utils.logsumexp.logsumexp_fwd")(x(time, dim, grad=False))
        p = find("ops.utils.softmax.softmax_fwd")(x(time, dim, grad=False))
        find("ops.utils.softmax.softmax_bwd")(p, p)
    with operation("mean pooling"):
        pool = find("ops.utils.pooling.mean_pooling")
        backward(pool(x(2, time, HEADS, dim), 32))
        backward(pool(x(1, time, HEADS, dim), 32, cu_seqlens=ends))
    with operation("packing"):
        for side in ("left", "right"):
            packed = find("ops.utils.pack.pack_sequence")(x(2, time, dim), ends, side)
            backward(find("ops.utils.pack.unpack_sequence")(packed, ends, side))
    with operation("sinkhorn"):
        backward(find("ops.utils.sinkhorn.ops.sinkhorn")(randn(time, 4, 4), 8))
    for name in ("sequence_ids", "position_ids", "token_indices"):
        with operation(name):
            find(f"ops.utils.index.prepare_{name}")(ends)


def layers(dtype: torch.dtype, time: int, dim: int) -> None:
    """Call the functions behind the modules."""

    def x(*shape: int, grad: bool = True) -> torch.Tensor:
        return randn(*shape, dtype=dtype, grad=grad)

    width, ends = 4 * dim, torch.tensor([0, 40, time], dtype=torch.int32).cuda()
    for name in ("sigmoid", "logsigmoid", "swish", "fast_gelu_impl", "sqrelu", "elu_p1"):
        with operation(name):
            function = getattr(importlib.import_module("fla.modules.activations"), name)
            backward(function(x(2, time, width), x(width)) if "bias" in name else function(x(2, time, width)))
    for name in ("swiglu", "sigmoidglu", "powglu"):
        with operation(name):
            backward(find(f"modules.activations.{name}")(x(2, time, width), x(2, time, width)))
    for name in ("swiglu_linear", "powglu_linear", "sigmoidglu_linear"):
        with operation(name):
            args = x(2, time, width), x(2, time, width), x(dim, width), x(dim)
            backward(find(f"modules.activations.{name}")(*args))
    for activation in (None, "silu"):
        with operation(f"causal convolution {activation}"):
            conv = find("modules.causal_conv1d.ops.causal_conv1d")
            weight, bias, state = x(width, 4), x(width), x(2, width, 4)
            more = {"activation": activation, "output_final_state": True}
            backward(conv(x(2, time, width), weight, bias, initial_state=state, **more))
            backward(conv(x(1, time, width), weight, residual=x(1, time, width), cu_seqlens=ends.long()))
            update = find("modules.causal_conv1d.ops.causal_conv1d_update")
            step = x(2, 1, width, grad=False), x(2, width, 4, grad=False)
            update(*step, weight=weight.detach(), bias=bias.detach(), activation=activation)
    for name in ("layer_norm", "rms_norm", "group_norm"):
        groups = {"num_groups": 4} if name == "group_norm" else {}
        for residual in (None, x(2, time, width)):
            with operation(name):
                more = {"residual": residual, "prenorm": residual is not None, **groups}
                backward(
                    find(f"modules.norm.layernorm.{name}")(x(2, time, width), x(width), x(width), **more)
                )
        for size in (dim, 1024):
            with operation(f"{name} of {size}"):
                backward(
                    find(f"modules.norm.layernorm.{name}")(x(2, time, HEADS, size), x(size), None, **groups)
                )
        with operation(f"{name}_linear"):
            args = x(2, time, width), x(width), x(width), x(dim, width), x(dim)
            backward(find(f"modules.norm.layernorm.{name}_linear")(*args, **groups))
    for name in ("layer_norm", "rms_norm"):
        for activation in ("swish", "sigmoid"):
            with operation(f"{name}_gated {activation}"):
                gated = find(f"modules.norm.fused_norm_gate.{name}_gated")
                backward(gated(x(2, time, width), x(2, time, width), x(width), x(width), activation))
                for size in (dim, 1024):
                    backward(
                        gated(x(2, time, HEADS, size), x(2, time, HEADS, size), x(size), None, activation)
                    )
        with operation(f"{name} of a gate and linear"):
            args = x(2, time, width), x(2, time, width), x(width), x(width), x(dim, width), x(dim)
            backward(find(f"modules.norm.fused_norm_gate.{name}_swish_gate_linear")(*args))
        with operation(f"{name} with a gate"):
            function = find(f"modules.norm.layernorm_gated.{name.replace('_', '')}_fn")
            for before in (True, False):
                args = x(2, time, width), x(width), x(width), x(2, time, width)
                backward(function(*args, group_size=dim, norm_before_gate=before))
        with operation(f"{name} and quantisation"):
            args = x(2, time, width), x(width), x(width), x(dim, width), None
            backward(find(f"modules.fused_bitlinear.{name}_linear_quant")(*args))
    with operation("l2 norm"):
        backward(nn.L2Norm()(x(2, time, HEADS, dim)))
        backward(nn.L2Norm()(x(2, time, 1024)))
    for interleaved in (False, True):
        with operation(f"rotary {interleaved}"):
            rotary = nn.RotaryEmbedding(dim, interleaved=interleaved).cuda()
            backward(rotary(x(2, time, HEADS, dim), x(2, time, HEADS, dim)))
            q = x(1, time, HEADS, dim)
            backward(rotary(q, q, cu_seqlens=ends, max_seqlen=time))
            backward(rotary(q, q, seqlen_offset=3))
    with operation("token shift"):
        shift = find("modules.token_shift.token_shift")
        for length in (time, 4200):
            backward(shift(x(1, length, dim)))
        backward(shift(x(1, time, dim), ends.long()))
        backward(shift(x(1, 4200, dim), torch.tensor([0, 4200]).cuda()))
        backward(shift(x(2, time, dim), cache=x(2, dim), output_cache=True))
    losses(dtype, time, dim)


def losses(dtype: torch.dtype, time: int, dim: int) -> None:
    def x(*shape: int, grad: bool = True) -> torch.Tensor:
        return randn(*shape, dtype=dtype, grad=grad)

    vocabulary = 1000 if dtype is HALF else 2048
    target = torch.randint(0, vocabulary, (time,), device="cuda")
    variants = ({}, {"label_smoothing": 0.1, "lse_square_scale": 1e-4}, {"logit_softcapping": 30.0})
    for options in variants:
        with operation(f"cross entropy {sorted(options)}"):
            backward(nn.FusedCrossEntropyLoss(**options)(x(time, vocabulary), target))
        with operation(f"linear cross entropy {sorted(options)}"):
            options = {k: v for k, v in options.items() if k != "lse_square_scale"}
            backward(
                nn.FusedLinearCrossEntropyLoss(**options)(
                    x(time, dim), target, x(vocabulary, dim), x(vocabulary)
                )
            )
    with operation("kl divergence"):
        args = x(time, dim), x(time, dim, grad=False), x(vocabulary, dim), x(vocabulary, dim, grad=False)
        backward(nn.FusedKLDivLoss()(*args))
    for keep in (False, True):
        with operation("group relative policy"):
            ids, mask = target[:32].view(2, 16), torch.ones(2, 16, device="cuda", dtype=torch.int32)
            args = x(2, 17, vocabulary), randn(2, 16, grad=False), ids, randn(2, grad=False)
            backward(find("modules.grpo.fused_grpo_loss")(*args, 0.1, mask, save_kl=keep))


def main() -> None:
    torch.manual_seed(0)
    for dtype, time, dim in ((BF16, 128, 64), (HALF, 101, 128), (BF16, 75, 64)):
        others(dtype, time, dim)
        layers(dtype, time, dim)


if __name__ == "__main__":
    main()
