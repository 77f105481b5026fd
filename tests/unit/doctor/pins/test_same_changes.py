"""The same change and its reverse, by lines."""

from __future__ import annotations

import pytest

from tests.unit.repositories import Made, Maker
from tritonsmith.doctor.pins import same_changes
from tritonsmith.facts import git_history

pytestmark = pytest.mark.unit

OLD, NEW = {"a.cpp": "one\ntwo\nthree\n"}, {"a.cpp": "one\n2\nthree\n"}


@pytest.fixture
def triton(make: Maker) -> Made:
    return make("triton")


def find(triton: Made, commit: str, *tips: str) -> tuple[frozenset[str], frozenset[str]]:
    with git_history.opened(triton.path) as repository:
        return same_changes.find(repository, commit, tips)


def test_the_same_and_the_reverse(triton: Made) -> None:
    start = triton.commit("start", OLD)
    change = triton.commit("change", NEW)
    back = triton.commit("back", OLD)
    triton.commit("other", {"b.cpp": "x"})
    last = triton.commit("last", NEW)
    assert find(triton, change, last, "0" * 40) == (frozenset({last}), frozenset({back}))
    assert find(triton, back, last) == (frozenset(), frozenset({last}))
    assert find(triton, change, start) == (frozenset(), frozenset())


def test_what_comes_before_and_what_changes_nothing(triton: Made) -> None:
    triton.commit("start", OLD)
    first = triton.commit("change", NEW)
    triton.commit("back", OLD)
    second = triton.commit("change again", NEW)
    empty = triton.commit("nothing")
    assert find(triton, second, empty) == (frozenset(), frozenset())  # what is before it is not asked for
    assert find(triton, first, empty)[0] == {second}
    assert find(triton, empty, second) == (frozenset(), frozenset())


def test_a_root_and_other_settings_of_git(triton: Made) -> None:
    triton.git("config", "diff.noprefix", "true")
    triton.git("config", "diff.mnemonicPrefix", "true")
    root = triton.commit("root", OLD)
    gone = triton.commit("gone", {"a.cpp": None})
    back = triton.commit("back", OLD)
    assert find(triton, root, back) == (frozenset({back}), frozenset({gone}))
