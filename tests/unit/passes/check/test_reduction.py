"""How a pass changes a text, as `passes.reduce --when wrong` keeps it."""

from __future__ import annotations

import pytest

from tests.unit.passes.check.texts import ADD, LOOP
from tritonsmith.passes.check.reduction import changed
from tritonsmith.passes.reduce.failure import Failure

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("before", "after", "failure", "said"),
    [
        (ADD, ADD.replace("%sum", "%other"), None, "the passes do not change the result"),
        (ADD, ADD.replace('"arith.mulf"', '"arith.divf"'), Failure("wrong", "result"), "wrong: result"),
        (
            LOOP,
            LOOP.replace("%n, %one,", "%n, %zero,"),
            Failure("wrong", "does not end"),
            "wrong: does not end",
        ),
        (ADD, ADD.replace('"arith.mulf"', '"tt.strange"'), None, "the IR cannot be run: tt.strange"),
        (ADD.replace('"tt.func"', '"llvm.func"'), ADD, None, "this is no IR of Triton's dialects"),
    ],
)
def test_two_texts(before: str, after: str, failure: Failure | None, said: str) -> None:
    assert before != after
    assert changed(before, after) == (failure, said)
