"""What the inputs do not try is said: loops without a second turn, and blocks that never run."""

from __future__ import annotations

import pytest

from tests.unit.check.texts import ADD, LOOP, checked
from tritonsmith.check.answer import CheckResult, answer_lines

pytestmark = pytest.mark.unit

STEP = '    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32\n'


def _stepped(step: int) -> str:
    """As the front end has `range(0, n, STEP)`: a constexpr is a bitcast of a constant."""
    return LOOP.replace(
        STEP,
        f'    %raw = "arith.constant"() <{{value = {step} : i32}}> : () -> i32\n'
        '    %one = "arith.bitcast"(%raw) : (i32) -> i32\n',
    )


@pytest.mark.parametrize("step", [1, 16, 64, 512])
def test_a_loop_by_a_constexpr_has_several_turns(step: int) -> None:
    """A value that is lost from the second turn on is found, whatever the step."""
    text = _stepped(step)
    lost = text.replace('"arith.addf"(%so, %v)', '"arith.addf"(%none, %v)')
    assert text != LOOP != lost
    assert checked(text, text.replace("%new", "%next")).gaps == ()
    assert checked(text, lost).culprit


def _branched(predicate: int) -> str:
    """Something that is stored only where a size is below 0, or not below 0."""
    branch = (
        '    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32\n'
        f'    %less = "arith.cmpi"(%n, %zero) <{{predicate = {predicate} : i64}}> : (i32, i32) -> i1\n'
        '    "scf.if"(%less) ({\n'
        '      "tt.store"(%op, %sum, %mask) : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> ()'
        " loc(#loc7)\n"
        '      "scf.yield"() : () -> ()\n    }, {\n    }) : (i1) -> ()\n'
    )
    return ADD.replace('    "tt.return"()', f'{branch}    "tt.return"()')


def test_a_block_that_never_runs_is_named_with_its_line() -> None:
    def last(answer: CheckResult) -> list[str]:
        return [line for line in answer_lines(answer) if "not tried" in line]

    never, always = _branched(2), _branched(5)
    assert last(checked(never, never)) == ["  not tried by these inputs: add.py:7 was not reached"]
    assert last(checked(always, always)) == []


def test_a_block_that_only_a_run_which_is_dropped_has_reached_is_named() -> None:
    """Integers of all sizes are dropped where one of them is a condition of what is written."""
    large = (
        '    %ip = "tt.bitcast"(%y) : (!tt.ptr<f32>) -> !tt.ptr<i32>\n'
        '    %iv = "tt.load"(%ip) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32\n'
        '    %few = "arith.constant"() <{value = -1000 : i32}> : () -> i32\n'
        '    %is = "arith.cmpi"(%iv, %few) <{predicate = 2 : i64}> : (i32, i32) -> i1\n'
        '    "scf.if"(%is) ({\n'
        '      "tt.store"(%xp, %sum, %mask) '
        ": (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> ()\n"
        '      "scf.yield"() : () -> ()\n    }, {\n    }) : (i1) -> ()\n    "tt.return"()'
    )
    text = ADD.replace('    "tt.return"()', large)
    assert checked(text, text.replace("%few", "%low")).gaps == ("tt.store was not reached",)


def test_a_loop_that_no_input_makes_longer_is_no_gap() -> None:
    """Of two bounds that are constants; one that depends on a size and ends after a turn is a gap."""
    fixed = LOOP.replace('"scf.for"(%zero, %n', '"scf.for"(%zero, %one')
    assert checked(fixed, fixed).gaps == ()
    once = LOOP.replace(
        '    %total = "scf.for"(%zero, %n',
        '    %few = "arith.minsi"(%n, %one) : (i32, i32) -> i32\n    %total = "scf.for"(%zero, %few',
    )
    assert checked(once, once).gaps == ("the loop at an unknown line ran once at most",)
