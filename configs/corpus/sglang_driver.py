"""Call the operations of sglang 0.5.23."""

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


def function(module: str, name: str) -> Callable:
    return getattr(import_module(f"sglang.kernels.ops.{module}"), name)


def call_all(module: str, label: object, **calls: list[tuple]) -> None:
    for name, variants in calls.items():
        for arguments in variants:
            keywords = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
            positional = arguments[:-1] if keywords else arguments
            with operation(f"{module}.{name} {label}"):
                function(module, name)(*positional, **keywords)


def attention(dtype: torch.dtype, dim: int) -> None:
    heads, shared, slots = 8, 2, 512
    query, new = random(20, heads, dim, dtype=dtype), random(20, shared, dim, dtype=dtype)
    keys, values = random(slots, shared, dim, dtype=dtype), random(slots, shared, dim, dtype=dtype)
    wide = random(slots, heads, dim, dtype=dtype)
    out, indices = torch.empty_like(query), torch.arange(200, device="cuda")
    starts, pages = ints(0, 5, 9, 20), ints(0, 20, 80, 133)
    for cap in (0.0, 30.0):
        logits = random(3, heads, 8, dim), random(3, heads, 8), full(4, 3)
        call_all(
            "attention.decode_attention",
            dtype,
            decode_attention_fwd=[
                (query[:3], k, v, out[:3], pages, indices, *logits, 8, 0.1, 1.0, 1.0, cap)
                for k, v in ((keys, values), (wide, wide))
            ],
        )
        call_all(
            "attention.extend_attention",
            dtype,
            extend_attention_fwd=[
                (
                    query,
                    new,
                    new,
                    out,
                    keys,
                    values,
                    starts,
                    pages,
                    indices,
                    None,
                    causal,
                    None,
                    11,
                    1.0,
                    1.0,
                    0.1,
                    cap,
                )
                for causal in (True, False)
            ],
            extend_attention_fwd_unified=[
                (
                    query,
                    out,
                    keys,
                    values,
                    1.0,
                    1.0,
                    starts,
                    pages,
                    indices,
                    ints(5, 9, 3),
                    11,
                    {"sm_scale": 0.1, "logit_cap": cap},
                )
            ],
            build_unified_kv_indices=[
                (pages, indices, starts[:3], ints(5, 4, 11), torch.arange(20, device="cuda"), 3)
            ],
        )
    latent = random(slots, 1, 576, dtype=dtype)
    mla = random(3, 16, 8, 512), random(3, 16, 8), full(4, 3)
    call_all(
        "attention.decode_attention",
        f"mla {dtype}",
        decode_attention_fwd=[
            (
                random(3, 16, 576, dtype=dtype),
                latent,
                latent[..., :512],
                random(3, 16, 512, dtype=dtype),
                pages,
                indices,
                *mla,
                8,
                0.1,
                1.0,
                1.0,
                {"has_mla": True},
            )
        ],
    )
    call_all(
        "attention.prefill_attention",
        dtype,
        context_attention_fwd=[
            (query, new, new, out, starts[:3], ints(5, 4, 11), 11, causal) for causal in (True, False)
        ],
    )
    lse = random(20, heads)
    call_all("attention.merge_state", dtype, merge_state_triton=[(out, lse, query, lse)])
    call_all("attention.position", dtype, compute_position_triton=[(ints(3, 5, 8), ints(5, 4, 11), 20)])
    call_all(
        "attention.pad",
        dtype,
        seqlens_expand_triton=[(ints(5, 4, 11), ints(25, 34, 41), 20, 11)],
        pad_sequence_with_mask=[(query.flatten(1), starts[:3], ints(5, 4, 11), 16)],
        pad_draft_extend_query=[(query, random(3, 16, heads, dim, dtype=dtype), ints(5, 4, 11), starts)],
        unpad_draft_extend_output=[(random(3, 16, heads, dim, dtype=dtype), starts, ints(5, 4, 11), 20)],
    )
    call_all(
        "attention.mla_qk_prep",
        dtype,
        concat_and_cast_mha_k_triton=[
            (
                random(20, heads, 192, dtype=dtype),
                random(20, heads, 128, dtype=dtype),
                random(20, 1, 64, dtype=dtype),
            )
        ],
    )
    call_all(
        "attention.mla_kv_pack_quantize_fp8",
        dtype,
        mla_kv_pack_quantize_fp8=[
            (
                random(20, heads, 128, dtype=dtype),
                random(20, 1, 64, dtype=dtype),
                random(20, heads, 128, dtype=dtype),
            )
        ],
    )
    places = torch.arange(20, device="cuda")
    cosines = random(128, dim)
    call_all(
        "attention.rotary_triton",
        dtype,
        triton_mrope_fused=[
            (
                query.flatten(1),
                new.flatten(1),
                cosines,
                places.repeat(3, 1),
                [dim // 8, dim // 8, dim // 4],
                dim,
                dim,
                inter,
                False,
                True,
                full(0, dim // 2),
            )
            for inter in (True, False)
        ],
        triton_ernie45_rope_fused_inplace=[
            (
                query.flatten(1),
                new.flatten(1),
                cosines,
                places.repeat(3, 1),
                [dim // 8, dim // 8, dim // 4],
                dim,
                dim,
                True,
            )
        ],
    )
    call_all(
        "attention.fused_qk_rmsnorm_rope_gate",
        dtype,
        fused_qk_gemma_rmsnorm_rope_gate=[
            (
                random(20, heads * dim * 2, dtype=dtype),
                new.flatten(1),
                random(dim, dtype=dtype),
                random(dim, dtype=dtype),
                cosines,
                places,
                1e-6,
                heads,
                shared,
                dim,
                dim,
            )
        ],
    )
    call_all(
        "attention.minimax_m3_qk_norm_rope",
        dtype,
        qk_gemma_rmsnorm_rope=[
            (
                query.flatten(1),
                new.flatten(1),
                random(dim, dtype=dtype),
                random(dim, dtype=dtype),
                places,
                cosines,
                1e-6,
                dim,
                dim,
                neox,
            )
            for neox in (True, False)
        ],
    )
    call_all(
        "attention.gemma_qkv_norm_rope",
        dtype,
        gemma_qkv_norm_rope=[
            (
                query.flatten(1),
                new.flatten(1),
                new.flatten(1),
                random(dim, dtype=dtype),
                random(dim, dtype=dtype),
                cosines,
                places,
                heads,
                shared,
                dim,
                dim,
                1e-6,
            )
        ],
    )
    call_all(
        "attention.linear.fused_gdn_gating",
        dtype,
        fused_gdn_gating=[
            (random(heads), random(20, heads, dtype=dtype), random(20, heads, dtype=dtype), random(heads))
        ],
    )
    call_all(
        "attention.linear.lightning_attn",
        dtype,
        lightning_attention=[(*(random(2, 4, 512, dim, dtype=dtype) for _ in range(3)), random(4))],
        linear_decode_forward_triton=[
            (
                *(random(3, 4, 1, dim, dtype=dtype) for _ in range(3)),
                random(8, 4, dim, dim),
                random(4),
                ints(1, 2, 3),
            )
        ],
    )
    q, k, v = (random(1, 128, 4, dim, dtype=dtype) for _ in range(3))
    gates, beta, state = -random(1, 128, 4), random(1, 128, 4, dtype=dtype), random(3, 4, dim, dim)
    ends = ints(0, 64, 128, dtype=LONG)
    call_all(
        "attention.fla.chunk",
        dtype,
        chunk_gated_delta_rule=[
            (
                q,
                k,
                v,
                gates,
                beta,
                {
                    "initial_state": state,
                    "initial_state_indices": ints(0, 1),
                    "cu_seqlens": ends,
                    "use_qk_l2norm_in_kernel": norm,
                },
            )
            for norm in (True, False)
        ],
    )
    call_all(
        "attention.fla.kda",
        dtype,
        chunk_kda=[
            (
                q,
                k,
                v,
                -random(1, 128, 4, dim),
                beta,
                {
                    "initial_state": state,
                    "initial_state_indices": ints(0, 1),
                    "cu_seqlens": ends,
                    "use_qk_l2norm_in_kernel": True,
                },
            )
        ],
        fused_recurrent_kda=[
            (q, k, v, -random(1, 128, 4, dim), beta, {"initial_state": state, "cu_seqlens": ends})
        ],
    )
    call_all(
        "attention.fla.fused_recurrent",
        dtype,
        fused_recurrent_gated_delta_rule=[
            (q, k, v, gates, beta, {"initial_state": state[:1], "output_final_state": True})
        ],
        fused_recurrent_gated_delta_rule_update=[
            (
                q,
                k,
                v,
                gates,
                beta,
                {"initial_state_source": state, "initial_state_indices": ints(0, 1), "cu_seqlens": ends},
            )
        ],
    )
    call_all("attention.fla.l2norm", dtype, l2norm=[(q,), (random(37, 100, dtype=dtype),)])
    call_all(
        "attention.fla.layernorm_gated",
        dtype,
        layernorm_fn=[
            (q.flatten(0, 2), random(dim, dtype=dtype), None, z, {"is_rms_norm": rms})
            for z in (None, k.flatten(0, 2))
            for rms in (True, False)
        ],
    )
    call_all(
        "attention.fla.fused_norm_gate",
        dtype,
        rms_norm_gated=[(q, k, random(dim, dtype=dtype), None, kind) for kind in ("swish", "sigmoid")],
    )


def rows(dtype: torch.dtype, tokens: int, width: int) -> None:
    x, weight = random(tokens, width, dtype=dtype), random(width, dtype=dtype)
    half, one = x[:, : width // 2].contiguous(), torch.ones(1, device="cuda")
    call_all("activation.gelu_and_mul_triton", dtype, gelu_and_mul_triton=[(x,)])
    call_all(
        "activation.minimax_m3_swiglu",
        dtype,
        swiglu_oai_split=[(x, 1.7, 1.0, 7.0), (x, 1.7, 1.0, None)],
        swiglu_oai_mxfp8_quant=[(x, 1.7, 1.0, 7.0)],
    )
    call_all(
        "activation.softcap",
        dtype,
        softcap_inplace_logits=[(x.float(), 30.0)],
        softcap_to_float32_logits=[(x, 30.0, x.float())],
        cast_to_float32_logits=[(x, x.float())],
    )
    call_all(
        "activation.swiglu_mxfp8_swizzled", dtype, silu_mul_mxfp8=[(x,)], swiglu_oai_mxfp8=[(x, 1.7, 7.0)]
    )
    call_all(
        "elementwise.elementwise",
        dtype,
        fused_sigmoid_mul=[(x, x), (x, x, True)],
        sigmoid_gate_mul_broadcast=[(x, x[:, :1].contiguous())],
        fused_gate_sigmoid_mul=[(x, weight, x)],
        fused_gate_sigmoid_mul_add=[(x, weight, x, x.clone())],
    )
    call_all("elementwise.row_scale", dtype, row_scale_bf16=[(x.bfloat16(), random(tokens))])
    call_all(
        "elementwise.beam_fused",
        dtype,
        fused_attention_gate=[
            (x, random(tokens, width // 64, dtype=dtype), random(width // 64, dtype=dtype), 64)
        ],
    )
    call_all(
        "embeddings.vocab_parallel_embedding",
        dtype,
        vocab_parallel_embedding=[
            (full(3, tokens, dtype=LONG), random(99, width, dtype=dtype), 0, 90, 0, 90, 99)
        ],
    )
    call_all(
        "layernorm.fused_rmsnorm",
        dtype,
        fused_rmsnorm=[(x, weight, 1e-6), (x, weight, 1e-6, True)],
        fused_dual_residual_rmsnorm=[(x, x.clone(), weight, weight, 1e-6)],
    )
    call_all(
        "layernorm.gemma4_fused_ops",
        dtype,
        gemma_rmsnorm_residual_scalar=[(x, weight, x, one.to(dtype))],
        gemma_dual_rmsnorm_residual_scalar=[(x, weight, x, weight, weight, x, one.to(dtype))],
        gemma_qkv_rmsnorm=[(x, half, half, weight[:64], weight[:64], width // 64, width // 128, 64)],
    )
    call_all(
        "layernorm.beam_fused",
        dtype,
        fused_sandwich_residual_rmsnorm=[
            (x, x, weight, weight, 1e-6, 1.0, 1.0),
            (x, x, weight, None, 1e-6, 1.0, 1.0),
        ],
    )
    call_all(
        "layernorm.minimax_m3_rmsnorm",
        dtype,
        gemma_rmsnorm=[(x, weight, 1e-6)],
        gemma_fused_add_rmsnorm=[(x, x.clone(), weight, 1e-6)],
    )
    call_all("layernorm.rmsnorm_fp32", dtype, rmsnorm_fp32=[(x.float(), weight.float(), 1e-6)])
    call_all("layernorm.rmsnorm_fp8_e8m0", dtype, rmsnorm_fp8_e8m0_quant=[(x, weight, 1e-6)])
    call_all("layernorm.rmsnorm_mxfp8", dtype, rmsnorm_mxfp8=[(x, weight, 1e-6)])
    streams, mixing = random(tokens, 4, width, dtype=dtype), random(24, 4 * width)
    call_all(
        "layernorm.mhc",
        dtype,
        hc_split_sinkhorn=[(random(1, tokens, 24), random(3), random(24))],
        hc_mix_stats=[(streams.flatten(1), mixing, 1e-6)],
        mhc_stream_mean=[(streams,)],
        hc_mix_stats_sinkhorn=[(streams.flatten(1), mixing, random(3), random(24), 4, 5, 1e-6, 1e-6)],
        mhc_combine=[(streams.flatten(1), random(tokens, 4), 4, dtype)],
    )
    call_all(
        "layernorm.mhc_head", dtype, fused_hc_head=[(streams, mixing[:4], random(1), random(4), 1e-6, 1e-6)]
    )
    call_all(
        "layernorm.hc_combine_norm",
        dtype,
        hc_combine_norm=[
            (random(tokens, 20480, dtype=dtype), random(tokens, 4), random(5120, dtype=dtype), 1e-6)
        ],
    )
    call_all(
        "layernorm.hy4_ihc",
        dtype,
        fused_hy4_ihc_pre=[(streams, mixing[:8], random(2), random(8), 1.0, 1e-6, 1e-6)],
        fused_hy4_ihc_post=[(x, streams, random(tokens, 4))],
    )
    eight, square = x.to(FP8), random(512, width).to(FP8)
    call_all(
        "gemm.fp8_kernel",
        dtype,
        w8a8_block_fp8_matmul_triton=[
            (eight, square, random(tokens, width // 128), random(4, width // 128), [128, 128], dtype)
        ],
        triton_scaled_mm=[
            (eight, square.t(), random(1, 1), random(1, 1), dtype),
            (
                x.to(torch.int8),
                square.to(torch.int8).t(),
                random(tokens, 1),
                random(512, 1),
                dtype,
                weight[:512],
            ),
        ],
    )
    call_all(
        "gemm.int8_kernel",
        dtype,
        w8a8_block_int8_matmul=[
            (
                x.to(torch.int8),
                square.to(torch.int8),
                random(tokens, width // 128),
                random(4, width // 128),
                [128, 128],
                dtype,
            )
        ],
    )
    call_all("gemm.router_gate_matvec", dtype, router_gate_matvec=[(x, random(64, width, dtype=dtype))])
    call_all("gemm.router_gemv", dtype, router_gemv=[(x, random(64, width, dtype=dtype))])
    call_all(
        "quantization.int8_kernel",
        dtype,
        per_token_quant_int8=[(x,), (x, {"cal_sum": True})],
        per_token_group_quant_int8=[(x, 128), (x, 64)],
    )
    call_all(
        "quantization.fp8_kernel",
        dtype,
        per_token_group_quant_fp8=[(x, 128), (x, 128, {"column_major_scales": True})],
        sglang_per_token_group_quant_fp8=[(x, 128)],
        dequant_group_fp8_to_bf16=[(eight, random(tokens, width // 128), 128)],
        static_quant_fp8=[(x, one), (x, one, True)],
        per_token_group_quant_mla_deep_gemm_masked_fp8=[(random(4, tokens, 512, dtype=dtype),)],
        per_tensor_quant_mla_fp8=[(random(4, tokens, 512, dtype=dtype), one)],
    )
    call_all(
        "quantization.awq_triton",
        dtype,
        awq_dequantize_triton=[
            (full(7, width, 64), random(width // 128, 512, dtype=dtype), full(7, width // 128, 64))
        ],
    )
    call_all("quantization.act_quant_triton", dtype, act_quant=[(x,)])
    call_all("sampling.murmur_hash", dtype, murmur_hash32=[(full(3, tokens, dtype=LONG),) * 3])
    call_all("sampling.temperature_softmax", dtype, temperature_softmax=[(x.float(), random(tokens, 1))])
    call_all("speculative.row_argmax", dtype, row_argmax=[(x.float(),)])
    call_all(
        "memory.common",
        dtype,
        get_last_loc_triton=[(full(1, 9, 64), full(3, 5, dtype=LONG), full(3, 5, dtype=LONG))],
    )
    call_all("memory.gpu_tensor_hash", dtype, gpu_tensor_hash=[(x,)])
    ids, gains = full(1, tokens, 2), random(tokens, 2)
    call_all(
        "moe.ep_moe_kernels",
        dtype,
        deepep_run_moe_deep_preprocess=[(ids, 8)],
        silu_and_mul_masked_fwd=[
            (random(4, 32, width, dtype=dtype), random(4, 32, width // 2, dtype=dtype), full(9, 4))
        ],
        silu_and_mul_masked_post_quant_fwd=[
            (
                random(4, 32, width, dtype=dtype),
                random(4, 32, width // 2).to(FP8),
                random(4, 32, width // 256),
                128,
                full(9, 4),
            )
        ],
        ep_gather=[(x, ids, gains, ids, x.clone())],
        moe_ep_deepgemm_preprocess=[(ids, 8, x, 2, [128, 128])],
        fused_moe_dispatch_index=[(ids, 8, 64)],
        tma_align_input_scale=[(random(tokens, width // 128),)],
        zero_experts_compute_triton=[(ids, gains, 8, "identity", x)],
        post_reorder_deepgemm=[(x, x.clone(), full(0, tokens * 2), ids, gains, 2, tokens, width, 1.0)],
        fill_m_indices_from_psum=[(full(9, 8), 8, 256, 128)],
        scale_expanded_rows_=[(x.float(), random(tokens))],
    )
    call_all("moe.router", dtype, fused_moe_router_shim=[(30.0, x, random(8, width, dtype=dtype), 2, False)])
    call_all(
        "moe.moe_fused_mul_sum", dtype, moe_fused_mul_sum=[(random(tokens, 2, width, dtype=dtype), gains)]
    )
    latent, rope, slots = (
        random(tokens, 512, dtype=dtype),
        random(tokens, 64, dtype=dtype),
        torch.arange(tokens, device="cuda"),
    )
    call_all(
        "kvcache.mla_buffer",
        dtype,
        set_mla_kv_buffer_triton=[(random(256, 1, 576, dtype=dtype), slots, latent[:, None], rope[:, None])],
        get_mla_kv_buffer_triton=[(random(256, 1, 576, dtype=dtype), slots, latent[:, None], rope[:, None])],
        set_mla_kv_buffer_triton_fp8_quant=[
            (random(256, 1, 576).to(FP8), slots, latent[:, None], rope[:, None], FP8)
        ],
    )
    pages = random(16, 16, 4, 64, dtype=dtype)
    new = random(tokens, 4, 64, dtype=dtype)
    call_all(
        "kvcache.cache_ops", dtype, launch_reshape_and_cache_flash=[(new, new, pages, pages.clone(), slots)]
    )
    call_all(
        "kvcache.zero_pages",
        dtype,
        zero_pages=[(full(0, 64, 1024, dtype=torch.uint8), ints(1, 2, 3), 3, 1024)],
    )
    call_all(
        "kvcache.copy_pages",
        dtype,
        copy_pages=[(full(0, 64, 1024, dtype=torch.uint8), ints(1, 2), ints(3, 4), 2, 1024)],
    )


def mixers(dtype: torch.dtype, dim: int, tokens: int) -> None:
    heads, state = 4, 64
    width, starts = heads * dim, ints(0, tokens // 2, tokens)
    x, kernel = random(tokens, width, dtype=dtype), random(width, 4, dtype=dtype)
    states = random(8, 3, width, dtype=dtype).transpose(1, 2)
    rest = {"conv_state_indices": ints(1, 2, 3)}
    call_all(
        "mamba.causal_conv1d_triton",
        dtype,
        causal_conv1d_fn=[
            (
                x.t(),
                kernel,
                bias,
                states,
                starts,
                [tokens // 2, tokens - tokens // 2],
                {"cache_indices": ints(1, 2), "has_initial_state": ints(1, 0).bool()},
            )
            for bias in (None, x[0])
        ],
        causal_conv1d_update=[
            (x[:3], states, kernel, None, "silu", rest),
            (x[:3], states, kernel, x[0], None, rest),
        ],
    )
    new = random(3, heads, dim, dtype=dtype)
    call_all(
        "mamba.triton_ops.mamba_ssm",
        dtype,
        selective_state_update=[
            (
                random(8, heads, dim, state, dtype=dtype),
                new,
                new,
                random(heads, dim, state),
                random(3, 1, state, dtype=dtype),
                random(3, 1, state, dtype=dtype),
                random(heads, dim),
                z,
                random(heads, dim),
                True,
                {"state_batch_indices": ints(1, 2, 3), "out": torch.empty_like(new)},
            )
            for z in (None, new)
        ],
    )
    groups = random(2, 128, 1, state, dtype=dtype)
    values = random(2, 128, heads, dim, dtype=dtype)
    call_all(
        "mamba.triton_ops.ssd_combined",
        dtype,
        mamba_chunk_scan_combined=[
            (
                values,
                random(2, 128, heads, dtype=dtype),
                random(heads),
                groups,
                groups,
                64,
                {
                    "D": random(heads),
                    "z": z,
                    "dt_bias": random(heads),
                    "dt_softplus": True,
                    "out": torch.empty_like(values),
                },
            )
            for z in (None, values)
        ],
    )


for dtype, dim in ((torch.float16, 64), (torch.bfloat16, 128), (torch.bfloat16, 64)):
    attention(dtype, dim)
for dtype, tokens, width in (
    (torch.float16, 64, 1024),
    (torch.bfloat16, 33, 2048),
    (torch.bfloat16, 1, 1024),
):
    rows(dtype, tokens, width)
for dtype, dim, tokens in ((torch.float16, 64, 64), (torch.bfloat16, 128, 37), (torch.float32, 64, 33)):
    mixers(dtype, dim, tokens)
