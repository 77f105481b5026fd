from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.pins.conftest import Table
from tests.unit.repositories import Made, Maker
from tritonsmith.errors import FactError
from tritonsmith.pins import releases_with
from tritonsmith.pins.releases_with import Holders, undecided


def row(version: str, pinned: str, wheel: str = "", **more: Any) -> dict[str, Any]:
    """A release; an empty commit is an unknown one."""

    def pin(commit: str) -> dict[str, Any]:
        return {"commit": commit, "grade": "read"} if commit else {"grade": "unknown"}

    same = {"same-file": True}
    return {"pytorch": version, "cuda": pin(pinned), "wheel": pin(wheel), "rocm": same, **more}


def said(found: Holders) -> dict[tuple[str, str], str]:
    return {(one.release, one.where): one.standing.relation for one in found.holdings}


@pytest.fixture
def triton(make: Maker) -> Made:
    return make("triton")


def test_at_before_and_after_on_one_line(triton: Made, table: Table) -> None:
    commits = [triton.commit(f"change {number} (#{number})") for number in range(1, 4)]
    table(
        row("2.1.0", commits[0], commits[0]), row("2.2.0", commits[1], commits[2]), row("2.3.0", commits[2])
    )
    found = releases_with.find(commits[1][:9], triton.path)
    assert (found.commit, found.subject) == (commits[1], "change 2 (#2)")
    assert said(found) == {
        ("2.1.0", "cuda"): "before",
        ("2.1.0", "wheel"): "before",
        ("2.2.0", "cuda"): "at",
        ("2.2.0", "wheel"): "after",
        ("2.3.0", "cuda"): "after",
        ("2.3.0", "wheel"): "undecided",
    }
    holds = {(one.release, one.where): one.standing.holds for one in found.holdings}
    assert [holds["2.1.0", "cuda"], holds["2.2.0", "cuda"], holds["2.3.0", "wheel"]] == [False, True, None]


def test_a_release_branch_lacks_it_or_has_it_cherry_picked(triton: Made, table: Table) -> None:
    triton.commit("base (#1)")
    triton.git("branch", "bare")
    triton.git("branch", "picked")
    triton.git("branch", "picked-x")
    triton.git("branch", "reverted")
    triton.git("branch", "named")
    commit = triton.commit("[Backend] Fix a thing (#42)")
    tips = {}
    for branch, message in (
        ("bare", "Bump version (#50)"),
        ("picked", "[Release 3.7.x] Cherry-pick '[Backend] Fix a thing (#42)' (#51)"),
        ("picked-x", f"Another title\n\n(cherry picked from commit {commit})"),
        ("reverted", "Revert '[Backend] Fix a thing (#42)' (#52)"),
        ("named", "Fix (#421)\n\nFollows #42."),
    ):
        triton.git("checkout", "--quiet", branch)
        tips[branch] = triton.commit(message)
    table(*(row(f"2.{number}.0", tip) for number, tip in enumerate(tips.values())))
    found = said(releases_with.find(commit, triton.path))
    relations = [found[f"2.{number}.0", "cuda"] for number in range(len(tips))]
    assert relations == ["apart", "cherry-picked", "cherry-picked", "apart", "apart"]
    (picked, _) = (
        one.standing.why
        for one in releases_with.find(commit, triton.path).holdings
        if one.standing.relation == "cherry-picked"
    )
    assert picked == f"as {tips['picked'][:10]}, by its message"


def test_no_history_in_common(triton: Made, table: Table) -> None:
    commit = triton.commit("one (#1)")
    triton.git("checkout", "--quiet", "--orphan", "other")
    table(row("2.0.0", triton.commit("two")))
    assert said(releases_with.find(commit, triton.path))["2.0.0", "cuda"] == "apart"


def test_what_cannot_be_told_is_said_and_not_dropped(triton: Made, table: Table) -> None:
    old, commit, new = (triton.commit(name) for name in ("old", "asked", "new"))
    table(
        row("2.1.0", "", ""),
        row("2.2.0", "f" * 40, ""),
        row("2.3.0", "", cuda={"grade": "unknown", "candidates": [new, commit]}),
        row("2.4.0", "", cuda={"grade": "unknown", "candidates": [old]}),
        row("2.5.0", "", cuda={"grade": "unknown", "candidates": [new, old]}, xpu={"grade": "unknown"}),
        row("2.6.0", new, new, rocm={"commit": "e" * 40, "grade": "read"}),
    )
    found = releases_with.find(commit, triton.path)
    why = {(one.release, one.where): one.standing.why for one in undecided(found)}
    assert {key[0] for key in said(found)} == {f"2.{number}.0" for number in range(1, 7)}
    assert why == {
        ("2.1.0", "cuda"): "the pin is unknown",
        ("2.2.0", "cuda"): "this clone lacks the pin",
        ("2.3.0", "cuda"): "the pin is unknown; every unconfirmed candidate has the commit",
        ("2.4.0", "cuda"): "the pin is unknown; no unconfirmed candidate has the commit",
        ("2.5.0", "cuda"): "the pin is unknown; its unconfirmed candidates do not agree",
        ("2.5.0", "xpu"): "the pin is unknown",
        ("2.6.0", "rocm"): "this clone lacks the pin",
        **{(f"2.{number}.0", "wheel"): "the pin is unknown" for number in range(1, 6)},
    }


def test_tags_and_branches_name_a_commit_too(triton: Made, table: Table) -> None:
    commit = triton.commit("one")
    triton.git("tag", "-a", "v3.0.0", "-m", "x")
    table(row("2.0.0", commit))
    for name in ("v3.0.0", "main", "HEAD"):
        assert releases_with.find(name, triton.path).commit == commit


@pytest.mark.parametrize("name", ["0" * 40, "no-such-branch", "--all"])
def test_a_commit_that_the_clone_lacks(triton: Made, name: str) -> None:
    triton.commit("one")
    with pytest.raises(FactError, match=f"no commit '{name}'") as caught:
        releases_with.find(name, triton.path)
    assert caught.value.where == str(triton.path)
    assert "--source PATH" in str(caught.value)


def test_a_shallow_clone_is_refused(triton: Made, tmp_path: Path) -> None:
    from git import Repo

    triton.commit("one")
    triton.commit("two")
    with Repo.clone_from(triton.path.as_uri(), tmp_path / "shallow", depth=1):
        pass
    with pytest.raises(FactError, match="this clone is shallow") as caught:
        releases_with.find("HEAD", tmp_path / "shallow")
    assert "--unshallow" in str(caught.value)


def test_settings_of_the_users_git_change_nothing(triton: Made, table: Table) -> None:
    commits = [triton.commit("one"), triton.commit("two")]
    for name, value in (("log.showSignature", "true"), ("format.pretty", "oneline"), ("color.ui", "always")):
        triton.git("config", name, value)
    table(row("2.0.0", commits[1]))
    assert said(releases_with.find(commits[0], triton.path))["2.0.0", "cuda"] == "after"
