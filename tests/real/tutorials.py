"""The kernels of upstream's tutorials: which values each takes, by name, for whichever version."""

from __future__ import annotations

from tritonsmith.compiler.source import KernelSource

# What one argument means in all tutorials. Pointers are to what the tutorials pass, multiples of 16.
_COMMON = {
    "n_elements": "i32:16", "p": "fp32", "seed": "i32", "eps": "fp32", "stride": "i32:16", "N": "i32:16",
    "M": "i32:16", "K": "i32:16", "Z": "i32", "H": "i32", "N_CTX": "i32:16", "sm_scale": "fp32",
    "n_rows": "i32:16", "n_cols": "i32", "group_size": "i32", "group_a_ptrs": "*i64:16",
    "group_b_ptrs": "*i64:16", "group_c_ptrs": "*i64:16", "group_gemm_sizes": "*i32:16", "g_lds": "*i32:16",
    "BLOCK_SIZE": "1024", "BLOCK_SIZE_M": "128", "BLOCK_SIZE_N": "128", "BLOCK_SIZE_K": "64",
    "GROUP_SIZE_M": "8", "BLOCK_M": "128", "BLOCK_N": "64", "HEAD_DIM": "64", "STAGE": "3", "num_stages": "4",
    "NUM_SMS": "132", "NUM_SM": "132", "FP8_OUTPUT": "False", "EPILOGUE_SUBTILE": "False",
    "WARP_SPECIALIZE": "False", "warp_specialize": "False", "IS_HOPPER": "False", "FLATTEN": "True",
    "FP8": "False", "ACTIVATION": "leaky_relu", "BLOCK_M1": "32", "BLOCK_N1": "128", "BLOCK_M2": "128",
    "BLOCK_N2": "32", "BLK_SLICE_FACTOR": "2", "CAUSAL": "True", "x_keep_ptr": "*i32:16", "Lock": "*i32:16",
    "Mean": "*fp32:16", "Rstd": "*fp32:16", "Delta": "*fp32:16",
}  # fmt: skip
_HALF = "*fp16:16"
_FLOAT = "*fp32:16"

# Kernel -> what is particular to it.
KERNELS: dict[tuple[str, str], dict[str, str]] = {
    ("01", "add_kernel"): {"pointer": _FLOAT},
    ("02", "softmax_kernel"): {"pointer": _FLOAT},
    ("03", "matmul_kernel"): {"pointer": _HALF},
    ("04", "_dropout"): {"pointer": _FLOAT},
    ("04", "_seeded_dropout"): {"pointer": _FLOAT},
    ("05", "_layer_norm_fwd_fused"): {"pointer": _HALF},
    ("05", "_layer_norm_bwd_dx_fused"): {"pointer": _HALF, "BLOCK_SIZE_N": "1024"},
    ("05", "_layer_norm_bwd_dwdb"): {"pointer": _HALF, "BLOCK_SIZE_M": "32"},
    ("06", "_attn_fwd"): {"pointer": _HALF, "K": _HALF, "M": _FLOAT},
    ("06", "_attn_bwd_preprocess"): {"pointer": _HALF},
    ("06", "_attn_bwd"): {"pointer": _HALF, "K": _HALF, "M": _FLOAT, "D": _FLOAT},
    ("07", "asin_kernel"): {"pointer": _FLOAT},
    ("08", "grouped_matmul_kernel"): {"pointer": _HALF},
    ("09", "matmul_kernel"): {"pointer": _HALF},
    ("09", "matmul_kernel_persistent"): {"pointer": _HALF},
    ("09", "matmul_kernel_tma"): {
        "descriptor": "tensordesc<fp16[128,64]>",
        "c_desc": "tensordesc<fp16[128,128]>",
    },
    ("09", "matmul_kernel_descriptor_persistent"): {"pointer": _HALF},
}


def signature(number: str, kernel: KernelSource) -> str:
    """The signature of a tutorial's kernel, all by name."""
    own = KERNELS[number, kernel.name]
    return ",".join(f"{one.name}={own.get(one.name) or _value(one.name, own)}" for one in kernel.parameters)


def _value(name: str, own: dict[str, str]) -> str:
    if "descriptor" in own and name.endswith("_desc"):
        return own["descriptor"]
    if "stride" in name:
        return _COMMON.get(name, "i32:16")
    return _COMMON.get(name) or own["pointer"]
