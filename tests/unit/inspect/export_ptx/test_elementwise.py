from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.unit.inspect.export_ptx import samples
from tritonsmith.core.errors import UsageError
from tritonsmith.inspect.export_ptx import cuda
from tritonsmith.inspect.export_ptx.compiled_kernel import UnsupportedPtxError

WHERE = Path("k.ptx")
ONE = ".func (.param .b32 r) {name}(.param .b32 a)\n{{\n.reg .b32 %r<4>;\nld.param.b32 %r1, [a];\n{body}\nst.param.b32 [r], %r1;\nret;\n}}\n"  # noqa: E501


def made(*functions: tuple[str, str], name: str | None = None) -> cuda.Elementwise:
    text = samples.HEAD + "".join(ONE.format(name=called, body=body) for called, body in functions)
    return cuda.elementwise(samples.module(text), WHERE, name)


def test_a_function_of_registers_only() -> None:
    found = cuda.elementwise(samples.module(samples.FUNCTION), WHERE)
    assert (found.function, found.constraints, found.arguments) == ("kernels_$_helper", "=&r,r,d", 2)
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(found.python()).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert values == {"ASM": f"\n{found.asm}\n", "CONSTRAINTS": found.constraints}


def test_a_kernel_is_none_and_its_memory_is_named() -> None:
    with pytest.raises(UnsupportedPtxError, match="not a pure register function") as caught:
        cuda.elementwise(samples.module(samples.REDUCE), WHERE)
    assert "mbarrier.try_wait" in str(caught.value)
    assert "noinline=True" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("ld.global.b32 %r1, [%r2];", "it accesses memory"),
        ("atom.shared.add.u32 %r1, [%r2], 1;", "it accesses memory"),
        ("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;", "it has effects beyond computing a value"),
        ("bar.sync 0;", "it has effects beyond computing a value"),
        ("trap;", "it has effects beyond computing a value"),
    ],
)
def test_a_function_that_does_more_is_refused(body: str, why: str) -> None:
    with pytest.raises(UnsupportedPtxError) as caught:
        made(("f", body))
    assert why in str(caught.value.why)
    assert body.rstrip(";") in str(caught.value.why)


def test_a_parameter_that_is_not_read_is_refused() -> None:
    text = f"{samples.HEAD}.func (.param .b32 r) f(.param .b32 a)\n{{\nst.param.b32 [r], 1;\nret;\n}}\n"
    with pytest.raises(UnsupportedPtxError, match="its signature"):
        cuda.elementwise(samples.module(text), WHERE)


def test_several_functions_are_chosen_from_by_a_part_of_their_names() -> None:
    both = (("kernels_sin_fp32", ""), ("kernels_cos_fp32", ""))
    assert made(*both, name="cos").function == "kernels_cos_fp32"
    with pytest.raises(UsageError, match="2 functions") as caught:
        made(*both)
    assert "kernels_sin_fp32" in str(caught.value)
    with pytest.raises(UsageError, match="no function 'tan'"):
        made(*both, name="tan")
