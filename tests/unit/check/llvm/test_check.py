# ruff: noqa: E501 - as it is printed
"""A lowering that is wrong is found at the pass that lowers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.check.texts import ADD, checked
from tritonsmith.check.answer import ResultChange, answer_lines, verdict
from tritonsmith.check.llvm.threads import ByteMemory
from tritonsmith.check.memory import RecordingMemory, base
from tritonsmith.check.module import UnsupportedIrError
from tritonsmith.core.errors import UndecidedError

pytestmark = pytest.mark.unit

# ADD by 32 threads, of which each second one has the same element as the one before.
LOWERED = """\
"builtin.module"() ({
  "llvm.func"() <{arg_attrs = [{tt.pointee_type = f32}, {tt.pointee_type = f32}, {tt.pointee_type = f32}, {}, {}], function_type = !llvm.func<void (ptr<1>, ptr<1>, ptr<1>, i32, ptr<1>)>, linkage = #llvm.linkage<external>, sym_name = "add"}> ({
  ^bb0(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %out: !llvm.ptr<1>, %n: i32, %scratch: !llvm.ptr<1>):
    %pid = "nvvm.read.ptx.sreg.ctaid.x"() : () -> i32
    %tid = "nvvm.read.ptx.sreg.tid.x"() : () -> i32
    %size = "llvm.mlir.constant"() <{value = 16 : i32}> : () -> i32
    %start = "llvm.mul"(%pid, %size) : (i32, i32) -> i32
    %range = "llvm.urem"(%tid, %size) : (i32, i32) -> i32
    %at = "llvm.add"(%start, %range) : (i32, i32) -> i32
    %mask = "llvm.icmp"(%at, %n) <{predicate = 2 : i64}> : (i32, i32) -> i1
    %xp = "llvm.getelementptr"(%x, %at) <{elem_type = f32, rawConstantIndices = array<i32: -2147483648>}> : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>
    %yp = "llvm.getelementptr"(%y, %at) <{elem_type = f32, rawConstantIndices = array<i32: -2147483648>}> : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>
    %ai = "llvm.inline_asm"(%xp, %mask) <{asm_string = "mov.u32 $0, 0x0;\\0A\\09@$2 ld.global.b32 { $0 }, [ $1 + 0 ];", constraints = "=r,l,b"}> : (!llvm.ptr<1>, i1) -> i32
    %bi = "llvm.inline_asm"(%yp, %mask) <{asm_string = "mov.u32 $0, 0x0;\\0A\\09@$2 ld.global.b32 { $0 }, [ $1 + 0 ];", constraints = "=r,l,b"}> : (!llvm.ptr<1>, i1) -> i32
    %a = "llvm.bitcast"(%ai) : (i32) -> f32
    %b = "llvm.bitcast"(%bi) : (i32) -> f32
    %product = "llvm.fmul"(%a, %b) : (f32, f32) -> f32
    %sum = "llvm.fadd"(%product, %a) : (f32, f32) -> f32
    %op = "llvm.getelementptr"(%out, %at) <{elem_type = f32, rawConstantIndices = array<i32: -2147483648>}> : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>
    %bits = "llvm.bitcast"(%sum) : (f32) -> i32
    %v = "llvm.inline_asm"(%bits, %op, %mask) <{asm_string = "@$2 st.global.b32 [ $1 + 0 ], { $0 };", constraints = "r,l,b"}> : (i32, !llvm.ptr<1>, i1) -> !llvm.void
    "llvm.return"() : () -> ()
  }) : () -> ()
}) {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} : () -> ()
"""


def test_a_lowering_that_is_right_is_equal() -> None:
    answer = checked(ADD, LOWERED, LOWERED.replace("%sum", "%total"), through_llvm=True)
    assert [one.status for one in answer.passes] == ["reference", "equal", "equal"]
    assert answer.elements > 50


MUTANTS = {
    "operands swapped": ('"llvm.icmp"(%at, %n)', '"llvm.icmp"(%n, %at)'),
    "store without its mask": ("@$2 st.global", "st.global"),
    "wrong predicate": ("predicate = 2 : i64", "predicate = 3 : i64"),
    "off by one in an offset": ("value = 16 : i32", "value = 15 : i32"),
    "address of another element": ("st.global.b32 [ $1 + 0 ]", "st.global.b32 [ $1 + 4 ]"),
    "wrong width": ("st.global.b32 ", "st.global.b16 "),
    "wrong pointer": ('"llvm.getelementptr"(%y', '"llvm.getelementptr"(%x'),
    "lost addend": ('"llvm.fadd"(%product, %a)', '"llvm.fadd"(%product, %product)'),
    "index as bytes": (
        "(%out, %at) <{elem_type = f32",
        "(%out, %at) <{elem_type = i8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_lowering_that_is_wrong_is_found_at_its_pass(name: str) -> None:
    old, new = MUTANTS[name]
    assert LOWERED.count(old) == 1
    answer = checked(ADD, LOWERED, LOWERED.replace(old, new), through_llvm=True)
    assert answer.culprit
    assert answer.culprit.suspects == ("pass-1",)
    assert answer.culprit.store == "out"
    assert answer.culprit.arguments.keys() == {"n"}
    conversion = checked(ADD, LOWERED.replace(old, new), through_llvm=True)
    assert verdict(conversion) == "k: pass-0 changes the result"


def test_shared_memory_without_a_barrier_is_a_race() -> None:
    """Two warps hold the same elements, and each takes those of the other: the result is right either way."""
    place = "<{elem_type = i32, rawConstantIndices = array<i32: -2147483648>}> : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>"
    barrier = '    "nvvm.barrier0"() : () -> ()\n'
    exchange = f"""\
    %shared = "llvm.mlir.addressof"() <{{global_name = @global_smem}}> : () -> !llvm.ptr<3>
    %warp = "llvm.mlir.constant"() <{{value = 32 : i32}}> : () -> i32
    %other = "llvm.xor"(%tid, %warp) : (i32, i32) -> i32
    %to = "llvm.getelementptr"(%shared, %tid) {place}
    "llvm.store"(%ai, %to) <{{ordering = 0 : i64}}> : (i32, !llvm.ptr<3>) -> ()
{barrier}    %from = "llvm.getelementptr"(%shared, %other) {place}
    %moved = "llvm.load"(%from) <{{ordering = 0 : i64}}> : (!llvm.ptr<3>) -> i32
"""
    two = LOWERED.replace('"ttg.num-warps" = 1 : i32', '"ttg.num-warps" = 2 : i32, ttg.shared = 256 : i32')
    line = '    %a = "llvm.bitcast"(%ai)'
    right = two.replace(line, exchange + line.replace("%ai", "%moved"))
    answer = checked(ADD, right, right.replace(barrier, ""), through_llvm=True)
    assert [row.status for row in answer.passes] == ["reference", "equal", "differs"]
    found = answer.culprit
    assert found
    assert (found.change, found.suspects, found.operation) == (ResultChange.THREADS, ("pass-1",), "llvm.load")
    assert list(answer_lines(answer))[:2] == [
        "k: pass-1 makes a race: warps access the same shared memory without a barrier between them",
        "  warp 0 reads byte 128 of shared memory, written by warp 1 since the last barrier",
    ]


def test_what_is_not_known_in_it_is_named() -> None:
    unknown = LOWERED.replace("llvm.fmul", "llvm.intr.copysign")
    answer = checked(ADD, unknown, through_llvm=True)
    assert [(one.status, one.why) for one in answer.open] == [("unknown", "llvm.intr.copysign")]


def test_without_a_reference_nothing_is_compared() -> None:
    with pytest.raises(UndecidedError, match="nothing of this kernel can be run"):
        checked(ADD.replace("tt.make_range", "tt.make_other"), LOWERED, through_llvm=True)


def test_elements_that_overlap_are_not_compared() -> None:
    """The reference has no bytes: two elements that share some are two for it."""
    reference = RecordingMemory(1)
    reference.store(np.asarray([base(0), base(0) + 2]), np.ones(2, np.float32))
    with pytest.raises(UnsupportedIrError, match="overlap"):
        ByteMemory.of(reference, ())


def test_elements_that_race_are_not_compared() -> None:
    racing = ADD.replace('"tt.addptr"(%os, %at)', '"tt.addptr"(%os, %starts)')
    answer = checked(racing, LOWERED, through_llvm=True)
    assert answer.racing
    assert answer.reasons == ["elements that one operation of the reference writes twice", answer.racing]
