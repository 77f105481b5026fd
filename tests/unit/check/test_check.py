"""The first pass that changes the result: small kernels, with one thing wrong from some text on."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.check.refactored import version
from tests.unit.check.texts import ADD, LOOP, LOWERED, checked, indexed
from tritonsmith.check.answer import answer_lines, as_json, failure, verdict
from tritonsmith.check.check import before_llvm, count_until, inputs_of
from tritonsmith.check.llvm.machine import LoweredKernel
from tritonsmith.check.memory import Contents
from tritonsmith.check.module import behaviour
from tritonsmith.check.runs import ReferenceRuns, RunComparison, TritonKernel
from tritonsmith.core import configs
from tritonsmith.core.errors import UndecidedError

pytestmark = pytest.mark.unit


def renamed(text: str) -> str:
    """The same program in other words: values have other names, and an operation stands elsewhere."""
    line = '    %size = "arith.constant"() <{value = 16 : i32}> : () -> i32\n'
    assert line in text
    moved = text.replace(line, "").replace('    %pid = "tt.get', f'{line}    %pid = "tt.get')
    return moved.replace("%product", "%ab").replace("%range", "%0")


def test_texts_of_llvms_dialect_need_no_generic_form(tmp_path: Path) -> None:
    """Unless a text of Triton's follows: then the kernel has not left its dialects there."""
    texts = (ADD, LOWERED, ADD.replace("%sum", "%other"), LOWERED, "module {}\n")
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.mlir").write_text(text)
    index = indexed(texts, tmp_path)
    assert [dump.number for dump in before_llvm(index, list(index.dumps))] == [0, 1, 2, 4]


def test_a_check_ends_with_what_a_pass_left() -> None:
    """`reduce` asks about one pass: what comes after it cannot be the first to change the result."""
    index = indexed((ADD, ADD, renamed(ADD), ADD.replace('"arith.mulf"', '"arith.divf"')))
    dumps = list(index.dumps)
    assert [count_until(dumps, f"pass-{number}") for number in range(4)] == [2, 3, 4, 4]
    assert count_until(dumps, "") == count_until(dumps, "another") == 4
    assert count_until([*dumps, dumps[1], dumps[2]], "pass-1") == 6  # of its last run
    assert checked(ADD, renamed(ADD), wrong := ADD.replace('"arith.mulf"', '"arith.divf"')).culprit
    assert not checked(ADD, renamed(ADD), wrong, until="pass-0").culprit
    assert checked(ADD, renamed(ADD), wrong, until="pass-1").culprit


def test_a_pass_that_does_no_harm_spares_the_texts_before_it() -> None:
    """The input and what it left are run."""
    wrong, words = ADD.replace('"arith.mulf"', '"arith.divf"'), [renamed(ADD), ADD.replace("%sum", "%other")]
    answer = checked(ADD, *words, renamed(ADD).replace("%sum", "%other"), until="pass-2")
    assert [row.status for row in answer.passes] == ["reference", "equal"]
    assert not answer.open
    assert [row.status for row in checked(ADD, words[0], words[1]).passes[1:]] == ["equal", "equal"]
    blamed = checked(ADD, words[0], wrong, wrong.replace("%sum", "%other"), until="pass-2").culprit
    assert blamed
    assert blamed.checked.name == "pass-1"


def test_a_pass_that_does_harm_spares_the_texts_before_its_own() -> None:
    """Where the text that it was given is right; else all are run in order."""
    wrong, words = ADD.replace('"arith.mulf"', '"arith.divf"'), [renamed(ADD), ADD.replace("%sum", "%other")]
    spared = checked(ADD, *words, wrong, until="pass-2")
    assert [row.status for row in spared.passes] == ["reference", "equal", "differs"]
    assert [row.name for row in spared.passes] == ["", "pass-1", "pass-2"]
    assert spared.culprit == checked(ADD, *words, wrong).culprit
    same = checked(ADD, words[0], ADD, wrong, until="pass-2")
    assert [row.status for row in same.passes] == ["reference", "same text", "differs"]
    assert same.culprit
    assert same.culprit.suspects == ("pass-2",)
    unknown = ADD.replace('"arith.mulf"', '"arith.unknown"')
    in_order = checked(ADD, words[0], unknown, wrong, until="pass-2")
    assert [row.status for row in in_order.passes] == ["reference", "equal", "unknown", "differs"]
    assert in_order == checked(ADD, words[0], unknown, wrong)


def test_a_far_program_has_no_nan_in_memory() -> None:
    """A dot over NaN is NaN, whatever the tile."""
    assert len(configs.load("passes-check")["inputs"]["programs"]) == 3  # as many as there are sizes
    found = inputs_of(3)
    last = [one.contents for one in found if one.seed == 2]
    assert last == [Contents.EDGES, Contents.EDGES, Contents.PLAIN]
    more = [one.contents for one in found[10:13]]
    assert more == [Contents.LARGE, Contents.PRECISE, Contents.INTEGERS]
    assert {(one.seed, one.program) for one in found[10:13]} == {(1, (0, 0, 0))}
    cut = [Contents.ABOVE, Contents.BELOW, Contents.INTEGERS_ABOVE, Contents.INTEGERS_BELOW]
    assert [one.contents for one in found[13:]] == cut
    assert {(one.seed, one.program) for one in found[13:]} == {(0, (0, 0, 0))}
    assert [len(inputs_of(many)) for many in (1, 2, 6)] == [4, 14, 27]


def test_a_program_in_other_words_is_equal_bit_by_bit() -> None:
    answer = checked(ADD, ADD, renamed(ADD), LOWERED)
    assert [one.status for one in answer.passes] == ["reference", "same text", "equal", "lowered"]
    assert answer.culprit is None
    assert answer.elements > 50
    assert verdict(answer) == "k: none of 2 passes changes the result"


def laid_out(text: str, layout: str, *, plan: str = "") -> str:
    """The same program with a layout on each tensor, and with a plan for each load."""
    typed = re.sub(r"(tensor<\w+(?:!tt\.ptr<\w+>)?)>", r"\1, #ttg.slice<{dim = 0, parent = #blocked}>>", text)
    planned = typed.replace("0>}> : (tensor<16x!tt", f"0>}}>{plan} : (tensor<16x!tt")
    assert planned.count("#blocked") > 20
    return f"#blocked = #ttg.blocked<{{order = [{layout}]}}>\n{planned}"


def test_texts_that_differ_in_layouts_and_plans_are_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[TritonKernel | LoweredKernel] = []
    compare = ReferenceRuns.compare

    def counted(runs: ReferenceRuns, kernel: TritonKernel | LoweredKernel) -> RunComparison:
        compared.append(kernel)
        return compare(runs, kernel)

    monkeypatch.setattr(ReferenceRuns, "compare", counted)
    plan = " {loop.cluster = 1 : i32, loop.stage = 0 : i32}"
    texts = [laid_out(renamed(ADD), "1, 0"), laid_out(renamed(ADD), "0, 1", plan=plan)]
    barrier = '    "ttg.barrier"() <{addrSpace = 1 : i32}> : () -> ()\n    %xs ='
    texts.append(texts[1].replace("    %xs =", barrier).replace("%mask", "%in"))
    wrong = texts[1].replace('"arith.mulf"', '"arith.addf"')
    answer = checked(ADD, *texts, wrong)
    assert [one.status for one in answer.passes] == ["reference", "equal", "equal", "equal", "differs"]
    assert answer.culprit
    assert answer.culprit.suspects == ("pass-3",)
    assert len(compared) == 2  # the first of the equal ones, and the wrong one


def test_what_an_operation_may_read_is_part_of_how_a_text_behaves() -> None:
    for old, new in (
        ('"a"(%0, %1)', '"a"(%1, %0)'),  # with %0 and %1 defined before
        ('"a"() {asm = "%x, #b> // {loop.stage = 0 : i32}"}', '"a"() {asm = "%y, #b> //"}'),
        ('"a"() {loop.stage = 0 : i32, other = 1 : i32}', '"a"() {loop.stage = 0 : i32, other = 2 : i32}'),
        ("tensor<4xf32, #x>", "tensor<4xf16, #x>"),
        ("!ttg.memdesc<2x4xf32, #x, #smem>", "!ttg.memdesc<4xf32, #x, #smem>"),
        ('"ttg.num-warps" = 4 : i32', '"ttg.num-warps" = 8 : i32'),
    ):
        defined = '%0 = "one"()\n%1 = "two"()\n'
        assert behaviour(defined + old) != behaviour(defined + new), old
    used = '#x = #ttg.blocked<{order = [0]}>\n"a"() {layout = #x}\n'
    assert behaviour(used) != behaviour(used.replace("[0]", "[1]"))


MUTANTS = {
    "operands swapped": ('"arith.cmpi"(%at, %ns)', '"arith.cmpi"(%ns, %at)'),
    "mask dropped": (
        '"tt.store"(%op, %sum, %mask) : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>)',
        '"tt.store"(%op, %sum) : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>)',
    ),
    "off by one in a range": ("end = 16 : i32, start = 0 : i32", "end = 17 : i32, start = 1 : i32"),
    "off by one in an offset": ("value = 16 : i32", "value = 17 : i32"),
    "wrong predicate": ("predicate = 2 : i64", "predicate = 3 : i64"),
    "unsigned predicate of other sense": ("predicate = 2 : i64", "predicate = 9 : i64"),
    "lost addend": ('"arith.addf"(%product, %a)', '"arith.addf"(%product, %product)'),
    "wrong operation": ('"arith.mulf"', '"arith.divf"'),
    "wrong pointer": ('"tt.addptr"(%ys, %at)', '"tt.addptr"(%xs, %at)'),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_what_changes_the_result_is_found_at_its_pass(name: str) -> None:
    old, new = MUTANTS[name]
    assert ADD.count(old) == 1
    wrong = ADD.replace(old, new)
    answer = checked(ADD, renamed(ADD), wrong, wrong.replace("%sum", "%other"))
    assert answer.culprit
    assert answer.culprit.suspects == ("pass-1",)
    assert answer.culprit.store == "out"
    assert [one.status for one in answer.passes] == ["reference", "equal", "differs"]


def test_the_element_the_operation_and_the_line_are_named() -> None:
    answer = checked(ADD, ADD.replace('"arith.addf"(%product, %a)', '"arith.subf"(%product, %a)'))
    found = answer.culprit
    assert found
    assert found.difference
    assert (found.operation, found.line) == ("arith.subf", "add.py:7")
    assert found.difference.before != found.difference.after
    first, where, *_ = answer_lines(answer)
    assert first == "k: pass-0 changes the result"
    assert where.startswith(f"  first: out[{found.difference.offset}]: ")


INLINED = """\
#loc7 = loc("sum"(#loc8))
#loc8 = loc(callsite(#loc9 at #loc12))
#loc9 = loc(callsite(#loc10 at #loc11))
#loc10 = loc("/usr/lib/python3/site-packages/triton/language/standard.py":263:15)
#loc11 = loc("/home/m/mein Code \\C3\\A9/helper.py":5:4)
#loc12 = loc("/home/m/kernel.py":28:8)
"""


def test_the_line_is_the_users_where_triton_s_own_functions_are_inlined() -> None:
    text = ADD.replace('#loc7 = loc("add.py":7:4)\n', INLINED)
    found = checked(text, text.replace('"arith.addf"(%product, %a)', '"arith.subf"(%product, %a)')).culprit
    assert found
    assert found.line == "/home/m/mein Code é/helper.py:5"
    endless = text.replace("#loc9 at #loc12", "#loc7 at #loc7")
    found = checked(text, endless.replace('"arith.addf"(%product, %a)', '"arith.subf"(%product, %a)')).culprit
    assert found
    assert found.line == ""


def test_json_has_no_number_that_is_none() -> None:
    answer = checked(ADD, ADD.replace('"arith.addf"(%product, %a)', '"arith.subf"(%product, %a)'))
    assert answer.culprit
    assert answer.culprit.difference
    other = replace(answer.culprit.difference, before=float("nan"), after=float("-inf"))
    told = as_json(replace(answer, culprit=replace(answer.culprit, difference=other)))
    found = json.loads(json.dumps(told, allow_nan=False))["culprit"]["difference"]
    assert (found["before"], found["after"]) == ("NaN", "-inf")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"arith.addf"(%so, %v)', '"arith.addf"(%v, %v)'),
        ('"scf.for"(%zero, %n', '"scf.for"(%one, %n'),
        ('"scf.yield"(%new)', '"scf.yield"(%so)'),
    ],
)
def test_a_loop(old: str, new: str) -> None:
    assert checked(LOOP, LOOP.replace("%new", "%more")).culprit is None
    answer = checked(LOOP, LOOP.replace(old, new))
    assert answer.culprit


def test_rounding_within_the_tolerance_is_said() -> None:
    divided = ADD.replace('"arith.mulf"(%a, %b)', '"arith.divf"(%a, %b)')
    third = (
        '%third = "arith.constant"() <{value = dense<3.000000e+00> : tensor<16xf32>}> : () -> tensor<16xf32>'
    )
    times = '%t = "arith.mulf"(%a, %third) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>'
    back = '%c = "arith.divf"(%t, %third) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>'
    other = divided.replace("    %product", f"    {third}\n    {times}\n    {back}\n    %product", 1)
    other = other.replace('"arith.divf"(%a, %b)', '"arith.divf"(%c, %b)')
    answer = checked(divided, other)
    assert answer.culprit is None
    assert answer.passes[-1].status in ("equal", "close")


def test_what_is_not_known_stops_nothing_but_the_verdict() -> None:
    strange = ADD.replace('"arith.mulf"', '"tt.strange"')
    answer = checked(ADD, strange, renamed(ADD))
    assert [one.status for one in answer.passes] == ["reference", "unknown", "equal"]
    assert (answer.culprit, answer.open) == (None, ())
    assert verdict(answer).endswith(
        ": none of 1 passes that could be checked changes the result; 1 in the middle could not be checked"
    )
    assert failure(answer, Path()) is None
    answer = checked(ADD, strange)
    assert answer.skipped == 0
    assert [one.why for one in answer.open] == ["tt.strange"]
    assert verdict(answer).endswith("; 1 at the end could not be checked")
    wrong = ADD.replace('"arith.mulf"', '"arith.divf"')
    found = checked(ADD, strange, wrong).culprit
    assert found
    assert found.suspects == ("pass-0", "pass-1")


def test_a_text_that_runs_under_some_inputs_only_is_no_reference() -> None:
    strange = """\
    %first = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %later = "arith.cmpi"(%pid, %first) <{predicate = 4 : i64}> : (i32, i32) -> i1
    "scf.if"(%later) ({
      "tt.strange"() : () -> ()
      "scf.yield"() : () -> ()
    }, {
    }) : (i1) -> ()
"""
    line = '    %os = "tt.splat"(%out)'
    partly = ADD.replace(line, strange + line, 1)
    answer = checked(partly, ADD, renamed(ADD))
    assert [one.status for one in answer.passes] == ["unknown", "reference", "equal"]
    assert answer.reasons == ["tt.strange"]
    wrong = ADD.replace('"arith.mulf"', '"arith.divf"')
    assert [one.status for one in checked(partly, ADD, wrong).passes] == ["unknown", "reference", "differs"]


def test_passes_before_the_first_text_that_runs_are_open() -> None:
    answer = checked(ADD.replace('"arith.mulf"', '"tt.strange"'), ADD, renamed(ADD))
    assert [one.status for one in answer.passes] == ["unknown", "reference", "equal"]
    assert [one.why for one in answer.open] == ["tt.strange"]
    assert verdict(answer).endswith("; 1 at either end could not be checked")


def test_an_undefined_value_that_nobody_sees_is_none_of_the_result() -> None:
    size = '    %size = "arith.constant"() <{value = 16 : i32}> : () -> i32\n'
    unused = size + '    %undef = "llvm.mlir.undef"() : () -> tensor<16xf32>\n'
    answer = checked(ADD.replace(size, unused), ADD)
    assert [one.status for one in answer.passes] == ["reference", "equal"]


def test_a_kernel_that_nothing_runs_of_is_an_error() -> None:
    with pytest.raises(UndecidedError, match="nothing of this kernel") as error:
        checked(ADD.replace('"arith.mulf"', '"tt.strange"'))
    assert error.value.why == "tt.strange"


def test_a_kernel_that_never_ends_is_no_answer() -> None:
    one = '%one = "arith.constant"() <{value = 1 : i32}>'
    spin = LOOP.replace(one, one.replace("1 : i32", "0 : i32"))
    for texts in ((spin,), (spin, LOOP)):  # what follows is the same program
        with pytest.raises(UndecidedError, match="nothing of this kernel") as error:
            checked(*texts)
    assert "does not end" in str(error.value)


def test_a_check_that_is_told_to_stop_is_no_answer() -> None:
    asked = iter((False, False, True))
    with pytest.raises(UndecidedError, match="stopped"):
        checked(ADD, ADD.replace("%sum", "%other"), stop=lambda: next(asked))


def test_what_no_triton_makes_is_refused_and_fills_no_memory() -> None:
    """A tensor of 4 GiB; a range that its type does not have; a function that calls itself."""
    huge = ADD.replace("tensor<16x", "tensor<1073741824x").replace("end = 16", "end = 1073741824")
    calls = ADD.replace(
        '    %pid = "tt.get',
        '    "tt.call"(%x, %y, %out, %n) <{callee = @add}> : '
        "(!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i32) -> ()\n"
        '    %pid = "tt.get',
    )
    for text, why in (
        (huge, "more than 4194304 elements"),
        (ADD.replace("end = 16", "end = 2147483647"), "of another size"),
        (calls, "nests too deeply"),
    ):
        answer = checked(ADD, text)
        assert [one.status for one in answer.passes] == ["reference", "unknown"]
        assert why in answer.reasons[0]


# out[i] = x[i] of a block that is read through a descriptor, which the kernel makes in scratch memory.
DESCRIPTOR = """\
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32):
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %unit = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %size = "arith.constant"() <{value = 8 : i32}> : () -> i32
    %bytes = "arith.constant"() <{value = 64 : i64}> : () -> i64
    %row = "arith.constant"() <{value = 16 : i64}> : () -> i64
    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %some = "arith.divsi"(%n, %size) : (i32, i32) -> i32
    MAKE
    %v = "tt.descriptor_load"(%desc, %pid, %some) <{cache = 1 : i32, evict = 1 : i32}> : (!tt.tensordesc<tensor<2x8xf32>>, i32, i32) -> tensor<2x8xf32>
    %sum = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = "arith.addf"(%a, %b) : (f32, f32) -> f32
      "tt.reduce.return"(%c) : (f32) -> ()
    }) : (tensor<2x8xf32>) -> tensor<8xf32>
    %range = "tt.make_range"() <{end = 8 : i32, start = 0 : i32}> : () -> tensor<8xi32>
    %os = "tt.splat"(%out) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
    %op = "tt.addptr"(%os, %range) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    "tt.store"(%op, %sum) : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""  # noqa: E501 - as it is printed
MADE = (
    '%desc = "tt.make_tensor_descriptor"(%x, %n, %size, %row, %unit) <{padding = 1 : i32}> : '
    "(!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<tensor<2x8xf32>>"
)
SCRATCH = (
    '%p = "ttg.global_scratch_alloc"() <{alignment = 128 : i32, nbytes = 128 : i32}> : () -> !tt.ptr<i8>',
    (
        '"ttng.tensormap_create"(%p, %x, %size, %one, %size, %n, %bytes, %one, %one) <{elem_type = 7 : i32, '
        "fill_mode = 0 : i32, interleave_layout = 0 : i32, "
        "operandSegmentSizes = array<i32: 1, 1, 2, 2, 1, 2>, swizzle_mode = 0 : i32}> : "
        "(!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()"
    ),
    '%desc = "ttng.reinterpret_tensor_descriptor"(%p) : (!tt.ptr<i8>) -> !tt.tensordesc<tensor<2x8xf32>>',
)


def test_a_descriptor_that_the_kernel_makes() -> None:
    """The sizes come the other way round, and the stride is in bytes."""
    before, after = (DESCRIPTOR.replace("MAKE", text) for text in (MADE, "\n    ".join(SCRATCH)))
    assert [one.status for one in checked(before, after).passes] == ["reference", "equal"]
    wrong = after.replace("value = 64 : i64", "value = 68 : i64")
    assert checked(before, wrong).culprit
    used = after.replace(
        '    %v = "tt.desc', '    %w = "tt.load"(%p) : (!tt.ptr<i8>) -> i8\n    %v = "tt.desc'
    )
    assert [one.why for one in checked(before, used).open] == ["scratch memory in use"]


# What the kernel gets is a descriptor; then a pointer, two sizes, two strides and a flag or two.
PARAMETERS = "%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32"
OTHER_PARAMETERS = "parameters that are not those of the first text"
BLOCK_TYPE = "!tt.tensordesc<tensor<2x8xf32>>"
APART = "%x: !tt.ptr<f32>, %s0: i64, %s1: i64, %t0: i64, %t1: i64"
AGAIN = (
    '%a0 = "arith.trunci"(%s0) : (i64) -> i32',
    '%a1 = "arith.trunci"(%s1) : (i64) -> i32',
    (
        '%desc = "tt.make_tensor_descriptor"(%x, %a0, %a1, %t0, %t1) <{padding = 1 : i32}> : '
        f"(!tt.ptr<f32>, i32, i32, i64, i64) -> {BLOCK_TYPE}"
    ),
)


@pytest.mark.parametrize("flags", ["", ", %f: i1", ", %f: i1, %g: i1"])
def test_a_parameter_that_is_a_descriptor_and_is_taken_apart(flags: str) -> None:
    """As RewriteTensorDescriptorToPointer.cpp of Triton does it; how many flags follow differs by release."""
    before = DESCRIPTOR.replace("MAKE", "").replace(
        PARAMETERS, f"%desc: {BLOCK_TYPE}, %out: !tt.ptr<f32>, %n: i32"
    )
    after = DESCRIPTOR.replace("MAKE", "\n    ".join(AGAIN)).replace(
        PARAMETERS, f"{APART}{flags}, %out: !tt.ptr<f32>, %n: i32"
    )
    assert [one.status for one in checked(before, after).passes] == ["reference", "equal"]
    swapped = after.replace("%x, %a0, %a1, %t0, %t1", "%x, %a1, %a0, %t0, %t1")
    assert checked(before, swapped).culprit
    more = after.replace("%n: i32):", "%n: i32, %h: i1, %i: i1, %j: i1):")
    assert [one.why for one in checked(before, more).open] == [OTHER_PARAMETERS]


def test_a_parameter_that_came_from_nowhere() -> None:
    more = ADD.replace("%n: i32):", "%n: i32, %more: i32):")
    assert [one.why for one in checked(ADD, more).open] == [OTHER_PARAMETERS]


# out[i] = x[i], for i below n, by blocks of a tensor; then as triton-rewrite-tensor-pointer has it.
BLOCKS = """\
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %size = "arith.constant"() <{value = 8 : i32}> : () -> i32
    %unit = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %ns = "arith.extsi"(%n) : (i32) -> i64
    %xp = "tt.make_tensor_ptr"(%x, %ns, %unit, %zero) <{order = array<i32: 0>}> : (!tt.ptr<f32>, i64, i64, i32) -> !tt.ptr<tensor<8xf32>>
    %op = "tt.make_tensor_ptr"(%out, %ns, %unit, %zero) <{order = array<i32: 0>}> : (!tt.ptr<f32>, i64, i64, i32) -> !tt.ptr<tensor<8xf32>, 1>
    %last:2 = "scf.for"(%zero, %n, %size, %xp, %op) ({
    ^bb0(%i: i32, %from: !tt.ptr<tensor<8xf32>>, %to: !tt.ptr<tensor<8xf32>, 1>):
      %v = "tt.load"(%from) <{boundaryCheck = array<i32: 0>, operandSegmentSizes = array<i32: 1, 0, 0>, padding = 2 : i32}> : (!tt.ptr<tensor<8xf32>>) -> tensor<8xf32>
      "tt.store"(%to, %v) <{boundaryCheck = array<i32>}> : (!tt.ptr<tensor<8xf32>, 1>, tensor<8xf32>) -> ()
      %next = "tt.advance"(%from, %size) : (!tt.ptr<tensor<8xf32>>, i32) -> !tt.ptr<tensor<8xf32>>
      %more = "tt.advance"(%to, %size) : (!tt.ptr<tensor<8xf32>, 1>, i32) -> !tt.ptr<tensor<8xf32>, 1>
      "scf.yield"(%next, %more) : (!tt.ptr<tensor<8xf32>>, !tt.ptr<tensor<8xf32>, 1>) -> ()
    }) : (i32, i32, i32, !tt.ptr<tensor<8xf32>>, !tt.ptr<tensor<8xf32>, 1>) -> (!tt.ptr<tensor<8xf32>>, !tt.ptr<tensor<8xf32>, 1>)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""  # noqa: E501 - as it is printed
POINTERS = """\
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %size = "arith.constant"() <{value = 8 : i32}> : () -> i32
    %range = "tt.make_range"() <{end = 8 : i32, start = 0 : i32}> : () -> tensor<8xi32>
    %nan = "arith.constant"() <{value = dense<0x7FC00000> : tensor<8xf32>}> : () -> tensor<8xf32>
    %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
    %os = "tt.splat"(%out) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
    "scf.for"(%zero, %n, %size) ({
    ^bb0(%i: i32):
      %is = "tt.splat"(%i) : (i32) -> tensor<8xi32>
      %at = "arith.addi"(%is, %range) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
      %mask = "arith.cmpi"(%at, %ns) <{predicate = 2 : i64}> : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
      %xp = "tt.addptr"(%xs, %at) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
      %op = "tt.addptr"(%os, %at) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
      %v = "tt.load"(%xp, %mask, %nan) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>, tensor<8xf32>) -> tensor<8xf32>
      "tt.store"(%op, %v) : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""  # noqa: E501 - as it is printed


@pytest.mark.slow
def test_blocks_of_a_tensor() -> None:
    """What lies outside is NaN where the load asks for that, and written where the store does not ask."""
    assert [one.status for one in checked(BLOCKS, POINTERS).passes] == ["reference", "equal"]
    for old, new in (
        ("padding = 2", "padding = 1"),
        ("array<i32>}", "array<i32: 0>}"),
        ("%from, %size", "%from, %n"),
    ):
        assert BLOCKS.count(old) == 1
        assert checked(POINTERS, BLOCKS.replace(old, new)).culprit, old


def test_a_place_that_threads_write_leaves_the_answer_open() -> None:
    halves = version("halves").text
    answer = checked(halves, f"{halves}\n")
    assert verdict(answer) == "k: undecided: OUT[0] depends on which thread comes last"
    assert answer.open
    assert answer.reasons == ["OUT[0] depends on which thread comes last"]
    assert as_json(answer)["outcome"] == "undecided"
    wrong = checked(halves, halves.replace("dense<2> : tensor<64xi32>", "dense<3> : tensor<64xi32>"))
    assert wrong.culprit
    once = checked(version("pairs").text, version("pairs").text + "\n")
    assert (once.open, once.racing) == ((), "")


def test_another_thread_that_comes_last_is_no_fault_of_a_pass() -> None:
    halves, integers = version("halves").text, "tensor<64xi32>"
    line = next(line for line in halves.splitlines() if "tt.make_range" in line)
    reverse = f"""{line.replace("%at_2", "%up")}
    %most = "arith.constant"() <{{value = dense<63> : {integers}}}> : () -> {integers}
    %at_2 = "arith.subi"(%most, %up) : ({integers}, {integers}) -> {integers}"""
    answer = checked(halves, halves.replace(line, reverse))
    assert answer.culprit is None
    assert answer.reasons == ["OUT[0] depends on which thread comes last"]


def test_indices_in_memory_that_repeat_are_replaced() -> None:
    answer = checked(version("scatter").text, version("scatter_by_a_multiple").text)
    assert (answer.open, answer.culprit, answer.racing) == ((), None, "")
    assert "integers in memory that repeat" in answer.gaps
    assert checked(version("scatter").text, version("scatter_of_one_less").text).culprit
