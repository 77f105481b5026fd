"""The kernel that Triton gets in place of a compiled one: it compiles for who reads what a compile makes."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace

import pytest

from tritonsmith.worker.launches import KernelLaunches, RecordedKernel, Recorder
from tritonsmith.worker.messages import ExampleLaunch, RecordedParameter, SpecializedKernel


@pytest.fixture(name="compiles")
def _compiles() -> list[str]:
    return []


@pytest.fixture(name="kernel")
def _kernel(tmp_path: Path, compiles: list[str]) -> RecordedKernel:
    def compiled() -> object:
        compiles.append("now")
        return SimpleNamespace(asm={"ptx": "ret;"})

    return RecordedKernel(Recorder(str(tmp_path)), "key", compiled)


def test_a_kernel_is_no_future(kernel: RecordedKernel, compiles: list[str]) -> None:
    """Triton 3.6 asks each kernel for `result` before a launch: one in the making has it."""
    assert not hasattr(kernel, "result")
    assert not compiles


def test_what_a_compile_makes_is_compiled_once(kernel: RecordedKernel, compiles: list[str]) -> None:
    assert kernel.asm["ptx"] == "ret;"
    assert kernel.asm == {"ptx": "ret;"}
    assert compiles == ["now"]


def test_the_largest_integer_of_each_parameter_is_kept() -> None:
    parameters = tuple(RecordedParameter(name, name == "BLOCK") for name in ("x", "n", "BLOCK", "flag"))
    kernel = SpecializedKernel(
        "k.py", 1, "k", "k", "k", parameters, ("cuda", 90, 32), {}, constexprs={"BLOCK": 64}
    )
    launches = KernelLaunches(kernel)
    launches.add((object(), 300, 64, True))
    # Triton 3.0 hands over no constants; a launch whose arguments are not known says nothing.
    launches.add((object(), 512, False))
    launches.add((object(), 400, 64, True))
    launches.add(())
    assert launches.row().largest == {"n": 512}


class _Tensor:
    """What a launch reads of a tensor, with memory of its own."""

    def __init__(self, sizes: tuple[int, ...], strides: tuple[int, ...], dtype: str, *values: int) -> None:
        self._sizes, self._strides, self.dtype = sizes, strides, f"torch.{dtype}"
        self._memory = (ctypes.c_int64 * max(len(values), 1))(*values)

    def size(self) -> tuple[int, ...]:
        return self._sizes

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def is_contiguous(self) -> bool:
        return True

    def data_ptr(self) -> int:
        return ctypes.addressof(self._memory)


def test_the_arguments_of_the_largest_launch_are_kept() -> None:
    names = ("x", "idx", "ends", "n", "eps", "BLOCK")
    parameters = tuple(RecordedParameter(name, name == "BLOCK") for name in names)
    kernel = SpecializedKernel(
        "k.py", 1, "k", "k", "k", parameters, ("cuda", 90, 32), {}, constexprs={"BLOCK": 64}
    )
    launches = KernelLaunches(kernel)
    for rows, grid in ((2, (2, 1, 1)), (100, (100, 1, 1)), (50, (50, 1, 1))):
        # A part of a larger tensor: its last element is behind all rows but one.
        x = _Tensor((rows, 32), (4096, 1), "float16")
        idx = _Tensor((rows,), (1,), "int64", *reversed(range(rows)))
        ends = _Tensor((3,), (1,), "int64", 0, 7, rows)
        launches.add((x, idx, ends, rows, 1e-5, 64), grid)
    example = launches.row().example
    assert example.grid == (100, 1, 1)
    assert example.arguments == {
        "x": {"elements": 99 * 4096 + 32},
        "idx": {"elements": 100, "low": 0, "high": 99},
        "ends": {"elements": 3, "values": [0, 7, 100]},
        "n": 100,
        "eps": 1e-5,
    }
    launches.forget()
    assert launches.row().example == ExampleLaunch()


class _Array:
    """Another library's array, which has an address and no more of what a tensor has."""

    size = 4096
    dtype = "float32"

    def data_ptr(self) -> int:
        return 256


def test_an_array_that_is_no_tensor_is_left_out() -> None:
    parameters = tuple(RecordedParameter(name, False) for name in ("x", "n"))
    launches = KernelLaunches(SpecializedKernel("k.py", 1, "k", "k", "k", parameters, ("cuda", 90, 32), {}))
    launches.add((_Array(), 4096), (4, 1, 1))
    assert launches.row().example == ExampleLaunch((4, 1, 1), {"n": 4096})
