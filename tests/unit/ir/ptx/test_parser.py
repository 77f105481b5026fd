from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.inspect.export_ptx import samples
from tritonsmith.core.errors import FactError
from tritonsmith.ir import ptx
from tritonsmith.ir.ptx import Close, Declaration, Directive, Instruction, Label, Open


def test_a_module_and_its_entry() -> None:
    module = samples.module(samples.REDUCE)
    entry = module.functions[0]
    assert (module.version, module.target) == ("8.7", "sm_90a")
    assert (entry.name, entry.entry, entry.directives) == ("reduce", True, {"reqntid": (128,)})
    assert [(param.type, param.bits, param.pointer) for param in entry.params[:4]] == [
        ("u64", 64, True),
        ("u32", 32, False),
        ("u8", 8, False),
        ("f64", 64, False),
    ]
    shared = module.variables[0]
    assert (shared.space, shared.external, shared.names[0].name) == ("shared", True, "global_smem")


def test_statements_of_a_body() -> None:
    body = samples.module(samples.REDUCE).functions[0].body or ()
    registers = [one for one in body if isinstance(one, Declaration)][2]
    assert [(one.name, one.count) for one in registers.names] == [("%r", 211), ("%SPL", None)]
    jumps = [str(one) for one in body if isinstance(one, Instruction) and "bra" in one.opcode]
    assert jumps == ["@!complete bra.uni waitLoop", "@%p2 bra $L__BB0_1"]
    assert {one.name for one in body if isinstance(one, Label)} >= {"$L__BB0_1", "waitLoop", "$L__func_end0"}
    assert [one.name for one in body if isinstance(one, Directive)] == ["loc", "pragma"]
    assert sum(isinstance(one, Open) for one in body) == sum(isinstance(one, Close) for one in body) == 1


def test_lines_are_those_of_the_file() -> None:
    body = samples.module(samples.REDUCE).functions[0].body or ()
    barrier = next(one for one in body if isinstance(one, Instruction) and one.opcode == "bar.sync")
    assert samples.REDUCE.splitlines()[barrier.line - 1].strip() == "bar.sync 	0;"


def test_functions_and_their_declarations() -> None:
    functions = samples.module(samples.FUNCTION).functions
    assert [(one.name, one.entry, one.body is None) for one in functions] == [
        ("kernels_$_helper", False, True),
        ("calling", True, False),
        ("kernels_$_helper", False, False),
    ]
    assert functions[2].results[0].name == "func_retval0"


def test_constants_and_arrays() -> None:
    text = samples.HEAD + (
        ".global .align 4 .b8 table[6] = {1, 2, 3};\n.const .f32 two = 0f40000000, three = 0f40400000;\n"
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .align 8 .b8 b[16]);\n"
    )
    module = samples.module(text)
    assert [one.name for variable in module.variables for one in variable.names] == ["table", "two", "three"]
    assert [word.text for word in module.variables[0].names[0].init] == ["{", "1", ",", "2", ",", "3", "}"]
    assert module.functions[0].params[1].length == 16


def test_a_location_ends_with_its_line() -> None:
    text = samples.kernel(".loc 1 7 15, function_name $L__info_string0, inlined_at 1 20 30\nret;")
    body = samples.module(text).functions[0].body or ()
    assert isinstance(body[-1], Instruction)
    assert body[-1].opcode == "ret"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", ".version and .target are missing"),
        ("hello", "no statement of a module starts with 'hello'"),
        (samples.HEAD + ".visible .entry k(.param .u64 x", "expected ','"),
        (samples.HEAD + ".visible .entry k() { mov.b32 %r1, 1", "unexpected end of file"),
        (samples.HEAD + ".visible .entry k() { .reg .b32 %r<x>; }", "expected a number"),
        (samples.HEAD + ".visible .entry k() what { }", "expected the body of k"),
    ],
)
def test_errors_name_the_line(text: str, why: str) -> None:
    with pytest.raises(FactError, match="cannot read this PTX") as caught:
        samples.module(text)
    assert why in str(caught.value.why)
    assert str(caught.value.where).startswith("sample.ptx:")


def test_deep_scopes_need_no_stack() -> None:
    depth = 50_000
    samples.module(samples.kernel("{" * depth + "ret;" + "}" * depth))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_bytes(b"\x7fELF\xff\xfe")
    with pytest.raises(FactError, match="cannot read this PTX"):
        ptx.read(path)
