"""Loops of machine code, strides of addresses, and what the rules say where a stage is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.compiler.resources import elf_maker
from tests.unit.compiler.resources.test_measure import manifest, point
from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError
from tritonsmith.inspect import show
from tritonsmith.inspect.lint import finding, rules, run
from tritonsmith.inspect.lint.rules import RULES
from tritonsmith.ir.ttgir import Ttgir

COLD = """\
        /*0000*/                   LDL R0, [R1] ;
.L_x_0:
        /*0010*/                   LDL R1, [R1] ;
        /*0020*/              @!P0 BRA `(.L_x_2) ;
.L_x_1:
        /*0030*/               @P1 BRA `(.L_x_0) ;
        /*0040*/                   LDL R2, [R1] ;
        /*0050*/                   EXIT ;
.L_x_2:
        /*0060*/                   LDL R3, [R1] ;
        /*0070*/                   BRA `(.L_x_1) ;
.L_x_3:
        /*0080*/                   BRA `(.L_x_3);
"""
STRAIGHT = """\
        /*0000*/              @!P0 BRA `(.L_x_2) ;
.L_x_1:
        /*0010*/                   LDL R1, [R1] ;
        /*0020*/                   EXIT ;
.L_x_2:
        /*0030*/                   MOV R3, R4 ;
        /*0040*/                   BRA `(.L_x_1) ;
"""
AMD = """\
	v_mov_b32_e32 v0, 0
.LBB0_1:                                ; %loop
                                        ; =>This Inner Loop Header: Depth=1
	scratch_load_dword v0, off, off ; 4-byte Folded Reload
; %bb.2:                                ;   in Loop: Header=BB0_1 Depth=1
	v_mov_b32_e32 v1, 0
.LBB0_3:
	s_endpgm
"""
TTGIR = """\
#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %row: i32, %n: i32) {
    %c4 = arith.constant dense<4> : tensor<64x1xi32, #b>
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #s>
    %e = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32, #s> -> tensor<64x1xi32, #b>
    %f = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32, #s> -> tensor<1x64xi32, #b>
    %w = tt.splat %row : i32 -> tensor<64x1xi32, #b>
    %m = arith.muli %e, %w : tensor<64x1xi32, #b>
    %q = arith.muli %e, %c4 : tensor<64x1xi32, #b>
    %mb = tt.broadcast %m : tensor<64x1xi32, #b> -> tensor<64x64xi32, #b>
    %fb = tt.broadcast %f : tensor<1x64xi32, #b> -> tensor<64x64xi32, #b>
    %sum = arith.addi %mb, %fb : tensor<64x64xi32, #b>
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #b>
    %at = tt.addptr %ps, %sum : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64xi32, #b>
    %step = tt.splat %n : i32 -> tensor<64x64xi32, #b>
    %out:2 = scf.for %i = %a to %z step %s iter_args(%cur = %at, %odd = %at) -> (tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64x!tt.ptr<f16>, #b>) : i32 {
      %v = tt.load %cur : tensor<64x64x!tt.ptr<f16>, #b>
      %next = tt.addptr %cur, %step : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64xi32, #b>
      %off = tt.addptr %odd, %sum : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64xi32, #b>
      scf.yield %next, %off : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64x!tt.ptr<f16>, #b>
    }
    tt.return
  }
}
"""  # noqa: E501 - as MLIR prints it


def lines(text: str, inside: set[int] | None) -> list[str]:
    assert inside is not None
    every = text.splitlines()
    return [every[index].split("*/")[-1].split(" ;")[0].strip() for index in sorted(inside)]


def test_cold_code_behind_the_end_belongs_to_its_loop() -> None:
    found = lines(COLD, rules.sass_loops(COLD.splitlines()))
    assert [line for line in found if line.startswith("LDL")] == ["LDL R1, [R1]", "LDL R3, [R1]"]


def test_a_branch_back_from_cold_code_is_no_loop() -> None:
    assert rules.sass_loops(STRAIGHT.splitlines()) == set()


def test_a_branch_to_a_place_that_is_not_named_makes_loops_unknown() -> None:
    assert rules.sass_loops([*COLD.splitlines(), "        /*0090*/                   BRX R2 ;"]) is None
    listed = '        /*0000*/                   BRX R2 (*"BRANCH_TARGETS .L_x_1,.L_x_2"*);'
    assert rules.sass_loops([listed, *STRAIGHT.splitlines()]) == set()


def test_llvm_says_which_blocks_are_in_a_loop() -> None:
    found = lines(AMD, rules.amd_loops(AMD.splitlines()))
    assert [line.split()[0] for line in found] == ["scratch_load_dword", "v_mov_b32_e32"]


@pytest.mark.parametrize(
    ("name", "strides"),
    [
        ("%r", (1,)),
        ("%m", ("%row", 0)),
        ("%q", (4, 0)),
        ("%at", ("%row", 1)),
        ("%cur", ("%row", 1)),
        ("%out#0", ("%row", 1)),
        ("%odd", None),
        ("%v", None),
    ],
)
def test_strides(name: str, strides: tuple[int | str, ...] | None) -> None:
    assert Ttgir(TTGIR).strides(name, 22) == strides


def test_operations_know_their_loop_and_their_types() -> None:
    module = Ttgir(TTGIR)
    (load,) = module.named("tt.load")
    tensor = module.tensor(load)
    assert (load.number, load.loop, module.threads) == (18, 17, 128)
    assert tensor is not None
    assert (tensor.shape, tensor.bits, tensor.size) == ((64, 64), 16, 4096)
    assert module.layout(tensor).startswith("#ttg.blocked")


def test_inline_assembly_has_the_line_on_which_it_begins() -> None:
    text = (
        "\t.loc\t1 26 16\n\t// begin inline asm\n\t.loc\t1 26 16\n\tmov.u16 %rs1, 0x0;\n\t.loc\t1 27 16\n"
        "\tld.global.b16 { %rs1 }, [ %rd1 + 0 ];\n\t// end inline asm\n"
        '\t.loc\t1 30 1\n\tret;\n\t.file\t1 "/k.py"\n'
    )
    found = show.origins(text, "ptx")
    assert [line.number for line in found if line] == [26, 26, 30]


def test_each_rule_has_its_texts() -> None:
    assert [*RULES, *run.OF_BOUNDS] == [row["code"] for row in configs.load("lint")["rule"]]
    for rule in finding.known_rules().values():
        assert rule.source.startswith("https://")
        assert rule.why.endswith(".")


def test_what_cannot_be_checked_is_said(tmp_path: Path) -> None:
    bare = point(tmp_path, "cuda:80:32", {}, {"cubin": elf_maker.cubin(frame=64)})
    bad = point(tmp_path, "cuda:90:32", {}, {}, status="failed", error="PTXASError: no")
    found = run.lint([manifest(tmp_path, bare, bad)])
    assert found.findings == ()
    assert {one.code for one in found.unchecked} >= {"scalar-access", "spill-in-loop", "wgmma-serialized"}
    assert run.verdict(found) == "nothing found in 1 compile, as far as it was checked"
    assert any("there is no ttgir" in text for text in run.notes(found))
    assert list(found.failed.values()) == ["failed: PTXASError: no"]


def test_fail_on() -> None:
    assert run.parse_fail_on(None) == ()
    assert run.parse_fail_on("any") == tuple(RULES)
    assert run.parse_fail_on("any,int32-overflow") == (*RULES, "int32-overflow")
    assert run.parse_fail_on("scalar-access, no-async-copy") == ("scalar-access", "no-async-copy")
    with pytest.raises(UsageError, match="no rule 'spil'"):
        run.parse_fail_on("spil")
