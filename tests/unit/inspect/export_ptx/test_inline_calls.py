from __future__ import annotations

import pytest

from tests.unit.inspect.export_ptx import samples
from tritonsmith.inspect.export_ptx import compiled_kernel, rewrite
from tritonsmith.ir.ptx import Function, Instruction

BLOCK = """{ .param .b32 param0; .param .b32 retval0;
st.param.b32 [param0], %r1; call.uni (retval0), NAME, (param0); ld.param.b32 %r2, [retval0]; }"""
FUNCTION = """.func (.param .b32 r) NAME(.param .b32 a) {
.reg .b32 %r<4>; ld.param.b32 %r1, [a]; BODY st.param.b32 [r+0], %r1; ret; }
"""


def call(name: str) -> str:
    return BLOCK.replace("NAME", name)


def function(name: str, body: str = "") -> str:
    return FUNCTION.replace("NAME", name).replace("BODY", body)


def expanded(body: str, *functions: str) -> tuple[Function, rewrite.Block]:
    module = samples.module(samples.kernel(f"{body} ret;", before="".join(functions)))
    kernel = compiled_kernel.expand_calls(next(one for one in module.functions if one.entry), module)
    return kernel, rewrite.rewrite(
        kernel, rewrite.surroundings_of(kernel, module, "sample.ptx"), rewrite.CUDA
    )


def left(kernel: Function) -> list[str]:
    opcodes = [one.opcode for one in kernel.body or () if isinstance(one, Instruction)]
    return [opcode for opcode in opcodes if opcode.startswith("call")]


def test_the_body_comes_where_the_call_was() -> None:
    kernel, block = expanded(call("f"), function("f", "add.s32 %r1, %r1, 7;"))
    assert left(kernel) == []
    assert block.lines[5:-1] == (
        "{",
        ".reg .b32 smith_v_call0_param0;",
        ".reg .b32 smith_v_call0_retval0;",
        "mov.b32 smith_v_call0_param0, %%smith_r1;",
        "{",
        ".reg .b32 %%smith_r<4>;",
        "mov.b32 %%smith_r1, smith_v_call0_param0;",
        "add.s32 %%smith_r1, %%smith_r1, 7;",
        "mov.b32 smith_v_call0_retval0, %%smith_r1;",
        "bra smith_l1_%=;",
        "}",
        "smith_l1_%=:",
        "mov.b32 %%smith_r2, smith_v_call0_retval0;",
        "}",
    )


def test_two_calls_have_registers_and_labels_of_their_own() -> None:
    kernel, block = expanded(call("f") * 2, function("f", "bra $L_a; $L_a: "))
    assert left(kernel) == []
    jumps = [line for line in block.lines if line.startswith("bra")]
    assert len(set(jumps)) == len(jumps) == 4
    assert "mov.b32 smith_v_call1_param0, %%smith_r1;" in block.lines


def test_a_function_that_calls_another_one() -> None:
    kernel, block = expanded(call("f"), function("g", "not.b32 %r1, %r1;"), function("f", call("g")))
    assert left(kernel) == []
    assert "not.b32 %%smith_r1, %%smith_r1;" in block.lines
    assert block.refused == ()


@pytest.mark.parametrize(
    ("body", "functions"),
    [
        (call("f"), [function("f", call("f"))]),  # calls itself
        (call("f"), [function("f", call("g")), function("g", call("f"))]),
        (call("vprintf"), [".extern .func (.param .b32 r) vprintf(.param .b32 a);\n"]),
        (call("nobody"), []),
        (call("f").replace("(param0);", "(param0), prototype;"), [function("f")]),
        (call("f").replace("f, (", "%rd1, (").replace("call.uni (retval0), f", "call (retval0), %rd1"), []),
        (call("f").replace("call.uni", "@%p1 call.uni"), [function("f")]),
        (call("f").replace(".param .b32 param0", ".param .b64 param0"), [function("f")]),
        (call("f"), [function("f").replace("ld.param.b32 %r1", "ld.param.b8 %r1")]),
        (call("f"), [function("f").replace(".param .b32 r", ".param .align 4 .b8 r[8]")]),
        (call("f").replace("(param0)", "(param0, param0)"), [function("f")]),
        (call("f").replace("call.uni", "call.uni (retval0), f, (param0); call.uni"), [function("f")]),
        ("call.uni f;", [function("f")]),
    ],
)
def test_what_has_another_form_stays_a_call(body: str, functions: list[str]) -> None:
    kernel, _ = expanded(body, *functions)
    assert left(kernel)


def test_functions_that_would_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each calls the one before it twice: 2 to the power of 13 bodies, of 20 statements each."""
    assert compiled_kernel._MOST_STATEMENTS == 200_000
    monkeypatch.setattr(compiled_kernel, "_MOST_STATEMENTS", 20_000)  # as it does, in a tenth of the time
    doubling = [function("f0")] + [function(f"f{n}", call(f"f{n - 1}") * 2) for n in range(1, 14)]
    kernel, _ = expanded(call("f13"), *doubling)
    assert 10_000 < len(kernel.body or ()) <= 20_000
