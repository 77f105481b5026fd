"""Each move on a text of its own."""

from __future__ import annotations

import pytest

from tritonsmith.ir.ir_text import Op, parse
from tritonsmith.lab.reduce import ir_control_flow, ir_operations
from tritonsmith.lab.reduce.ir_operations import Cutter

pytestmark = pytest.mark.unit


def module(*lines: str, head: str = "tt.func public @f(%arg0: i32)") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"module {{\n  {head} {{\n{body}    tt.return\n  }}\n}}\n"


def op_of(line: str) -> tuple[Op, str]:
    text = module(*line.splitlines())
    return parse(text).functions()[0].regions[0].ops[0], text


@pytest.mark.parametrize(
    ("line", "types"),
    [
        ("%0 = arith.addi %a, %b : i32", ["i32"]),
        ("%0 = arith.cmpi slt, %a, %b : tensor<4x8xi32, #b>", ["tensor<4x8xi1, #b>"]),
        ("%0 = arith.constant true", ["i1"]),
        ("%0 = arith.extf %a : f16 to f32", ["f32"]),
        ("%0 = tt.load %a, %b : tensor<4x!tt.ptr<f16>, #b>", ["tensor<4xf16, #b>"]),
        ("%0 = tt.load %a : !tt.ptr<f16>", ["f16"]),
        ("%0 = tt.splat %a {x = 1 : i32} : i32 -> tensor<4xi32>", ["tensor<4xi32>"]),
        ("%0 = tt.addptr %a, %b : tensor<4x!tt.ptr<f16>>, tensor<4xi32>", ["tensor<4x!tt.ptr<f16>>"]),
        ("%0 = arith.select %c, %a, %b : tensor<4xi1>, tensor<4xf32>", ["tensor<4xf32>"]),
        ("%0 = ttg.async_commit_group tokens %a", ["!ttg.async.token"]),
        ("%0 = ttg.memdesc_index %a[%b] : <2x4xf16, #s> -> <4xf16, #s>", ["!ttg.memdesc<4xf16, #s>"]),
        ("%0:2 = tt.split %a : tensor<4x2xi32> -> tensor<4xi32>, tensor<4xi32>", ["tensor<4xi32>"] * 2),
        (
            "%0:2 = scf.for %i = %a to %b step %c iter_args(%x = %y, %z = %u) -> (i32, f32)  : i32 {\n}",
            ["i32", "f32"],
        ),
        ("%0 = scf.if %c -> (f32) {\n} else {\n}", ["f32"]),
        (
            '%0 = "tt.reduce"(%a) <{axis = 1 : i32}> ({\n^bb0(%b: f32):\n}) : (tensor<4xf32>) -> f32',
            ["f32"],
        ),
    ],
)
def test_the_text_tells_types_of_results(line: str, types: list[str]) -> None:
    op, text = op_of(line)
    assert ir_operations.result_types(op, text) == tuple(types)


def test_what_the_text_does_not_tell_is_not_guessed() -> None:
    op, text = op_of("%0:2 = test.strange %a : i32")
    assert ir_operations.result_types(op, text) is None


def without(name: str, *lines: str) -> str:
    """A function of these lines, of which the operation of a name is cut."""
    cutter = Cutter(parse(module(*lines)))
    (op,) = (op for op in cutter.items if op.name == name)
    cut = cutter.cut([op])
    assert cut
    return cut


def test_users_of_what_is_cut_use_a_new_argument() -> None:
    lines = ("%0 = arith.addi %arg0, %arg0 : i32", "%1 = arith.muli %0, %0 : i32", "test.use %1, %10 : i32")
    cut = without("arith.addi", *lines)
    assert "@f(%arg0: i32, %cut0: i32)" in cut
    assert "%1 = arith.muli %cut0, %cut0 : i32" in cut
    assert "%10" in cut
    assert "arith.addi" not in cut


def test_users_of_a_value_whose_type_nobody_knows_go_too() -> None:
    lines = ("%0:2 = test.strange %arg0 : i32", "%1 = arith.muli %0#1, %arg0 : i32", "test.use %arg0 : i32")
    cut = without("test.strange", *lines)
    assert "muli" not in cut
    assert "test.use %arg0" in cut


def test_a_value_of_that_name_in_another_region_stays() -> None:
    inner = ("scf.if %arg0 {", "  %0 = arith.addi %arg0, %arg0 : i32", "  test.one %0 : i32", "}")
    cut = without("arith.addi", *inner, "%0 = arith.muli %arg0, %arg0 : i32", "test.two %0 : i32")
    assert "test.one %cut0" in cut
    assert "test.two %0" in cut


LOOP = module(
    "%0:2 = scf.for %i = %lo to %hi step %s iter_args(%a = %x, %b = %y) -> (i32, f32)  : i32 {",
    "  %1 = arith.addi %a, %i : i32",
    "  scf.yield %1, %b : i32, f32",
    "}",
    "test.use %0#0, %0#1 : i32, f32",
)


def test_a_loop_becomes_its_body() -> None:
    (made,) = ir_control_flow.unwrapped(parse(LOOP))
    assert "scf" not in made
    assert "%1 = arith.addi %x, %lo : i32" in made
    assert "test.use %1, %y : i32, f32" in made


def test_a_loop_carries_less() -> None:
    second, first = ir_control_flow.lighter(parse(LOOP))
    assert "%0 = scf.for %i = %lo to %hi step %s iter_args(%a = %x) -> (i32)  : i32 {" in second
    assert "scf.yield %1 : i32\n" in second
    assert "test.use %0, %y : i32, f32" in second
    assert "arith.addi %x, %i" in first
    assert "test.use %x, %0 : i32, f32" in first
    (nothing,) = ir_control_flow.lighter(parse(first))
    assert "    scf.for %i = %lo to %hi step %s  : i32 {" in nothing
    assert "yield" not in nothing


def test_a_choice_becomes_one_of_its_sides() -> None:
    text = module(
        "%0 = scf.if %c -> (i32) {",
        "  scf.yield %a : i32",
        "} else {",
        "  %1 = test.else %b : i32",
        "  scf.yield %1 : i32",
        "}",
        "test.use %0 : i32",
    )
    one, other = ir_control_flow.unwrapped(parse(text))
    assert "test.use %a : i32" in one
    assert "else" not in one
    assert "test.use %1 : i32" in other


BLOCKS = module(
    "cf.br ^bb1(%arg0, %x : i32, f32)",
    "^bb1(%0: i32, %1: f32):  // 2 preds: ^bb0, ^bb2",
    "cf.cond_br %c, ^bb2, ^bb3",
    "^bb2:  // pred: ^bb1",
    "test.body %1 : f32",
    "cf.br ^bb1(%0, %y : i32, f32)",
    "^bb3:  // pred: ^bb1",
)


def test_a_branch_goes_one_way_and_what_nobody_reaches_goes() -> None:
    made = list(ir_control_flow.straighter(parse(BLOCKS)))
    returning = next(one for one in made if "^" not in one)
    assert "test.body" not in returning
    ahead = next(one for one in made if "cf.br ^bb3" in one)
    assert "test.body" not in ahead
    assert "^bb2" not in ahead.replace("^bb0, ^bb2", "")


def test_blocks_in_a_row_are_one() -> None:
    text = module("cf.br ^bb1", "^bb1:  // pred: ^bb0", "test.a %arg0 : i32")
    (made,) = ir_control_flow.merged(parse(text))
    assert made == module("test.a %arg0 : i32")


def test_a_parameter_of_a_block_becomes_an_argument() -> None:
    source = parse(BLOCKS)
    every = ir_control_flow.parameters(source)
    assert [(one.name, one.type) for one in every] == [("%0", "i32"), ("%1", "f32")]
    made = ir_control_flow.without_parameters(source, [every[1]])
    assert made
    assert "@f(%arg0: i32, %given0: f32)" in made
    assert "cf.br ^bb1(%arg0 : i32)" in made
    assert "^bb1(%0: i32):" in made
    assert "test.body %given0 : f32" in made
    none = ir_control_flow.without_parameters(source, every)
    assert none
    assert "cf.br ^bb1\n" in none
    assert "^bb1:" in none


def test_unused_arguments_attributes_and_aliases() -> None:
    text = (
        "#a = #test.a<{x = 1}>\n#b = #test.b<#a>\n"
        'module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {\n'
        "  tt.func public @f(%x: i32 {tt.divisibility = 16 : i32}, %y: i32) attributes {noinline = false} {\n"
        "    test.use %y {one, two = #c} : i32\n    tt.return\n  }\n}\n"
    )
    source = parse(text)
    assert ir_operations.without_aliases(source) == text.partition("module")[2].join(["module", ""])
    every = ir_operations.attributes(source)
    names = [text[one.begin : one.end].split(" ", maxsplit=1)[0] for one in every]
    assert names == ['"ttg.num-warps"', "ttg.target", "tt.divisibility", "noinline", "one", "two"]
    made = ir_operations.without_pieces(source, every)
    assert "module {" in made
    assert "@f(%x: i32, %y: i32) {" in made
    assert "test.use %y : i32" in made
    (unused,) = ir_operations.unused_arguments(source)
    less = ir_operations.without_pieces(source, [unused])
    assert "@f(%y: i32) attributes" in less


def test_texts_that_are_no_mlir_are_cut_into_something() -> None:
    for text in ("", "}", "{\n{\n", "%0 = (\n", 'a "\n', "^bb0:\n}", "func @f( {\n}\n} }"):
        assert parse(text).count() >= 0
