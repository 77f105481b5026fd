"""Who is blamed, by the figures of mixtures: made from a rule that says what each component does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tritonsmith.lab.blame import mixtures, pipeline
from tritonsmith.lab.blame.mixtures import BlameFinding, Flip
from tritonsmith.lab.blame.pipeline import Figures

CUDA = pipeline.components_of("cuda", ("ttir", "ttgir", "llir", "ptx", "cubin"))
NONE = frozenset[str]()
RANGE = "0 to 100 %"
Rule = Callable[[frozenset[str]], int | str]  # the components of B to the spills, or why there are none


def decided(rule: Rule, end: int | None = None) -> BlameFinding | None:
    """The verdict on a kernel that spills by a rule.

    Args:
        rule: it.
        end: what B spills, where a replay does not repeat it.
    """
    names = frozenset(one.name for one in CUDA)
    first, last = figures(rule(NONE)), figures(rule(names))
    assert not isinstance(first, str)
    assert not isinstance(last, str)
    flips = [
        Flip(group, figures(rule(frozenset(group.names))), figures(rule(names - frozenset(group.names))))
        for group in pipeline.groups_of(CUDA)
    ]
    really = last if end is None else {"spills": end}
    return mixtures.decide("spills", (first, really), (first, last), flips)


def finding(rule: Rule, end: int | None = None) -> BlameFinding:
    """The verdict where there is a change."""
    found = decided(rule, end)
    assert found
    return found


def figures(spills: int | str) -> Figures | str:
    return spills if isinstance(spills, str) else {"spills": spills}


def adds(**each: int) -> Rule:
    """Each component of B adds its own."""
    return lambda of_b: 100 + sum(number for name, number in each.items() if name in of_b)


def together(*names: str) -> Rule:
    """B spills more where it has all of them."""
    return lambda of_b: 1000 if of_b.issuperset(names) else 100


def either(*names: str) -> Rule:
    """B spills more where it has one of them."""
    return lambda of_b: 100 if of_b.isdisjoint(names) else 1000


def unread(culprit: str) -> Rule:
    """One does it all; but LLVM of A cannot read what Triton's passes of B write."""
    return lambda of_b: "cannot be read" if "llir" in of_b and "ptx" not in of_b else either(culprit)(of_b)


@pytest.mark.parametrize(
    ("rule", "culprits"),
    [
        *((adds(**{one.name: 900}), [(one.name,)]) for one in CUDA),
        # A smaller part by another changes nothing about it.
        *((adds(**{name: 900, "flags": 100}), [(name,)]) for name in ("ttgir", "ptx", "ptxas")),
        (adds(ttgir=600, ptxas=400), [("ttgir",), ("ptxas",)]),
        (together("ttgir", "ptxas"), []),
        (together("ptx", "flags"), []),
        (either("ttgir", "ptxas"), []),
        (either("llir", "ptx"), []),
        # A text that cannot be read hides no one else.
        (unread("ptxas"), [("ptxas",)]),
    ],
)
def test_who_is_blamed(rule: Rule, culprits: list[tuple[str, ...]]) -> None:
    found = finding(rule)
    assert [group.names for group in found.culprits] == culprits
    assert found.decided == bool(culprits)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (together("ttir", "ttgir", "llir"), "Triton's passes"),
        (adds(ttgir=600, ptxas=400), "Triton's passes (ttir to ttgir) 60 %, ptxas 40 %"),
        (
            together("ttgir", "ptxas"),
            f"not decided: Triton's passes (ttir to ttgir) {RANGE}, ptxas {RANGE}: they depend on each other",
        ),
        (
            together("ptx", "flags"),
            f"not decided: LLVM (llir to ptx) {RANGE}, the flags of ptxas {RANGE}: they depend on each other",
        ),
        # A text that cannot be read leaves axes together.
        (
            unread("llir"),
            "not decided: Triton's passes and LLVM explain 100 % together; their effects cannot be separated",
        ),
    ],
)
def test_how_it_is_said(rule: Rule, words: str) -> None:
    found = finding(rule)
    assert (found.words, found.decided) == (words, not words.startswith("not decided"))


def test_what_does_not_change_has_no_verdict() -> None:
    assert decided(adds()) is None


def test_one_that_others_make_up_for_is_not_decided() -> None:
    found = finding(adds(ttgir=3000, ptx=-2100))
    assert found.words != "Triton's passes (ttir to ttgir)"
    assert {group.names for group in found.culprits} in (set(), {("ttgir",), ("ptx",)})


def test_what_a_replay_does_not_repeat_is_not_blamed_on_anyone() -> None:
    words = finding(adds(ptxas=300), end=1000).words
    assert words.startswith("not decided: 67 % of the change is not reproduced step by step")


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
