"""How a pass changes a text, as `passes.reduce --when wrong` keeps it."""

from __future__ import annotations

import pytest

from tests.unit.check.texts import ADD, LOOP
from tritonsmith.check.check import changed_result

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("before", "after", "change", "said"),
    [
        (ADD, ADD.replace("%sum", "%other"), "", "the passes do not change the result"),
        (ADD, ADD.replace('"arith.mulf"', '"arith.divf"'), "result", "wrong: result"),
        (
            LOOP,
            LOOP.replace("%n, %one,", "%n, %zero,"),
            "does not end",
            "wrong: does not end",
        ),
        (ADD, ADD.replace('"arith.mulf"', '"tt.strange"'), "", "the IR cannot be run: tt.strange"),
        (ADD.replace('"tt.func"', '"llvm.func"'), ADD, "", "this is not IR of Triton's dialects"),
    ],
)
def test_two_texts(before: str, after: str, change: str, said: str) -> None:
    assert before != after
    assert changed_result(before, after) == (change, said)
