"""Call the operations of lmdeploy 0.18.0."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import torch
from operations import operation

FP8 = torch.float8_e4m3fn
INT, LONG = torch.int32, torch.int64


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(*shape, device="cuda").to(dtype)


def ints(*values: int, dtype: torch.dtype = INT) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype, device="cuda")


def full(value: float, *shape: int, dtype: torch.dtype = INT) -> torch.Tensor:
    return torch.full(shape, value, dtype=dtype, device="cuda")


def call_all(module: str, label: object, **calls: list[tuple]) -> None:
    for name, variants in calls.items():
        for arguments in variants:
            keywords = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
            positional = arguments[:-1] if keywords else arguments
            with operation(f"{module}.{name} {label}"):
                call: Callable = getattr(import_module(f"lmdeploy.pytorch.kernels.cuda.{module}"), name)
                call(*positional, **keywords)


def attention(dtype: torch.dtype, dim: int, size: int) -> None:
    heads, shared, blocks = 8, 2, 24
    query, new = random(20, heads, dim, dtype=dtype), random(20, shared, dim, dtype=dtype)
    keys, values = (random(blocks, size, shared, dim, dtype=dtype) for _ in range(2))
    table = torch.randint(0, blocks, (3, 8), device="cuda", dtype=INT)
    starts, count, lengths = ints(0, 5, 9, 20), ints(5, 4, 11), ints(20, 80, 33)
    flat = random(shared, 133, dim, dtype=dtype)
    sinks = random(heads, dtype=dtype)
    call_all(
        "flashattention",
        dtype,
        flash_attn_varlen_func=[
            (
                query,
                flat,
                flat,
                {
                    "cu_seqlens_q": starts,
                    "cu_seqlens_k": ints(0, 20, 100, 133),
                    "max_seqlen_q": 11,
                    "max_seqlen_k": 80,
                    "causal": causal,
                    "window_size": window,
                    "softcap": cap,
                    "sinks": sink,
                },
            )
            for causal, window, cap, sink in (
                (True, (-1, -1), 0.0, None),
                (False, (-1, -1), 30.0, None),
                (True, (31, 31), 0.0, sinks),
            )
        ],
    )
    call_all(
        "pagedattention",
        dtype,
        flash_attn_with_kvcache=[
            (query[:3], keys, values, lengths, table, {"softcap": cap, "sinks": sink, "window_size": window})
            for cap, sink, window in ((0.0, None, None), (30.0, None, None), (0.0, sinks, (31, 31)))
        ],
    )
    one = ints(0, 1, 2, 3)
    call_all(
        "fill_kv_cache",
        dtype,
        fill_kv_cache=[
            (new, new, keys, values, starts[:3], count, lengths, 11, table),
            (new[:3], new[:3], keys, values, one[:3], ints(1, 1, 1), lengths, 1, table),
        ],
        fill_kv_cache_blocked_fp8=[
            (
                new.repeat(1, 1, 128 // dim),
                new.repeat(1, 1, 128 // dim),
                random(blocks, size, shared, 128).to(FP8),
                random(blocks, size, shared, 128).to(FP8),
                random(blocks, size, shared, 1),
                random(blocks, size, shared, 1),
                starts,
                lengths,
                11,
                table,
            )
        ],
    )
    call_all(
        "flatten_kv_cache",
        dtype,
        flatten_kv_cache=[
            (keys, values, lengths, table, {"out_size": 133, "flatten_kv_layout": layout})
            for layout in ("hsd", "shd")
        ],
    )
    with operation(f"quantised cache {dtype}"):
        policy = import_module("lmdeploy.messages").QuantPolicy
        for kind, width in ((policy.INT8, dim), (policy.INT4, dim // 2)):
            packed = [full(0, blocks, size, shared, width, dtype=torch.uint8) for _ in range(2)]
            scales = [random(blocks, size, shared, 2, dtype=dtype) for _ in range(2)]
            named = {"k_scales_zeros": scales[0], "v_scales_zeros": scales[1], "quant_policy": kind}
            call_all(
                "fill_kv_cache",
                f"{kind} {dtype}",
                fill_kv_cache=[(new, new, *packed, starts[:3], count, lengths, 11, table, named)],
            )
            call_all(
                "flatten_kv_cache",
                f"{kind} {dtype}",
                flatten_kv_cache=[(*packed, lengths, table, {"out_size": 133, "out_dtype": dtype} | named)],
            )
            call_all(
                "pagedattention",
                f"{kind} {dtype}",
                flash_attn_with_kvcache=[(query[:3], *packed, lengths, table, named)],
            )
    call_all("copy_cache", dtype, copy_cache_blocks=[(keys, 0, ints(0, 1), ints(2, 3), 1)])
    half = random(20, dim, dtype=dtype)
    call_all(
        "apply_rotary_pos_emb",
        dtype,
        apply_rotary_pos_emb=[
            (query, new, half, half),
            (query, new, half, half, query, new),
            (query, new, half, half, None, None, True),
        ],
    )
    call_all(
        "gated_delta_preprocess",
        dtype,
        gated_delta_preprocess=[
            (
                random(1, 20, 2, dim, dtype=dtype),
                random(1, 20, 2, dim, dtype=dtype),
                random(1, 20, 4, dtype=dtype),
                random(1, 20, 4, dtype=dtype),
                random(4),
                random(4),
                2,
            )
        ],
    )
    call_all(
        "ds_index",
        dtype,
        fp8_index=[
            (
                random(20, 32, 128).to(FP8),
                random(20, 32),
                random(blocks, 64, 128).to(FP8),
                random(blocks, 64),
                starts,
                lengths,
                table,
                11,
                80,
                causal,
            )
            for causal in (True, False)
        ],
    )
    wide = random(4, dim * 4, dtype=dtype)
    call_all(
        "causal_conv1d",
        dtype,
        causal_conv1d_update=[
            (wide, random(4, dim * 4, 4, dtype=dtype), random(dim * 4, 4, dtype=dtype), None, "silu")
        ],
    )
    q = random(1, 1, 4, dim, dtype=dtype)
    call_all(
        "gated_delta_rule",
        dtype,
        fused_recurrent_gated_delta_rule=[
            (
                q,
                q,
                q,
                -random(1, 1, 4),
                random(1, 1, 4),
                {"initial_state": random(1, 4, dim, dim), "output_final_state": True},
            )
        ],
    )


def rows(dtype: torch.dtype, tokens: int, width: int) -> None:
    x, weight = random(tokens, width, dtype=dtype), random(width, dtype=dtype)
    call_all(
        "activation",
        dtype,
        silu_and_mul=[(x,)],
        silu_and_mul_moe_ep=[(random(4, 32, width, dtype=dtype), full(9, 4))],
        silu_and_mul_masked_post_quant_fwd=[
            (
                random(4, 32, width, dtype=dtype),
                random(4, 32, width // 2).to(FP8),
                random(4, 32, width // 256),
                128,
                full(9, 4),
            )
        ],
    )
    call_all("rms_norm", dtype, rms_norm=[(x, weight), (x, weight, 1e-6, x.clone())])
    call_all(
        "awq_kernels",
        dtype,
        awq_linear=[
            (x, full(7, width, 64), random(width // 128, 512, dtype=dtype), full(7, width // 128, 64))
        ],
    )
    eight, square = x.to(FP8), random(512, width).to(FP8).t()
    call_all(
        "blocked_gemm_fp8",
        dtype,
        quant_fp8=[(x, 128), (x, 128, {"trans_scale": True})],
        quant_fp8_tma=[(x, 128)],
        per_token_group_quant_fp8=[(x, 128)],
        blocked_gemm_fp8=[(eight, random(tokens, width // 128), square, random(width // 128, 4), dtype)],
    )
    call_all(
        "w8a8_triton_kernels",
        dtype,
        per_token_quant_int8=[(x, 1e-6), (x, 1e-6, FP8)],
        per_tensor_quant_fp8=[(x, torch.ones(1, device="cuda"))],
        rms_norm_dynamic_quant=[
            (x, weight, 1e-6),
            (x, weight, 1e-6, x.clone()),
            (x, weight, 1e-6, None, FP8),
        ],
        matmul_kernel_dynamic_quant=[
            (x.to(kind), random(512, width).to(kind), random(tokens, 1), random(512, 1), extra, None, dtype)
            for kind in (torch.int8, FP8)
            for extra in (None, random(tokens, 512, dtype=dtype))
        ],
        matmul_kernel_static_quant=[
            (
                eight,
                random(512, width).to(FP8),
                torch.ones(1, device="cuda"),
                random(512, 1),
                None,
                None,
                dtype,
            )
        ],
    )
    up, down = random(8, 512, width, dtype=dtype), random(8, width, 256, dtype=dtype)
    ids = torch.randint(0, 8, (tokens, 2), device="cuda")
    chosen = random(tokens, 2), ids, 2
    call_all(
        "moe.fused_moe",
        dtype,
        fused_moe=[(x, up, down, *chosen), (x, up, down, *chosen, {"renormalize": True})],
        moe_reduce=[
            (random(tokens, 2, width, dtype=dtype), random(tokens, 2), flag) for flag in (True, False)
        ],
    )
    call_all(
        "moe.w8a8",
        dtype,
        fused_moe_w8a8=[
            (
                x.to(kind),
                random(tokens, 1),
                up.to(kind),
                random(8, 512, 1),
                down.to(kind),
                random(8, width, 1),
                *chosen,
                dtype,
                kind,
            )
            for kind in (torch.int8, FP8)
        ],
    )
    call_all(
        "moe.blocked_fp8",
        dtype,
        fused_moe_blocked_fp8=[
            (
                eight,
                random(tokens, width // 128),
                up.to(FP8),
                random(8, 4, width // 128),
                down.to(FP8),
                random(8, width // 128, 2),
                *chosen,
                {"out_dtype": dtype},
            )
        ],
    )
    call_all(
        "moe.ep",
        dtype,
        ep_gather=[(x, ids, random(tokens, 2), ids, x.clone())],
        ep_scatter=[
            (
                x,
                ids,
                full(tokens, 8),
                full(0, 8),
                random(2048, width, dtype=dtype),
                full(0, 2048),
                full(0, tokens, 2),
            )
        ],
    )
    call_all(
        "moe.ep_fp8",
        dtype,
        ep_scatter_fp8=[
            (
                eight,
                random(tokens, width // 128),
                ids,
                full(tokens, 8),
                full(0, 8),
                random(2048, width).to(FP8),
                random(2048, width // 128),
                full(0, 2048),
                full(0, tokens, 2),
            )
        ],
    )
    call_all(
        "moe.route_noaux_tc", dtype, fused_noaux_tc_routing=[(random(tokens, 256, dtype=dtype), random(256))]
    )
    call_all(
        "moe.route_single_group",
        dtype,
        fused_single_group_topk_router=[
            (random(tokens, 256), random(256), {"num_experts": 256, "top_k": 8, "routed_scaling_factor": 1.0})
        ],
    )
    call_all("moe.v4_swiglu_quant", dtype, v4_swiglu_and_quant_fp8=[(x,), (x, 7.0)])
    call_all(
        "multinomial_sampling",
        dtype,
        multinomial_sampling=[
            (x.softmax(-1), full(1, tokens, dtype=LONG), full(0, tokens, dtype=LONG)),
            (
                x.softmax(-1),
                full(1, tokens, dtype=LONG),
                full(0, tokens, dtype=LONG),
                full(1, tokens, width, dtype=LONG),
            ),
        ],
    )
    call_all(
        "bitonic_topk",
        dtype,
        bitonic_topk=[
            (random(tokens, 4096), full(1, tokens), full(3000, tokens), k, {"descending": flag})
            for k, flag in ((512, True), (64, False))
        ],
    )
    numbers = {
        "rank_start": ints(0, 16, dtype=LONG),
        "ranks": ints(16, 16, dtype=LONG),
        "seq_start": ints(0, tokens // 2, dtype=LONG),
        "seq_lens": ints(tokens // 2, tokens - tokens // 2, dtype=LONG),
        "adapter_ids": ints(0, 1, dtype=LONG),
        "scaling": random(2),
        "max_rank": 16,
        "max_seqlen": tokens,
    }
    call_all(
        "fused_lora",
        dtype,
        fused_lora=[
            (x, random(32, width, dtype=dtype), random(32, 512, dtype=dtype), numbers),
            (
                x,
                random(32, width, dtype=dtype),
                random(32, 512, dtype=dtype),
                numbers | {"output": random(tokens, 512, dtype=dtype), "cum": True},
            ),
        ],
    )
    call_all(
        "dsv4.hc_prepost",
        dtype,
        hc_pre_reduce=[(random(tokens, 4, width, dtype=dtype), random(tokens, 4), 4)],
        hc_post_expand=[
            (x, random(tokens, 4, width, dtype=dtype), random(tokens, 4), random(tokens, 4, 4), 4)
        ],
    )
    draft = torch.randint(0, width, (tokens, 3), device="cuda")
    out, flags, vocabulary = (
        full(0, tokens, 4, dtype=LONG),
        full(0, tokens, dtype=LONG),
        random(tokens, 3, width),
    )
    call_all(
        "rejection_sampling",
        dtype,
        greedy_rejection_sample=[
            (out, flags, flags.clone(), draft, draft, draft[:, 0].contiguous(), mask)
            for mask in (None, flags.bool())
        ],
        random_rejection_sample=[
            (
                out,
                flags,
                flags.clone(),
                draft,
                scores,
                vocabulary,
                draft[:, 0].contiguous(),
                draft,
                random(tokens, 3),
                flags.bool(),
            )
            for scores in (None, vocabulary)
        ],
        sample_recovered_tokens=[
            (draft.clone(), draft, scores, vocabulary, random(tokens, width)) for scores in (None, vocabulary)
        ],
    )


for dtype, dim, size in ((torch.float16, 64, 16), (torch.bfloat16, 128, 64), (torch.bfloat16, 64, 64)):
    attention(dtype, dim, size)
for dtype, tokens, width in ((torch.float16, 64, 1024), (torch.bfloat16, 33, 512), (torch.bfloat16, 2, 512)):
    rows(dtype, tokens, width)
