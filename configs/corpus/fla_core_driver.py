"""Call the operations of fla-core 0.6.0."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress

import torch
from operations import operation
from torch.nn.functional import logsigmoid

HALF, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
HEADS = 2

# operation -> its arguments, each as name=kind: x queries, keys and values; l a log decay per head, L per
# channel; b a sigmoid per head, B per channel; d, D as l, L in FP32
SEQUENCES = {
    "abc.chunk_abc": "q=x k=x v=x s=S",
    "attn.parallel_attn": "q=x k=x v=x g=?d",
    "based.fused_chunk_based": "q=n k=n v=x",
    "based.parallel_based": "q=n k=n v=x",
    "rebased.parallel_rebased": "q=n k=n v=x",
    "comba.chunk_comba": "q=x k=x v=x p=x g=d beta=b",
    "comba.fused_recurrent_comba": "q=x k=x v=x p=x g=d beta=b",
    "delta_rule.chunk_delta_rule": "q=x k=x v=x beta=b",
    "delta_rule.fused_recurrent_delta_rule": "q=x k=x v=x beta=?b",
    "forgetting_attn.parallel_forgetting_attn": "q=x k=x v=x g=d",
    "gated_delta_product.chunk.chunk_gated_delta_product": "q=x k=2 v=2 g=d beta=3 num_householder=TWO",
    "gated_delta_rule.chunk_gated_delta_rule": "q=x k=x v=x g=d beta=b",
    "gated_delta_rule.fused_recurrent_gated_delta_rule": "q=x k=x v=x g=d beta=b",
    "gated_oja_rule.chunk_gated_oja_rule": "q=x k=x v=x gv=D beta=b",
    "gated_oja_rule.fused_recurrent_gated_oja_rule": "q=x k=x v=x gv=D beta=b",
    "gdn2.chunk_gdn2": "q=x k=x v=x g=D b=B w=B",
    "gdn2.fused_recurrent_gdn2": "q=x k=x v=x g=D b=B w=B",
    "generalized_delta_rule.chunk_dplr_delta_rule": "q=x k=x v=x a=x b=x gk=D",
    "generalized_delta_rule.fused_recurrent_dplr_delta_rule": "q=x k=x v=x a=x b=x gk=D",
    "generalized_delta_rule.chunk_iplr_delta_rule": "q=x k=x v=x a=x b=x",
    "generalized_delta_rule.fused_recurrent_iplr_delta_rule": "q=x k=x v=x a=x b=x",
    "gla.chunk_gla": "q=x k=x v=x g=L",
    "gla.fused_recurrent_gla": "q=x k=x v=x gk=L gv=?L",
    "gsa.chunk_gsa": "q=x k=x v=x s=S g=G",
    "gsa.fused_recurrent_gsa": "q=x k=x v=x s=S g=G",
    "hgrn.chunk.chunk_hgrn": "x=W g=Z",
    "hgrn.fused_recurrent_hgrn": "x=W g=Z",
    "kda.chunk_kda": "q=x k=x v=x g=D beta=b",
    "kda.fused_recurrent_kda": "q=x k=x v=x g=D beta=b",
    "lightnet.chunk.chunk_lightnet": "q=x k=x v=x",
    "lightnet.fused_recurrent.fused_recurrent_lightnet": "q=x k=x v=x",
    "lightning_attn.chunk_lightning_attn": "q=x k=x v=x layer_idx=TWO num_layers=FOUR",
    "lightning_attn.fused_recurrent_lightning_attn": "q=x k=x v=x layer_idx=TWO num_layers=FOUR",
    "linear_attn.chunk_linear_attn": "q=x k=x v=x",
    "linear_attn.fused_chunk_linear_attn": "q=x k=x v=x",
    "linear_attn.fused_recurrent_linear_attn": "q=x k=x v=x",
    "log_linear_attn.chunk_log_linear_attn": "q=x k=x v=x g=d level_scales=E",
    "mesa_net.chunk_mesa_net": "q=x k=x v=x g=d beta=f lamb=M",
    "momentum_delta_rule.chunk_momentum_delta_rule": "q=x k=x v=x log_alpha=d log_mu=d beta=b eta=b",
    "momentum_delta_rule.fused_recurrent_momentum_delta_rule": (
        "q=x k=x v=x log_alpha=d log_mu=d beta=b eta=b"
    ),
    "parallax.parallel_parallax": "q=x r=x k=x v=x",
    "path_attn.parallel_path_attn": "q=x k=x v=x w=y beta=f g=?d",
    "precond_gated_delta_rule.chunk_precond_gated_delta_rule": "q=x k=x v=x g_atk=d g=d beta_atk=b beta=b",
    "precond_gated_delta_rule.fused_recurrent_precond_gated_delta_rule": (
        "q=x k=x v=x g_atk=d g=d beta_atk=b beta=b"
    ),
    "precond_kda.chunk_precond_kda": "q=x k=x v=x g=D g_atk=d beta_atk=b beta=b",
    "precond_kda.fused_recurrent_precond_kda": "q=x k=x v=x g=D g_atk=d beta_atk=b beta=b",
    "retention.chunk_retention": "q=x k=x v=x",
    "retention.fused_chunk_retention": "q=x k=x v=x",
    "retention.fused_recurrent_retention": "q=x k=x v=x",
    "retention.parallel_retention": "q=x k=x v=x",
    "rwkv6.chunk_rwkv6": "r=x k=x v=x w=L u=U",
    "rwkv6.fused_recurrent_rwkv6": "r=x k=x v=x w=L u=U",
    "rwkv7.chunk_rwkv7": "r=x w=L k=x v=x a=x b=x",
    "rwkv7.fused_recurrent_rwkv7": "r=x w=L k=x v=x a=x b=x",
    "rwkv7.fused_mul_recurrent_rwkv7": "r=x w=L k=x v=x kk=x a=B",
    "simple_gla.chunk_simple_gla": "q=x k=x v=x g=?d",
    "simple_gla.fused_chunk_simple_gla": "q=x k=x v=x g=?d",
    "simple_gla.fused_recurrent_simple_gla": "q=x k=x v=x g=?d",
    "simple_gla.parallel_simple_gla": "q=x k=x v=x g=?d",
    "stickbreaking_attn.parallel_stickbreaking_attn": "q=x k=x v=x",
    "ttt.chunk_ttt_linear": "q=x k=x v=x w=P b=P eta=e",
    "ttt.fused_chunk_ttt_linear": "q=x k=x v=x w=P b=P eta=e",
    "wall_attn.parallel_wall_attn": "q=x k=x v=x g=L g_scalar=?l",
}
# operations that take no packed sequences in spite of a parameter for them
WHOLE = ("momentum_delta_rule", "ttt")
# operations with other kernels for wide heads
WIDE = ("gla.chunk", "rwkv6.chunk")
# operations once more with an option of theirs
OPTIONS = {
    "use_qk_l2norm_in_kernel": True,
    "state_v_first": True,
    "window_size": 32,
    "output_attentions": True,
    "safe_gate": True,
}


def randn(*shape: int, dtype: torch.dtype = FP32, grad: bool = True) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_(grad)


def backward(outputs: object) -> None:
    """Differentiate all floating-point outputs that are part of a graph."""
    tensors = [o for o in outputs if o is not None] if isinstance(outputs, (tuple, list)) else [outputs]
    tensors = [t for t in tensors if isinstance(t, torch.Tensor) and t.requires_grad]
    with suppress(NotImplementedError):  # operations for inference
        torch.autograd.backward(tensors, [torch.randn_like(t) for t in tensors])


def find(name: str) -> Callable:
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(f"fla.{module}"), function)


def argument(kind: str, batch: int, time: int, dim: int, dtype: torch.dtype) -> object:
    """Make an argument of a kind of SEQUENCES."""
    head, channel = (batch, time, HEADS), (batch, time, HEADS, dim)
    makers = {
        "x": lambda: randn(*channel, dtype=dtype),
        "y": lambda: randn(*channel),
        "M": lambda: randn(HEADS, dim).sigmoid(),
        "2": lambda: randn(batch, 2 * time, HEADS, dim, dtype=dtype),
        "3": lambda: randn(batch, 2 * time, HEADS, dtype=dtype),
        "n": lambda: randn(batch, time, HEADS, 16, dtype=dtype),
        "S": lambda: randn(batch, time, HEADS, 64, dtype=dtype),
        "G": lambda: logsigmoid(randn(batch, time, HEADS, 64, dtype=dtype)),
        "W": lambda: randn(batch, time, 4 * dim, dtype=dtype),
        "Z": lambda: logsigmoid(randn(batch, time, 4 * dim, dtype=dtype)),
        "l": lambda: logsigmoid(randn(*head, dtype=dtype)),
        "L": lambda: logsigmoid(randn(*channel, dtype=dtype)),
        "d": lambda: logsigmoid(randn(*head)),
        "D": lambda: logsigmoid(randn(*channel)),
        "b": lambda: randn(*head, dtype=dtype).sigmoid(),
        "B": lambda: randn(*channel, dtype=dtype).sigmoid(),
        "f": lambda: randn(*head).sigmoid(),
        "e": lambda: randn(*head, 1, dtype=dtype).sigmoid(),
        "E": lambda: randn(*head, 16).sigmoid(),
        "P": lambda: randn(HEADS, dim, dtype=dtype),
        "U": lambda: randn(HEADS, dim, dtype=dtype),
        "TWO": lambda: 2,
        "FOUR": lambda: 4,
    }
    return makers[kind]()


def calls(function: Callable) -> Iterator[tuple[int, int, int, torch.dtype, dict[str, object]]]:
    """Yield batch, length, head dim, type and options of the calls of a sequence operation."""
    whole = any(name in function.__module__ for name in WHOLE)
    parameters = inspect.signature(function).parameters
    state = {"output_final_state": True} if "output_final_state" in parameters else {}
    yield 2, 128, 64, BF16, state
    yield 1, 101, 128, HALF, {}
    if "cu_seqlens" in parameters and not whole:
        yield 1, 128, 64, BF16, {"cu_seqlens": torch.tensor([0, 50, 128], dtype=torch.int64).cuda()}
    if function.__module__.endswith(WIDE):
        yield 1, 64, 512, BF16, {}
        yield 1, 50, 320, HALF, {}
    for option, value in OPTIONS.items():
        if option in parameters:
            bound = {"lower_bound": -5.0} if option == "safe_gate" and "lower_bound" in parameters else {}
            yield 1, 64, 64, BF16, {option: value, **bound}


def sequences() -> None:
    for name, arguments in SEQUENCES.items():
        with operation(name):
            function = find(f"ops.{name}")
            pairs = [a.split("=") for a in arguments.split()]
            for number, (batch, time, dim, dtype, options) in enumerate(calls(function)):
                with operation(f"{name} {dim} {sorted(options)}"):
                    given = {k: v.strip("?") for k, v in pairs if "?" not in v or number % 2 == 0}
                    backward(
                        function(
                            **{k: argument(v, batch, time, dim, dtype) for k, v in given.items()}, **options
                        )
                    )


def main() -> None:
    torch.manual_seed(0)
    sequences()


if __name__ == "__main__":
    main()
