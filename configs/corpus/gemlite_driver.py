"""Call the operations of gemlite 0.6.0.post2."""

from __future__ import annotations

import inspect

import gemlite
import torch
from gemlite import DType, GemLiteLinear, bitpack, helper, quant_utils
from operations import operation

HALF, BF16 = torch.float16, torch.bfloat16
FULL = ("A16W8_INT8", "A16W8_FP8", "A8W8_int8_dynamic", "A8W8_fp8_dynamic", "A16W8_MXFP", "A16W4_MXFP")
SCALED = ("A8W8_MXFP_dynamic", "A8W4_MXFP_dynamic", "A4W4_MXFP_dynamic", "A4W4_NVFP_dynamic", "A16W4_NVFP")
ROWS = (1, 3, 17, 128)


def randn(*shape: int, dtype: torch.dtype = HALF) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def linear(features: int, out: int, dtype: torch.dtype) -> torch.nn.Linear:
    return torch.nn.Linear(features, out, bias=dtype is BF16, device="cuda", dtype=dtype).requires_grad_(
        False
    )


def grouped(
    bits: int, group: int, features: int, out: int, dtype: torch.dtype, symmetric: bool
) -> GemLiteLinear:
    """Make a layer of packed integers with a scale for each group."""
    kind = DType.FP16 if dtype is HALF else DType.BF16
    layer = GemLiteLinear(bits, group, features, out, kind, kind)
    weights = torch.randint(0, 2**bits, (out, features), device="cuda", dtype=torch.uint8)
    scales = randn(out * features // group, 1, dtype=dtype)
    zeros = 2 ** (bits - 1) if symmetric else torch.full_like(scales, 2 ** (bits - 1))
    layer.pack(weights, scales, zeros)
    return layer


def layers(features: int, out: int, dtype: torch.dtype) -> None:
    for name in (*FULL, *SCALED):
        layer = None
        with operation(f"{name} {features} x {out}"):
            layer = getattr(helper, name)(dtype=dtype).from_linear(linear(features, out, dtype))
        for rows in ROWS if layer is not None else ():
            with operation(f"{name} {rows} x {features} x {out}"):
                layer(randn(rows, features, dtype=dtype))
    for block in (False, True):
        for name in ("A8W8_int8_dynamic", "A8W8_fp8_dynamic"):
            with operation(f"{name} block {block}"):
                layer = getattr(helper, name)(dtype=dtype, block_quant=block).from_linear(
                    linear(features, out, dtype)
                )
                for rows in ROWS:
                    layer(randn(rows, features, dtype=dtype))
    for name in ("A16W158_INT", "A8W158_INT_dynamic"):
        with operation(name):
            weight = torch.randint(-1, 2, (out, features), device="cuda", dtype=torch.int8)
            layer = getattr(helper, name)(dtype=dtype).from_weights(
                weight, torch.tensor(0.5, device="cuda", dtype=dtype)
            )
            for rows in ROWS:
                layer(randn(rows, features, dtype=dtype))


def integers(features: int, out: int, dtype: torch.dtype) -> None:
    kinds = ("GEMV", "GEMV_SPLITK", "GEMV_REVSPLITK", "GEMM_SPLITK", "GEMM")
    for bits, group in ((8, features), (4, 64), (4, 128), (2, 64), (1, 64)):
        layer = None
        with operation(f"pack {bits} bits by {group}"):
            layer = grouped(bits, group, features, out, dtype, symmetric=bits == 8)
        for kind in kinds if layer is not None else ():
            with operation(f"{kind} of {bits} bits by {group}"):
                for rows in (1,) if "GEMV" in kind else (16, 100):
                    layer.forward_manual(randn(rows, features, dtype=dtype), matmul_type=kind)


def quantise(dtype: torch.dtype, rows: int, width: int) -> None:
    """Call each version of the activations' quantisation."""
    for name, function in sorted(vars(quant_utils).items()):
        if not name.startswith("scale_activations") or (
            "_triton_v" not in name and not name.endswith("_triton")
        ):
            continue
        if "kernel" in name or not inspect.isfunction(function):
            continue
        types = (torch.int8, torch.float8_e4m3fn) if "per_" in name else (None,)
        for kind in types:
            with operation(f"{name} {kind} {rows} x {width}"):
                function(randn(rows, width, dtype=dtype), *(() if kind is None else (kind,)))


def packing(out: int, features: int) -> None:
    for bits in (1, 2, 4, 8):
        weights = torch.randint(0, 2**bits, (out, features), device="cuda", dtype=torch.uint8)
        for width in (8, 32):
            for axis in ("rows", "cols"):
                for transpose in (False, True):
                    with operation(f"pack {bits} bits over {axis} into {width}"):
                        pack = getattr(bitpack, f"pack_weights_over_{axis}_triton")
                        packed, _ = pack(weights, bits, width, transpose)
                    if not transpose:
                        with operation(f"unpack {bits} bits over {axis} from {width}"):
                            size = features if axis == "cols" else out
                            getattr(bitpack, f"unpack_over_{axis}_triton")(packed, bits, size)


def main() -> None:
    torch.manual_seed(0)
    gemlite.set_autotune("fast")
    for features, out, dtype in ((512, 256, HALF), (384, 160, BF16)):
        layers(features, out, dtype)
        integers(features, out, dtype)
    for dtype, rows, width in ((HALF, 64, 512), (BF16, 3, 384), (BF16, 129, 4096)):
        quantise(dtype, rows, width)
    packing(64, 128)
    packing(96, 192)


if __name__ == "__main__":
    main()
