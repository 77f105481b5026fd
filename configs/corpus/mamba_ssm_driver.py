"""Call the operations of mamba-ssm 2.3.2.post1."""

from __future__ import annotations

import importlib

import torch
from operations import operation

FP32, HALF, BF16 = torch.float32, torch.float16, torch.bfloat16


def randn(*shape: int, dtype: torch.dtype = FP32, grad: bool = True) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_(grad)


def backward(outputs: object) -> None:
    """Differentiate all outputs that are part of a graph."""
    tensors = [o for o in (outputs if isinstance(outputs, (tuple, list)) else [outputs]) if o is not None]
    tensors = [t for t in tensors if t.requires_grad]
    torch.autograd.backward(tensors, [torch.randn_like(t) for t in tensors])


def find(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"mamba_ssm.{module}"), attribute)


def scan(dtype: torch.dtype, length: int, dim: int, state: int, groups: int) -> None:
    """Call the state space duality."""
    heads, chunk = 4, 64
    dt = torch.rand(2, length, heads, device="cuda").requires_grad_()
    a, bias = -torch.rand(heads, device="cuda"), randn(heads)
    x, z = randn(2, length, heads, dim, dtype=dtype), randn(2, length, heads, dim, dtype=dtype)
    b, c = randn(2, length, groups, state, dtype=dtype), randn(2, length, groups, state, dtype=dtype)
    combined = find("ops.triton.ssd_combined.mamba_chunk_scan_combined")
    variants = (
        {},
        {"D": randn(heads), "dt_bias": bias, "dt_softplus": True},
        {"D": randn(heads, dim), "z": z, "initial_states": randn(2, heads, dim, state, dtype=dtype)},
        {"seq_idx": (torch.arange(length) // 50).int().expand(2, -1).contiguous().cuda()},
    )
    for options in variants:
        with operation(f"chunk scan {sorted(options)}"):
            backward(combined(x, dt, a.detach().requires_grad_(), b, c, chunk, **options))
    with operation("chunk scan with its state"):
        backward(combined(x, dt, a, b, c, chunk, return_final_states=True))
    with operation("chunk scan of packed sequences"):
        ends = torch.tensor([0, 30, length], dtype=torch.int32).cuda()
        index = torch.repeat_interleave(torch.arange(2), torch.tensor([30, length - 30])).int()[None].cuda()
        one = [t[:1].detach().contiguous() for t in (x, dt, b, c)]
        more = {"seq_idx": index, "cu_seqlens": ends, "return_varlen_states": True}
        combined(one[0], one[1], a, one[2], one[3], chunk, **more)
    parts(dtype, length, dim, state, groups)


def parts(dtype: torch.dtype, length: int, dim: int, state: int, groups: int) -> None:
    """Call the functions of which the scan consists, some of which it does not call itself."""
    heads, chunk = 4, 64
    length = length // chunk * chunk
    chunks = length // chunk
    x, b = randn(2, length, heads, dim, dtype=dtype), randn(2, length, groups, state, dtype=dtype)
    c = randn(2, length, groups, state, dtype=dtype)
    dt, decay = (
        randn(2, heads, chunks, chunk, grad=False).sigmoid(),
        randn(2, heads, chunks, chunk, grad=False),
    )
    with operation("chunk state"):
        backward(
            find("ops.triton.ssd_chunk_state.chunk_state")(b, x, dt.requires_grad_(), decay.requires_grad_())
        )
    with operation("state passing"):
        states, start = randn(2, chunks, heads, dim * state), randn(2, heads, dim * state)
        backward(find("ops.triton.ssd_state_passing.state_passing")(states, decay[..., -1].detach(), start))
    with operation("chunk scan of states"):
        states = randn(2, chunks, heads, dim, state, dtype=dtype)
        z = randn(2, length, heads, dim, dtype=dtype)
        chunk_scan = find("ops.triton.ssd_chunk_scan.chunk_scan")
        for skip, gate in ((None, None), (randn(heads), z), (randn(heads, dim), None)):
            backward(chunk_scan(b, c, x, dt, decay, states, D=skip, z=gate))


def layers(dtype: torch.dtype, rows: int, width: int) -> None:
    def x(*shape: int) -> torch.Tensor:
        return randn(*shape, dtype=dtype)

    w, b = x(width), x(width)
    variants = (
        {},
        {"residual": x(2, rows, width), "prenorm": True},
        {"residual": x(2, rows, width), "x1": x(2, rows, width), "weight1": x(width), "dropout_p": 0.1},
        {"rowscale": x(2, rows), "residual_in_fp32": True, "prenorm": True},
    )
    for name in ("layer_norm_fn", "rms_norm_fn"):
        for options in variants if dtype is BF16 else variants[1:2]:
            with operation(f"{name} {sorted(options)}"):
                bias = None if "x1" in options else b
                backward(find(f"ops.triton.layer_norm.{name}")(x(2, rows, width), w, bias, **options))
    with operation("norm and linear"):
        args = x(2, rows, width), w, b, x(64, width), x(64)
        backward(find("ops.triton.layer_norm.layer_norm_linear_fn")(*args))
    for name in ("layernorm_fn", "rmsnorm_fn"):
        for gate, size, before in ((None, None, True), (True, None, False), (True, width // 4, True)):
            with operation(f"gated {name} {size} {before}"):
                z = x(2, rows, width) if gate else None
                function = find(f"ops.triton.layernorm_gated.{name}")
                backward(function(x(2, rows, width), w, b, z, group_size=size, norm_before_gate=before))
    with operation("swiglu"):
        backward(find("ops.triton.k_activations.swiglu")(x(2, rows, 2 * width)))
    with operation("state update"):
        update = find("ops.triton.selective_state_update.selective_state_update")
        for state in (16, 64, 128):
            with torch.no_grad():
                a = -torch.rand(4, width // 4, state, device="cuda")
                heads, groups = (2, 4, width // 4), (2, 1, state)
                more = {"D": randn(4, width // 4), "z": x(*heads), "dt_bias": randn(4, width // 4)}
                old = x(2, 4, width // 4, state)
                update(old, x(*heads), x(*heads), a, x(*groups), x(*groups), dt_softplus=True, **more)
                index = torch.tensor([1, 0], dtype=torch.int32).cuda()
                update(
                    old, x(*heads), x(*heads), a, x(*groups), x(*groups), state_batch_indices=index, **more
                )


def third(dtype: torch.dtype, length: int, dim: int, state: int) -> None:
    """Call Mamba-3's operations."""
    heads, queries = 4, 2
    ends = torch.tensor([0, 60, length], dtype=torch.int32).cuda()
    for options in ({}, {"D": 1}, {"D": 1, "Z": 1, "return_final_states": True}, {"cu_seqlens": ends}):
        with operation(f"mamba-3 {sorted(options)}"):
            batch = 1 if "cu_seqlens" in options else 2
            q, k = (randn(batch, length, queries, state, dtype=dtype) for _ in range(2))
            v, z = (randn(batch, length, heads, dim, dtype=dtype) for _ in range(2))
            rates = [
                -torch.rand(batch, heads, length, device="cuda"),
                torch.rand(batch, heads, length, device="cuda"),
            ]
            rates = [r.requires_grad_() for r in rates]
            trap, angles = randn(batch, heads, length, dtype=dtype), randn(batch, length, heads, state // 4)
            tensors = {"D": randn(heads), "Z": z}
            more = {name: tensors.get(name, value) for name, value in options.items()}
            biases = randn(heads, state), randn(heads, state)
            combined = find("ops.triton.mamba3.mamba3_siso_combined.mamba3_siso_combined")
            backward(combined(q, k, v, *rates, trap, *biases, angles, **more))
    with operation("mamba-3 of one step"), torch.no_grad():
        q, k = (randn(2, queries, state, dtype=dtype) for _ in range(2))
        v, z, dt, trap = (
            randn(2, heads, dim, dtype=dtype),
            randn(2, heads, dim, dtype=dtype),
            *randn(2, 2, heads),
        )
        angles = randn(2, heads, state // 4)
        states = angles.clone(), randn(2, heads, dim, state), randn(2, heads, state, dtype=dtype), v.clone()
        step = find("ops.triton.mamba3.mamba3_siso_step.mamba3_siso_step")
        args = q, k, v, -dt.abs(), dt.abs(), trap, randn(heads, state), randn(heads, state), angles
        step(*args, randn(heads), z, states)
        step(*args, Input_States=states)
    with operation("rotary of one step"), torch.no_grad():
        q, angles = randn(2, 4, heads, state, dtype=dtype), randn(2, heads, state // 4)
        rotate = find("ops.triton.mamba3.mamba3_mimo_rotary_step.apply_rotary_qk_inference_fwd")
        for pairwise in (True, False):
            rotate(q, q, angles, angles, randn(2, heads), rotate_pairwise=pairwise)
        rotate(q, q, angles, angles, randn(2, heads), randn(4, heads, state), randn(4, heads, state))
    mimo(dtype, heads)


def mimo(dtype: torch.dtype, heads: int) -> None:
    name = "ops.triton.mamba3.mamba3_mimo_utils."
    for chunk, length in ((16, 128), (32, 192), (64, 256)):
        ends = torch.tensor([0, 60, length], dtype=torch.int32).cuda()
        with operation("mamba-3's sums"), torch.no_grad():
            da = -torch.rand(2, heads, length, device="cuda")
            find(name + "compute_dacs_segsum_triton")(da, chunk)
            find(name + "compute_dacs_segsum_triton_varlen")(da[:1].contiguous(), chunk, ends)
        with operation("mamba-3's gradients of sums"), torch.no_grad():
            rows = [randn(1, heads, length) for _ in range(4)]
            square = randn(1, heads, length // chunk, chunk, chunk)
            find(name + "bwd_dadt_fused_triton")(square, square, *rows, chunk)
            square = randn(1, heads, length // chunk + 2, chunk, chunk)
            find(name + "bwd_dadt_fused_triton_varlen")(square, square, *rows, chunk, ends)
            rows[0] = rows[0].to(dtype)
            find(name + "bwd_dtrap_ddt_triton")(*rows, chunk)
            find(name + "bwd_dtrap_ddt_triton_varlen")(*rows, chunk, ends)


def main() -> None:
    torch.manual_seed(0)
    for dtype, length, dim, state, groups in (
        (BF16, 128, 64, 128, 1),
        (HALF, 200, 64, 64, 2),
        (FP32, 130, 32, 16, 1),
    ):
        scan(dtype, length, dim, state, groups)
        third(dtype, length, dim, state)
    for dtype, rows, width in ((BF16, 64, 256), (HALF, 33, 512), (FP32, 33, 200)):
        layers(dtype, rows, width)
    with operation("a layer of Mamba-2"):
        backward(
            find("modules.mamba2_simple.Mamba2Simple")(
                128, headdim=32, chunk_size=64, use_mem_eff_path=False
            ).cuda()(randn(2, 128, 128))
        )


if __name__ == "__main__":
    main()
