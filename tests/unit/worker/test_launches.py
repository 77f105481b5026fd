"""The kernel that Triton gets in place of a compiled one: it compiles for who reads what a compile makes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tritonsmith.worker.launches import KernelLaunches, RecordedKernel, Recorder
from tritonsmith.worker.messages import RecordedParameter, SpecializedKernel


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
