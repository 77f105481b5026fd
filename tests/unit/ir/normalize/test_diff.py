from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.ir.normalize import samples
from tests.unit.ir.normalize.test_normal import TEXTS
from tritonsmith.ir import normalize
from tritonsmith.ir.normalize import diff
from tritonsmith.ir.normalize import diff as normalize_diff


def changed(diff: normalize_diff.Diff) -> tuple[list[str], list[str]]:
    """Lines removed and lines added, without indentation."""
    removed = [line[1:].strip() for line in diff.lines if line.startswith("-")]
    added = [line[1:].strip() for line in diff.lines if line.startswith("+")]
    return removed, added


@pytest.mark.parametrize("stage", samples.STAGES)
def test_nothing(stage: str) -> None:
    text = samples.STAGES[stage]
    assert normalize_diff.of(
        text, text.replace("/home/somebody", "/home/nobody"), stage
    ) == normalize_diff.Diff(stage, 0, 0, ())
    assert normalize_diff.of(text, text, stage).same


def test_an_operation_more_is_that_line_and_its_users() -> None:
    more = samples.TTIR.replace(
        "    %output = tt.splat",
        "    %9 = math.exp %denominator : f32 loc(#loc42)\n    %output = tt.splat",
    ).replace("tt.splat %denominator :", "tt.splat %9 :")
    diff = normalize_diff.of(samples.TTIR, more, "ttir")
    removed, added = changed(diff)
    assert (diff.removed, diff.added, diff.same) == (1, 2, False)
    assert removed[0].startswith("%splat_")
    assert added[0].startswith("%exp_")
    result = removed[0].partition(" ")[0]  # of the user: its name stays, so its own users do not show
    assert added[1].startswith(f"{result} = tt.splat {added[0].partition(' ')[0]} ")


def test_an_operation_more_at_the_top_renames_nothing_below() -> None:
    more = samples.TTIR.replace("    %offsets =", "    %7 = tt.get_num_programs x : i32\n    %offsets =")
    before, after = (
        normalize.form(samples.TTIR, "ttir").lines(),
        normalize.form(more, "ttir").lines(),
    )
    assert [line for line in after if line not in before] == [
        "    %get_num_programs_b555 = tt.get_num_programs x : i32"
    ]
    assert [line for line in before if line not in after] == []


def test_another_operand_shows() -> None:
    other = samples.TTIR.replace("arith.divf %numerator, %output ", "arith.divf %numerator, %numerator ")
    removed, added = changed(normalize_diff.of(samples.TTIR, other, "ttir"))
    assert len(removed) == len(added) == 1
    assert removed[0].partition(" = ")[0] == added[0].partition(" = ")[0]
    assert "arith.divf" in added[0]


def test_a_constant_shows_where_it_is_defined() -> None:
    other = samples.TTIR.replace("%c1024_i32", "%c512_i32").replace("constant 1024", "constant 512")
    removed, added = changed(normalize_diff.of(samples.TTIR, other, "ttir"))
    assert removed == ["%c1024_i32 = arith.constant 1024 : i32"]
    assert added == ["%c1024_i32 = arith.constant 512 : i32"]


def test_operands_that_are_swapped_show() -> None:
    other = samples.PTX.replace("mul.lo.s32 	%r5, %r2, %r4;", "mul.lo.s32 	%r5, %r4, %r2;")
    assert normalize_diff.of(samples.PTX, other, "ptx").removed == 1


@pytest.mark.parametrize(
    ("stage", "line", "wider"),
    [
        ("ttgir", "%2 = ttg.async_wait {num = 0 : i32}", "%2 = ttg.async_wait  {num = 0 : i32}"),
        ("llir", "define void @f() #0 {", "define  void\t@f()   #0 {"),
        ("ptx", 'st.v2  [%rd1], "a  b";', 'st.v2 [%rd1],  "a  b";'),
        ("amdgcn", '.asciz "a  b"', '.asciz  "a  b"'),
    ],
)
def test_blanks_between_words_do_not_matter(stage: str, line: str, wider: str) -> None:
    """Triton 3.4 prints two after `async_wait`, 3.9 one."""
    assert normalize_diff.of(f"  {line}\n", f"  {wider}\n", stage).same


@pytest.mark.parametrize(
    ("stage", "line"),
    [
        ("ttir", 'tt.print "a  b" : %x'),
        ("ttir", 'tt.assert %x, "see loc(1)" : i1'),
        ("ttir", 'tt.assert %x, "see loc(unknown)" : i1 loc(#loc)'),
        ("llir", '@m = constant [5 x i8] c"a  b\\00"'),
        ("ptx", '.string "a  b"'),
        ("amdgcn", '.asciz "a  b; // c"'),
    ],
)
def test_all_of_a_string_shows(stage: str, line: str) -> None:
    for old, new in (("a  b", "a b"), ("; // c", "; // d"), ("loc(1)", "loc(2)"), ("(unknown)", "(#loc)")):
        if old in line:
            assert normalize_diff.of(line, line.replace(old, new), stage).removed == 1


def test_another_number_of_warps_shows_in_the_layouts() -> None:
    other = samples.TTGIR.replace("warpsPerCTA = [4, 1]", "warpsPerCTA = [8, 1]")
    other = other.replace('"ttg.num-warps" = 4', '"ttg.num-warps" = 8')
    removed, added = changed(normalize_diff.of(samples.TTGIR, other, "ttgir"))
    assert [line.partition("_")[0] for line in added] == [
        "#blocked",
        "#blocked",
        "#nvidia",
        'module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90"} {',
    ]
    assert [line.partition(" ")[0] for line in removed] == [line.partition(" ")[0] for line in added]


def test_another_layout_of_those_there_shows_where_it_is_used() -> None:
    other = samples.TTGIR.replace("-> tensor<64x64xf32, #blocked1>", "-> tensor<64x64xf32, #blocked>")
    removed, added = changed(normalize_diff.of(samples.TTGIR, other, "ttgir"))
    assert len(removed) == len(added) == 1
    assert "ttg.convert_layout" in removed[0]


def test_code_that_repeats_keeps_its_counterparts() -> None:
    """The first of many equal operations changes: those after it are still the same ones."""
    body = "".join(
        f"  %{n} = arith.addi %x, %y : i32\n  %{n + 1} = arith.muli %{n}, %x : i32\n  use.it %{n + 1}\n"
        for n in range(0, 600, 2)
    )
    text = f"tt.func @f(%x: i32, %y: i32) {{\n{body}}}\n"
    diff = normalize_diff.of(text, text.replace("arith.addi", "arith.subi", 1), "ttir")
    assert (diff.removed, diff.added) == (1, 1)
    diff = normalize_diff.of(
        text, text.replace("  %0 = arith.addi %x, %y : i32\n", "").replace("%0,", "%y,"), "ttir"
    )
    assert (diff.removed, diff.added) == (2, 1)


def test_the_text_of_a_diff() -> None:
    diff = normalize_diff.of("\n".join("abcdefghijklmnop"), "\n".join("abcdXfghijklmnop!"), "metadata")
    assert diff.lines == (
        *("@@ -2,7 +2,7 @@", " b", " c", " d", "-e", "+X", " f", " g", " h"),
        *("@@ -14,3 +14,4 @@", " n", " o", " p", "+!"),
    )


@given(st.lists(st.sampled_from("abcde"), max_size=150), st.lists(st.sampled_from("abcdex"), max_size=150))
def test_pairs_are_equal_and_rise(first: list[str], second: list[str]) -> None:
    found = diff.pairs(first, second)
    assert all(first[one] == second[other] for one, other in found)
    for (one, other), (after, beyond) in pairwise(found):
        assert one < after
        assert other < beyond
    assert len(diff.pairs(first, first)) == len(first)


@given(st.sampled_from(list(samples.STAGES)), st.data())
def test_a_diff_makes_the_second_text_of_the_first(stage: str, data: st.DataObject) -> None:
    lines = samples.STAGES[stage].split("\n")
    kept = data.draw(st.lists(st.sampled_from(range(len(lines))), max_size=len(lines), unique=True))
    other = "\n".join(lines[place] for place in kept)
    diff = normalize_diff.of(samples.STAGES[stage], other, stage)
    before, after = (
        normalize.form(samples.STAGES[stage], stage).lines(),
        normalize.form(other, stage).lines(),
    )
    assert len(before) - diff.removed == len(after) - diff.added
    assert diff.same == (before == after)


@given(TEXTS, TEXTS, st.sampled_from(list(samples.STAGES)))
def test_takes_any_two_texts(first: str, second: str, stage: str) -> None:
    diff = normalize_diff.of(first, second, stage)
    before, after = normalize.form(first, stage).lines(), normalize.form(second, stage).lines()
    assert diff.same == (before == after)
    assert len(before) - diff.removed == len(after) - diff.added
    normalize_diff.operations(first, stage)


def test_two_texts_with_nothing_in_common() -> None:
    first = "\n".join(f"  %{n} = a.op{n % 7} %{n} : i32" for n in range(5_000))
    second = "\n".join(f"  %{n} = b.op{n % 5} %{n} : i64" for n in range(5_000))
    diff = normalize_diff.of(first, second, "ttir")
    assert (diff.removed, diff.added) == (5_000, 5_000)


def test_operations() -> None:
    count = normalize_diff.operations
    assert count(samples.TTIR, "ttir")["tt.addptr"] == 4
    assert count(samples.TTIR, "ttir")["tt.reduce"] == 1
    assert count(samples.LLIR, "llir") == Counter(
        {
            "and": 1,
            "icmp": 2,
            "asm": 1,
            "br": 3,
            "phi": 1,
            "mul": 1,
            "add": 1,
            "getelementptr": 1,
            "store": 1,
            "ret": 1,
        }
        | {"llvm.nvvm.read.ptx.sreg.ctaid.x": 1, "llvm.nvvm.read.ptx.sreg.tid.x": 1}
    )
    assert count(samples.PTX, "ptx")["bra"] == 2
    assert count(samples.PTX, "ptx")["mul.wide.s32"] == 1
    assert count(samples.SASS, "sass") == {"LDC": 1, "S2R": 1, "BRA": 3, "FADD": 1, "EXIT": 1, "NOP": 1}
    assert count(samples.GCNASM, "gcnasm")["s_cbranch_scc1"] == 1
    assert count(samples.TTIR, "metadata") == {}


@pytest.mark.parametrize("stage", samples.STAGES)
def test_the_normal_form_has_the_same_operations(stage: str) -> None:
    text = samples.STAGES[stage]
    assert normalize_diff.operations(normalize.text(text, stage), stage) == normalize_diff.operations(
        text, stage
    )
