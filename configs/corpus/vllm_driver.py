"""Call the operations of vllm 0.33.0."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import torch
from operations import operation

FP8 = torch.float8_e4m3fn
INT, LONG = torch.int32, torch.int64
LAYERS, ATTENTION, GPU = "vllm.model_executor.layers", "vllm.v1.attention.ops", "vllm.v1.worker.gpu"

with operation("platform"):  # that of a GPU whose driver has no NVML
    platforms = import_module("vllm.platforms")
    platforms.current_platform = import_module("vllm.platforms.cuda").NonNvmlCudaPlatform()


def function(module: str, name: str) -> Callable:
    return getattr(import_module(module), name)


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(*shape, device="cuda").to(dtype)


def ints(*values: int, dtype: torch.dtype = INT) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype, device="cuda")


def full(value: float, *shape: int, dtype: torch.dtype = INT) -> torch.Tensor:
    return torch.full(shape, value, dtype=dtype, device="cuda")


def call_all(module: str, calls: dict[str, list[tuple]], label: object) -> None:
    for name, variants in calls.items():
        for arguments in variants:
            keywords = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
            positional = arguments[:-1] if keywords else arguments
            with operation(f"{module.split('.', 1)[1]}.{name} {label}"):
                function(module, name)(*positional, **keywords)


def attention(dtype: torch.dtype, dim: int, size: int) -> None:
    sequences, heads, shared, blocks = 3, 8, 2, 24
    keys, values = (random(blocks, size, shared, dim, dtype=dtype) for _ in range(2))
    query, new = random(20, heads, dim, dtype=dtype), random(20, shared, dim, dtype=dtype)
    out, one, lse = torch.empty_like(query), torch.ones(1, device="cuda"), random(heads, 20)
    table = torch.randint(0, blocks, (sequences, 8), device="cuda", dtype=INT)
    starts, lengths, slots = ints(0, 5, 9, 20), ints(20, 80, 33), torch.arange(20, device="cuda")
    paged_keys = random(blocks, shared, dim // 8, size, 8, dtype=dtype)
    paged_values = random(blocks, shared, dim, size, dtype=dtype)
    for causal, window, cap, sinks in (
        (True, (-1, -1), 0.0, None),
        (False, (-1, -1), 30.0, None),
        (True, (31, 0), 0.0, random(heads, dtype=dtype)),
    ):
        with operation(f"unified_attention {dtype} {causal} {window}"):
            unified = function(f"{ATTENTION}.triton_unified_attention", "unified_attention")
            unified(
                query,
                keys,
                values,
                out,
                starts,
                11,
                lengths,
                80,
                0.1,
                causal,
                window,
                table,
                cap,
                None,
                None,
                None,
                sinks=sinks,
            )
            segments = (random(3, heads, 16, dim), random(3, heads, 16), random(3, heads, 16))
            unified(
                query[:3],
                keys,
                values,
                out[:3],
                ints(0, 1, 2, 3),
                1,
                lengths,
                80,
                0.1,
                causal,
                window,
                table,
                cap,
                None,
                None,
                None,
                128,
                16,
                *segments,
                sinks=sinks,
            )
        with operation(f"unified_attention_diffkv {dtype} {causal}"):
            function(f"{ATTENTION}.triton_unified_attention_diffkv", "unified_attention_diffkv")(
                query, keys, values, out, starts, lengths, 0.1, True, window, table, cap, 11, sinks=sinks
            )
        with operation(f"context_attention_fwd {dtype} {causal}"):
            grouped = query.clone(), new.clone(), new.clone(), out
            function(f"{ATTENTION}.triton_prefill_attention", "context_attention_fwd")(
                *grouped,
                starts[:3],
                ints(5, 4, 11),
                11,
                causal,
                None,
                *((window[0], window[0]) if window[0] > 0 else (None, None)),
                sinks,
            )
        with operation(f"prefix_prefill {dtype} {causal}"):
            function(f"{ATTENTION}.prefix_prefill", "context_attention_fwd")(
                query,
                new,
                new,
                out,
                "auto",
                paged_keys,
                paged_values,
                table,
                starts,
                lengths,
                80,
                11,
                one,
                one,
                sliding_window=max(window[0], 0),
                sinks=sinks,
            )
        with operation(f"chunked_prefill_paged_decode {dtype} {causal}"):
            function(f"{ATTENTION}.chunked_prefill_paged_decode", "chunked_prefill_paged_decode")(
                query,
                new,
                new,
                out,
                "auto",
                paged_keys,
                paged_values,
                table,
                starts,
                lengths,
                80,
                11,
                one,
                one,
                sliding_window=max(window[0], 0),
                sm_scale=0.1,
                sinks=sinks,
            )
    for buffers, grouped in ((keys, True), (random(blocks, size, heads, dim, dtype=dtype), False)):
        with operation(f"decode_attention_fwd {dtype} {grouped}"):
            function(f"{ATTENTION}.triton_decode_attention", "decode_attention_fwd")(
                query[:3],
                buffers,
                buffers,
                out[:3],
                random(3, heads),
                table,
                lengths,
                random(3, heads, 4, dim + 1),
                4,
                0.1,
                size,
                k_scale=one,
                v_scale=one,
            )
    with operation(f"decode_attention_fwd mla {dtype}"):
        latent = random(blocks, size, 1, 576, dtype=dtype)
        function(f"{ATTENTION}.triton_decode_attention", "decode_attention_fwd")(
            random(3, 16, 576, dtype=dtype),
            latent,
            latent[..., :512],
            random(3, 16, 512, dtype=dtype),
            random(3, 16),
            table,
            lengths,
            random(3, 16, 4, 513),
            4,
            0.1,
            size,
            k_scale=one,
            v_scale=one,
            is_mla=True,
        )
    cache = f"{ATTENTION}.triton_reshape_and_cache_flash"
    mode = function("vllm.v1.kv_cache_interface", "KVQuantMode")
    eight = [t.to(torch.int8) for t in (keys, values)]
    scales = [random(blocks, size, shared) for _ in range(2)]
    call_all(
        cache,
        {
            "triton_reshape_and_cache_flash": [
                (new, new, keys, values, slots, "auto", one, one),
                (new, new, keys.to(FP8), values.to(FP8), slots, "fp8", one, one),
            ],
            "triton_reshape_and_cache_flash_diffkv": [
                (new, new, torch.cat([keys, values], -1), slots, "auto", one, one)
            ],
            "triton_reshape_and_cache_flash_per_token_head_quant": [
                (new, new, *eight, *scales, slots, mode.INT8_PER_TOKEN_HEAD),
                (new, new, *[t.to(FP8) for t in eight], *scales, slots, mode.FP8_PER_TOKEN_HEAD),
            ],
        },
        dtype,
    )
    half = [t[..., : dim // 2].to(torch.uint8).contiguous() for t in (keys, values)]
    call_all(
        f"{ATTENTION}.int4_per_token_head",
        {
            "reshape_and_cache_int4": [
                (new, new, *half, slots, {"k_scale_cache": scales[0], "v_scale_cache": scales[1]})
            ],
            "single_rht": [(new,), (new, True)],
            "unified_attention_int4": [
                (
                    query,
                    *half,
                    out,
                    {
                        "cu_seqlens_q": starts,
                        "max_seqlen_q": 11,
                        "seqused_k": lengths,
                        "max_seqlen_k": 80,
                        "softmax_scale": 0.1,
                        "window_size": (-1, -1),
                        "block_table": table,
                        "softcap": 0.0,
                        "sinks": None,
                        "alibi_slopes": None,
                        "use_alibi_sqrt": False,
                        "qq_bias": None,
                        "output_scale": None,
                        "mm_prefix_range": None,
                        "k_scale_cache": scales[0],
                        "v_scale_cache": scales[1],
                    },
                )
            ],
        },
        dtype,
    )
    call_all(
        f"{ATTENTION}.triton_merge_attn_states",
        {"merge_attn_states": [(out, query, lse, query, lse), (out, query, lse, query, lse, lse.clone())]},
        dtype,
    )
    call_all(
        f"{ATTENTION}.common",
        {
            "pack_seq_triton": [(query, ints(5, 4, 11)), (new.flatten(1), ints(5, 4, 11), 0.0)],
            "unpack_seq_triton": [(random(3, 11, heads, dim, dtype=dtype), ints(5, 4, 11))],
        },
        dtype,
    )
    call_all(
        f"{ATTENTION}.metadata", {"compute_token_to_req_indices": [(starts, full(0, 24), 20, 24)]}, dtype
    )
    call_all(
        f"{ATTENTION}.xpu_mla_sparse",
        {
            "triton_bf16_mla_sparse_interface": [
                (random(7, 16, 576, dtype=dtype), random(128, 1, 576, dtype=dtype), full(3, 7, 1, 64), 0.1)
            ]
        },
        dtype,
    )
    call_all(
        f"{ATTENTION}.rocm_aiter_mla_sparse",
        {
            "indexer_k_quant_and_cache_triton": [
                (random(20, 128, dtype=dtype), full(0, 8, 64, 132, dtype=torch.uint8), slots, 128, "ue8m0")
            ],
            "build_ragged_indices_from_dense": [(full(1, 20, 64), full(9, 20))],
            "rocm_fp8_paged_mqa_logits_triton": [
                (
                    random(3, 1, 32, 128).to(FP8),
                    full(0, 24, 64, 1, 132, dtype=torch.uint8),
                    random(3, 32),
                    lengths,
                    table,
                    512,
                )
            ],
        },
        dtype,
    )
    call_all(
        "vllm.v1.attention.backends.mla.sparse_utils",
        {
            "triton_convert_req_index_to_global_index": [
                (full(0, 20), table, full(1, 20, 128), {"NUM_TOPK_TOKENS": 128, "BLOCK_SIZE": size}),
                (full(0, 20), table, full(1, 20, 256), {"NUM_TOPK_TOKENS": 256, "return_valid_counts": True}),
            ]
        },
        dtype,
    )
    call_all(
        "vllm.v1.pool.flash_maxsim.flash_maxsim_rerank",
        {
            "flash_maxsim_rerank_direct": [
                (
                    random(9, dim, dtype=dtype),
                    random(40, dim, dtype=dtype),
                    ints(0, 10, 25),
                    ints(10, 15, 15),
                    15,
                )
            ]
        },
        dtype,
    )


def layers(dtype: torch.dtype, tokens: int, width: int) -> None:
    x, weight = random(tokens, width, dtype=dtype), random(width, dtype=dtype)
    call_all(
        f"{LAYERS}.activation", {"swiglustep_and_mul_triton": [(x[:, : width // 2].contiguous(), x)]}, dtype
    )
    call_all(
        f"{LAYERS}.fused_embed_norm",
        {
            "fused_embed_norm": [
                (full(1, tokens, dtype=LONG), random(99, width, dtype=dtype), weight, 1e-6),
                (full(1, tokens, dtype=LONG), random(99, width, dtype=dtype)),
            ],
            "fused_embed_eh_norm": [
                (
                    full(1, tokens, dtype=LONG),
                    full(1, tokens, dtype=LONG),
                    random(99, width, dtype=dtype),
                    x,
                    weight,
                    weight,
                    1e-6,
                )
            ],
        },
        dtype,
    )
    quantized = x.to(torch.int8)
    call_all(
        f"{LAYERS}.quantization.utils.int8_utils",
        {"per_token_quant_int8": [(x,)], "per_token_group_quant_int8": [(x, 128), (x, 64)]},
        dtype,
    )
    square, square_scales = random(512, width).to(FP8), random(4, width // 128)
    call_all(
        f"{LAYERS}.quantization.utils.fp8_utils",
        {
            "per_token_group_quant_fp8": [
                (x, 128),
                (x, 128, {"column_major_scales": True}),
                (x, 64, {"use_ue8m0": True}),
            ],
            "silu_mul_per_token_group_quant_fp8_colmajor": [(x,), (x, {"use_ue8m0": True})],
            "silu_mul_quant_fp8_packed_triton": [(x,), (x, {"clamp_limit": 7.0})],
            "per_token_group_quant_fp8_packed_for_deepgemm": [(x, 128)],
            "w8a8_triton_block_scaled_mm": [
                (
                    x.to(FP8),
                    square,
                    random(tokens, width // 128),
                    square_scales,
                    [128, 128],
                    {"output_dtype": dtype},
                )
            ],
        },
        dtype,
    )
    call_all(
        f"{LAYERS}.quantization.compressed_tensors.triton_scaled_mm",
        {
            "triton_scaled_mm": [
                (quantized, square.to(torch.int8).t(), random(tokens, 1), random(512, 1), dtype),
                (x.to(FP8), square.t(), random(1, 1), random(1, 1), dtype, random(512, dtype=dtype)),
            ]
        },
        dtype,
    )
    packed, zeros = full(7, width, 64), full(7, width // 128, 64)
    scales = random(width // 128, 512, dtype=dtype)
    call_all(
        f"{LAYERS}.quantization.awq_triton",
        {
            "awq_dequantize_triton": [(packed, scales, zeros)],
            "awq_gemm_triton": [(x, packed, scales, zeros, 1), (x, packed, scales, zeros, 4)],
        },
        dtype,
    )
    call_all(
        "vllm.model_executor.kernels.linear.mixed_precision.triton_w4a16",
        {"triton_w4a16_gemm": [(x, packed, scales, None, 128), (x, packed, scales, zeros, 128)]},
        dtype,
    )
    call_all(f"{LAYERS}.quantization.utils.mxfp4_utils", {"mxfp4_quantize": [(x,)]}, dtype)
    call_all(
        f"{LAYERS}.quantization.utils.nvfp4_emulation_utils",
        {
            "dequantize_to_dtype": [
                (
                    full(1, 512, width // 2, dtype=torch.uint8),
                    random(512, width // 16).to(FP8),
                    torch.ones(1, device="cuda"),
                    dtype,
                    {"swizzle": False},
                )
            ],
            "ref_nvfp4_quant_dequant": [(x, torch.ones(1, device="cuda"), 16)],
        },
        dtype,
    )
    call_all(
        f"{LAYERS}.quantization.qutlass_utils",
        {"triton_mx_block_rearrange": [(full(1, tokens, width // 32, dtype=torch.uint8),)]},
        dtype,
    )
    call_all(
        f"{LAYERS}.fused_moe.moe_fused_mul_sum",
        {"moe_fused_mul_sum": [(random(tokens, 4, width, dtype=dtype), random(tokens, 4))]},
        dtype,
    )
    call_all(
        f"{LAYERS}.fused_moe.utils",
        {
            "count_expert_num_tokens": [(full(1, tokens, 2), 8, None)],
            "remap_topk_to_local": [(full(1, tokens, 2), full(1, 8))],
        },
        dtype,
    )
    call_all(
        f"{LAYERS}.fused_moe.fused_moe",
        {"zero_experts_compute_triton": [(full(1, tokens, 2), random(tokens, 2), 8, "identity", x)]},
        dtype,
    )
    experts = random(8, 256, width, dtype=dtype), random(8, width, 128, dtype=dtype), random(tokens, 2)
    for kind, size in ((None, None), (FP8, None), (FP8, [128, 128]), (torch.int8, None)):
        up, down = (t if kind is None else t.to(kind) for t in experts[:2])
        keywords = {"use_fp8_w8a8": kind == FP8, "use_int8_w8a16": kind == torch.int8, "block_shape": size}
        if size:
            keywords |= {"w1_scale": random(8, 2, width // 128), "w2_scale": random(8, width // 128, 1)}
        elif kind == torch.int8:
            keywords |= {"w1_scale": random(8, 256), "w2_scale": random(8, width)}
        elif kind:
            keywords |= {"w1_scale": random(8), "w2_scale": random(8)}
        call_all(
            f"{LAYERS}.fused_moe.fused_moe",
            {"fused_experts_impl": [(x.clone(), up, down, experts[2], full(1, tokens, 2), keywords)]},
            dtype,
        )
    call_all(
        f"{LAYERS}.fused_moe.deep_gemm_utils",
        {
            "ep_gather": [
                (x, full(1, tokens, 2), random(tokens, 2), full(1, tokens, 2), None, torch.empty_like(x))
            ],
            "ep_scatter": [
                (
                    x.to(FP8),
                    random(tokens, width // 128),
                    full(1, tokens, 2),
                    full(tokens, 8),
                    None,
                    full(0, 8),
                    random(2048, width).to(FP8),
                    random(2048, width // 128),
                    full(0, 2048),
                    full(0, tokens, 2),
                )
            ],
        },
        dtype,
    )
    call_all(
        f"{LAYERS}.fused_moe.experts.batched_deep_gemm_moe",
        {"persistent_masked_m_silu_mul_quant": [(random(8, 16, width, dtype=dtype), full(3, 8))]},
        dtype,
    )
    for name in ("rmsnorm_nw",):
        call_all("vllm.model_executor.kernels.mhc.triton", {name: [(x, 1e-6)]}, dtype)


def mixers(dtype: torch.dtype, dim: int, tokens: int) -> None:
    heads, state = 4, 64
    call_all(
        f"{LAYERS}.lightning_attn",
        {
            "lightning_attention": [
                (*(random(2, heads, 512, dim, dtype=dtype) for _ in range(3)), random(heads))
            ],
            "linear_decode_forward_triton": [
                (
                    *(random(3, heads, 1, dim, dtype=dtype) for _ in range(3)),
                    random(8, heads, dim, dim),
                    random(heads),
                    ints(1, 2, 3),
                )
            ],
        },
        dtype,
    )
    width, starts = heads * dim, ints(0, tokens // 2, tokens)
    x, kernel = random(tokens, width, dtype=dtype), random(width, 4, dtype=dtype)
    states = random(8, 3, width, dtype=dtype).transpose(1, 2)
    call_all(
        f"{LAYERS}.mamba.ops.causal_conv1d",
        {
            "causal_conv1d_fn": [
                (
                    x.t(),
                    kernel,
                    random(width, dtype=dtype),
                    states,
                    starts,
                    {"cache_indices": ints(1, 2), "has_initial_state": ints(1, 0).bool()},
                )
            ],
            "causal_conv1d_update": [
                (
                    x[:3],
                    states,
                    kernel,
                    random(width, dtype=dtype),
                    "silu",
                    {"conv_state_indices": ints(1, 2, 3)},
                ),
                (x[:3], states, kernel, None, None, {"conv_state_indices": ints(1, 2, 3)}),
            ],
        },
        dtype,
    )
    call_all(
        f"{LAYERS}.mamba.ops.layernorm_gated",
        {
            "rms_norm_gated": [
                (x, kernel[:, 0].contiguous(), None, z, 1e-6, group)
                for z in (None, x)
                for group in (None, dim)
            ]
        },
        dtype,
    )
    parameters = random(heads, dim, state), random(3, 1, state, dtype=dtype), random(3, 1, state, dtype=dtype)
    new = random(3, heads, dim, dtype=dtype)
    call_all(
        f"{LAYERS}.mamba.ops.mamba_ssm",
        {
            "selective_state_update": [
                (
                    random(8, heads, dim, state, dtype=dtype),
                    new,
                    new,
                    *parameters,
                    random(heads, dim),
                    random(heads, dim),
                    {
                        "z": z,
                        "dt_softplus": True,
                        "state_batch_indices": ints(1, 2, 3),
                        "out": torch.empty_like(new),
                    },
                )
                for z in (None, new)
            ]
        },
        dtype,
    )
    call_all(
        f"{LAYERS}.mamba.ops.gather_initial_states",
        {
            "gather_initial_states": [
                (random(8, heads, dim, state, dtype=dtype), ints(1, 2, 3), ints(1, 0, 1).bool())
            ]
        },
        dtype,
    )
    call_all(
        f"{LAYERS}.mamba.ops.scatter_states",
        {
            "scatter_states": [
                (
                    random(8, heads, dim, state, dtype=dtype),
                    random(3, heads, dim, state, dtype=dtype),
                    ints(1, 2, 3),
                )
            ]
        },
        dtype,
    )
    call_all(
        f"{LAYERS}.mamba.ops.ssd_combined",
        {
            "mamba_chunk_scan_combined_varlen": [
                (
                    random(128, heads, dim, dtype=dtype),
                    random(128, heads, dtype=dtype),
                    random(heads),
                    random(128, 1, state, dtype=dtype),
                    random(128, 1, state, dtype=dtype),
                    64,
                    ints(0, 128),
                    ints(0, 64, 128),
                    ints(1),
                    ints(0, 0),
                    torch.empty(128, heads, dim, device="cuda", dtype=dtype),
                    {"D": random(heads), "dt_bias": random(heads), "dt_softplus": True, "z": z},
                )
                for z in (None, random(128, heads, dim, dtype=dtype))
            ]
        },
        dtype,
    )
    q, k = random(1, 128, heads, dim, dtype=dtype), random(1, 128, heads, dim, dtype=dtype)
    with operation(f"gated delta rule {dtype}"):
        package = import_module("vllm.third_party.flash_linear_attention.ops")
        gates = -random(1, 128, heads)
        package.chunk_gated_delta_rule(
            q,
            k,
            q.clone(),
            gates,
            random(1, 128, heads, dtype=dtype),
            initial_state=random(1, heads, dim, dim),
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )
        package.fused_recurrent_gated_delta_rule(
            q,
            k,
            q.clone(),
            gates,
            random(1, 128, heads, dtype=dtype),
            initial_state=random(2, heads, dim, dim),
            cu_seqlens=ints(0, 128, dtype=LONG),
            ssm_state_indices=ints(1),
            use_qk_l2norm_in_kernel=True,
        )
    cosines = random(3, tokens, dim // 2, dtype=dtype)
    sections = [dim // 8, dim // 8, dim // 4]
    call_all(
        f"{LAYERS}.rotary_embedding.mrope",
        {
            "triton_mrope": [
                (x, x.clone(), cosines, cosines, sections, dim, dim, inter, True) for inter in (False, True)
            ]
        },
        dtype,
    )
    call_all(
        f"{LAYERS}.fused_qk_norm_rope",
        {
            "fused_qk_rmsnorm_rope_gate": [
                (
                    random(tokens, heads * dim * 2, dtype=dtype),
                    x,
                    random(dim, dtype=dtype),
                    random(dim, dtype=dtype),
                    random(256, dim, dtype=dtype),
                    torch.arange(tokens, device="cuda"),
                    1e-6,
                    heads,
                    heads,
                    dim,
                    dim,
                )
            ]
        },
        dtype,
    )


def sampling(dtype: torch.dtype, rows: int, vocabulary: int) -> None:
    logits, mapping = random(rows, vocabulary, dtype=dtype), torch.arange(rows, device="cuda", dtype=INT)
    heat, seed, place = random(rows), full(7, rows, dtype=LONG), full(3, rows, dtype=LONG)
    words = torch.zeros(rows, 64, dtype=INT, device="cuda")
    counts = torch.zeros(rows, vocabulary, dtype=INT, device="cuda")
    mask = torch.zeros(rows, -(-vocabulary // 32), dtype=INT, device="cuda")
    length, starts = full(9, rows), torch.arange(rows + 1, device="cuda", dtype=INT)
    sample = f"{GPU}.sample"
    for module, calls in {
        f"{sample}.gumbel": {
            "apply_temperature": [(logits, mapping, heat)],
            "gumbel_sample": [
                (logits, mapping, heat, seed, place, flag, False, {"use_fp64": flag})
                for flag in (True, False)
            ],
        },
        f"{sample}.min_p": {"apply_min_p": [(logits, mapping, heat)]},
        f"{sample}.bad_words": {
            "apply_bad_words": [
                (logits, mapping, words, words, length, words, length, length, mapping, full(0, rows), 4)
            ]
        },
        f"{sample}.logit_bias": {
            "apply_logit_bias": [
                (
                    logits,
                    mapping,
                    place,
                    length,
                    words,
                    length,
                    words,
                    random(rows, 64),
                    length,
                    length,
                    length.bool(),
                    words,
                )
            ]
        },
        f"{sample}.logprob": {
            "compute_token_logprobs": [(logits, words[:, :5].long()), (logits, words[:, :1].long())],
            "compute_topk_scores": [(logits, 5, words[:, 0].long())],
        },
        f"{sample}.penalties": {
            "apply_penalties": [(logits, mapping, mapping, full(0, rows), heat, heat, heat, mask, counts)],
            "bincount": [(mapping, words, length, length, mask, counts, 64)],
        },
        f"{sample}.trace_replay": {
            "apply_trace_tokens": [(words[:, :1].long(), mapping, words, length, length, length)]
        },
        f"{GPU}.metrics.logits": {"get_num_nans": [(logits,)]},
        f"{GPU}.input_batch": {
            "prepare_prefill_inputs": [(full(0, rows * 2), mapping, mapping, starts, words, length, length)],
            "prepare_pos_seq_lens": [(mapping, starts, length, place, length)],
            "combine_sampled_and_draft_tokens": [
                (
                    full(0, rows * 2),
                    mapping,
                    words[:, :1].long(),
                    starts,
                    length,
                    length,
                    words.long(),
                    starts,
                    rows,
                )
            ],
            "get_num_sampled_and_rejected": [(length, length, starts, mapping, length)],
            "post_update": [
                (
                    mapping,
                    length,
                    words[:, :1].long(),
                    counts,
                    words[:, :2].long(),
                    length,
                    length,
                    starts,
                    words,
                    length,
                )
            ],
            "post_update_num_computed_tokens": [(mapping, length, starts)],
            "expand_idx_mapping": [(mapping, rows, starts, 4)],
        },
        f"{GPU}.cp_utils": {"prepare_dcp_local_seq_lens": [(full(0, rows), length, rows, 2, 0, 1)]},
        f"{GPU}.spec_decode.rejection_sampler_utils": {
            "rejection_sample": [
                (
                    random(rows * 3, vocabulary, dtype=dtype),
                    draft,
                    full(1, rows * 3, dtype=LONG),
                    starts * 3,
                    full(3, rows * 3, dtype=LONG),
                    mapping,
                    mapping.repeat_interleave(3),
                    ints(0, 1, 2).repeat(rows),
                    heat,
                    seed,
                    2,
                    {"use_block_verification": block},
                )
                for draft in (None, random(rows, 2, vocabulary, dtype=dtype))
                for block in (False, True)
            ]
        },
        "vllm.v1.sample.ops.topk_topp_triton": {
            "apply_top_k_top_p_triton": [
                (logits.float(), k, p)
                for k, p in ((full(9, rows), None), (None, heat), (full(9, rows), heat))
            ]
        },
        "vllm.v1.sample.rejection_sampler": {
            "expand_batch_to_tokens": [(heat, starts[1:], rows), (length, starts[1:], rows)]
        },
        "vllm.v1.spec_decode.utils": {
            "eagle_step_update_slot_mapping_and_metadata": [
                (place, words, length, 16, 512, place.clone(), place.clone())
            ]
        },
        "vllm.v1.spec_decode.fly": {
            "compute_fly_entropy": [(logits.float(), 3), (logits.float(), 3, {"from_logits": True})]
        },
    }.items():
        call_all(module, calls, dtype)


def adapters(dtype: torch.dtype, rank: int, tokens: int) -> None:
    hidden = 512
    x, place = random(tokens, hidden, dtype=dtype), torch.arange(tokens, device="cuda", dtype=INT) % 2
    order = torch.argsort(place, stable=True).to(INT)
    half = tokens // 2
    meta = place, order, ints(tokens - half, half, 0), ints(0, tokens - half, tokens, tokens), ints(0, 1, -1)
    flag = torch.tensor([False])
    inner = random(2, tokens, rank)
    for module, name, arguments in (
        (
            "lora_shrink_op",
            "lora_shrink",
            (x, [random(2, rank, hidden, dtype=dtype) for _ in range(2)], inner),
        ),
        (
            "lora_expand_op",
            "lora_expand",
            (
                inner,
                [random(2, hidden, rank, dtype=dtype) for _ in range(2)],
                random(tokens, hidden * 2, dtype=dtype),
            ),
        ),
    ):
        with operation(f"{name} {dtype} {rank}"):
            call = function(f"vllm.lora.ops.triton_ops.{module}", name)
            number = torch.tensor([2], dtype=INT)
            rest = (1.0,) if "shrink" in name else ()
            call(*arguments, *meta, flag, number, *rest)


for dtype, dim, size in ((torch.float16, 64, 16), (torch.bfloat16, 128, 16), (torch.bfloat16, 64, 32)):
    attention(dtype, dim, size)
for dtype, tokens, width in ((torch.float16, 64, 512), (torch.bfloat16, 33, 1024), (torch.bfloat16, 1, 512)):
    layers(dtype, tokens, width)
for dtype, dim, tokens in ((torch.float16, 64, 64), (torch.bfloat16, 128, 37), (torch.float32, 64, 33)):
    mixers(dtype, dim, tokens)
for dtype, rows, vocabulary in (
    (torch.float32, 8, 4096),
    (torch.bfloat16, 5, 32001),
    (torch.float16, 16, 4096),
):
    sampling(dtype, rows, vocabulary)
for dtype, rank, tokens in ((torch.float16, 16, 64), (torch.bfloat16, 32, 37), (torch.bfloat16, 64, 1)):
    adapters(dtype, rank, tokens)
