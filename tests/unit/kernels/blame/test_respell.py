"""Newer LLVM IR in the older spelling."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonsmith.kernels.blame import respell


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("fmul float %1, f0x3F317218", "fmul float %1, 0x3FE62E4300000000"),
        ("splat (float f0xFF800000)", "splat (float 0xFFF0000000000000)"),
        ("float f0x7FC00000", "float 0x7FF8000000000000"),
        ("double f0x3FF0000000000000", "double 0x3FF0000000000000"),
        ("half f0x3C00, bfloat f0x3F80", "half 0xH3C00, bfloat 0xR3F80"),
        ("fadd half %1, f0x3C00", "fadd half %1, f0x3C00"),  # whose type is further away
        ("select i1 %1, half +qnan, half 0.0", "select i1 %1, half 0xH7E00, half 0.0"),
        ("float -inf, bfloat +inf", "float 0xFFF0000000000000, bfloat 0xR7F80"),
        ("ptr nofree captures(none) %2", "ptr nofree nocapture %2"),
        ("captures(address) %2", "captures(address) %2"),
    ],
)
def test_spellings(newer: str, older: str) -> None:
    assert respell.older(newer) == older


@given(st.integers(0, 2**32 - 1))
def test_a_float_stays_the_same(bits: int) -> None:
    older = respell.older(f"float f0x{bits:08X}").removeprefix("float 0x")
    wide = int(older, 16)
    exponent, mantissa = wide >> 52 & 0x7FF, wide & (1 << 52) - 1
    if exponent == 0x7FF and mantissa:
        assert wide >> 63 == bits >> 31
        assert mantissa >> 29 == bits & 0x7FFFFF
    else:
        (value,) = struct.unpack(">d", wide.to_bytes(8))
        assert struct.pack(">f", value) == bits.to_bytes(4)
