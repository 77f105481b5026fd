"""Call the operations of liger-kernel 0.8.5."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from liger_kernel import ops
from liger_kernel.ops import fused_moe, mhc, mlp
from liger_kernel.ops.experimental import mm_int8int2
from liger_kernel.ops.grpo_loss import fused_selective_log_softmax
from liger_kernel.transformers import functional as F
from liger_kernel.transformers.grpo_loss import triton_grpo_loss
from operations import operation

HALF, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
DTYPES = (FP32, HALF, BF16)


def randn(*shape: int, dtype: torch.dtype = FP32, grad: bool = True) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_(grad)


def labels(count: int, classes: int) -> torch.Tensor:
    return torch.randint(0, classes, (count,), device="cuda")


def backward(*outputs: object) -> None:
    """Differentiate all floating-point outputs that are part of a graph."""
    tensors = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
    torch.autograd.backward(tensors, [torch.randn_like(t) for t in tensors])


def norms(dtype: torch.dtype, rows: int, width: int) -> None:
    w, b = randn(width, dtype=dtype), randn(width, dtype=dtype)
    for casting, offset in (("llama", 0.0), ("gemma", 1.0), ("none", 0.0)):
        with operation(f"rms norm {casting}"):
            backward(F.liger_rms_norm(randn(rows, width, dtype=dtype), w, 1e-6, offset, casting, False))
        with operation(f"fused add rms norm {casting}"):
            x, r = randn(rows, width, dtype=dtype), randn(rows, width, dtype=dtype)
            backward(*F.liger_fused_add_rms_norm(x, r, w, 1e-6, offset, casting, False))
        with operation(f"modulated rms norm {casting}"):
            x, scale = randn(2, rows, width, dtype=dtype), randn(2, width, dtype=dtype)
            shift = randn(2, width, dtype=dtype) if casting != "gemma" else None
            backward(F.liger_modulated_rms_norm(x, w, scale, shift, 1e-6, offset, casting, False))
    with operation("rms norm without a weight"):
        backward(F.liger_rms_norm(randn(rows, width, dtype=dtype), None, 1e-6, in_place=False))
    with operation("layer norm"):
        backward(F.liger_layer_norm(randn(rows, width, dtype=dtype), w, b, 1e-5))
    with operation("poly norm"):
        x = randn(rows, width, dtype=dtype)
        backward(F.liger_poly_norm(x, randn(3, dtype=dtype), randn(1, dtype=dtype).squeeze(), 1e-6, False))
    with operation("dynamic tanh"):
        alpha = randn(1, dtype=dtype)
        backward(F.liger_dyt(randn(rows, width, dtype=dtype), alpha, w, b))
        backward(F.liger_dyt(randn(rows, width, dtype=dtype), alpha, w, None))
    with operation("group norm"):
        channels = 8
        gw, gb = randn(channels, dtype=dtype), randn(channels, dtype=dtype)
        backward(F.liger_group_norm(randn(2, channels, width, dtype=dtype), gw, gb, channels, 4, 1e-5))
    with operation("attention residuals"):
        backward(F.liger_attn_res(randn(4, 2, rows, width, dtype=dtype), w, w, 1e-6))


def activations(dtype: torch.dtype, rows: int, width: int) -> None:
    for name in ("swiglu", "geglu"):
        with operation(name):
            x, y = randn(rows, width, dtype=dtype), randn(rows, width, dtype=dtype)
            backward(getattr(F, f"liger_{name}")(x, y))
    with operation("swiglu of a fused projection"):
        backward(ops.LigerFusedGateUpSiLUMulFunction.apply(randn(rows, 2 * width, dtype=dtype)))
    for name in ("relu_squared", "softmax", "sparsemax"):
        with operation(name):
            backward(getattr(F, f"liger_{name}")(randn(rows, width, dtype=dtype)))


def losses(dtype: torch.dtype, rows: int, vocabulary: int) -> None:
    def logits(grad: bool = True) -> torch.Tensor:
        return randn(rows, vocabulary, dtype=dtype, grad=grad)

    target = labels(rows, vocabulary)
    variants = (
        {},
        {"reduction": "sum", "label_smoothing": 0.1, "lse_square_scale": 1e-4, "return_z_loss": True},
        {
            "reduction": "none",
            "softcap": 30.0,
            "return_token_accuracy": True,
            "return_predicted_tokens": True,
        },
        {"weight": torch.rand(vocabulary, device="cuda")},
    )
    for options in variants:
        with operation(f"cross entropy {sorted(options)}"):
            out = F.liger_cross_entropy(logits(), target, **options)
            backward(getattr(out, "loss", out))
        with operation(f"fused linear cross entropy {sorted(options)}"):
            options = {"ce_weight" if k == "weight" else k: v for k, v in options.items()}
            x, w = randn(rows, 64, dtype=dtype), randn(vocabulary, 64, dtype=dtype)
            out = F.liger_fused_linear_cross_entropy(x, w, target, **options)
            backward(getattr(out, "loss", out))
    for beta in (0.0, 0.5, 1.0):
        with operation(f"generalised jsd {beta}"):
            p, q = logits().log_softmax(-1), logits(False).log_softmax(-1)
            backward(F.liger_jsd(p, q, target if beta == 0.5 else None, beta))
        with operation(f"fused linear jsd {beta}"):
            x, w = randn(rows, 64, dtype=dtype), randn(vocabulary, 64, dtype=dtype)
            backward(F.liger_fused_linear_jsd(x, w, x.detach(), w.detach(), target, beta))
    for reduction in ("none", "sum", "batchmean"):
        with operation(f"kl divergence {reduction}"):
            p, q = logits().log_softmax(-1), logits(False).softmax(-1)
            backward(F.liger_kl_div(p, q, reduction=reduction, log_target=reduction == "sum"))
        with operation(f"total variation {reduction}"):
            p, q = logits().softmax(-1), logits(False).softmax(-1)
            backward(F.liger_tvd(p, q, target if reduction == "sum" else None, reduction))
    with operation("fused linear kl divergence"):
        x, w = randn(rows, 64, dtype=dtype), randn(vocabulary, 64, dtype=dtype)
        for shifted in (None, target):
            backward(F.liger_fused_linear_kl_div(x, w, logits(False).softmax(-1), shifted))
    with operation("fused cross entropy and total variation"):
        backward(*ops.LigerFusedCETVDFunction.apply(logits(), logits(False), target, -100))
    with operation("vocabulary-parallel cross entropy"):
        for smoothing in (0.0, 0.1):
            x = randn(rows, 2, vocabulary, dtype=dtype)
            y = labels(2 * rows, vocabulary).view(rows, 2)
            out = ops.LigerVocabParallelCEFunction.apply(x, y, None, -100, smoothing, "pytorch", "global")
            backward(out)


def policy(dtype: torch.dtype, length: int, vocabulary: int) -> None:
    ids = labels(2 * length, vocabulary).view(2, length)
    mask = torch.ones(2, length, device="cuda", dtype=torch.int32)
    logp, advantages = randn(2, length, grad=False), randn(2, grad=False)
    with operation("selective log softmax"):
        fused_selective_log_softmax(randn(2, length + 1, vocabulary, dtype=dtype, grad=False), ids, 0.9, mask)
    for kind in ("grpo", "dapo", "cispo", "sapo", "vespo"):
        for level in ("token", "sequence") if kind in ("grpo", "dapo") else ("token",):
            with operation(f"{kind} loss by {level}"):
                x = randn(2, length + 1, vocabulary, dtype=dtype)
                more = {
                    "loss_type": kind,
                    "importance_sampling_level": level,
                    "reduce": True,
                    "inplace": False,
                }
                loss, *_ = triton_grpo_loss(x, logp, logp, ids, advantages, mask, **more)
                backward(loss)


def positions(dtype: torch.dtype, length: int, dim: int) -> None:
    q, k = randn(2, 8, length, dim, dtype=dtype), randn(2, 2, length, dim, dtype=dtype)
    cos, sin = randn(1, length, dim, dtype=dtype, grad=False), randn(1, length, dim, dtype=dtype, grad=False)
    with operation("rope"):
        backward(*F.liger_rope(q, k, cos, sin))
        backward(*F.liger_rope(q, k, cos.expand(2, -1, -1).contiguous(), sin.expand(2, -1, -1).contiguous()))
    with operation("qwen2vl mrope"):
        three = cos.expand(3, 2, -1, -1).contiguous()
        section = [dim // 8, dim // 8 + dim // 16, dim // 8 + dim // 16]
        backward(*F.liger_qwen2vl_mrope(q, k, three, three, section))
    with operation("llama4 rope"):
        angles = torch.polar(torch.ones(length, dim // 2), torch.rand(length, dim // 2)).cuda()
        q, k = randn(2, length, 8, dim, dtype=dtype), randn(2, length, 2, dim, dtype=dtype)
        backward(*ops.LigerLlama4RopeFunction.apply(q, k, angles))
    with operation("neighborhood attention"):
        q, k, v = (randn(1, 2, length, dim, dtype=dtype) for _ in range(3))
        backward(F.liger_fused_neighborhood_attention(q, k, v, 7, 1))
    for sparse in (False, True) if dtype is FP32 else (False,):  # sparse scores are FP32
        with operation(f"multi-token attention, sparse {sparse}"):
            scores, weight = randn(1, 2, length, length, dtype=dtype), randn(2, 2, 3, 3, dtype=dtype)
            bias = randn(2, dtype=dtype)
            backward(F.liger_multi_token_attention(scores, weight, bias, 1, 1, 1, 1, sparse))


def layers(dtype: torch.dtype, tokens: int, width: int) -> None:
    streams = 4
    with operation("manifold-constrained hyper-connections"):
        x = randn(tokens, streams, width, dtype=dtype)
        count = streams * streams + 2 * streams
        phi, b = randn(streams * width, count, dtype=dtype), randn(count)
        alphas = [randn(1).squeeze().detach().requires_grad_() for _ in range(3)]
        more = {"allow_fp32": dtype is FP32, "tmax": 8}
        pre, post, res = F.liger_mhc_coeffs(x, phi, b, *alphas, **more)
        out, inner = F.liger_mhc_apply(x, randn(tokens, width, dtype=dtype), pre, post, res, return_x_in=True)
        backward(out, inner)
    with operation("hyper-connections without a history"):
        mix, _ = mhc.mhc_mm_norm_fwd(x.detach().view(tokens, -1), phi.detach(), 1e-6)
        scale = [a.detach() for a in alphas]
        terms = {"pre_eps": 0.0, "sinkhorn_eps": 1e-6}
        mhc.mhc_split_sinkhorn_fwd(mix, b.detach(), *scale, tmax=8, post_mult=2.0, **terms)
        grad = randn(tokens, streams, streams, grad=False)
        mhc.mhc_sinkhorn_bwd(mix, b.detach(), scale[2], grad, tmax=8, sinkhorn_eps=1e-6)
    with operation("embedding"):
        backward(ops.LigerEmbeddingFunction.apply(randn(512, width, dtype=dtype), labels(tokens, 512)))
    with operation("tiled geglu"):
        backward(F.liger_geglu(randn(2, tokens, width, dtype=dtype), randn(2, tokens, width, dtype=dtype)))
    if dtype is FP32:
        return
    for multiplier in (1.0, 0.5):
        with operation(f"fused mlp x {multiplier}"):
            x, down = randn(2, tokens, width, dtype=dtype), randn(width, 2 * width, dtype=dtype)
            gate, up = randn(2 * width, width, dtype=dtype), randn(2 * width, width, dtype=dtype)
            backward(ops.LigerMLPFunction.apply(x, gate, up, down, multiplier, 1.0))
            mlp.gemm_swiglu(x.detach(), gate.detach(), up.detach(), multiplier, store_preact=False)


def experts(dtype: torch.dtype, tokens: int, width: int) -> None:
    count, top = (8, 2) if dtype is not HALF else (16, 4)
    scores = torch.rand(tokens, count, device="cuda")
    weights, index = scores.topk(top)
    index = index.to(torch.int32)
    with operation("moe routing"):
        fused_moe.compute_routing_metadata(index, count)
    with operation("fused moe"):
        # The package reads the number of tiles that its routing kernels count; here torch counts them.
        size, order = torch.bincount(index.flatten(), minlength=count), index.flatten().argsort()
        starts = torch.cat([size.new_zeros(1), size.cumsum(0)]).int()
        tiles = [(s, e) for e in range(count) for s in range(int(starts[e]), int(starts[e + 1]), 128)]
        rows, owners = (torch.tensor(column, dtype=torch.int32).cuda() for column in zip(*tiles, strict=True))
        metadata = (
            size.int(),
            starts,
            (order // top).int(),
            order.int(),
            order.argsort().int(),
            rows,
            owners,
        )
        routed, fused_moe.compute_routing_metadata = fused_moe.compute_routing_metadata, lambda *_: metadata
        try:
            up, down = randn(count, 2 * width, width, dtype=dtype), randn(count, width, width, dtype=dtype)
            out = ops.LigerFusedMoEFunction.apply(randn(tokens, width, dtype=dtype), up, down, index, weights)
            backward(out)
        finally:
            fused_moe.compute_routing_metadata = routed


def main() -> None:
    torch.manual_seed(0)
    for dtype in DTYPES:
        sizes = ((64, 256), (33, 1000)) if dtype is BF16 else ((64, 256),)
        for rows, width in sizes:
            norms(dtype, rows, width)
            activations(dtype, rows, width)
            losses(dtype, rows, 4 * width)
        policy(dtype, 16, 1024)
        if dtype is BF16:
            policy(dtype, 17, 1003)
        positions(dtype, 64, 64)
        positions(dtype, 50, 128)
        for tokens, width in ((128, 128), (70, 256), (33, 128)):
            layers(dtype, tokens, width)
            experts(dtype, tokens, width)
        with operation("block rms norm"):
            backward(
                F.liger_rms_norm(randn(32768, 64, dtype=dtype), randn(64, dtype=dtype), 1e-6, in_place=False)
            )
    for m, n, k in ((64, 128, 256), (33, 100, 64), (16, 99, 128)):
        with operation("int8 by int2 matmul"):
            packed = mm_int8int2.pack_weights(torch.randint(-1, 2, (k, n), dtype=torch.int8)).cuda()
            mm_int8int2.matmul(torch.randint(-8, 8, (m, k), dtype=torch.int8).cuda(), packed)
    with operation("tiled mlp"):
        module = SimpleNamespace(up=randn(64, 64))
        ops.apply_tiled_mlp(
            lambda m, x: F.liger_swiglu(x @ m.up, x), module, randn(2, 64, 64), 2, [module.up]
        )


if __name__ == "__main__":
    main()
