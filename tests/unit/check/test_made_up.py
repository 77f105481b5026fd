"""Texts that somebody made up, or that are not all there: refused by name, and never called equal."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tests.unit.check.texts import ADD, LOOP, LOWERED, checked
from tritonsmith.check.answer import ResultChange
from tritonsmith.check.check import PassCheck, inputs_of, missing_texts
from tritonsmith.check.module import without_locations
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex

pytestmark = pytest.mark.unit

EMPTY = '"builtin.module"() ({\n^bb0:\n  "a.b"() : () -> ()\n}) : () -> ()\n'
BODY = ADD[ADD.index('  "tt.func"') : ADD.index("}) : () -> ()\n#loc7")]
DECLARED = '  "tt.func"() <{sym_name = "other", sym_visibility = "private"}> ({\n  }) : () -> ()\n'


def _with(old: str, new: str, text: str = ADD) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (EMPTY, "no kernels in the module"),
        (LOWERED.replace('"llvm.return"', '"tt.func"'), "LLVM's dialect, and Triton's in a later text"),
        (LOWERED.replace('  ^bb0:\n    "llvm.return"() : () -> ()\n', ""), "no kernels in the module"),
        (_with("#loc7 =", f'"builtin.module"() ({{\n{BODY}}}) : () -> ()\n#loc7 ='), "a module in a module"),
        (ADD.replace(BODY, BODY + BODY), "two functions of the name add"),
        (ADD.replace(BODY, BODY + BODY.replace('"add"', '"more"')), "2 kernels in the module"),
        (_with('sym_visibility = "public"', 'sym_visibility = "private"'), "no kernels in the module"),
    ],
)
def test_a_module_without_its_kernel_is_neither_equal_nor_lowered(text: str, why: str) -> None:
    answer = checked(ADD, text)
    assert [(one.status, one.why) for one in answer.passes] == [("reference", ""), ("unknown", why)]


def test_a_pass_that_goes_back_from_llvm_is_not_done() -> None:
    assert [one.status for one in checked(ADD, LOWERED, ADD).passes] == ["reference", "unknown", "equal"]


@pytest.mark.parametrize("kind", ["i64", "f32", "i1", "!tt.ptr<f32>", "!tt.tensordesc<tensor<2x8xf32>>"])
def test_parameters_of_another_type_are_not_run(kind: str) -> None:
    fixed = '    %n = "arith.constant"() <{value = 5 : i32}> : () -> i32'
    answer = checked(LOOP, _with("%n: i32):", f"%other: {kind}):\n{fixed}", LOOP))
    assert answer.passes[1].why == "parameters that are not those of the first text"


def _constant(value: int, of: str) -> str:
    return f'%w = "arith.constant"() <{{value = {value} : {of}}}> : () -> {of}'


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (_constant(5, "i4"), "type i4"),
        (_constant(1 << 99, "i64"), "out of range"),
        (_constant(1 << 99, "i128"), "i128"),
        ('"tt.call"() <{callee = @nobody}> : () -> ()', "a call of nobody"),
        ('"tt.call"(%n) <{callee = @add}> : (i32) -> ()', "tt.call: zip()"),
    ],
)
def test_what_no_triton_prints_is_named(line: str, why: str) -> None:
    row = checked(ADD, _with("%size = ", f"{line}\n    %size = ")).passes[1]
    assert row.status == "unknown"
    assert why in row.why


def test_a_block_that_branches_to_itself_never_ends() -> None:
    here = '"cf.br"()[^bb1] : () -> ()'
    spin = f"{here}\n  ^bb1:\n    {here}\n  ^bb2:\n    %size = "
    answer = checked(ADD, _with("%size = ", spin))
    assert answer.culprit
    assert answer.culprit.change is ResultChange.ENDLESS


def test_a_call_of_a_function_without_a_body_is_named() -> None:
    called = _with("%size = ", '"tt.call"() <{callee = @other}> : () -> ()\n    %size = ')
    row = checked(ADD, called.replace(BODY.splitlines()[0], DECLARED + BODY.splitlines()[0])).passes[1]
    assert (row.status, row.why) == ("unknown", "a function without a body, or an empty region")


def test_loops_without_operations_end() -> None:
    """A loop of 2^31 turns in which nothing is, and one that asks nothing."""
    many = _with("value = 1 : i32", "value = 2147483647 : i32", LOOP).replace(
        '"scf.for"(%zero, %n, %one,', '"scf.for"(%zero, %one, %step,'
    )
    step = '    %step = "arith.constant"() <{value = 1 : i32}> : () -> i32\n    %none ='
    body = many[many.index("      %is =") : many.index('      "scf.yield"')]
    empty = (
        many.replace(body, "").replace('"scf.yield"(%new)', '"scf.yield"(%so)').replace("    %none =", step)
    )
    assert checked(LOOP, empty).passes[1].status == "differs"
    spin = (
        '    "scf.while"() ({\n'
        '      %yes = "arith.constant"() <{value = true}> : () -> i1\n'
        '      "scf.condition"(%yes) : (i1) -> ()\n'
        '    }, {\n      "scf.yield"() : () -> ()\n    }) : () -> ()\n    %none ='
    )
    assert checked(LOOP, LOOP.replace("    %none =", spin)).passes[1].status == "differs"


@pytest.mark.slow
def test_more_elements_than_can_be_computed_are_refused() -> None:
    """Few operations of large tensors would take hours."""
    of = "tensor<4194304xf32>"
    large = f'    %big = "arith.constant"() <{{value = dense<1.0> : {of}}}> : () -> {of}\n'
    more = f'      %m = "arith.addf"(%big, %big) : ({of}, {of}) -> {of}\n'
    text = LOOP.replace("    %none =", f"{large}    %none =").replace("      %is =", f"{more}      %is =")
    wide = text.replace('"scf.for"(%zero, %n', '"scf.for"(%zero, %much').replace(
        "    %none =", '    %much = "arith.constant"() <{value = 9000 : i32}> : () -> i32\n    %none ='
    )
    assert "elements" in checked(LOOP, wide, seeds=1).passes[1].why


def test_a_location_in_a_string_is_no_location() -> None:
    text = '  "a.b"() <{x = "loc(#loc1) \\" loc(y)"}> : () -> () loc("f(g\\"h.py":1:2)\n'
    assert without_locations(text) == '  "a.b"() <{x = "loc(#loc1) \\" loc(y)"}> : () -> ()'
    fused = '"a.b"() : () -> () loc(callsite("f"("k.py":1:2) at fused["a", #loc3])) -> i32'
    assert without_locations(fused) == '"a.b"() : () -> () -> i32'


def _dumped(folder: Path, *texts: tuple[str, str, bool]) -> tuple[DumpIndex, DumpedKernel, list[Dump]]:
    """A dump of texts: operation, content, whether it is whole."""
    dumps = []
    for number, (operation, text, whole) in enumerate(texts):
        (folder / f"{number}.mlir").write_text(text, encoding="utf-8")
        sha = sha256(text.encode()).hexdigest()
        dumps.append(
            Dump(number, "k", "ttir", f"Pass{number}", f"pass-{number}", "", operation, "", "before",
                 f"{number}.mlir", len(text), 1, sha, None, None, whole)
        )  # fmt: skip
    kernel = DumpedKernel("k", "k", "cuda:90")
    return DumpIndex(folder, kernels=(kernel,), dumps=tuple(dumps)), kernel, dumps


def test_passes_between_two_texts_are_suspects_too(tmp_path: Path) -> None:
    """Of a pass over functions no module is printed: what comes after it may be its work."""
    wrong = ADD.replace('"arith.addf"', '"arith.subf"')
    index, kernel, dumps = _dumped(
        tmp_path, ("builtin.module", ADD, True), ("tt.func", "", True), ("builtin.module", wrong, True)
    )
    modules = [dumps[0], dumps[2]]
    texts = {one.sha256: text for one, text in zip(modules, (ADD, wrong), strict=True)}
    answer = PassCheck(index, kernel, modules, texts, inputs_of(1)).run()
    assert answer.culprit
    assert answer.culprit.suspects == ("pass-0", "pass-1")
    inside = replace(index, dumps=(dumps[0], replace(dumps[1], inside=True), dumps[2]))
    answer = PassCheck(inside, kernel, modules, texts, inputs_of(1)).run()
    assert answer.culprit
    assert answer.culprit.suspects == ("pass-0",)


@pytest.mark.parametrize(
    ("operation", "whole", "why"),
    [("tt.func", True, ": the text that follows is of tt.func, before a pass"),
     ("builtin.module", False, ": the text that follows is not whole"),
     ("", True, "")],
)  # fmt: skip
def test_a_dump_that_ends_too_early_is_open(tmp_path: Path, operation: str, *, whole: bool, why: str) -> None:
    rest = [(operation, ADD, whole)] if operation else []
    index, kernel, dumps = _dumped(tmp_path, ("builtin.module", ADD, True), *rest)
    row = missing_texts(index, kernel, dumps[0])
    assert (row.status, row.name) == ("unknown", "pass-0")
    assert row.why == f"the dump ends before LLVM's dialect{why}"


def test_what_cannot_be_printed_is_lowered_only_with_a_function_of_llvm(tmp_path: Path) -> None:
    """The word in a comment, or a function of Triton's beside it, is none."""
    for text, status in (
        ("module {\n  llvm.func @k() {\n  }\n}\n", "lowered"),
        ("module {\n  // llvm.func @k() {\n}\n", "unknown"),
        ("module {\n  llvm.func @k() {\n  }\n  tt.func @m() {\n  }\n}\n", "unknown"),
    ):
        index, kernel, dumps = _dumped(
            tmp_path, ("builtin.module", ADD, True), ("builtin.module", text, True)
        )
        answer = PassCheck(index, kernel, dumps, {dumps[0].sha256: ADD}, inputs_of(1)).run()
        assert answer.passes[1].status == status
