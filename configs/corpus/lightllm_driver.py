"""Call the operations of lightllm 0.0.1."""

from __future__ import annotations

from importlib import import_module

import torch
from operations import operation

LONG = torch.int64


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(*shape, device="cuda").to(dtype)


def ints(*values: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype, device="cuda")


def full(value: float, *shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.full(shape, value, dtype=dtype, device="cuda")


def call_all(folder: str, label: object, **calls: tuple[str, tuple]) -> None:
    for module, (name, arguments) in calls.items():
        with operation(f"{folder}.{module}.{name} {label}"):
            getattr(import_module(f"lightllm.{folder}.{module}"), name)(*arguments)


def attention(dtype: torch.dtype, dim: int, shared: int) -> None:
    heads, slots, most = 8, 256, 80
    q, new = random(20, heads, dim, dtype=dtype), random(20, shared, dim, dtype=dtype)
    keys, values = random(slots, shared, dim, dtype=dtype), random(slots, shared, dim, dtype=dtype)
    table, requests = full(3, 8, 128), ints(0, 1, 2)
    starts, counts, lengths, cached = ints(0, 5, 9), ints(5, 4, 11), ints(20, 80, 33), ints(15, 76, 22)
    ends, one = ints(0, 20, 100), q[:3].contiguous()
    scores, alibi, out = random(heads, 133), random(heads), torch.empty_like(q)
    lone = torch.empty_like(one)
    llama, bloom, mistral = (f"models.{name}.triton_kernel" for name in ("llama", "bloom", "mistral"))
    eight, scale = keys.to(torch.int8), random(slots, shared, 1, dtype=dtype)
    call_all(
        llama,
        dtype,
        context_flashattention_nopad=(
            "context_attention_fwd",
            (q, keys, values, out, requests, starts, lengths, cached, 11, table),
        ),
        flash_decoding_stage1=(
            "flash_decode_stage1",
            (
                one,
                keys,
                values,
                table,
                requests,
                lengths,
                most,
                random(3, heads, 2, dim),
                random(3, heads, 2),
                64,
            ),
        ),
        flash_decoding_stage2=(
            "flash_decode_stage2",
            (random(3, heads, 2, dim), random(3, heads, 2), lengths, lone, 64),
        ),
        gqa_decode_flashattention_nopad=(
            "gqa_decode_attention_fwd",
            (one, keys, values, lone, table, requests, lengths),
        ),
        gqa_flash_decoding_stage1=(
            "flash_decode_stage1",
            (
                ints(0, 1, 1, 2),
                ints(0, 0, 64, 0),
                one,
                keys,
                values,
                table,
                requests,
                lengths,
                random(3, heads, 2, dim),
                random(3, heads, 2),
                64,
            ),
        ),
        gqa_flash_decoding_stage2=(
            "flash_decode_stage2",
            (random(3, heads, 2, dim), random(3, heads, 2), lengths, lone, 64),
        ),
        ppl_int4kv_copy_kv=(
            "destindex_copy_int4kv",
            (
                new,
                ints(*range(20)),
                random(slots, shared, dim // 2).to(torch.int8),
                random(slots, shared, dim // 8, dtype=dtype),
            ),
        ),
        ppl_quant_copy_kv=(
            "destindex_copy_quantize_kv",
            (new, ints(*range(20)), eight, random(slots, shared, dim // 8, dtype=dtype)),
        ),
        rotary_emb=(
            "rotary_emb_fwd",
            (q, new, random(20, dim // 2, dtype=dtype), random(20, dim // 2, dtype=dtype)),
        ),
        splitfuse_context_flashattention_nopad=(
            "splitfuse_context_attention_fwd",
            (q, keys, values, out, 3, table, requests, starts, cached, lengths, 11),
        ),
        token_attention_nopad_att1=(
            "token_att_fwd",
            (one, keys, scores, table, requests, ends, lengths, most),
        ),
        token_attention_nopad_reduceV=(
            "token_att_fwd2",
            (scores, values, lone, table, requests, ends, lengths),
        ),
        token_attention_nopad_softmax=("token_softmax_fwd", (scores, ends, lengths, scores.clone(), most)),
        token_attention_softmax_and_reducev=(
            "token_softmax_reducev_fwd",
            (scores, values, lone, table, requests, ends, lengths, 0),
        ),
    )
    call_all(
        llama,
        f"unquantised {dtype}",
        context_flashattention_nopad=(
            "context_attention_fwd_no_prompt_cache",
            (q, new, new, out, starts, counts, 11),
        ),
        splitfuse_context_flashattention_nopad=(
            "splitfuse_context_attention_fwd_int8kv",
            (q, eight, scale, eight, scale, out, 3, table, requests, starts, cached, lengths, 11),
        ),
        token_attention_nopad_att1=(
            "token_att_fwd_int8k",
            (one, eight, scale, scores, table, requests, ends, lengths, most),
        ),
        token_attention_nopad_reduceV=(
            "token_att_fwd2_int8v",
            (scores, eight, scale, lone, table, requests, ends, lengths, most),
        ),
    )
    call_all(
        bloom,
        dtype,
        context_flashattention_nopad=(
            "context_attention_fwd",
            (q, keys, values, out, requests, alibi, starts, lengths, cached, 11, table),
        ),
        token_attention_nopad_att1=(
            "token_att_fwd",
            (one, keys, scores, alibi, table, requests, ends, lengths, most),
        ),
        token_attention_nopad_reduceV=(
            "token_att_fwd2",
            (scores, values, lone, table, requests, ends, lengths),
        ),
        token_attention_nopad_softmax=("token_softmax_fwd", (scores, ends, lengths, scores.clone(), most)),
    )
    if shared == heads:
        call_all(
            bloom,
            dtype,
            token_flashattention_nopad=(
                "token_attention_fwd",
                (one, keys, values, lone, alibi, table, requests, ends, lengths, most, 133),
            ),
        )
    call_all(
        mistral,
        dtype,
        context_flashattention_nopad=("context_attention_fwd", (q, new, new, out, starts, counts, 11, 8)),
        token_attention_nopad_att1=(
            "token_att_fwd",
            (
                one,
                keys,
                scores,
                table,
                requests,
                ends,
                lengths,
                ints(4, 64, 17),
                ints(0, 16, 32),
                ints(16, 16, 16),
                16,
            ),
        ),
        token_attention_nopad_reduceV=(
            "token_att_fwd2",
            (
                scores,
                values,
                lone,
                table,
                requests,
                ends,
                lengths,
                ints(4, 64, 17),
                ints(0, 16, 32),
                ints(16, 16, 16),
            ),
        ),
        token_attention_softmax_and_reducev=(
            "token_softmax_reducev_fwd",
            (
                scores,
                values,
                lone,
                table,
                requests,
                ends,
                lengths,
                ints(4, 64, 17),
                ints(0, 16, 32),
                ints(16, 16, 16),
                0,
            ),
        ),
    )
    call_all(
        "models.chatglm2.triton_kernel",
        dtype,
        rotary_emb=(
            "rotary_emb_fwd",
            (q, new, random(20, dim // 4, dtype=dtype), random(20, dim // 4, dtype=dtype)),
        ),
    )
    basic = "common.basemodel.triton_kernel"
    call_all(basic, dtype, destindex_copy_kv=("destindex_copy_kv", (new, ints(*range(20)), keys)))
    call_all(
        basic,
        f"int8 {dtype}",
        destindex_copy_kv=("destindex_copy_quantize_kv", (new, ints(*range(20)), eight, scale)),
    )
    call_all(
        basic,
        dtype,
        copy_kv_index_to_req=("copy_kv_index_to_req", (table, requests, lengths, ints(7, 8, 9))),
        splitfuse_copy_kv_index_to_req=(
            "splitfuse_copy_kv_index_to_req",
            (table, requests, cached, lengths, ints(*range(20))),
        ),
    )


def rows(dtype: torch.dtype, tokens: int, width: int) -> None:
    x, weight = random(tokens, width, dtype=dtype), random(width, dtype=dtype)
    basic = "common.basemodel.triton_kernel"
    packed, scales = full(7, width // 8, 512), random(width // 128, 512, dtype=dtype)
    zeros = full(7, width // 128, 64)
    for name in ("matmul_dequantize_int4_gptq", "matmul_dequantize_int4_s2", "matmul_dequantize_int4_s1"):
        call_all(basic, dtype, dequantize_gemm_int4=(name, (x, packed, scales, zeros, 128)))
    with operation(f"dequantize_int4 {dtype}"):
        module = import_module(f"lightllm.{basic}.dequantize_gemm_int4")
        module.dequantize_int4(packed, scales, zeros, "cuda", dtype, 128)
    eight = random(width, 512).to(torch.int8)
    call_all(
        basic,
        dtype,
        dequantize_gemm_int8=("matmul_dequantize_int8", (x, eight, random(512, dtype=dtype))),
        quantize_gemm_int8=("matmul_quantize_int8", (x, eight, random(1, 512, dtype=dtype))),
        apply_penalty=(
            "apply_penalty",
            (
                x,
                *(random(tokens, dtype=dtype) for _ in range(3)),
                ints(*range(tokens)),
                full(2, tokens),
                ints(*range(tokens + 1)),
                9,
            ),
        ),
        multimodal_emb=(
            "multimodal_emb",
            (
                x,
                full(3, tokens, dtype=LONG),
                random(99, width, dtype=dtype),
                random(8, width, dtype=dtype),
                full(4, 2, dtype=LONG),
                ints(200, 300, dtype=LONG),
                ints(0, 4, dtype=LONG),
                0,
                99,
            ),
        ),
    )
    call_all(
        "models.llama.triton_kernel",
        dtype,
        rmsnorm=("rmsnorm_forward", (x, weight, 1e-6)),
        silu_and_mul=("silu_and_mul_fwd", (x,)),
    )
    call_all("models.gemma_2b.triton_kernel", dtype, gelu_and_mul=("gelu_and_mul_fwd", (x,)))
    call_all("models.bloom.triton_kernel", dtype, layernorm=("layernorm_forward", (x, weight, weight, 1e-6)))


for dtype, dim, shared in ((torch.float16, 64, 8), (torch.float16, 128, 2), (torch.bfloat16, 128, 8)):
    attention(dtype, dim, shared)
for dtype, tokens, width in ((torch.float16, 64, 1024), (torch.bfloat16, 33, 512), (torch.float16, 7, 512)):
    rows(dtype, tokens, width)
