"""Functions of libdevice, of AMD's device libraries and of LLVM, computed in fp64 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _fp64(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: np.asarray(function(*(value.astype(np.float64) for value in values))).astype(
        values[0].dtype
    )


_HALF = 0.5  # which is rounded away from 0

_IN_FP64: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt, "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "log1p": np.log1p, "expm1": np.expm1, "pow": np.power,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "fabs": np.abs,
    "rsqrt": lambda value: 1 / np.sqrt(value), "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "ex2.approx": np.exp2, "ex2.approx.ftz": np.exp2, "div.full": np.divide, "sqrt.rn": np.sqrt,
    "div.rn": np.divide, "fma": lambda factor, times, plus: factor * times + plus, "maxnum": np.fmax,
    "minnum": np.fmin, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2,
    "hypot": np.hypot, "fmod": np.fmod, "copysign": np.copysign, "log10": np.log10, "cbrt": np.cbrt,
    "exp10": lambda value: np.power(10.0, value), "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "rint": np.rint, "nearbyint": np.rint, "roundeven": np.rint, "fast_exp": np.exp, "fast_log": np.log,
    "fast_log2": np.log2, "fast_log10": np.log10, "fast_sin": np.sin, "fast_cos": np.cos,
    "fast_tan": np.tan, "fast_pow": np.power, "fast_divide": np.divide, "fast_tanh": np.tanh,
    "div.approx": np.divide, "div.approx.ftz": np.divide, "canonicalize": np.positive,
    "round": lambda value: np.trunc(value) + np.copysign(np.abs(value - np.trunc(value)) >= _HALF, value),
}  # fmt: skip
_FUNCTIONS = {name: _fp64(function) for name, function in _IN_FP64.items()}
_PREFIXES = ("__nv_", "__ocml_", "llvm.nvvm.", "llvm.")
_SUFFIXES = ("_f32", "_f64", "_f16", ".f32", ".f64", ".f16", ".f", ".d")


def library_function(name: str) -> Callable[..., Any] | None:
    """Return the function of this name; None if it is not known.

    AMD's intrinsics are not among them: the logarithm of `llvm.amdgcn.log` has base 2.
    """
    prefix = next((candidate for candidate in _PREFIXES if name.startswith(candidate)), "")
    plain = name.removeprefix(prefix)
    for suffix in _SUFFIXES:
        plain = plain.removesuffix(suffix)
    if prefix == "__nv_" and plain not in _FUNCTIONS:
        plain = plain.removesuffix("f")
    return _FUNCTIONS.get(plain) if prefix else None
