"""Who is blamed, by the figures of mixtures: made from a rule that says what each component does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tritonsmith.lab.blame import mixtures, pipeline
from tritonsmith.lab.blame.mixtures import BlameFinding, Flip
from tritonsmith.lab.blame.pipeline import BlameComponent, Figures

CUDA = pipeline.components_of("cuda", ("ttir", "ttgir", "llir", "ptx", "cubin"))
NONE = frozenset[str]()
Rule = Callable[[frozenset[str]], int | str]  # the components of B to the spills, or why there are none


def decided(
    rule: Rule, every: tuple[BlameComponent, ...] = CUDA, end: int | None = None
) -> BlameFinding | None:
    """The verdict on a kernel that spills by a rule.

    Args:
        rule: it.
        every: the components.
        end: what B spills, where a replay does not repeat it.
    """
    names = frozenset(one.name for one in every)
    first, last = figures(rule(NONE)), figures(rule(names))
    assert not isinstance(first, str)
    assert not isinstance(last, str)
    flips = [
        Flip(
            group,
            figures(rule(frozenset(group.names))),
            figures(rule(names - frozenset(group.names))),
        )
        for group in pipeline.groups_of(every)
    ]
    really = last if end is None else {"spills": end}
    return mixtures.decide("spills", (first, really), (first, last), flips)


def figures(spills: int | str) -> Figures | str:
    return spills if isinstance(spills, str) else {"spills": spills}


def adds(**each: int) -> Rule:
    """Each component of B adds its own."""
    return lambda of_b: 100 + sum(number for name, number in each.items() if name in of_b)


@pytest.mark.parametrize("culprit", [one.name for one in CUDA])
def test_one_component_does_it_all(culprit: str) -> None:
    found = decided(adds(**{culprit: 900}))
    assert found
    assert [group.names for group in found.culprits] == [(culprit,)]


@pytest.mark.parametrize("culprit", ["ttgir", "ptx", "ptxas"])
def test_a_smaller_part_by_another_changes_nothing_about_it(culprit: str) -> None:
    found = decided(adds(**{culprit: 900, "flags": 100}))
    assert found
    assert [group.names for group in found.culprits] == [(culprit,)]


def test_what_does_not_change_has_no_verdict() -> None:
    assert decided(adds()) is None


def test_all_steps_of_an_axis_are_its_axis() -> None:
    rule: Rule = lambda of_b: 1000 if {"ttir", "ttgir", "llir"} <= of_b else 100  # noqa: E731
    found = decided(rule)
    assert found
    assert found.words == "Triton's passes"


def test_two_that_add_up_share_it() -> None:
    found = decided(adds(ttgir=600, ptxas=400))
    assert found
    assert [group.names for group in found.culprits] == [("ttgir",), ("ptxas",)]
    assert found.words == "Triton's passes (ttir to ttgir) 60 %, ptxas 40 %"


@pytest.mark.parametrize("both", [("ttgir", "ptxas"), ("ptx", "flags")])
def test_two_that_only_do_it_together_are_not_decided(both: tuple[str, str]) -> None:
    found = decided(lambda of_b: 1000 if set(both) <= of_b else 100)
    assert found
    assert not found.decided
    assert "depend on each other" in found.words


@pytest.mark.parametrize("both", [("ttgir", "ptxas"), ("llir", "ptx")])
def test_two_each_of_which_does_it_alone_are_not_decided(both: tuple[str, str]) -> None:
    found = decided(lambda of_b: 1000 if set(both) & of_b else 100)
    assert found
    assert not found.decided


def test_one_that_others_make_up_for_is_not_decided() -> None:
    found = decided(adds(ttgir=3000, ptx=-2100))
    assert found
    assert found.words != "Triton's passes (ttir to ttgir)"
    assert {group.names for group in found.culprits} in (set(), {("ttgir",), ("ptx",)})


def test_a_text_that_cannot_be_read_leaves_axes_together() -> None:
    def rule(of_b: frozenset[str]) -> int | str:
        if "llir" in of_b and "ptx" not in of_b:
            return "cannot be read"
        return 1000 if "llir" in of_b else 100

    found = decided(rule)
    assert found
    assert not found.decided
    assert (
        found.words
        == "not decided: Triton's passes and LLVM explain 100 % together; their effects cannot be separated"
    )


def test_a_text_that_cannot_be_read_hides_no_one_else() -> None:
    def rule(of_b: frozenset[str]) -> int | str:
        if "llir" in of_b and "ptx" not in of_b:
            return "cannot be read"
        return 1000 if "ptxas" in of_b else 100

    found = decided(rule)
    assert found
    assert [group.names for group in found.culprits] == [("ptxas",)]


def test_what_a_replay_does_not_repeat_is_not_blamed_on_anyone() -> None:
    found = decided(adds(ptxas=300), end=1000)
    assert found
    assert found.words.startswith("not decided: 67 % of the change is not reproduced step by step")


@pytest.mark.parametrize("ends", [({"spills": None}, {"spills": 4}), ({"spills": 4}, {"spills": None})])
def test_an_unknown_value_is_not_decided(ends: tuple[Figures, Figures]) -> None:
    found = mixtures.decide("spills", ends, ends, [])
    assert found
    assert not found.decided


def test_an_unknown_value_on_both_sides_is_no_equality() -> None:
    ends: Mapping[str, None] = {"spills": None}
    found = mixtures.decide("spills", (ends, ends), (ends, ends), [])
    assert found
    assert not found.decided


def test_partitions_have_each_component_once() -> None:
    for backend, stages in pipeline.TEXTS.items():
        every = pipeline.components_of(backend, stages)
        for parts in pipeline.partitions(every):
            assert [one for group in parts for one in group.parts] == list(every)


def test_a_pipeline_without_ttir_has_no_such_component() -> None:
    every = pipeline.components_of("cuda", ("ttgir", "llir", "ptx", "cubin"))
    assert [part.name for part in every] == ["ttgir", "llir", "ptx", "flags", "ptxas"]
