# ruff: noqa: E501 - as it is printed
"""What lies in memory that nobody wrote."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.check.texts import ADD, checked
from tritonsmith.check.answer import ResultChange, compare_memory
from tritonsmith.check.memory import Contents, GlobalMemory, RecordingMemory, base
from tritonsmith.core.errors import UndecidedError

pytestmark = pytest.mark.unit

MANY = np.arange(4096)


@pytest.mark.parametrize("edges", [False, True])
def test_bytes_have_both_signs_and_many_zeros(*, edges: bool) -> None:
    found = GlobalMemory(1, Contents.EDGES if edges else Contents.PLAIN).load(
        base(0) + MANY, np.dtype(np.int8)
    )
    assert 0.15 < (found == 0).mean() < 0.45
    assert 0.1 < (found < 0).mean() < 0.3
    assert set(found[found > 8].tolist()) == {125, 126, 127}


@pytest.mark.parametrize("seed", [3, 6])
def test_rows_with_edge_cases_have_several_nan_or_none(seed: int) -> None:
    """What compares two of them is else never asked, and each sum would be NaN."""
    rows = 4 * (4112 * np.arange(256)[:, None] + np.arange(64))
    found = GlobalMemory(seed, Contents.EDGES).load(base(0) + rows, np.dtype(np.float32))
    nan = np.count_nonzero(np.isnan(found), axis=1)
    assert np.count_nonzero(nan > 1) > 100
    assert np.count_nonzero(nan == 0) > 20
    infinite = np.count_nonzero(np.isinf(found), axis=1)
    assert np.count_nonzero((nan == 0) & (infinite > 0)) > 10
    assert nan.max() < 20


def test_bytes_behind_a_pointer_to_i1_are_0_or_1() -> None:
    memory = GlobalMemory(1, flags=(2,))
    found = memory.load(base(1) + MANY, np.dtype(np.int8))
    assert set(found.tolist()) == {0, 1}
    assert 0.4 < found.mean() < 0.6
    assert 127 in memory.load(base(0) + MANY, np.dtype(np.int8))


# out[i] = x[i] where y[i] is set.
MASKED = (
    ADD.replace("!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i32) -> ()", "!tt.ptr<f32>, !tt.ptr<i1>, !tt.ptr<f32>, i32) -> ()")
    .replace("%y: !tt.ptr<f32>", "%y: !tt.ptr<i1>")
    .replace('%ys = "tt.splat"(%y) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>', '%yb = "tt.bitcast"(%y) : (!tt.ptr<i1>) -> !tt.ptr<i8>\n    %ys = "tt.splat"(%yb) : (!tt.ptr<i8>) -> tensor<16x!tt.ptr<i8>>')
    .replace('%yp = "tt.addptr"(%ys, %at) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>', '%yp = "tt.addptr"(%ys, %at) : (tensor<16x!tt.ptr<i8>>, tensor<16xi32>) -> tensor<16x!tt.ptr<i8>>')
    .replace('%b = "tt.load"(%yp, %mask) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x!tt.ptr<f32>>, tensor<16xi1>) -> tensor<16xf32>', '%b = "tt.load"(%yp, %mask) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x!tt.ptr<i8>>, tensor<16xi1>) -> tensor<16xi8>')
    .replace('%product = "arith.mulf"(%a, %b) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>', '%none = "arith.constant"() <{value = dense<0> : tensor<16xi8>}> : () -> tensor<16xi8>\n    %set = "arith.cmpi"(%b, %none) <{predicate = 1 : i64}> : (tensor<16xi8>, tensor<16xi8>) -> tensor<16xi1>\n    %zero = "arith.constant"() <{value = dense<0.0> : tensor<16xf32>}> : () -> tensor<16xf32>')
    .replace('%sum = "arith.addf"(%product, %a) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>', '%sum = "arith.select"(%set, %a, %zero) : (tensor<16xi1>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>')
)  # fmt: skip


def test_a_mask_from_memory_that_is_dropped_is_found() -> None:
    """Under the first inputs already, which have no edge cases."""
    wrong = MASKED.replace('"arith.select"(%set, %a, %zero)', '"arith.select"(%set, %a, %a)')
    assert wrong != MASKED
    culprit = checked(MASKED, wrong, seeds=1).culprit
    assert culprit
    assert culprit.difference
    assert culprit.difference.before == 0


SUM = '    %sum = "arith.addf"(%product, %a) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>'


def _computed(*lines: str) -> str:
    """The addition replaced; `%sum` is what is stored."""
    assert SUM in ADD
    return ADD.replace(SUM, "\n".join(lines))


def written(*values: float) -> GlobalMemory:
    memory = GlobalMemory(1)
    memory.store(base(0) + 4 * np.arange(len(values)), np.array(values, np.float32))
    return memory


def test_what_a_gpu_may_flush_to_0_is_no_difference() -> None:
    assert compare_memory(written(1, 3e-39), written(1, 0))[1] is None
    assert compare_memory(written(3e-20, 3e-20), written(3e-20, 0))[1]


def test_what_cancels_loses_as_much_as_the_largest_result_has() -> None:
    """A result near 0 beside others: the difference is that of fp32 to those, whatever their type."""
    assert compare_memory(written(2, 3e-5), written(2, 2e-5))[1] is None
    assert compare_memory(written(2, 3e-4), written(2, 2e-4))[1]
    assert compare_memory(written(1e6, 3e-2), written(1e6, 1e-2))[1]  # up to 16
    assert compare_memory(written(1100, 5), written(1100, 5 + 1 / 1024))[1]  # the least product of two inputs
    one, other = GlobalMemory(1), GlobalMemory(1)
    for memory, small in ((one, 1e-3), (other, 2e-3)):
        memory.store(base(0) + 2 * np.arange(2), np.array([2, small], np.float16))
    assert compare_memory(one, other)[1]
    assert compare_memory(written(np.inf, 3e-5), written(np.inf, 2e-5))[1]


def whole(*values: int) -> GlobalMemory:
    memory = GlobalMemory(1)
    memory.store(base(0) + 4 * np.arange(len(values)), np.array(values, np.int32))
    return memory


def test_integers_are_exact_unless_they_are_made_of_numbers_that_are_not() -> None:
    least, most = (int(one) for one in (np.iinfo(np.int32).min, np.iinfo(np.int32).max))
    assert compare_memory(whole(3), whole(4))[1]
    assert compare_memory(whole(3), whole(4), 2.0, whole=True)[1]
    for least_, slack in ((0.0, 8.0), (6e4, 1.0)):
        apart, found = compare_memory(whole(3, 5), whole(4, 5), least_, slack)
        assert (found, apart) == (None, 0.25)
        assert compare_memory(whole(3), whole(5), least_, slack)[1]
        assert compare_memory(whole(least), whole(most), least_, slack)[1]
    assert compare_memory(whole(1_000_000), whole(1_000_060), 0.0, 8.0)[1] is None
    assert compare_memory(whole(1_000_000), whole(1_000_070), 0.0, 8.0)[1]


def test_a_select_that_is_dropped_beside_large_results_is_found() -> None:
    line = "tensor<16xf32>"
    result = f'    %e = "math.exp"(%x4) : ({line}) -> {line}'
    head = (
        f'    %four = "arith.constant"() <{{value = dense<4.0> : {line}}}> : () -> {line}',
        f'    %none = "arith.constant"() <{{value = dense<0.0> : {line}}}> : () -> {line}',
        f'    %low = "arith.constant"() <{{value = dense<-1.25> : {line}}}> : () -> {line}',
        f'    %x4 = "arith.mulf"(%a, %four) : ({line}, {line}) -> {line}',
        f'    %is = "arith.cmpf"(%a, %low) <{{predicate = 4 : i64}}> : ({line}, {line}) -> tensor<16xi1>',
    )
    select = f'    %sum = "arith.select"(%is, %none, %e) : (tensor<16xi1>, {line}, {line}) -> {line}'
    culprit = checked(
        _computed(*head, result, select), _computed(*head, result.replace("%e", "%sum"))
    ).culprit
    assert culprit
    assert culprit.difference
    assert culprit.difference.before == 0


def test_a_sum_in_fp16_in_another_order_is_no_verdict() -> None:
    """What cancels has lost more than fp32 would."""
    line = "tensor<16xf16>"
    four = f'    %four = "arith.constant"() <{{value = dense<4.0> : {line}}}> : () -> {line}'
    late, early = (
        ADD.replace("f32", "f16").replace(
            SUM.replace("f32", "f16"),
            f'{four}\n    %more = "arith.{first}f"({one}, %four) : ({line}, {line}) -> {line}\n'
            f'    %sum = "arith.{second}f"(%more, {other}) : ({line}, {line}) -> {line}',
        )
        for first, one, second, other in (("add", "%a", "sub", "%four"), ("sub", "%four", "add", "%a"))
    )
    answer = checked(late, early)
    assert [one.why for one in answer.open] == [
        "a sum in fp16 or bf16, which each order rounds in its own way"
    ]
    assert checked(late, early.replace("(%more, %a)", "(%more, %more)")).culprit


def test_integers_of_sums_of_large_ones_are_not_exact() -> None:
    """Where integers of all sizes are in memory, no order of a sum in fp32 is."""
    of, to = "tensor<16xi32>", "tensor<16xf32>"
    head = [
        f'    %quarter = "arith.constant"() <{{value = dense<0.25> : {to}}}> : () -> {to}',
        *(
            f'    %f{one} = "arith.sitofp"(%{one}) : ({of}) -> {to}\n'
            f'    %q{one} = "arith.mulf"(%f{one}, %quarter) : ({to}, {to}) -> {to}'
            for one in "ab"
        ),
    ]
    one, other = (
        ADD.replace("f32", "i32")
        .replace("arith.mulf", "arith.muli")
        .replace(
            SUM.replace("f32", "i32"),
            "\n".join(
                (
                    *head,
                    f'    %s = "arith.addf"(%qa, {first}) : ({to}, {to}) -> {to}',
                    f'    %t = "arith.addf"(%s, {second}) : ({to}, {to}) -> {to}',
                    f'    %sum = "arith.fptosi"(%t) : ({to}) -> {of}',
                )
            ),
        )
        for first, second in (("%qb", "%qa"), ("%qa", "%qb"))
    )
    assert [row.status for row in checked(one, other).passes] == ["reference", "close"]
    assert checked(one, other.replace('"arith.addf"(%s, %qb)', '"arith.addf"(%s, %qa)')).culprit


def test_what_is_assumed_holds_in_each_run() -> None:
    """A pass may fold what follows from it; integers of all sizes have both signs."""
    flag, lines = "tensor<16xi1>", "tensor<16xf32>"
    head = [
        '    %ip = "tt.bitcast"(%y) : (!tt.ptr<f32>) -> !tt.ptr<i32>',
        '    %iv = "tt.load"(%ip) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32',
        '    %nought = "arith.constant"() <{value = 0 : i32}> : () -> i32',
        '    %is = "arith.cmpi"(%iv, %nought) <{predicate = 5 : i64}> : (i32, i32) -> i1',
        '    "llvm.intr.assume"(%is) : (i1) -> ()',
    ]
    tail = [
        f'    %each = "tt.splat"(%iz) : (i1) -> {flag}',
        f'    %sum = "arith.select"(%each, %a, %b) : ({flag}, {lines}, {lines}) -> {lines}',
    ]
    asked = '    %iz = "arith.cmpi"(%iv, %nought) <{predicate = 5 : i64}> : (i32, i32) -> i1'
    before = _computed(*head, asked, *tail)
    for value, wrong in (("true", False), ("false", True)):
        folded = f'    %iz = "arith.constant"() <{{value = {value}}}> : () -> i1'
        assert bool(checked(before, _computed(*head, folded, *tail)).culprit) is wrong


def test_an_assumption_that_never_holds_is_no_verdict_unless_the_result_differs() -> None:
    """A pipelined loop keeps those of turns that it does not take: `predicateOp` of PipeliningUtility.cpp."""
    never = _computed(
        '    %off = "arith.constant"() <{value = false}> : () -> i1',
        '    "llvm.intr.assume"(%off) : (i1) -> ()',
        SUM,
    )
    with pytest.raises(UndecidedError, match="nothing of this kernel"):
        checked(never, never)
    assert ["assumes more" in one.why for one in checked(ADD, never).open] == [True]
    found = checked(ADD, never.replace(SUM, SUM.replace("addf", "subf"))).culprit
    assert found
    assert (found.change, found.suspects) == (ResultChange.RESULT, ("pass-0",))
    holds = never.replace("value = false", "value = true")
    assert not checked(holds, holds).culprit
    broken = checked(holds, never).culprit  # no assumption more than there was
    assert broken
    assert (broken.change, broken.difference) == (ResultChange.ASSUMED, None)
    again = never.replace(SUM, '    "llvm.intr.assume"(%off) : (i1) -> ()\n' + SUM)
    assert ["assumes more" in one.why for one in checked(holds, again).open] == [True]


def test_small_numbers_may_count_as_larger_ones() -> None:
    assert compare_memory(written(1, 3e-6), written(1, 1e-6), least=2.0)[1] is None
    assert compare_memory(written(1, 3e-4), written(1, 1e-4), least=2.0)[1]


def test_another_order_of_a_sum_is_no_difference() -> None:
    """Not where large numbers cancel either, nor what is too small beside the others."""
    pair = "(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>"
    late = _computed(
        f'    %more = "arith.addf"(%product, %a) : {pair}',
        f'    %sum = "arith.subf"(%more, %product) : {pair}',
    )
    early = _computed(
        f'    %none = "arith.subf"(%product, %product) : {pair}',
        f'    %sum = "arith.addf"(%none, %a) : {pair}',
    )
    answer = checked(late, early)
    assert [one.status for one in answer.passes] == ["reference", "close"]
    lost = early.replace('"arith.addf"(%none, %a)', '"arith.addf"(%none, %none)')
    assert checked(late, lost).culprit


def test_what_overflows_in_a_narrower_type_is_found() -> None:
    """All else is exact in fp16: only the run with large numbers tells."""
    four = '    %four = "arith.constant"() <{value = dense<4.0> : tensor<16xf32>}> : () -> tensor<16xf32>'
    wide = _computed(
        four, '    %sum = "arith.mulf"(%a, %four) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>'
    )
    narrow = _computed(
        four,
        '    %ah = "arith.truncf"(%a) : (tensor<16xf32>) -> tensor<16xf16>',
        '    %fh = "arith.truncf"(%four) : (tensor<16xf32>) -> tensor<16xf16>',
        '    %sh = "arith.mulf"(%ah, %fh) : (tensor<16xf16>, tensor<16xf16>) -> tensor<16xf16>',
        '    %sum = "arith.extf"(%sh) : (tensor<16xf16>) -> tensor<16xf32>',
    )
    culprit = checked(wide, narrow).culprit
    assert culprit
    assert culprit.contents is Contents.LARGE
    assert checked(wide, narrow, seeds=1).culprit is None


INTEGERS = ADD.replace("f32", "i32").replace("arith.mulf", "arith.divsi").replace("arith.addf", "arith.addi")


def _by(width: str, first: str, second: str) -> str:
    """x by way of another width, instead of x / y."""
    line = '    %product = "arith.divsi"(%a, %b) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>\n'
    assert line in INTEGERS
    return INTEGERS.replace(
        line,
        f'    %w = "arith.{first}"(%a) : (tensor<16xi32>) -> tensor<16x{width}>\n'
        f'    %product = "arith.{second}"(%w) : (tensor<16x{width}>) -> tensor<16xi32>\n',
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (INTEGERS, INTEGERS.replace("arith.divsi", "arith.divui")),
        (_by("i64", "extsi", "trunci"), _by("i16", "trunci", "extsi")),
    ],
)
def test_integers_that_are_values_have_all_sizes_and_both_signs(right: str, wrong: str) -> None:
    """Small ones, which indices have to be, do not tell signed from unsigned, nor wide from narrow."""
    culprit = checked(right, wrong).culprit
    assert culprit
    assert culprit.contents is Contents.INTEGERS


def test_integers_that_are_indices_stay_small() -> None:
    """What y[i] has is where the result goes: under large integers, that would be anywhere."""
    indexed = INTEGERS.replace('"tt.addptr"(%os, %at)', '"tt.addptr"(%os, %b)')
    assert indexed != INTEGERS
    assert checked(INTEGERS, INTEGERS).runs == 15
    assert checked(indexed, indexed).runs == 12


def test_reads_are_kept_without_repetition() -> None:
    """A loop that reads the same elements again and again needs no more memory for it."""
    memory = RecordingMemory(1)
    for _ in range(40):
        memory.load(base(0) + 4 * np.arange(1 << 16), np.dtype(np.float32))
    assert memory.read.size == 1 << 16
    assert sum(one.size for found in memory.reads.values() for one in found) <= 1 << 21


def test_what_is_rounded_on_the_way_is_found() -> None:
    """Multiples of 1/32 are exact in fp16 and tf32, fractions are not."""
    pair = "(tensor<16xf32>) -> tensor<16xf16>"
    narrow = _computed(
        f'    %half = "arith.truncf"(%a) : {pair}',
        '    %back = "arith.extf"(%half) : (tensor<16xf16>) -> tensor<16xf32>',
        '    %sum = "arith.addf"(%product, %back) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>',
    )
    culprit = checked(ADD, narrow).culprit
    assert culprit
    assert culprit.contents is Contents.PRECISE


def _dot(precision: int) -> str:
    """The sum is that of a dot of x and y, 16 by 16, by an InputPrecision."""
    square, line = "tensor<16x16xf32>", "tensor<16xf32>"
    rows = [
        f'    %{one}r = "tt.expand_dims"(%{one}) <{{axis = {axis} : i32}}> : ({line}) -> tensor<{shape}xf32>'
        for one, axis, shape in (("a", 1, "16x1"), ("b", 0, "1x16"))
    ]
    full = [
        f'    %{one}s = "tt.broadcast"(%{one}r) : (tensor<{shape}xf32>) -> {square}'
        for one, shape in (("a", "16x1"), ("b", "1x16"))
    ]
    return _computed(
        *rows,
        *full,
        f'    %none = "arith.constant"() <{{value = dense<0.0> : {square}}}> : () -> {square}',
        f'    %d = "tt.dot"(%as, %bs, %none) <{{inputPrecision = {precision} : i32, maxNumImpreciseAcc = 0 : i32}}> : '
        f"({square}, {square}, {square}) -> {square}",
        '    %sum = "tt.reduce"(%d) <{axis = 1 : i32}> ({\n    ^bb0(%p: f32, %q: f32):\n'
        '      %r = "arith.addf"(%p, %q) : (f32, f32) -> f32\n      "tt.reduce.return"(%r) : (f32) -> ()\n'
        f"    }}) : ({square}) -> {line}",
    )


def test_dots_of_both_precisions_are_told() -> None:
    both = _dot(2).replace(
        '    %sum = "tt.reduce"',
        "\n".join(
            (
                *(line.replace("%d =", "%d2 =") for line in _dot(0).splitlines() if "%d =" in line),
                '    %sum = "tt.reduce"',
            )
        ),
    )
    [gap] = checked(both, both.replace("%none", "%nought")).gaps
    assert "tf32" in gap


def test_a_dot_may_be_of_tf32_only_where_the_kernel_says_so() -> None:
    tf32, ieee = _dot(0), _dot(2)
    assert [one.status for one in checked(tf32, ieee).passes] == ["reference", "equal"]
    culprit = checked(ieee, tf32).culprit
    assert culprit
    assert culprit.contents is Contents.PRECISE
