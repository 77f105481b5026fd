"""Offsets of 32 bits that overflow: found before the remedy of each public thread, and not after it."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tritonsmith.check.bounds import KernelBounds, Overflow, _tightest, bounds
from tritonsmith.check.module import name_of
from tritonsmith.check.outside import outside, unlimited
from tritonsmith.check.polynomials import (
    LARGEST,
    Fact,
    OffsetSymbol,
    Polynomial,
    SymbolKind,
    apply,
    most,
    normal,
)
from tritonsmith.check.runs import parsed

pytestmark = pytest.mark.unit

_TEXTS = Path(__file__).with_name("bounds")  # kernels.py.txt there has their sources

_ORDER = count()


def text_of(name: str) -> str:
    return (_TEXTS / f"{name}.mlir").read_text()


def bounds_of(name: str, **sizes: int) -> KernelBounds:
    kernel = parsed(text_of(name))
    assert kernel is not None
    return bounds(kernel, sizes=sizes)


def only(answer: KernelBounds) -> Overflow:
    (overflow,) = answer.overflows
    return overflow


@pytest.mark.parametrize(
    ("thread", "grown", "size", "program"),
    [
        ("liger_1335", "tl.program_id(0)", 2**31 // 4096 + 1, (2**31 // 4096, 0, 0)),
        ("fla_783", "tl.program_id(2)", 129, (127, 255, 128)),
        ("dion_102", "tl.program_id(0)", 2**31 // 4096 * 32 + 1, (2**31 // 4096 * 32, 0, 0)),
        ("triton_10489", "M", 2**31 // 4096 + 1, (8388863, 0, 0)),
        ("mamba_987", "seqlen", 2**31 // 4096 + 1, (128, 0, 0)),
        ("persistent", "n_rows", 524416, (127, 0, 0)),
        ("early", "n_rows", 2**31 // 4096 + 1, (2**31 // 4096, 0, 0)),
        ("advanced", "tl.program_id(0)", 2**31 // 16 + 1, (2**31 // 16, 0, 0)),
    ],
)
def test_an_overflow_is_shown_by_the_least_size_and_a_program(
    thread: str, grown: str, size: int, program: tuple[int, int, int]
) -> None:
    overflow = only(bounds_of(thread))
    witness = overflow.witness
    assert witness is not None
    assert (witness.grown.name, witness.size, witness.program) == (grown, size, program)
    assert name_of(overflow.operation) == "arith.muli"
    # What 32 bits lose is a multiple of 2^32 elements.
    assert (witness.nearest - witness.wrong) % 2**32 == 0
    assert witness.nearest >= 2**31


@pytest.mark.parametrize("thread", ["liger_1335", "fla_783", "dion_102", "triton_10489", "mamba_987"])
def test_nothing_is_left_after_the_remedy(thread: str) -> None:
    assert bounds_of(f"{thread}_wide").overflows == ()


@pytest.mark.parametrize("kernel", ["elementwise", "assumed", "hashed"])
def test_what_a_mask_or_an_assumption_bounds_does_not_overflow(kernel: str) -> None:
    # And a hash wraps on purpose.
    assert bounds_of(kernel).overflows == ()


def test_what_is_loaded_only_may_overflow() -> None:
    overflow = only(bounds_of("vllm_53028"))
    assert overflow.witness is None
    assert overflow.why == "it depends on values that the kernel loads"


@pytest.mark.parametrize("kernel", ["helper", "reduced", "carried", "whiled", "either"])
def test_a_value_that_is_no_polynomial_is_followed_by_the_run(kernel: str) -> None:
    overflow = bounds_of(kernel).overflows[0]
    assert overflow.witness is not None
    assert (overflow.witness.size, overflow.witness.program) == (2**31 // 4096 + 1, (2**31 // 4096, 0, 0))


def test_what_may_overflow_says_what_was_not_followed() -> None:
    (*_, overflow) = bounds_of("carried").overflows
    assert overflow.witness is None
    assert overflow.why == "it depends on a value that a loop changes, and not by the same sum in each turn"


def test_a_size_that_is_known_moves_the_bound() -> None:
    overflow = only(bounds_of("liger_1335", stride=32768))
    assert overflow.witness is not None
    assert overflow.witness.size == 65537
    assert overflow.witness.arguments["stride"] == 32768


def test_one_size_less_does_not_overflow() -> None:
    kernel = parsed(text_of("liger_1335"))
    assert kernel is not None
    # With so many programs along the axis, none has an offset of 2^31.
    answer = bounds(kernel, sizes={"stride": 4096}, grid=(2**31 // 4096,))
    assert answer.overflows == ()
    assert bounds(kernel, sizes={"stride": 4096}, grid=(2**31 // 4096 + 1,)).overflows


def test_an_overflow_names_its_loads_and_stores() -> None:
    overflow = only(bounds_of("fla_783"))
    assert [name_of(access) for access in overflow.accesses] == ["tt.load"]


def _symbol(name: str, high: int = LARGEST) -> OffsetSymbol:
    return OffsetSymbol(next(_ORDER), SymbolKind.ARGUMENT, name, high=high)


def test_polynomials_add_multiply_and_have_bounds() -> None:
    x, y = Polynomial.of(_symbol("x", high=10)), Polynomial.of(_symbol("y", high=3))
    assert (x + y) * (x - y) == x * x - y * y
    assert (x * y - Polynomial.of(5)).interval() == (-5, 25)
    assert (x - x).number == 0
    assert (x + y).symbol is None


def test_a_minimum_bounds_by_both_and_a_rest_moves_to_the_other_side() -> None:
    rows, start, chunk = (Polynomial.of(_symbol(name)) for name in ("rows", "start", "chunk"))
    left = OffsetSymbol(
        next(_ORDER), SymbolKind.COMPUTED, "left", operation="min", operands=(chunk, rows - start)
    )
    row = Polynomial.of(_symbol("row"))
    facts = normal(Fact(row, Polynomial.of(left)))
    assert [(fact.left, fact.right) for fact in facts] == [(row, chunk), (row + start, rows)]
    assert most(start, facts) < LARGEST


@pytest.mark.parametrize(
    ("operation", "values", "result"),
    [
        ("div", (-7, 2), -3),
        ("rem", (-7, 2), -1),
        ("div", (7, 0), None),
        ("cdiv", (7, 2), 4),
        ("trips", (0, 10, 4), 3),
        ("trips", (10, 0, 4), 0),
        ("shr", (7, 1), 3),
        ("unheard of", (1, 2), None),
    ],
)
def test_computed_values_are_those_of_mlir(
    operation: str, values: tuple[int, ...], result: int | None
) -> None:
    assert apply(operation, values) == result


@pytest.mark.parametrize(
    "name", ["helper", "reduced", "carried", "whiled", "either", "assumed_in_branch", "early_in_branch"]
)
def test_an_overflow_is_not_lost_on_its_way_to_an_address(name: str) -> None:
    # None of these offsets is bounded, whether or not a witness can show it.
    overflows = bounds_of(name).overflows
    assert "stride" in {symbol.name for overflow in overflows for symbol in overflow.exact.symbols}


@pytest.mark.parametrize(
    ("kernel", "size", "arguments", "program"),
    [
        ("unmasked", "n", {"n": 1025}, (1, 0, 0)),
        ("only_rows", "cols", {"rows": 65, "stride": 4096, "cols": 33}, (1, 1, 0)),
        ("row_in_block", "n_cols", {"stride": 4096, "n_cols": 1023}, (1, 0, 0)),
        ("last_turn", "n", {"n": 1025}, (0, 0, 0)),
    ],
)
def test_an_access_behind_the_end_that_another_mask_says_is_shown(
    kernel: str, size: str, arguments: dict[str, int], program: tuple[int, int, int]
) -> None:
    (found,) = outside(bounds_of(kernel).search)
    assert found.is_proved
    assert (found.size.name, found.witness.arguments, found.witness.program) == (size, arguments, program)
    assert found.witness.element >= found.witness.end


def test_of_another_tensor_or_by_another_size_an_access_only_may_be_outside() -> None:
    # The load's tensor may be padded, and nobody says which of two sizes is the tensor's.
    (load,) = outside(bounds_of("unmasked_input").search)
    assert not load.is_proved
    assert not load.same
    (other,) = outside(bounds_of("wrong_size").search)
    assert not other.is_proved
    assert (other.size.name, other.wrong_size and other.wrong_size.name) == ("cols", "rows")
    assert other.witness.arguments["rows"] > other.witness.arguments["cols"]


@pytest.mark.parametrize(
    "kernel",
    [
        "wrapped", "flagged", "guarded", "whole_blocks", "unmasked_multiple", "elementwise", "persistent",
        "triton_10489", "unlimited",
    ],
)  # fmt: skip
def test_what_stays_inside_or_is_not_known_is_no_finding(kernel: str) -> None:
    assert outside(bounds_of(kernel).search) == ()


def test_sizes_that_are_known_decide_about_an_end() -> None:
    assert outside(bounds_of("unmasked", n=4096).search) == ()
    (found,) = outside(bounds_of("unmasked", n=1000).search)
    assert (found.witness.element, found.witness.end) == (1023, 1000)


def test_a_program_id_that_nothing_limits_is_one_of_tiles() -> None:
    (found,) = unlimited(bounds_of("unlimited").search)
    assert (found.program.name, found.tile, len(found.operations)) == ("tl.program_id(0)", 1024, 1)
    # A mask limits the first one; a row's id takes steps of a stride, not of a block.
    for kernel in ("unmasked", "unmasked_input", "guarded", "unlimited_row", "persistent", "liger_1335"):
        assert unlimited(bounds_of(kernel).search) == ()


def test_of_the_masks_of_an_unrolled_loop_the_tightest_is_kept() -> None:
    start, n, m = (Polynomial.of(_symbol(name)) for name in ("start", "n", "m"))
    turns = [Fact(start + Polynomial.of(turn), n) for turn in (0, 3, 2)]
    assert _tightest([*turns, Fact(start, m)]) == (turns[1], Fact(start, m))
