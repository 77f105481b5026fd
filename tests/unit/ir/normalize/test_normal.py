from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.ir.normalize import samples
from tritonsmith.ir import normalize

# What the languages are made of, whole and cut off, in any order.
_PIECES = (
    *(
        "%0",
        "%x",
        "%c-1_i32",
        "%foo#1",
        "%0:2",
        " = ",
        ": i32",
        " : ",
        "^bb0",
        "^bb1(",
        "):",
        "#blocked",
        "#0",
        "!3",
    ),
    *(
        "#blocked1 = #ttg.blocked<{a = #blocked}>\n",
        "#loc3 = loc(#loc3)\n",
        " loc(",
        "callsite(",
        ")",
        "(",
        '"',
        "\\",
    ),
    *(
        "arith.constant 1 : i32",
        "tt.func @f(",
        '"tt.load"(%1) <{a = 1 : i32}>',
        "scf.for %i = %a to %b",
        "\n",
        "\n\n",
    ),
    *(
        "!1 = !{!2, !1}\n",
        "!2 = distinct !{!2}\n",
        "attributes #0 = { a }\n",
        "define void @f(",
        "7:\n",
        ", !dbg !1",
    ),
    *(
        "  %5 = phi i32 [ %4, %7 ]\n",
        "!0 = !DIFile()\n",
        ";",
        "//",
        "/*",
        "*/",
        ".loc 1 2\n",
        "$L__BB0_1",
        "$L__BB0_1:\n",
    ),
    *(
        "%r1",
        "%rd12",
        "%tid.x",
        ".reg .b32 %r<9>;\n",
        ".entry f(",
        ".section .debug_info {",
        "}",
        "/*0010*/",
        ".L_x_1:\n",
    ),
    *(
        "BRA 0x10 ;\n",
        "`(.L_x_1)",
        ".LBB0_1",
        "s_branch 1 // 000000001908: BF82 <f+0x8>\n",
        "0000000000001900 <f>:\n",
    ),
    *(
        "s_nop 0\n",
        "\t",
        "\0",
        "\r\n",
        ".%",
        "%.2",
        ".L_3f2a.2:\n",
        "%addi_3f2a.2",
        "#blocked_3f2a.2 = #a<>\n",
        "€",
    ),
)
TEXTS = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=5)), max_size=40).map("".join)
_STAGES = st.sampled_from([*samples.STAGES, "source", "glir", "mlir", "llvm"])


@given(TEXTS, _STAGES)
def test_takes_any_text(text: str, stage: str) -> None:
    made = normalize.text(text, stage)
    assert "\0" not in made
    assert made == normalize.text(text, stage)


@given(st.sampled_from(list(samples.STAGES)), st.data())
def test_the_normal_form_of_a_normal_form_is_itself(stage: str, data: st.DataObject) -> None:
    """Also of lines in a wrong order, with some that are missing or come twice."""
    lines = samples.STAGES[stage].splitlines(keepends=True)
    text = "".join(data.draw(st.lists(st.sampled_from(lines), max_size=60)))
    once = normalize.text(text, stage)
    assert normalize.text(once, stage) == once


@pytest.mark.parametrize("stage", samples.STAGES)
def test_takes_a_stage_cut_off_anywhere(stage: str) -> None:
    whole = samples.STAGES[stage]
    for end in range(0, len(whole), 7):
        once = normalize.text(whole[:end], stage)
        assert normalize.text(once, stage) == once


@given(st.randoms(use_true_random=False), st.sampled_from(["ttir", "ttgir"]))
def test_names_and_locations_of_mlir_do_not_matter(random: Random, stage: str) -> None:
    text = samples.STAGES[stage]
    values = sorted(set(re.findall(r"%[\w-]+", text)))
    fresh = [f"%{number}" for number in range(len(values))]
    random.shuffle(fresh)
    new = dict(zip(values, fresh, strict=True))
    other = re.sub(r"%[\w-]+", lambda found: new[found[0]], text)
    aliases = sorted(set(re.findall(r"#(?:blocked|mma|shared|smem|loc)\d*\b", text)))
    numbers = list(range(100, 100 + len(aliases)))
    random.shuffle(numbers)
    renamed = {
        name: f"{name.rstrip('0123456789')}{number}" for name, number in zip(aliases, numbers, strict=True)
    }
    other = re.sub(
        r"#(?:blocked|mma|shared|smem|loc)\d*\b",
        lambda found: renamed[found[0]],
        other.replace("standard", "elsewhere"),
    )
    assert other != text
    assert normalize.text(other, stage) == normalize.text(text, stage)


@given(st.integers(1, 900))
def test_numbers_of_registers_labels_and_lines_of_ptx_do_not_matter(shift: int) -> None:
    other = re.sub(r"(%(?:rd|r|p))(\d+)", lambda found: f"{found[1]}{int(found[2]) + shift}", samples.PTX)
    other = re.sub(r"(BB0_)(\d)", lambda found: f"{found[1]}{int(found[2]) + shift}", other)
    other = re.sub(r"\.loc\t1 \d+", f".loc\t1 {shift}", other)
    assert normalize.text(other, "ptx") == normalize.text(samples.PTX, "ptx")


def test_numbers_of_values_groups_and_metadata_of_llvm_do_not_matter() -> None:
    other = re.sub(r"%(\d+)", lambda found: f"%{int(found[1]) + 40}", samples.LLIR).replace("\n7:", "\n47:")
    other = other.replace(".lr.ph", "loop.head").replace("// %43", "// %3")
    other = re.sub(r"(?<=[ ,{(\n])!(\d+)", lambda found: f"!{int(found[1]) + 90}", other)
    other = other.replace("#0", "#7").replace("#1", "#8").replace("line: 7", "line: 57")
    assert normalize.text(other, "llir") == normalize.text(samples.LLIR, "llir")


def test_without_line_information_the_same() -> None:
    bare = re.sub(
        r", !(?:dbg|srcloc) !\d+| !dbg !\d+|^    #dbg.*\n|^!llvm.dbg.*\n",
        "",
        samples.LLIR,
        flags=re.MULTILINE,
    )
    bare = re.sub(r"^.*(?:!DI|Debug Info|= !\{null).*\n", "", bare, flags=re.MULTILINE)
    bare = bare.replace("!{!2, !3}", "!{!3}").replace("!{!27, !16, !28}", "!{!27, !28}")
    assert "dbg" not in bare
    assert normalize.text(bare, "llir") == normalize.text(samples.LLIR, "llir")


def test_mlir() -> None:
    made = normalize.form(samples.TTIR, "ttir").lines()
    assert made[1].startswith(
        "  tt.func public @softmax(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1:"
    )
    assert "    %c1024_i32 = arith.constant 1024 : i32" in made
    assert "    %get_program_id_ffb5 = tt.get_program_id x : i32" in made
    assert not any("loc(" in line for line in made)
    (block,) = (line for line in made if "^bb" in line)
    assert re.fullmatch(r"    \^bb_[0-9a-f]{4}\(%bb_arg0: f32, %bb_arg1: f32\):", block)


def test_layouts_are_named_after_what_they_are() -> None:
    made = normalize.form(samples.TTGIR, "ttgir").lines()
    definitions = [line for line in made if line.startswith("#")]
    assert len(definitions) == 5
    assert definitions == sorted(definitions, key=lambda line: line.partition(" = ")[2].partition("<")[0])
    names = {line.partition(" = ")[0] for line in definitions}
    kinds = ("blocked", "nvidia_mma", "nvmma_shared", "shared_memory")
    assert {name.rpartition("_")[0] for name in names} == {f"#{kind}" for kind in kinds}
    used = set(re.findall(r"#\w+_[0-9a-f]{4}\b", "\n".join(made)))
    assert used == names


def test_results_of_a_loop_and_what_it_carries() -> None:
    (loop,) = (line for line in normalize.form(samples.TTGIR, "ttgir").lines() if "scf.for" in line)
    assert re.match(
        r"    %for_\w{4}:2 = scf.for %for_arg0 = %c-1_i32 to %arg1 .*\(%for_arg1 = %cst_\w+, %for_arg2 = ",
        loop,
    )


def test_the_generic_form() -> None:
    text = '%7:2 = "tt.load"(%3, %5) <{cache = 1 : i32}> : (i32, i32) -> (i32, i32) loc(#loc3)'
    assert re.fullmatch(
        r'%load_\w{4}:2 = "tt.load"\(%free_\w{4}, %free_\w{4}\) <\{cache = 1 : i32\}> : \(i32, i32\) -> .*',
        normalize.text(text, "ttir").rstrip(),
    )
    constant = '%1 = "arith.constant"() <{value = 64 : i32}> : () -> i32\n'
    assert normalize.text(constant, "ttir").startswith("%c64_i32 = ")


def test_sibling_regions_may_use_a_name_twice() -> None:
    text = "scf.if %0 {\n  %1 = a.b %0 : i32\n  c.d %1\n} else {\n  %1 = e.f %0 : i32\n  c.d %1\n}\n"
    other = text.replace("  %1 = e.f %0 : i32\n  c.d %1", "  %2 = e.f %0 : i32\n  c.d %2")
    assert normalize.text(text, "ttir") == normalize.text(other, "ttir")


def test_llvm() -> None:
    made = normalize.text(samples.LLIR, "llir")
    assert "%arg0" in made
    assert '"mov.u32 $0, %tid.x; // %3"' in made  # inline assembly is a string
    assert (
        "define ptx_kernel void @softmax(ptr addrspace(1) %arg0, i32 %arg1) local_unnamed_addr #attrs_"
        in made
    )
    assert not re.search(r"!dbg|!DI|preds|source_filename|Debug Info|srcloc", made)
    assert '!"llvm.loop.peeled.count", i32 1' in made
    assert re.search(r"^(!md_\w+) = distinct !\{\1, !md_\w+\}$", made, re.MULTILINE)


def test_ptx() -> None:
    made = normalize.text(samples.PTX, "ptx")
    assert ".version 9.4\n.target sm_90a\n" in made
    assert "    .reg .b32 %r<>;\n" in made
    assert ", %tid.x;" in made
    assert not re.search(r"//|\.loc|\.file|debug|DW_|tmp|func_begin", made)


def test_sass_of_nvdisasm() -> None:
    made = normalize.form(samples.SASS, "sass").lines()
    assert "    FADD R6, |R10|.reuse, R11 ;" in made
    at = next(place for place, line in enumerate(made) if "@P5 BRA" in line)
    label = re.search(r"\.L_[0-9a-f]{4}", made[at])
    assert label
    assert made[made.index(f"{label[0]}:") + 1] == "    EXIT ;"
    assert not any("/*" in line or "File" in line for line in made)


def test_sass_of_cuobjdump_has_labels_too() -> None:
    made = normalize.form(samples.CUOBJDUMP, "sass").lines()
    label = made[made.index("    EXIT ;") - 1].rstrip(":")
    assert f"    @P0 BRA {label} ;" in made
    assert "0x00" not in "".join(made)


def test_assembly_of_amd() -> None:
    made = normalize.form(samples.AMDGCN, "amdgcn").lines()
    label = made[made.index("    v_mov_b32_e32 v5, v4") - 1].rstrip(":")
    assert {f"    s_branch {label}", f"    s_cbranch_scc1 {label}", "    .vgpr_count: 6"} <= set(made)
    assert not any(re.search(r";|debug|cfi|tmp|\.file|\.loc\b", line) for line in made)


def test_disassembly_of_amd_has_labels() -> None:
    made = normalize.form(samples.GCNASM, "gcnasm").lines()
    label = made[made.index("    v_mov_b32_e32 v5, v4") - 1].rstrip(":")
    assert {"<softmax>:", f"    s_branch {label}", f"    s_cbranch_scc1 {label}"} <= set(made)
    assert not any(re.search(r"//|/home|BF8|[0-9]{8}", line) for line in made)


def test_padding_is_cut_short() -> None:
    text = samples.GCNASM + "\ts_nop 0   // 00000000191C: BF800000\n" * 40
    more = text + "\ts_nop 0   // 00000000191C: BF800000\n" * 16
    assert normalize.text(text, "gcnasm") == normalize.text(more, "gcnasm")


def test_an_unknown_stage_stays() -> None:
    text = '{"shared": 0}  \r\n\n%1 loc(#loc)'
    assert normalize.text(text, "metadata") == text
