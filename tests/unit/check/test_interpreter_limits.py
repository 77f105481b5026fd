"""What explains a difference from Triton's interpreter, and what does not."""

from __future__ import annotations

import math

import pytest
from xdsl.ir import Operation

from tests.unit.check.texts import ADD
from tritonsmith.check.compare import Difference
from tritonsmith.check.interpreter_limits import excuse, missing
from tritonsmith.check.kernel import parsed
from tritonsmith.check.memory import Contents

pytestmark = pytest.mark.unit

OTHER = Difference(0, 0, 1.0, 2.0, 1, 1, 0)
NAN = Difference(0, 0, 1.0, math.nan, 1, 1, 0)


def function(text: str) -> Operation:
    kernel = parsed(text)
    assert kernel
    return kernel.function


def test_nothing_explains_another_number() -> None:
    assert excuse(function(ADD), OTHER, Contents.EDGES) == ""


def test_bf16_is_computed_by_its_bits() -> None:
    assert "bf16" in excuse(function(ADD.replace("f32", "bf16")), OTHER, Contents.PLAIN)


@pytest.mark.parametrize("name", ["arith.extf", "arith.truncf", "arith.select", "tt.fp_to_fp"])
def test_conversions_of_bf16_are_right(name: str) -> None:
    moved = ADD.replace("f32", "bf16").replace("arith.mulf", "tt.join").replace("arith.addf", name)
    assert excuse(function(moved), OTHER, Contents.PLAIN) == ""


def test_a_sum_in_fp16_is_rounded_in_another_order() -> None:
    assert "fp16" in excuse(
        function(ADD.replace("f32", "f16").replace("arith.addf", "tt.dot")), OTHER, Contents.PLAIN
    )


def test_what_the_interpreter_lacks_is_named() -> None:
    assert missing(function(ADD)) == ""
    assert missing(function(ADD.replace("arith.mulf", "tt.extern_elementwise"))) == "functions of libdevice"


def test_nan_where_no_number_is_right() -> None:
    """An index of a maximum among NaN, and an integer of one; not without NaN in memory."""
    reduced = function(ADD.replace('"arith.mulf"', '"tt.reduce"'))
    integer = function(ADD.replace('"arith.mulf"(%a, %b)', '"arith.fptosi"(%a, %b)'))
    for one, why in ((reduced, "NaN in another order"), (integer, "no integer")):
        assert why in excuse(one, OTHER, Contents.EDGES)
        for without in (Contents.PLAIN, Contents.PRECISE):
            assert excuse(one, OTHER, without) == ""


def test_nan_in_a_maximum() -> None:
    maximum = function(ADD.replace("arith.mulf", "arith.maxnumf"))
    assert "NaN" in excuse(maximum, NAN, Contents.EDGES)
    assert excuse(maximum, NAN, Contents.PLAIN) == ""
    assert excuse(maximum, OTHER, Contents.EDGES) == ""
    assert excuse(function(ADD), NAN, Contents.EDGES) == ""
