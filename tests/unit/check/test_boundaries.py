# ruff: noqa: E501 - as it is printed
"""Wrong programs that only some inputs show: sizes at a bound, loops of no turn, numbers of one sign."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import slow
from tests.unit.check.test_in_flight import module
from tests.unit.check.texts import LOOP, checked
from tritonsmith.check.answer import answer_lines, as_json
from tritonsmith.check.boundaries import BoundaryFinder
from tritonsmith.check.evaluate import EvaluatedProgram
from tritonsmith.check.runs import parsed

pytestmark = pytest.mark.unit

_F, _I, _M = "tensor<16xf32>", "tensor<16xi32>", "tensor<16xi1>"
_HEAD = f"""\
    %range = "tt.make_range"() <{{end = 16 : i32, start = 0 : i32}}> : () -> {_I}
    %ns = "tt.splat"(%n) : (i32) -> {_I}
    %mask = "arith.cmpi"(%range, %ns) <{{predicate = 2 : i64}}> : ({_I}, {_I}) -> {_M}
    %xs = "tt.splat"(%x) : (!tt.ptr<T>) -> tensor<16x!tt.ptr<T>>
    %xp = "tt.addptr"(%xs, %range) : (tensor<16x!tt.ptr<T>>, {_I}) -> tensor<16x!tt.ptr<T>>
    %v = "tt.load"(%xp, %mask, %other) <{{operandSegmentSizes = array<i32: 1, 1, 1>}}> : (tensor<16x!tt.ptr<T>>, {_M}, tensor<16xT>) -> tensor<16xT>
"""


def _masked(other: str, of: str, rest: str) -> str:
    """A row of n elements, and another value for what is masked."""
    constant = f'    %other = "arith.constant"() <{{value = dense<{other}> : tensor<16x{of}>}}> : () -> tensor<16x{of}>\n'
    out = "i32" if "argmin" in rest else of
    body = constant + (_HEAD + rest).replace("<T>", f"<{of}>").replace("xT>", f"x{of}>")
    return module(body, x=f"!tt.ptr<{of}>", out=f"!tt.ptr<{out}>", n="i32")


ARGMIN = _masked(
    "0x7F800000",
    "f32",
    f"""\
    %least:2 = "tt.reduce"(%v, %range) <{{axis = 0 : i32}}> ({{
    ^bb0(%a: f32, %i: i32, %b: f32, %j: i32):
      %less = "arith.cmpf"(%a, %b) <{{predicate = 4 : i64}}> : (f32, f32) -> i1
      %c = "arith.select"(%less, %a, %b) : (i1, f32, f32) -> f32
      %argmin = "arith.select"(%less, %i, %j) : (i1, i32, i32) -> i32
      "tt.reduce.return"(%c, %argmin) : (f32, i32) -> ()
    }}) : ({_F}, {_I}) -> (f32, i32)
    "tt.store"(%out, %least#1) : (!tt.ptr<i32>, i32) -> ()
""",
)
_NO_OTHER = (
    "%mask, %other) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<16x!tt.ptr<f32>>, tensor<16xi1>, tensor<16xf32>)",
    "%mask) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x!tt.ptr<f32>>, tensor<16xi1>)",
)
ATOMIC = _masked(
    "-2147483648",
    "i32",
    f"""\
    %most = "tt.reduce"(%v) <{{axis = 0 : i32}}> ({{
    ^bb0(%a: i32, %b: i32):
      %c = "arith.maxsi"(%a, %b) : (i32, i32) -> i32
      "tt.reduce.return"(%c) : (i32) -> ()
    }}) : ({_I}) -> i32
    %old = "tt.atomic_rmw"(%out, %most) <{{atomic_rmw_op = 6 : i32, scope = 1 : i32, sem = 4 : i32}}> : (!tt.ptr<i32>, i32) -> i32
""",
)
# A maximum over rows of 8, as many as n says.
MAXIMUM = LOOP.replace("dense<0.000000e+00>", "dense<0xFF800000>").replace("arith.addf", "arith.maxnumf")
# As many turns as n says, and no more than 64; and what the first 64 are.
CAPPED = LOOP.replace(
    '    %total = "scf.for"(%zero, %n',
    '    %cap = "arith.constant"() <{value = 64 : i32}> : () -> i32\n'
    '    %few = "arith.minsi"(%n, %cap) : (i32, i32) -> i32\n'
    '    %total = "scf.for"(%zero, %few',
)
LATE = LOOP.replace(
    '      "scf.yield"(%new)',
    '      %cap = "arith.constant"() <{value = 64 : i32}> : () -> i32\n'
    '      %early = "arith.cmpi"(%i, %cap) <{predicate = 2 : i64}> : (i32, i32) -> i1\n'
    '      %kept = "arith.select"(%early, %new, %so) : (i1, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>\n'
    '      "scf.yield"(%kept)',
)
# Rows below m count what is in memory; the others swap two numbers as often as n says.
_STEP = '      "scf.yield"(%q, %p) : (i32, i32) -> ()\n'
GUARDED = module(
    f"""\
    %three = "arith.constant"() <{{value = 3 : i32}}> : () -> i32
    %pid = "tt.get_program_id"() <{{axis = 0 : i32}}> : () -> i32
    %mine = "arith.cmpi"(%pid, %m) <{{predicate = 2 : i64}}> : (i32, i32) -> i1
    %r = "scf.if"(%mine) ({{
      %v = "tt.load"(%x) <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (!tt.ptr<i32>) -> i32
      "scf.yield"(%v) : (i32) -> ()
    }}, {{
      %s:2 = "scf.for"(%zero, %n, %one, %two, %three) ({{
      ^bb0(%i: i32, %p: i32, %q: i32):
{_STEP}      }}) : (i32, i32, i32, i32, i32) -> (i32, i32)
      "scf.yield"(%s#0) : (i32) -> ()
    }}) : (i1) -> i32
    "tt.store"(%out, %r) : (!tt.ptr<i32>, i32) -> ()
""",
    x="!tt.ptr<i32>",
    out="!tt.ptr<i32>",
    m="i32",
    n="i32",
)
# The kernel of triton#11656: an inner loop from 5, whose upper bound may be below that.
REVERSED = module(
    """\
    %four = "arith.constant"() <{value = 4 : i32}> : () -> i32
    %five = "arith.constant"() <{value = 5 : i32}> : () -> i32
    %many = "scf.for"(%zero, %four, %one, %zero) ({
    ^bb0(%i: i32, %c: i32):
      %more = "scf.for"(%five, %n, %one, %c) ({
      ^bb0(%j: i32, %d: i32):
        %e = "arith.addi"(%d, %one) : (i32, i32) -> i32
        "scf.yield"(%e) : (i32) -> ()
      }) : (i32, i32, i32, i32) -> i32
      "scf.yield"(%more) : (i32) -> ()
    }) : (i32, i32, i32, i32) -> i32
    "tt.store"(%out, %many) : (!tt.ptr<i32>, i32) -> ()
""",
    out="!tt.ptr<i32>",
    n="i32",
)
_ONCE = (
    '%more = "scf.for"(%five, %n,',
    (
        '%least = "arith.constant"() <{value = 6 : i32}> : () -> i32\n'
        '      %end = "arith.maxsi"(%n, %least) : (i32, i32) -> i32\n'
        '      %more = "scf.for"(%five, %end,'
    ),
)
MUTANTS = {
    "what stands for masked elements of an argmin": (ARGMIN, *_NO_OTHER),
    "masked elements of a maximum that is an atomic": (ATOMIC, "dense<-2147483648>", "dense<-1>"),
    "a maximum that begins with -2": (MAXIMUM, "dense<0xFF800000>", "dense<-2.000000e+00>"),
    "one turn of 64 less": (CAPPED, "value = 64 : i32", "value = 63 : i32"),
    "one turn of 64 more": (CAPPED, "value = 64 : i32", "value = 65 : i32"),
    "only the first 64 turns": (LOOP, LOOP, LATE),
    "carried values in the else branch of a guard": (GUARDED, _STEP, _STEP.replace("%q, %p", "%p, %q")),
    "a loop that runs once where it has no turn": (REVERSED, *_ONCE),
}  # fmt: skip
LONG = (
    *("a maximum that begins with -2", "one turn of 64 less", "one turn of 64 more"),
    "only the first 64 turns",
)


@pytest.mark.parametrize("name", [name for name in MUTANTS if name not in LONG] + slow(*LONG))
def test_a_mutant_is_found_by_the_usual_inputs(name: str) -> None:
    text, old, new = MUTANTS[name]
    assert text.count(old) == 1
    answer = checked(text, text.replace(old, new), seeds=None)
    assert answer.culprit, list(answer_lines(answer))
    assert answer.culprit.suspects == ("pass-0",)
    assert answer.gaps == ()
    assert checked(text, text.replace("%zero", "%nought"), seeds=None).culprit is None


def test_a_branch_that_follows_from_memory_is_said() -> None:
    """Nothing solves for what a load gives; a program id is solved for."""
    asked = GUARDED.replace(
        '"arith.cmpi"(%pid, %m) <{predicate = 2', '"arith.cmpi"(%pid, %three) <{predicate = 2'
    )
    assert checked(asked, asked.replace("%zero", "%nought")).gaps == ()
    large = '%v0 = "tt.load"(%x) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32\n'
    large += '    %far = "arith.constant"() <{value = 12345 : i32}> : () -> i32\n    %mine ='
    compared = '"arith.cmpi"(%pid, %m) <{predicate = 2'
    equal = compared.replace("%pid, %m", "%far, %v0").replace("= 2", "= 0")
    loaded = GUARDED.replace("%mine =", large).replace(compared, equal)
    answer = checked(loaded, loaded.replace("%zero", "%nought"))
    assert answer.gaps
    assert as_json(answer)["gaps"] == list(answer.gaps)


def test_arithmetic_of_many_constants_is_not_tried_with_all_their_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """40 of them had 8,000 values for each number that the comparison follows from: 15 s for one of them."""
    lines, last = [], "%n"
    for number in range(40):
        lines.append(
            f'    %c{number} = "arith.constant"() <{{value = {3 + 7 * number} : i32}}> : () -> i32\n'
            f'    %v{number} = "arith.addi"({last}, %c{number}) : (i32, i32) -> i32\n'
        )
        last = f"%v{number}"
    lines.append(f'    %less = "arith.cmpi"({last}, %m) <{{predicate = 2 : i64}}> : (i32, i32) -> i1\n')
    kernel = parsed(module("".join(lines), n="i32", m="i32"))
    assert kernel
    runs = []
    real = EvaluatedProgram.arithmetic

    def counted(self: EvaluatedProgram, *arguments: Any) -> list[Any]:
        runs.append(arguments)
        return real(self, *arguments)

    monkeypatch.setattr(EvaluatedProgram, "arithmetic", counted)
    found = BoundaryFinder(kernel.functions, kernel.main, (5, 3, 2)).find([64, 12000], 16)
    assert found
    assert len(runs) < 1000
