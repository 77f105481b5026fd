# ruff: noqa: E501 - as it is printed
"""What the kernel gets: enough for a group of tiles to end, and a program that has nothing to do."""

from __future__ import annotations

import pytest

from tests.unit.check.test_in_flight import module
from tests.unit.check.texts import ADD, checked
from tritonsmith.check.answer import ResultChange
from tritonsmith.check.inputs import arguments, short_sizes
from tritonsmith.check.runs import parsed

pytestmark = pytest.mark.unit

# Each program writes its row and column of tiles, which go in groups of 8 rows, as upstream's matmul has it.
GROUPED = """\
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<i32>, i32, i32) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%out: !tt.ptr<i32>, %m: i32, %n: i32):
    %size = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %less = "arith.constant"() <{value = 31 : i32}> : () -> i32
    %wide = "arith.constant"() <{value = 128 : i32}> : () -> i32
    %more = "arith.constant"() <{value = 127 : i32}> : () -> i32
    %group = "arith.constant"() <{value = 8 : i32}> : () -> i32
    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %ms = "arith.addi"(%m, %less) : (i32, i32) -> i32
    %rows = "arith.divsi"(%ms, %size) : (i32, i32) -> i32
    %ns = "arith.addi"(%n, %more) : (i32, i32) -> i32
    %columns = "arith.divsi"(%ns, %wide) : (i32, i32) -> i32
    %tiles = "arith.muli"(%group, %columns) : (i32, i32) -> i32
    %which = "arith.divsi"(%pid, %tiles) : (i32, i32) -> i32
    %first = "arith.muli"(%which, %group) : (i32, i32) -> i32
    %left = "arith.subi"(%rows, %first) : (i32, i32) -> i32
    %many = "arith.minsi"(%left, %group) : (i32, i32) -> i32
    %inner = "arith.remsi"(%pid, %tiles) : (i32, i32) -> i32
    %up = "arith.remsi"(%inner, %many) : (i32, i32) -> i32
    %row = "arith.addi"(%first, %up) : (i32, i32) -> i32
    %column = "arith.divsi"(%inner, %many) : (i32, i32) -> i32
    "tt.store"(%out, %row) : (!tt.ptr<i32>, i32) -> ()
    %next = "tt.addptr"(%out, %size) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    "tt.store"(%next, %column) : (!tt.ptr<i32>, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


# A stride that only a function uses, which computes no numbers from it: rows do not overlap.
CALLED = """\
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<i32>, i32) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%out: !tt.ptr<i32>, %stride: i32):
    "tt.call"(%out, %stride) <{callee = @rows}> : (!tt.ptr<i32>, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
  "tt.func"() <{function_type = (!tt.ptr<i32>, i32) -> (), sym_name = "rows", sym_visibility = "private"}> ({
  ^bb0(%to: !tt.ptr<i32>, %apart: i32):
    %row = "tt.addptr"(%to, %apart) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    "tt.store"(%row, %apart) : (!tt.ptr<i32>, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
DIVIDED = CALLED.replace("%row =", '%half = "arith.divsi"(%apart, %apart) : (i32, i32) -> i32\n    %row =')


@pytest.mark.parametrize(("text", "stride"), [(CALLED, True), (DIVIDED, False)])
def test_what_a_function_takes_is_what_it_is_in_there(text: str, *, stride: bool) -> None:
    kernel = parsed(text)
    assert kernel
    value = int(arguments(kernel.function, 0)[1].value)
    assert (value >= 4096) is stride


def test_a_function_that_divides_a_size_says_its_block() -> None:
    """As `tl.cdiv(n, BLOCK)` is, before it is inlined."""
    block = '%wide = "arith.constant"() <{value = 64 : i32}> : () -> i32\n    '
    text = DIVIDED.replace("%half =", f"{block}%half =").replace("(%apart, %apart)", "(%apart, %wide)")
    size = _values(text, 1)[1]
    assert size // 64 == 2
    assert size % 64


@pytest.mark.parametrize(("seed", "shape"), [(0, (1, 7)), (1, (11, 47)), (2, (21, 87))])
def test_a_descriptor_of_less_than_a_tile_and_of_many(seed: int, shape: tuple[int, int]) -> None:
    """The far program is in one of the last of eleven rows; a loop of five turns reads what is there."""
    kernel = parsed(_numbers("!tt.tensordesc<tensor<2x8xf32>>", ""))
    assert kernel
    [found] = arguments(kernel.function, seed)
    assert found.value.shape == shape


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"arith.addi"(%first, %up)', '"arith.subi"(%up, %first)'),
        ('"arith.minsi"(%left, %group)', '"arith.minsi"(%rows, %group)'),
        ('"arith.subi"(%rows, %first)', '"arith.addi"(%rows, %first)'),
        ('"arith.remsi"(%pid, %tiles)', '"arith.addi"(%pid, %first)'),
    ],
)
def test_there_is_more_than_one_group_of_tiles(old: str, new: str) -> None:
    """Each of these is right in the first group."""
    assert GROUPED.count(old) == 1
    culprit = checked(GROUPED, GROUPED.replace(old, new)).culprit
    assert culprit
    assert culprit.program == (28, 1, 1)


def test_a_program_that_has_nothing_to_do_writes_nothing() -> None:
    """The last of these elements is written by no program of the reference that writes anything else."""
    lines = '%four = "arith.constant"() <{value = 4 : i32}> : () -> i32\n'
    lines += '%far = "arith.cmpi"(%pid, %four) <{predicate = 4 : i64}> : (i32, i32) -> i1\n'
    lines += '%fars = "tt.splat"(%far) : (i1) -> tensor<16xi1>\n'
    lines += '%all = "arith.ori"(%mask, %fars) : (tensor<16xi1>, tensor<16xi1>) -> tensor<16xi1>\n'
    store = '    "tt.store"(%op, %sum, %mask)'
    assert ADD.count(store) == 1
    answer = checked(ADD, ADD.replace(store, lines + store.replace("%mask", "%all")))
    assert answer.left_out == 0
    assert answer.culprit
    assert answer.culprit.difference
    assert (answer.culprit.difference.before, answer.culprit.program) == (None, (28, 1, 1))


def _values(text: str, seed: int, stages: int = 0) -> list[int]:
    kernel = parsed(text)
    assert kernel
    return [int(one.value) for one in arguments(kernel.function, seed, stages)]


def _numbers(kinds: str, body: str, hint: str = "{}") -> str:
    """A kernel of these numbers, `%a0` and so on, and what it does."""
    names = [f"%a{number}: {kind}" for number, kind in enumerate(kinds.split())]
    hints = ", ".join([hint] * len(names))
    return (
        '"builtin.module"() ({\n'
        f'  "tt.func"() <{{arg_attrs = [{hints}], function_type = () -> (), sym_name = "k", '
        'sym_visibility = "public"}> ({\n'
        f"  ^bb0({', '.join(names)}):\n"
        f'    %zero = "arith.constant"() <{{value = 0 : i32}}> : () -> i32\n{body}'
        '    "tt.return"() : () -> ()\n  }) : () -> ()\n}) : () -> ()\n'
    )


def _compared(number: int) -> str:
    return f'    %c{number} = "arith.cmpi"(%a{number}, %zero) <{{predicate = 4 : i64}}> : (i32, i32) -> i1\n'


USED = '    "scf.if"(%c0) ({\n      "scf.yield"() : () -> ()\n    }, {\n    }) : (i1) -> ()\n'


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_two_strides_and_no_two_sizes_are_the_same(seed: int) -> None:
    """One may stand where the other should."""
    strides = _values(_numbers("i32 i32 i32 i32 i64 i64", ""), seed)
    assert len(set(strides)) == 6
    assert all(one % 16 == 1 and one > 4096 for one in strides)
    assert strides[5] * 16 >= 1 << 31
    asked = "".join(map(_compared, range(4)))
    used = "".join(USED.replace("%c0", f"%c{number}") for number in range(4))
    aligned = _values(_numbers("i32 i32 i32 i32", asked + used, "{tt.divisibility = 16 : i32}"), seed)
    assert len(set(aligned)) == 4
    assert all(one % 16 == 0 and one < 200 for one in aligned)


@pytest.mark.parametrize("seed", range(12))
def test_half_of_a_size_is_found(seed: int) -> None:
    """A block of two, which an odd step never leaves whole."""
    two = '    %two = "arith.constant"() <{value = 2 : i32}> : () -> i32\n'
    half = '    %half = "arith.divsi"(%a0, %two) : (i32, i32) -> i32\n'
    assert _values(_numbers("i32", two + half), seed)[0] % 2 or seed % 3 == 0


@pytest.mark.parametrize(("seed", "least"), [(1, 5), (2, 17)])
def test_a_loop_of_single_steps_has_many_turns(seed: int, least: int) -> None:
    loop = (
        '    %step = "arith.constant"() <{value = 1 : i32}> : () -> i32\n'
        '    "scf.for"(%zero, %a0, %step) ({\n    ^bb1(%i: i32):\n      "scf.yield"() : () -> ()\n'
        "    }) : (i32, i32, i32) -> ()\n"
    )
    assert _values(_numbers("i32", loop), seed)[0] >= least


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_a_descriptor_reaches_no_other_argument(rank: int) -> None:
    shape = "x".join(["16"] * rank)
    kernel = parsed(_numbers(f"!tt.tensordesc<tensor<{shape}xf32>>", ""))
    assert kernel
    found = arguments(kernel.function, 2)[0].value
    last = sum(stride * (size - 1) for stride, size in zip(found.strides, found.shape, strict=True))
    assert last * 4 < 1 << 39
    assert all(one > other * 100 for one, other in zip(found.strides, found.strides[1:], strict=False))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("unit", [1, 16])
def test_a_size_is_not_of_whole_blocks(seed: int, unit: int) -> None:
    """A mask of the last one would ask nothing; and the least part shows what rounds up."""
    block = '    %block = "arith.constant"() <{value = 32 : i32}> : () -> i32\n'
    divided = [f'    %t{one} = "arith.divsi"(%a{one}, %block) : (i32, i32) -> i32\n' for one in range(4)]
    hint = "{tt.divisibility = 16 : i32}" if unit > 1 else "{}"
    sizes = _values(_numbers("i32 i32 i32 i32", block + "".join(divided), hint), seed)
    assert len(set(sizes)) == 4
    assert all(one % 32 and one % unit == 0 for one in sizes)
    loop = (
        '    %step = "arith.constant"() <{value = 32 : i32}> : () -> i32\n'
        '    "scf.for"(%zero, %a0, %step) ({\n    ^bb1(%i: i32):\n      "scf.yield"() : () -> ()\n'
        "    }) : (i32, i32, i32) -> ()\n"
    )
    [size] = _values(_numbers("i32", loop, hint), seed)
    assert size == 32 + unit if seed == 2 else size // 32 == 4 and size % 32


def test_a_loop_has_one_turn_in_the_first_inputs() -> None:
    """Though other sizes are the same then."""
    loop = (
        '    %step = "arith.constant"() <{value = 32 : i32}> : () -> i32\n'
        '    "scf.for"(%zero, %a2, %step) ({\n    ^bb1(%i: i32):\n      "scf.yield"() : () -> ()\n'
        "    }) : (i32, i32, i32) -> ()\n"
    )
    asked = "".join(map(_compared, range(2))) + "".join(USED.replace("%c0", f"%c{one}") for one in range(2))
    text = _numbers("i32 i32 i32", asked + loop, "{tt.divisibility = 16 : i32}")
    assert _values(text, 0) == [16, 32, 16]
    assert len(set(_values(text, 1))) == 3


def test_offsets_of_a_pointer_whose_range_is_32_bits() -> None:
    strides = _values(_numbers("i32 i64", "", "{tt.pointer_range = 32 : i32}"), 1)
    assert 4096 < max(strides) * 64 * 4 < 1 << 31


def _assumed(*lines: str) -> str:
    """A kernel that assumes `%is`."""
    return _numbers(
        "i32", "".join(f"    {line}\n" for line in (*lines, '"llvm.intr.assume"(%is) : (i1) -> ()'))
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("predicate", "most"), [(0, 1000), (2, 999), (3, 1000), (6, 999), (7, 1000)])
def test_what_is_assumed_of_a_number_holds(predicate: int, most: int, seed: int) -> None:
    bound = '%bound = "arith.constant"() <{value = 1000 : i32}> : () -> i32'
    compare = f'%is = "arith.cmpi"(%a0, %bound) <{{predicate = {predicate} : i64}}> : (i32, i32) -> i1'
    assert _values(_assumed(bound, compare), seed) == [most]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_assumed_to_be_a_multiple_is_one(seed: int) -> None:
    multiple = (
        '%unit = "arith.constant"() <{value = 64 : i32}> : () -> i32',
        '%rest = "arith.remsi"(%a0, %unit) : (i32, i32) -> i32',
        '%is = "arith.cmpi"(%rest, %zero) <{predicate = 0 : i64}> : (i32, i32) -> i1',
    )
    [stride] = _values(_assumed(*multiple), seed)
    assert stride > 4096
    assert stride % 64 == 0
    [size] = _values(_assumed(*multiple, _compared(0).strip(), *USED.strip().splitlines()), seed)
    assert size < 4096
    assert size % 64 == 0


def test_what_is_only_assumed_is_no_size() -> None:
    assumed = _compared(0) + '    "llvm.intr.assume"(%c0) : (i1) -> ()\n'
    assert _values(_numbers("i32", assumed), 0)[0] > 4096
    assert _values(_numbers("i32", assumed + USED), 0)[0] < 4096


@pytest.mark.parametrize(("seed", "stages", "turns"), [(1, 0, 4), (1, 3, 4), (1, 7, 8), (2, 3, 1)])
def test_a_pipelined_loop_has_a_turn_more_than_stages_or_two(seed: int, stages: int, turns: int) -> None:
    """With those of the third inputs, what is loaded before a loop is cut."""
    loop = (
        '    %step = "arith.constant"() <{value = 32 : i32}> : () -> i32\n'
        '    "scf.for"(%zero, %a0, %step) ({\n    ^bb1(%i: i32):\n      "scf.yield"() : () -> ()\n'
        "    }) : (i32, i32, i32) -> ()\n"
    )
    size = _values(_numbers("i32", loop), seed, stages)[0]
    assert size // 32 == turns
    assert size % 32


_I, _M, _P, _F = "tensor<32xi32>", "tensor<32xi1>", "tensor<32x!tt.ptr<f32>>", "tensor<32xf32>"
# The sum of n elements, 32 at a time; another store has a mask of 64, which is the block that counts for n.
STEPS = module(
    f"""\
    %step = "arith.constant"() <{{value = 32 : i32}}> : () -> i32
    %most = "arith.constant"() <{{value = 20000 : i32}}> : () -> i32
    %none = "arith.constant"() <{{value = dense<0.000000e+00> : {_F}}}> : () -> {_F}
    %range = "tt.make_range"() <{{end = 32 : i32, start = 0 : i32}}> : () -> {_I}
    %wide = "tt.make_range"() <{{end = 64 : i32, start = 0 : i32}}> : () -> tensor<64xi32>
    %wides = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %few = "arith.cmpi"(%wide, %wides) <{{predicate = 2 : i64}}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %nil = "arith.constant"() <{{value = dense<0.000000e+00> : tensor<64xf32>}}> : () -> tensor<64xf32>
    %ws = "tt.splat"(%out) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %wp = "tt.addptr"(%ws, %wide) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    "tt.store"(%wp, %nil, %few) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    %ns = "tt.splat"(%n) : (i32) -> {_I}
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> {_P}
    %os = "tt.splat"(%out) : (!tt.ptr<f32>) -> {_P}
    %end = "arith.minsi"(%n, %most) : (i32, i32) -> i32
    %total = "scf.for"(%zero, %end, %step, %none) ({{
    ^bb0(%i: i32, %so: {_F}):
      %is = "tt.splat"(%i) : (i32) -> {_I}
      %at = "arith.addi"(%is, %range) : ({_I}, {_I}) -> {_I}
      %in = "arith.cmpi"(%at, %ns) <{{predicate = 2 : i64}}> : ({_I}, {_I}) -> {_M}
      %p = "tt.addptr"(%xs, %at) : ({_P}, {_I}) -> {_P}
      %v = "tt.load"(%p, %in, %none) <{{operandSegmentSizes = array<i32: 1, 1, 1>}}> : ({_P}, {_M}, {_F}) -> {_F}
      %new = "arith.addf"(%so, %v) : ({_F}, {_F}) -> {_F}
      "scf.yield"(%new) : ({_F}) -> ()
    }}) : (i32, i32, i32, {_F}) -> {_F}
    %op = "tt.addptr"(%os, %range) : ({_P}, {_I}) -> {_P}
    "tt.store"(%op, %total) : ({_P}, {_F}) -> ()
""",
    x="!tt.ptr<f32>",
    out="!tt.ptr<f32>",
    n="i32",
)


def test_loops_of_few_turns_end_with_a_part_of_a_block() -> None:
    kernel = parsed(STEPS)
    assert kernel
    assert short_sizes(kernel.function, 0) == [(2, 41), (2, 73)]
    assert short_sizes(kernel.function, 4) == [(2, 41), (2, 73), (2, 105)]
    counted = STEPS.replace('"arith.minsi"(%n, %most)', '"arith.divsi"(%n, %step)').replace(
        "%end, %step", "%end, %one"
    )
    kernel = parsed(counted)
    assert kernel
    assert short_sizes(kernel.function, 0) == [(2, 41), (2, 73)]


def test_the_second_turn_of_a_pipeline_that_is_begun_without_its_mask() -> None:
    """Its elements are all there in each loop of more turns."""
    begun = f"""\
    %second = "arith.cmpi"(%step, %n) <{{predicate = 2 : i64}}> : (i32, i32) -> i1
    %all = "tt.splat"(%second) : (i1) -> {_M}
    %by = "tt.splat"(%step) : (i32) -> {_I}
    %there = "arith.addi"(%by, %range) : ({_I}, {_I}) -> {_I}
    %early = "tt.addptr"(%xs, %there) : ({_P}, {_I}) -> {_P}
    %got = "tt.load"(%early, %all, %none) <{{operandSegmentSizes = array<i32: 1, 1, 1>}}> : ({_P}, {_M}, {_F}) -> {_F}
"""
    line = "    %total ="
    found = checked(STEPS, STEPS.replace(line, begun + line)).culprit
    assert found
    assert (found.change, found.arguments["n"]) == (ResultChange.OUTSIDE, 41)
