"""What fills memory, how parameters are packed, and how outputs are compared: no GPU is needed for these."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import asdict

import pytest

from tritonsmith.worker import time_binaries
from tritonsmith.worker.time_binaries import (
    PERIOD,
    Buffer,
    Job,
    Method,
    Parameter,
    TimedBinary,
    TimedKernel,
    difference,
    element_size,
    encoded,
    numbers,
    pattern,
    whole,
)


@pytest.mark.parametrize(
    ("kind", "value", "content"),
    [
        ("i32", -2, "feffffff00000000"),
        ("u32", 4294967295, "ffffffff00000000"),
        ("i64", -1, "ffffffffffffffff"),
        ("i1", True, "0100000000000000"),
        ("i16", 258, "0201000000000000"),
        ("fp32", 1.5, "0000c03f00000000"),
        ("fp16", 1.0, "003c000000000000"),
        ("bf16", 1.0, "803f000000000000"),
        ("fp64", 1.0, "000000000000f03f"),
    ],
)
def test_a_scalar_is_packed_as_the_kernel_reads_it(kind: str, value: float, content: str) -> None:
    assert encoded(kind, value).hex() == content


@pytest.mark.parametrize(
    ("kind", "value"), [("i32", 1 << 32), ("i8", 300), ("fp16", 1e6), ("i32", -(1 << 40))]
)
def test_a_scalar_that_does_not_fit_is_refused(kind: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"is no {kind}"):
        encoded(kind, value)


@pytest.mark.parametrize("kind", ["tensordesc<fp16[64,64]>", "(i32,*fp32)", "nvTmaDesc"])
def test_a_type_that_the_driver_alone_cannot_pass_has_no_size(kind: str) -> None:
    with pytest.raises(ValueError, match="no type"):
        element_size(kind)


@pytest.mark.parametrize(
    "dtype", ["fp16", "bf16", "fp32", "fp64", "fp8e5", "fp8e4nv", "i8", "u8", "i32", "i64"]
)
def test_contents_are_the_same_each_time_and_finite(dtype: str) -> None:
    buffer = Buffer("x", dtype, 3 * PERIOD, low=-1, high=1)
    first = pattern(buffer, 0)
    assert first == pattern(buffer, 0)
    assert first != pattern(buffer, 1)
    assert len(first) == PERIOD * element_size(dtype)
    values = numbers(dtype, whole(buffer, first))
    assert len(values) == 3 * PERIOD
    assert all(map(math.isfinite, values))
    assert len(set(values)) > (2 if dtype[0] in "iu" else 20)
    # Around 1: squares and sums of them stay finite, and none is all zeros.
    assert 0.1 < max(map(abs, values)) <= 255


def test_indices_are_in_their_range() -> None:
    values = numbers("i32", pattern(Buffer("idx", "i32", 10_000, low=0, high=31), 0))
    assert set(values) == set(range(32))


def test_given_values_and_zeros() -> None:
    ends = Buffer("cu_seqlens", "i64", 4, "values", values=(0, 17, 64, 100))
    assert list(numbers("i64", pattern(ends, 0))) == [0, 17, 64, 100]
    assert set(pattern(Buffer("lock", "i32", 9, "zeros"), 0)) == {0}


def _packed(dtype: str, *values: float) -> bytes:
    return b"".join(encoded(dtype, value)[: element_size(dtype)] for value in values)


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64"])
def test_a_difference_is_compared_with_the_largest_number(dtype: str) -> None:
    buffer = Buffer("y", dtype, 3)
    first = _packed(dtype, 4, -0.5, 0)
    assert difference(buffer, first, first, 0.0) is None
    near = difference(buffer, first, _packed(dtype, 4, -0.5, 2.0**-20), 1e-3)
    assert near is not None
    assert (near.elements, near.scale, near.within) == (1, 4, True)
    far = difference(buffer, first, _packed(dtype, 4, 0.5, 0), 0.0)
    assert far is not None
    assert (far.largest, far.within) == (1, False)
    loose = difference(buffer, first, _packed(dtype, 4, 0.5, 0), 0.5)
    assert loose is not None
    assert loose.within


@pytest.mark.parametrize(
    ("ours", "theirs"), [(1.0, math.nan), (math.nan, 1.0), (1.0, math.inf), (math.inf, 1.0)]
)
def test_a_number_that_became_none_is_never_within(ours: float, theirs: float) -> None:
    apart = difference(Buffer("y", "fp32", 2), _packed("fp32", 1, ours), _packed("fp32", 1, theirs), 0.5)
    assert apart is not None
    assert apart.largest == math.inf
    assert not apart.within


def test_two_kinds_of_nan_are_no_difference() -> None:
    first, other = _packed("fp32", 2) + b"\0\0\xc0\x7f", _packed("fp32", 2) + b"\1\0\xc0\x7f"
    apart = difference(Buffer("y", "fp32", 2), first, other, 0.0)
    assert apart is not None
    assert (apart.largest, apart.within) == (0, True)


def test_integers_have_no_tolerance() -> None:
    apart = difference(Buffer("y", "i32", 2), _packed("i32", 1000, 2), _packed("i32", 1001, 2), 0.0)
    assert apart is not None
    assert not apart.within


def test_a_difference_far_behind_is_found() -> None:
    buffer = Buffer("y", "fp16", 100_000)
    first = whole(buffer, pattern(buffer, 0))
    other = bytearray(first)
    other[-1] ^= 0x40
    apart = difference(buffer, first, bytes(other), 0.0)
    assert apart is not None
    assert (apart.elements, apart.within) == (1, False)


def test_structures_of_a_launch_have_the_offsets_of_cuda_h() -> None:
    # CUlaunchAttribute has 72 bytes, its value at 8; CUlaunchConfig has 56, the stream at 32.
    attribute, config = time_binaries._LaunchAttribute, time_binaries._LaunchConfig
    assert (struct.calcsize("P"), attribute.value.offset, config.stream.offset) == (8, 8, 32)
    assert (config.attributes.offset, config.count.offset) == (40, 48)


def test_a_job_is_the_same_after_it_was_read_again() -> None:
    binary = TimedBinary("3.9.0", "binaries/a.cubin", "add", (0, 1), (4, 1, 1), 128, 1024, 2, True, (0, 16))
    kernel = TimedKernel(
        "add",
        (Buffer("x", "i32", 3, "values", values=(1, 2, 3)),),
        (Parameter("x", "*i32", 0), Parameter("n", "i32", value=3)),
        (binary,),
        (("3.8.0", "no binary"),),
    )
    job = Job("cuda", (kernel,), Method(seconds=1.5))
    written = json.dumps({"schema": time_binaries.SCHEMA, **asdict(job)})
    assert time_binaries.read_job(json.loads(written)) == job
    with pytest.raises(ValueError, match="another version"):
        time_binaries.read_job({"schema": 0})
