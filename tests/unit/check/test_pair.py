"""Two versions of a kernel: right refactorings, planted bugs, and what nobody can decide."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.check.refactored import PLANTED, RIGHT, family, version
from tritonsmith.check.pair import compare_versions
from tritonsmith.check.versions import KernelVersion, PairAnswer, PairRequest

pytestmark = pytest.mark.unit


def compared(first: KernelVersion, second: KernelVersion, **more: object) -> PairAnswer:
    return compare_versions(PairRequest((first, second), **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for names in RIGHT.values() for name in names])
def test_a_right_refactoring_is_the_same(name: str) -> None:
    answer = compared(version(family(name)), version(name))
    assert answer.status in ("equal", "close"), answer
    assert answer.inputs > 8
    assert sum(answer.elements.values()) > 300
    assert not answer.notes or "not tried in" in " ".join(answer.notes)


@pytest.mark.parametrize("name", [name for names in PLANTED.values() for name in names])
def test_a_planted_bug_is_found(name: str) -> None:
    answer = compared(version(family(name)), version(name))
    assert answer.status == "differs", answer
    assert answer.witness
    assert answer.witness.element
    assert answer.witness.element.argument in ("OUT", "X")


def test_a_lost_tile_is_found_by_its_grid() -> None:
    whole = version("subtract")
    answer = compared(whole, version("subtract", "n // BLOCK"))
    assert answer.status == "differs"
    assert answer.witness
    assert answer.witness.element
    assert answer.witness.element.after is None


def test_a_kernel_is_the_same_as_itself_without_a_run() -> None:
    answer = compared(version("norm"), version("norm"))
    assert (answer.status, answer.inputs) == ("equal", 0)


@pytest.mark.parametrize(
    "grids", [("", ""), ("", "cdiv(n, BLOCK)"), ("lambda META: (triton.cdiv(n, META['BLOCK']),)", "")]
)
def test_a_grid_that_the_masks_bound_is_found(grids: tuple[str, str]) -> None:
    first, second = version("subtract", grids[0]), version("subtract_in_a_loop", grids[1])
    answer = compared(first, second)
    assert answer.status == "equal", answer
    assert not answer.guessed


def test_rows_that_nothing_bounds_are_a_guess() -> None:
    answer = compared(version("norm", ""), version("norm_by_rsqrt", ""))
    assert answer.status == "close"
    assert answer.guessed
    fewer = compared(version("norm", ""), version("norm_by_rsqrt", "2"))
    assert fewer.status == "unknown"
    assert "--grid" in fewer.why


def test_arguments_have_to_correspond() -> None:
    other = replace(version("subtract_in_a_loop"), names=("A", "Y", "OUT", "n"))
    renamed = replace(version("subtract_in_a_loop"), aliases={"A": "X"})
    assert compared(version("subtract"), other).status == "differs"  # a pointer of its own has other numbers
    assert compared(version("subtract"), renamed).status == "equal"
    swapped = replace(version("subtract_in_a_loop"), names=("X", "Y", "n", "OUT"))
    answer = compared(version("subtract"), swapped)
    assert answer.status == "unknown"
    assert "a pointer in one version" in answer.why


def test_an_output_that_nothing_writes_is_not_the_same() -> None:
    answer = compared(version("subtract"), version("subtract_in_a_loop"), outputs=("Y",))
    assert (answer.status, answer.why) == ("unknown", "nothing is written to Y under these inputs")


def test_a_difference_of_nan_alone_says_so() -> None:
    pass
