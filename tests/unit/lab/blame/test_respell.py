"""Newer LLVM IR in the older spelling."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonsmith.lab.blame import llc


def oldest(llir: str) -> str:
    """The last spelling."""
    return next((text for _, text in reversed([*llc.older(llir)])), llir)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("fmul float %1, f0x3F317218", "fmul float %1, 0x3FE62E4300000000"),
        ("splat (float f0xFF800000)", "splat (float 0xFFF0000000000000)"),
        ("float f0x7FC00000", "float 0x7FF8000000000000"),
        ("double f0x3FF0000000000000", "double 0x3FF0000000000000"),
        ("half f0x3C00, bfloat f0x3F80", "half 0xH3C00, bfloat 0xR3F80"),
        ("fadd half %1, f0x3C00", "fadd half %1, 0xH3C00"),
        ("store i32 %1\n f0x3C00", "store i32 %1\n f0x3C00"),  # without a type on its line
        ("phi float [ -inf, %1 ], [ %2, %3 ]", "phi float [ 0xFFF0000000000000, %1 ], [ %2, %3 ]"),
        ("splat (float 5.700000e-01)", "splat (float 0x3FE23D70A0000000)"),  # not exact in 24 bits
        ("float 2.500000e-01, half 1.0e-01", "float 2.500000e-01, half 0xH2E66"),
        ("bfloat 1.0e-01", "bfloat 0xR3DCD"),
        (
            'asm "mov.f32 $0, 5.700000e-01;", "=f"(float %1)',
            'asm "mov.f32 $0, 5.700000e-01;", "=f"(float %1)',
        ),
        ("icmp samesign ult i32 %1, 4", "icmp ult i32 %1, 4"),
        (
            "call void @llvm.nvvm.fence.proxy.async.shared_cta(), !dbg !58",
            'call void asm sideeffect "fence.proxy.async.shared::cta;", ""(), !dbg !58',
        ),
        ("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)", "call void @llvm.nvvm.bar.sync(i32 0)"),
        (
            "call float @llvm.nvvm.ex2.approx.ftz.f32(float %1)",
            "call float @llvm.nvvm.ex2.approx.ftz.f(float %1)",
        ),
        (
            "@llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %1, i16 0, i64 2147483646, i32 159744)",
            "@llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %1, i16 0, i32 2147483646, i32 159744)",
        ),
        (
            "declare ptr @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) readnone, i16, i64, i32)",
            "declare ptr @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) readnone, i16, i32, i32)",
        ),
        ("select i1 %1, half +qnan, half 0.0", "select i1 %1, half 0xH7E00, half 0.0"),
        ("float -inf, bfloat +inf", "float 0xFFF0000000000000, bfloat 0xR7F80"),
        ("ptr nofree captures(none) %2", "ptr nofree nocapture %2"),
        ("captures(address) %2", "captures(address) %2"),
    ],
)
def test_spellings(newer: str, older: str) -> None:
    assert oldest(newer) == older


def test_the_newest_spelling_comes_first() -> None:
    llir = "captures(none) %1, float f0x3F317218\ncall void @llvm.nvvm.wgmma.fence.sync.aligned()\n"
    steps = dict(llc.older(llir))
    assert list(steps) == [23, 21, 20]
    assert "captures(none) %1, float 0x3FE62E4300000000\n" in steps[23]
    assert "nocapture %1" in steps[21]
    assert "@llvm.nvvm.wgmma" in steps[21]
    assert 'asm sideeffect "wgmma.fence.sync.aligned;", ""()' in steps[20]


def test_launch_bounds_become_metadata() -> None:
    kernels = (
        "define ptx_kernel void @k(ptr %0) local_unnamed_addr #0 !dbg !1 {\n}\n"
        "define internal void @helper() #1 {\n}\n"
    )
    groups = (
        'attributes #0 = { nounwind "nvvm.maxnreg"="128" "nvvm.reqntid"="128,2" }\n'
        'attributes #1 = { "nvvm.maxnreg"="1" }\n'
    )
    [(since, text)] = llc.older(f"{kernels}{groups}!0 = !{{}}\n!7 = !{{}}\n")
    assert since == 21
    assert text.endswith(
        "!nvvm.annotations = !{!8, !9, !10}\n"
        '!8 = !{ptr @k, !"maxnreg", i32 128}\n'
        '!9 = !{ptr @k, !"reqntidx", i32 128}\n'
        '!10 = !{ptr @k, !"reqntidy", i32 2}\n'
    )
    [(_, more)] = llc.older(f"{kernels}{groups}!nvvm.annotations = !{{!0}}\n!0 = !{{ptr @k}}\n")
    assert more.count("!nvvm.annotations") == 1
    assert "!nvvm.annotations = !{!0, !1, !2, !3}\n" in more
    assert not list(llc.older(kernels))


@given(st.integers(0, 2**32 - 1))
def test_a_float_stays_the_same(bits: int) -> None:
    older = oldest(f"float f0x{bits:08X}").removeprefix("float 0x")
    wide = int(older, 16)
    exponent, mantissa = wide >> 52 & 0x7FF, wide & (1 << 52) - 1
    if exponent == 0x7FF and mantissa:
        assert wide >> 63 == bits >> 31
        assert mantissa >> 29 == bits & 0x7FFFFF
    else:
        (value,) = struct.unpack(">d", wide.to_bytes(8))
        assert struct.pack(">f", value) == bits.to_bytes(4)
