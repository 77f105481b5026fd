from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.doctor.pins.conftest import Table
from tests.unit.repositories import Made, Maker, Text
from tritonsmith.core.errors import FactError
from tritonsmith.doctor.pins import releases_with
from tritonsmith.doctor.pins.releases_with import Holders, Standing, undecided
from tritonsmith.facts import git_history


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
    found = releases_with.find_releases(commits[1][:9], triton.path)
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
    found = said(releases_with.find_releases(commit, triton.path))
    relations = [found[f"2.{number}.0", "cuda"] for number in range(len(tips))]
    assert relations == ["apart", "cherry-picked", "cherry-picked", "apart", "apart"]
    (picked, _) = (
        one.standing.why
        for one in releases_with.find_releases(commit, triton.path).holdings
        if one.standing.relation == "cherry-picked"
    )
    assert picked == f"as {tips['picked'][:10]}, by its message"


def test_no_history_in_common(triton: Made, table: Table) -> None:
    commit = triton.commit("one (#1)")
    triton.git("checkout", "--quiet", "--orphan", "other")
    table(row("2.0.0", triton.commit("two")))
    assert said(releases_with.find_releases(commit, triton.path))["2.0.0", "cuda"] == "apart"


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
    found = releases_with.find_releases(commit, triton.path)
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
        assert releases_with.find_releases(name, triton.path).commit == commit


@pytest.mark.parametrize("name", ["0" * 40, "no-such-branch", "--all"])
def test_a_commit_that_the_clone_lacks(triton: Made, name: str) -> None:
    triton.commit("one")
    with pytest.raises(FactError, match=f"no commit '{name}'") as caught:
        releases_with.find_releases(name, triton.path)
    assert caught.value.where == str(triton.path)
    assert "--source PATH" in str(caught.value)


def test_a_shallow_clone_is_refused(triton: Made, tmp_path: Path) -> None:
    from git import Repo

    triton.commit("one")
    triton.commit("two")
    with Repo.clone_from(triton.path.as_uri(), tmp_path / "shallow", depth=1):
        pass
    with pytest.raises(FactError, match="this clone is shallow") as caught:
        releases_with.find_releases("HEAD", tmp_path / "shallow")
    assert "--unshallow" in str(caught.value)


def test_settings_of_the_users_git_change_nothing(triton: Made, table: Table) -> None:
    commits = [triton.commit("one"), triton.commit("two")]
    for name, value in (("log.showSignature", "true"), ("format.pretty", "oneline"), ("color.ui", "always")):
        triton.git("config", name, value)
    table(row("2.0.0", commits[1]))
    assert said(releases_with.find_releases(commits[0], triton.path))["2.0.0", "cuda"] == "after"


FIXED = {"lib/a.cpp": "one\n2\nthree\n"}


class Line:
    """A Triton with a main, and branches of its first commit; each branch is the pin of a release."""

    def __init__(self, triton: Made) -> None:
        self.triton = triton
        self.tips: dict[str, str] = {}
        self.main("start (#1)", {"lib/a.cpp": "one\ntwo\nthree\n", "setup.py": "3.0.0"})
        triton.git("tag", "start")

    def main(self, message: str, files: Text | None = None) -> str:
        return self.triton.commit(message, files)

    def branch(self, name: str, *commits: tuple[str, Text]) -> tuple[str, ...]:
        """A branch with these commits; their hashes."""
        self.triton.git("checkout", "--quiet", "-b", name, "start")
        made = tuple(self.triton.commit(message, files) for message, files in commits)
        self.tips[name] = made[-1]
        self.triton.git("checkout", "--quiet", "main")
        return made

    def pinned(self, table: Table) -> None:
        table(*(row(f"2.{number}.0", tip) for number, tip in enumerate(self.tips.values())))

    def standings(self, name: str) -> dict[str, Standing]:
        """What each branch says of a commit."""
        found = releases_with.find_releases(name, self.triton.path)
        cuda = (one.standing for one in found.holdings if one.where == "cuda")
        return dict(zip(self.tips, cuda, strict=True))

    def relations(self, name: str) -> dict[str, str]:
        return {branch: found.relation for branch, found in self.standings(name).items()}


@pytest.fixture
def line(triton: Made) -> Line:
    return Line(triton)


def test_a_pick_that_names_nothing_is_known_by_its_changes(line: Line, table: Table) -> None:
    fix = line.main("fix it (#42)", FIXED)
    hotfix, _ = line.branch("silent", ("Hotfix", FIXED), ("3.0.1", {"setup.py": "3.0.1"}))
    line.branch("other", ("3.0.1", {"setup.py": "3.0.1"}))
    line.pinned(table)
    assert line.standings(fix) == {
        "silent": Standing("cherry-picked", f"as {hotfix[:10]}, by its changes"),
        "other": Standing("apart", "on another branch"),
    }


def test_other_lines_of_the_same_files_under_another_name_leave_it_open(line: Line, table: Table) -> None:
    fix = line.main("fix it (#42)", FIXED)
    clean = line.main("clean after #42 (#43)", {"lib/a.cpp": "one\n2\nthree and a half\n"})
    (hotfix,) = line.branch("silent", ("Hotfix", {"lib/a.cpp": "one\nII\nthree\n"}))
    line.branch("named", ("[3.0] clean after #42 (#43) (#50)", {"lib/a.cpp": "one\ntwo\n3.5\n"}))
    line.pinned(table)
    why = f"{hotfix[:10]} changes the same files and names no commit of main: Hotfix"
    assert line.standings(fix)["silent"] == Standing("undecided", why, doubt=True)
    assert line.relations(fix)["named"] == "apart"  # what it picked names the fix, and is not the fix
    assert line.relations(clean)["named"] == "cherry-picked"


def test_a_number_of_another_repository_is_no_pick(line: Line, table: Table) -> None:
    fix = line.main("fix it (#42)", FIXED)
    line.branch("fork", ("Ours, of our own pull request (#42)", {"third_party/ours.cpp": "x"}))
    line.pinned(table)
    assert line.relations(fix) == {"fork": "apart"}


def test_reverts_count_and_reverts_of_reverts(line: Line, table: Table) -> None:
    old = {"lib/a.cpp": "one\ntwo\nthree\n"}
    fix = line.main("fix it (#42)", FIXED)
    line.tips["held"] = fix
    undo = line.main('Revert "fix it (#42)" (#45)', old)
    line.tips["undone"] = undo
    line.tips["again"] = line.main('Revert "Revert "fix it (#42)" (#45)" (#46)', FIXED)
    line.tips["by hash"] = line.main(f"Revert the fix\n\nThis reverts commit {fix}.", old)
    line.tips["relanded"] = line.main("Reland fix it (#42) (#48)", FIXED)
    line.tips["in part"] = line.main("clean (#49)\n\nReverts triton-lang/triton#48", {"lib/a.cpp": "1"})
    picked = ("[3.0] fix it (#42) (#60)", FIXED)
    line.branch("picked", picked)
    line.branch("pick-undone", picked, ("Revert '[3.0] fix it (#42) (#60)' (#61)", old))
    line.branch("undo-picked", picked, ('[3.0] Pick Revert "fix it (#42)" (#45) (#62)', old))
    line.pinned(table)
    assert line.relations(fix) == {
        "held": "at",
        "undone": "reverted",
        "again": "after",
        "by hash": "reverted",
        "relanded": "cherry-picked",
        "in part": "undecided",
        "picked": "cherry-picked",
        "pick-undone": "reverted",
        "undo-picked": "reverted",
    }
    found = line.standings(fix)
    assert (found["undone"], found["undone"].holds) == (Standing("reverted", f"by {undo[:10]}"), False)
    assert found["in part"].why == f"{line.tips['in part'][:10]} may revert it: clean (#49)"
    assert found["in part"].doubt
    of_undo = line.relations(undo)
    assert [of_undo[name] for name in ("held", "undone", "again", "undo-picked", "picked")] == [
        "before", "at", "reverted", "cherry-picked", "apart",
    ]  # fmt: skip


def test_a_commit_of_a_branch_is_on_main_as_what_it_was_picked_from(line: Line, table: Table) -> None:
    fix = line.main("fix it (#42)", FIXED)
    line.tips["main"] = line.main("more (#43)")
    (pick,) = line.branch("picked", ("[3.0] fix it (#42) (#60)", FIXED))
    line.pinned(table)
    assert line.standings(pick)["main"] == Standing("cherry-picked", f"as {fix[:10]}, by its message")


@pytest.mark.slow
def test_a_pull_request_or_a_release_names_a_commit(line: Line, table: Table) -> None:
    fix = line.main("fix it (#42)", FIXED)
    line.main("follows #42 and says so (#43)")
    (tip,) = line.branch("release/3.1.x", ("[3.1] fix it (#42) (#60)", FIXED))
    line.pinned(table)
    page = "https://github.com/triton-lang/triton/pull/42"
    for name in ("#42", "42", page):
        assert releases_with.find_releases(name, line.triton.path).commit == fix
    line.triton.git("tag", "v3.1.0", "main")
    assert releases_with.find_releases("3.1.0", line.triton.path).subject == "follows #42 and says so (#43)"
    line.triton.git("tag", "--delete", "v3.1.0")
    assert releases_with.find_releases("3.1.0", line.triton.path).commit == tip
    with pytest.raises(FactError, match="no pull request '#77'"):
        releases_with.find_releases("#77", line.triton.path)
    with pytest.raises(FactError, match=r"no release '3\.7\.0'"):
        releases_with.find_releases("3.7.0", line.triton.path)


def test_what_was_taken_back_or_landed_again_without_a_word_is_known_by_its_changes(
    line: Line, table: Table
) -> None:
    old = {"lib/a.cpp": "one\ntwo\nthree\n"}
    fix = line.main("fix it (#42)", FIXED)
    line.tips["silent undo"] = undo = line.main("clean up (#43)", old)
    line.tips["silent landing"] = again = line.main("add a thing (#44)", FIXED)
    line.tips["said undo"] = said = line.main(f"Out with it\n\nThis reverts commit {again}.", old)
    line.tips["landed after it"] = last = line.main("once more (#46)", FIXED)
    picked = ("[3.0] fix it (#42) (#60)", FIXED)
    line.branch("pick-undone", picked, ("clean (#61)", old))
    line.pinned(table)
    found = line.standings(fix)
    assert found["silent undo"] == Standing("reverted", f"by {undo[:10]}")
    assert found["silent landing"] == Standing("cherry-picked", f"as {again[:10]}, by its changes")
    assert found["said undo"] == Standing("reverted", f"by {said[:10]}")
    assert found["landed after it"] == Standing("cherry-picked", f"as {last[:10]}, by its changes")
    assert found["pick-undone"].relation == "reverted"


def test_other_lines_with_its_title_after_a_revert_leave_it_open(line: Line, table: Table) -> None:
    fix = line.main("fix it (#42)", FIXED)
    undo = line.main('Revert "fix it (#42)" (#45)', {"lib/a.cpp": "one\ntwo\nthree\n"})
    line.tips["reworked"] = other = line.main("fix it (#47)", {"lib/a.cpp": "one\nII\nthree\n"})
    line.pinned(table)
    why = f"{other[:10]} has its title, after {undo[:10]} reverted it"
    assert line.standings(fix) == {"reworked": Standing("undecided", why, doubt=True)}


# The same change and its reverse, by lines.

pytestmark = pytest.mark.unit

OLD, NEW = {"a.cpp": "one\ntwo\nthree\n"}, {"a.cpp": "one\n2\nthree\n"}


def find(triton: Made, commit: str, *tips: str) -> tuple[frozenset[str], frozenset[str]]:
    with git_history.opened(triton.path) as repository:
        return releases_with._same_changes(repository, commit, tips)


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
