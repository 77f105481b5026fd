"""Constants of tensors as Triton prints them."""

from __future__ import annotations

import numpy as np
import pytest

from tritonsmith.check.module import UnsupportedIrError, attribute, constant, parse, type_of

MODULE = '"builtin.module"() ({{\n %0 = "arith.constant"() <{{value = {} : {}}}> : () -> {}\n}}) : () -> ()'


@pytest.mark.parametrize(
    ("written", "kind", "value"),
    [
        ("dense<0xFF800000>", "tensor<4xf32>", -np.inf),
        ("dense<0x7F800000>", "tensor<2x2xf32, #blocked>", np.inf),
        ("dense<0x7FC00000>", "tensor<f32>", np.nan),
        ("dense<0xFC00>", "tensor<4xf16>", -np.inf),
        ("dense<0xFF80>", "tensor<4xbf16>", -np.inf),
        ("0xFF800000", "f32", -np.inf),
        ("dense<0.5>", "tensor<4xf32>", 0.5),
        ("dense<16>", "tensor<4xi32>", 16),
    ],
)
def test_infinity_and_nan_are_no_integers(written: str, kind: str, value: float) -> None:
    alias = "#blocked = #ttg.blocked<{sizePerThread = [1, 1]}>\n" if "#blocked" in kind else ""
    module = parse(alias + MODULE.format(written, kind, kind))
    operation = next(one for one in module.walk() if one.results)
    found = constant(attribute(operation, "value"), type_of(operation.results[0].type))
    assert np.array_equal(found.astype(np.float64), np.full(found.shape, value), equal_nan=True)


def test_one_value_in_all_elements_takes_the_memory_of_one() -> None:
    """A constant of a tile is often a zero, and xDSL writes out all of its elements."""
    for written, element in (("1", "i1"), ("7", "i64"), ("2.5", "bf16")):
        kind = f"tensor<4x8x{element}>"
        operation = next(
            one for one in parse(MODULE.format(f"dense<{written}>", kind, kind)).walk() if one.results
        )
        found = constant(attribute(operation, "value"), type_of(operation.results[0].type))
        assert (found.shape, found.strides) == ((4, 8), (0, 0))
        assert (found == float(written)).all()


def test_infinity_in_a_list_is_refused() -> None:
    with pytest.raises(UnsupportedIrError, match="in a list"):
        parse(MODULE.format("dense<[0x7FC00000, 1.0]>", "tensor<2xf32>", "tensor<2xf32>"))
    parse(MODULE.format("dense<[1, 0x2]>", "tensor<2xi32>", "tensor<2xi32>"))
