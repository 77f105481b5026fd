"""What was picked into release branches, in small repositories of git: searched where main is good."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.lab.bisect.simulated import Workshop
from tests.unit.lab.fake_subject import FakeSubject
from tests.unit.repositories import Made
from tritonsmith.compiler import tritons
from tritonsmith.core.errors import FactError
from tritonsmith.lab.bisect import command, history, report, session
from tritonsmith.lab.bisect.command import TritonBisect
from tritonsmith.lab.bisect.session import BisectQuestion
from tritonsmith.lab.bisect.stages import BisectResult, BisectStep
from tritonsmith.lab.journal import Observation, Verdict

pytestmark = pytest.mark.unit

HERE = "lib/here"  # the file that makes a commit bad


class ClonedWorkshop(Workshop):
    """Builds commits of a clone in no time."""

    def __init__(self, clone: Path) -> None:
        super().__init__()
        self.clone = clone


def in_tree(made: Made) -> FakeSubject[Observation]:
    """Bad where a commit, or the tag of a release, has the file."""

    def rule(label: str) -> Observation:
        name = f"v{label}" if re.fullmatch(r"\d+\.\d+\.\d+", label) else label.rpartition("git")[2]
        bad = HERE in made.git("ls-tree", "-r", "--name-only", name)
        return Observation(Verdict.BAD if bad else Verdict.GOOD)

    return FakeSubject(rule)


@dataclass(frozen=True)
class Branches:
    """A Triton with release/3.6.x (3.6.0) and release/3.7.x (3.7.0, 3.7.1), and what makes it bad."""

    made: Made
    commits: dict[str, str]

    def bisect(self, good: str, bad: str, nightlies: str = "") -> BisectResult:
        return command.run(self.begun(good, bad, nightlies), (), silent=True).answer

    def begun(self, good: str, bad: str, nightlies: str = "") -> TritonBisect:
        one, other = (tritons.parse_end(text, "--good", self.made.path) for text in (good, bad))
        begun = session.begin(BisectQuestion(good=good, bad=bad, when=("x",), nightlies=nightlies))
        builds = ClonedWorkshop(self.made.path)
        return TritonBisect(begun, in_tree(self.made), one, other, builds, tell=lambda _: None)


@pytest.fixture
def branches(
    make: Callable[[str], Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], Branches]:
    """Makes them, with the file from one commit on, and until another."""
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))

    def built(culprit: str, fix: str = "") -> Branches:
        made = make("triton")
        commits: dict[str, str] = {}

        def commit(name: str) -> None:
            content: dict[str, str | None] = {f"lib/{name}.cpp": "1"}
            content |= {HERE: "1"} if name == culprit else {HERE: None} if name == fix else {}
            commits[name] = made.commit(name, content)

        commit("start")
        commit("point 3.6")
        for line, later in (("3.6", "main 1"), ("3.7", "main 3")):
            made.git("checkout", "--quiet", "-b", f"release/{line}.x")
            for number in (0, 1) if line == "3.7" else (0,):
                commit(f"pick {line}.{number}")
                commit(f"version {line}.{number}")
                made.git("tag", f"v{line}.{number}")
            made.git("checkout", "--quiet", "main")
            commit(later)
            if line == "3.6":
                commit("main 2")
                commit("point 3.7")
        return Branches(made, commits)

    return built


@pytest.mark.slow
@pytest.mark.parametrize(
    ("good", "bad", "culprit", "last_good"),
    [
        ("3.6.0", "3.7.1", "main 2", "main 1"),
        ("3.6.0", "3.7.0", "pick 3.7.0", "point 3.7"),
        ("3.6.0", "3.7.1", "pick 3.7.1", "version 3.7.0"),
        ("3.7.0", "3.7.1", "pick 3.7.1", "version 3.7.0"),
        ("start", "3.7.0", "version 3.7.0", "pick 3.7.0"),
        ("version 3.6.0", "main 3", "point 3.7", "main 2"),
        ("main 1", "pick 3.7.1", "pick 3.7.0", "point 3.7"),
    ],
)
def test_the_culprit_is_found_on_main_or_among_the_picks(
    branches: Callable[[str], Branches], good: str, bad: str, culprit: str, last_good: str
) -> None:
    made = branches(culprit)
    answer = made.bisect(made.commits.get(good, good), made.commits.get(bad, bad))
    assert answer.commit
    assert (answer.commit.good, answer.commit.bad) == (made.commits[last_good], made.commits[culprit])
    assert answer.culprit
    assert answer.culprit.subject == culprit
    assert bool(answer.notes) == (bad[0] == "3" and not culprit.startswith("main"))


@pytest.mark.slow
def test_a_fix_that_only_the_older_branch_has_is_named(
    branches: Callable[[str, str], Branches], tmp_path: Path
) -> None:
    made = branches("start", "pick 3.6.0")
    answer = made.bisect("3.6.0", "3.7.0")
    fix, before = made.commits["pick 3.6.0"], made.commits["point 3.6"]
    assert answer.commit
    assert (answer.commit.fix, answer.commit.good, answer.commit.bad) == (True, fix, before)
    assert answer.culprit
    assert answer.culprit.subject == "pick 3.6.0"
    (note,) = answer.notes
    assert note.startswith(f"only release 3.6.0 has the fix: {before[:12]} (3.6.0 branched there)")
    begun = session.find()
    (first, *_, last) = report.lines(begun, answer)
    assert first == f"the fix that only the good end has: {fix[:12]}; bad before it: {before[:12]}"
    assert note in last
    log = tmp_path / "log"
    log.write_text("\n".join(report.git_log(begun)), encoding="utf-8")
    made.made.git("bisect", "replay", str(log))
    assert made.made.git("rev-parse", "refs/bisect/fixed", "HEAD^{commit}").split()[0] == fix


def test_a_fix_of_a_commit_on_another_branch_is_named(
    branches: Callable[[str, str], Branches],
) -> None:
    made = branches("start", "version 3.6.0")
    answer = made.bisect(made.commits["version 3.6.0"], made.commits["main 3"])
    assert answer.culprit
    assert answer.culprit.subject == "version 3.6.0"
    assert answer.step.fix


def test_a_fix_is_not_searched_where_the_clone_lacks_its_branch(
    branches: Callable[[str, str], Branches],
) -> None:
    made = branches("start", "pick 3.6.0")
    point = made.commits["point 3.6"]
    made.made.git("branch", "--force", "release/3.6.x", point)
    made.made.git("tag", "--delete", "v3.6.0")
    known = {point: Observation(Verdict.BAD)}
    found = history.commit_range("3.6.0", "3.7.0", made.made.path, known)
    assert (found.first, found.last, found.fix) == (point, made.commits["point 3.7"], False)


def test_a_fix_among_commits_that_cannot_be_tested_is_not_decided() -> None:
    step = BisectStep("c" * 40, "a" * 40, ("b" * 40, "c" * 40), fix=True)
    said = report.headline(BisectResult(None, step))
    assert said == f"undecided: the fix is one of {'b' * 12}, {'c' * 12}; all but {'c' * 12} were skipped"


def test_a_release_that_the_clone_lacks_is_an_error(branches: Callable[[str], Branches]) -> None:
    made = branches("pick 3.7.1")
    made.made.git("tag", "--delete", "v3.7.0")
    with pytest.raises(FactError, match=r"neither a tag nor a branch of release 3\.7\.0"):
        history.commit_range("3.7.0", "3.7.1", made.made.path, {})
    made.made.git("tag", "--delete", "v3.7.1")
    point, tip = made.commits["point 3.7"], made.commits["version 3.7.1"]
    known = {point: Observation(Verdict.GOOD)}
    found = history.commit_range("3.6.0", "3.7.1", made.made.path, known)
    assert (found.first, found.last, found.picked) == (point, tip, True)  # the end of its branch


@pytest.mark.slow
def test_nightlies_are_tested_in_the_order_of_history(
    branches: Callable[[str], Branches], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = branches("main 2")
    monkeypatch.setattr(history, "install_nightly", lambda _: "")
    names = {name: f"3.6.0+git{made.commits[name][:8]}" for name in ("main 1", "point 3.7", "main 3")}
    links = "".join(f'<a href="triton-{name}-py3-none-any.whl">x</a>' for name in names.values())
    page = tmp_path / "triton" / "index.html"
    page.parent.mkdir(exist_ok=True)
    page.write_text(f"<!DOCTYPE html>{links}<a href='torch-2.0-py3-none-any.whl'>no</a>")
    answer = made.bisect("3.6.0", "3.7.0", page.as_uri())
    assert answer.nightlies == (names["main 1"], names["point 3.7"])  # `main 3` is later than 3.7's branch
    assert answer.nightly
    assert (answer.nightly.good, answer.nightly.bad) == (names["main 1"], names["point 3.7"])
    assert answer.culprit
    assert answer.culprit.subject == "main 2"
    assert report.as_json(session.find(), answer)["nightly"]["suspects"] == [names["point 3.7"]]


def test_candidates_are_listed_with_the_subjects_of_their_commits(
    branches: Callable[[str], Branches],
) -> None:
    side = branches("main 2")
    rows = list(side.begun(side.commits["point 3.6"], side.commits["main 3"]).costs())
    assert {row.triton: row.subject for row in rows} == {
        side.commits[name]: name for name in ("main 1", "main 2", "point 3.7")
    }
    assert "main 2" in {cell.plain for row in report.costs(rows).rows for cell in row}
