"""The first bad commit of a clone, by real builds: what is built, what is shared, what stays untouched."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from tests.integration.harness import LLVM, Smith, capture, commit, git, plant, ready, require_llvm
from tritonsmith.build.worktree_add import own_clone
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.facts import triton_history
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab import experiment
from tritonsmith.lab.bisect import program_tests
from tritonsmith.lab.bisect.candidates import (
    BisectSubject,
    Candidate,
    CandidateTests,
    CommitBuilds,
    one_by_one,
)
from tritonsmith.lab.bisect.program_tests import CheckoutTests, TestFile
from tritonsmith.lab.bisect.search import first_bad
from tritonsmith.lab.bisect.stages import searched
from tritonsmith.lab.experiment import Search
from tritonsmith.lab.journal import Journal, Observation, Verdict

A = TypeVar("A")
AMD = "third_party/amd/amd.c"
NVIDIA = "third_party/nvidia/nvidia.c"
INIT = "python/triton/__init__.py"
OPS = "include/triton/Dialect/Triton/IR/TritonOps.td"
LIT = "test/twice.mlir"
PIN = "f" * 40


class Searched:
    """A search over commits, with what it has tested so far.

    Args:
        commits: the range.
        builds: make them ready.
        tests: of what is built.
    """

    def __init__(self, commits: Sequence[TritonCommit], builds: CommitBuilds, tests: CandidateTests) -> None:
        self.commits, self.span = commits, searched(commits, builds)
        self._subject, self._journal = BisectSubject(tests, builds), Journal()

    def end(self) -> int:
        """Search to the end: the culprit's number."""
        (culprit,) = self._run(first_bad(self.span)).culprits
        return culprit

    def test(self, *indices: int) -> list[Observation]:
        """Test these."""
        self._run(self.span.ask(indices))
        return [self.span.observations[self.commits[index].commit] for index in indices]

    @property
    def outcomes(self) -> dict[int, Observation]:
        """Number of a commit to its outcome."""
        numbers = {commit.commit: index for index, commit in enumerate(self.commits)}
        return {numbers[name]: seen for name, seen in self.span.observations.items()}

    def _run(self, search: Search[Candidate, A]) -> A:
        return experiment.run(search, self._subject.test, self._journal, lambda _name, _seen: None)


@dataclass(frozen=True)
class History:
    """A clone of mini-Triton with commits of every kind.

    Attributes:
        clone: the user's.
        hashes: what was done to the commit.
        builds: that make its commits ready.
    """

    clone: Path
    hashes: dict[str, str]
    builds: CommitBuilds

    def by_test(self, test: TestFile, scratch: Path) -> Searched:
        """A search by a test, from `docs again` to `lit back`."""
        builds = replace(self.builds, tests=test.needed, programs=test.lit)
        commits = triton_history.read(self.clone, self.hashes["docs again"], self.hashes["lit back"])
        good, bad = (partial(builds.make, commits[at]) for at in (0, -1))
        return Searched(commits, builds, CheckoutTests(test, scratch, good, bad).outcomes)

    def searched(self, shows: str, good: str, bad: str = "docs again") -> Searched:
        """A search for the commit from which on a Triton prints this, with both ends tested."""

        def test(triton: Triton) -> Observation:
            told = printed(triton)
            return Observation(Verdict.BAD if shows in told else Verdict.GOOD, told)

        commits = triton_history.read(self.clone, self.hashes[good], self.hashes[bad])
        search, last = Searched(commits, self.builds, one_by_one(test)), len(commits) - 1
        assert [one.verdict for one in search.test(0, last)] == [Verdict.GOOD, Verdict.BAD]
        return search


def printed(triton: Triton) -> str:
    """Its version, and what its libraries say of themselves."""
    return capture(
        triton.python, "-c", "import triton; print(triton.__version__, triton.built_in())", cwd=Path("/")
    )


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    require_llvm()
    root = tmp_path_factory.mktemp("bisect")
    clone = plant("mini_triton", root / "my clone")
    hashes: dict[str, str] = {}

    def change(what: str, file: str, old: str, new: str) -> None:
        path = clone / file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        assert old in text
        path.write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")
        hashes[what] = commit(clone, what)

    change("docs", "README.md", "", "More.\n")
    change("nvidia", NVIDIA, "", "// more\n")
    change("python culprit", INIT, '"3.6.0"', '"3.6.1"')
    change("broken", AMD, "", "not C\n")
    change("broken still", NVIDIA, "", "// again\n")
    change("mended", AMD, "not C\n", "")
    change("culprit", AMD, "gfx942", "gfx950")
    change("python", INIT, "", "# more\n")
    change("docs again", "README.md", "", "Even more.\n")
    change("lit fails otherwise", LIT, "CHECK-NEXT: %{{.*}} = tt.twice", "CHECK-NEXT: %{{.*}} = tt.thrice")
    change("lit mended", LIT, "thrice", "twice")
    change("lit culprit", OPS, 'Op<Triton_Dialect, "twice">', 'Op<Triton_Dialect, "double">')
    test = (clone / LIT).read_text(encoding="utf-8")
    (clone / LIT).unlink()
    hashes["lit gone"] = commit(clone, "lit gone")
    change("lit back", LIT, "", test)
    smith = Smith(root, cwd=clone)
    file = root / "mine.toml"
    file.write_text(f'[llvm]\ndir = "{LLVM}"\n[triton]\nbuild-type = "Debug"\n', encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in smith.environ.items():
            patch.setenv(name, value)
        builds = CommitBuilds(clone, settings.load(str(file), only_shown=True), Workspace(smith.home))
        ready(smith, tmp_path_factory, builds.env(PIN).name)
        yield History(clone, hashes, builds)


@pytest.fixture(scope="module")
def found(history: History) -> Searched:
    search = history.searched("gfx950", "docs")
    search.end()
    return search


def test_the_commit_that_changed_the_libraries_is_found(history: History, found: Searched) -> None:
    culprit = found.end()
    assert found.commits[culprit].commit == history.hashes["culprit"]
    assert "gfx950" in found.outcomes[culprit].figures


def test_each_native_tree_is_built_once(history: History, found: Searched) -> None:
    built = list((history.builds.space.root / "bisect" / "libraries").iterdir())
    tested = {found.commits[index].native for index in (0, len(found.commits) - 1, *found.outcomes)}
    assert len(built) <= len(tested)
    assert all(json.loads((folder / "built.json").read_text(encoding="utf-8"))["seconds"] for folder in built)


def test_python_alone_is_found_over_one_library(history: History, found: Searched) -> None:
    assert found
    before = set((history.builds.space.root / "bisect" / "libraries").iterdir())
    search = history.searched("3.6.1", "docs", "python culprit")
    culprit = search.end()
    assert search.commits[culprit].commit == history.hashes["python culprit"]
    good, bad = (history.builds.make(search.commits[index]) for index in (culprit - 1, culprit))
    assert printed(good).startswith("3.6.0")
    assert printed(bad).startswith("3.6.1")
    library = "source/python/triton/_C/libtriton.so"
    assert len({(Path(one.python).parents[1] / library).resolve() for one in (good, bad)}) == 1
    assert len(set((history.builds.space.root / "bisect" / "libraries").iterdir()) - before) <= 1


def test_what_does_not_compile_is_a_skip_with_the_compilers_words(history: History) -> None:
    commits = triton_history.read(history.clone, history.hashes["docs"], history.hashes["docs again"])
    numbers = {commit.commit: index for index, commit in enumerate(commits)}
    search = Searched(commits, history.builds, one_by_one(lambda _: Observation(Verdict.GOOD)))
    wanted = [numbers[history.hashes[name]] for name in ("broken", "broken still", "mended")]
    broken, still, mended = search.test(*wanted)
    for outcome in (broken, still):
        assert outcome.verdict is Verdict.SKIP
        assert "not C" in outcome.why or "error" in outcome.why
    assert mended.verdict is Verdict.GOOD


def test_a_build_that_was_killed_before_its_receipt_is_made_again(history: History, found: Searched) -> None:
    culprit = found.end()
    commit = found.commits[culprit]
    before = printed(history.builds.make(commit))
    folder = history.builds.libraries(commit)
    (folder / "built.json").unlink()
    (folder / "libtriton.so").write_bytes(b"half of it")
    assert history.builds.built(commit) is None
    assert printed(history.builds.make(commit)) == before


def test_the_clone_of_the_user_stays_as_it_was(history: History, found: Searched) -> None:
    assert found
    assert git(history.clone, "status", "--porcelain", "--ignored") == ""
    assert git(history.clone, "worktree", "list").count("\n") == 0
    assert git(history.clone, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert git(history.clone, "rev-parse", "HEAD") == history.hashes["lit back"]


@pytest.mark.slow
def test_the_commit_that_breaks_a_lit_test_is_found_with_each_commits_own_test(
    history: History, tmp_path: Path
) -> None:
    test = program_tests.parse(LIT, history.clone, history.hashes["lit back"])
    search = history.by_test(test, tmp_path)
    outcomes = search.test(*range(len(search.commits)))
    assert [one.verdict for one in outcomes] == [
        Verdict.GOOD, Verdict.SKIP, Verdict.GOOD, Verdict.BAD, Verdict.SKIP, Verdict.BAD,
    ]  # fmt: skip
    assert "custom op 'tt.twice' is unknown" in outcomes[3].figures
    assert (outcomes[1].why, outcomes[4].why) == ("it fails in another way", f"this commit has no {LIT}")
    assert "tt.thrice" in outcomes[1].figures


def test_a_lit_test_outside_the_clone_is_the_same_for_all_commits(history: History, tmp_path: Path) -> None:
    mine = tmp_path / "mine.mlir"
    mine.write_text((history.clone / LIT).read_text(encoding="utf-8"), encoding="utf-8")
    test = program_tests.parse(str(mine), history.clone, history.hashes["lit back"])

    def tested(*indices: int) -> list[Observation]:
        return history.by_test(test, tmp_path).test(*indices)

    assert [one.verdict for one in tested(1, 4)] == [Verdict.GOOD, Verdict.BAD]
    mine.write_text("// XFAIL: *\n" + mine.read_text(encoding="utf-8"), encoding="utf-8")
    assert [one.figures[:5] for one in tested(1, 4)] == ["XPASS", "XFAIL"]
    mine.write_text("// REQUIRES: a-gpu\n" + mine.read_text(encoding="utf-8"), encoding="utf-8")
    (outcome,) = tested(1)
    assert (outcome.verdict, outcome.figures) == (Verdict.SKIP, "UNSUPPORTED")


@pytest.mark.slow
def test_a_change_in_python_is_found_by_pytest_which_the_tool_installs(
    history: History, tmp_path: Path
) -> None:
    mine = tmp_path / "test_mine.py"
    mine.write_text("import triton\ndef test_it(): assert triton.__version__ == '3.6.0'\n", encoding="utf-8")
    commits = triton_history.read(history.clone, history.hashes["docs"], history.hashes["python culprit"])
    test = program_tests.parse(str(mine), history.clone, commits[-1].commit)
    good, bad = (partial(history.builds.make, commits[at]) for at in (0, -1))
    tests = CheckoutTests(test, tmp_path, good, bad)
    search = Searched(commits, history.builds, tests.outcomes)
    outcomes = search.test(*range(len(commits)))
    assert [one.verdict for one in outcomes] == [Verdict.GOOD, Verdict.GOOD, Verdict.BAD]
    assert outcomes[0].figures.startswith("exit code 0: 1 passed")


def test_a_url_is_cloned_without_the_contents_of_files_which_are_fetched_as_needed(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")  # no network
    git(history.clone, "config", "uploadpack.allowFilter", "true")
    git(history.clone, "config", "uploadpack.allowAnySHA1InWant", "true")
    url, space = history.clone.as_uri(), history.builds.space
    own = own_clone(url, space)
    space.run(own.fetch, "bisect")
    builds = replace(history.builds, clone=own.repository, url=url)
    ends = [history.hashes[name] for name in ("docs", "python culprit")]
    commits = triton_history.read(own.repository, *ends)
    assert [printed(builds.make(commits[index]))[:5] for index in (0, -1)] == ["3.6.0", "3.6.1"]
    missing = git(own.repository, "rev-list", "--objects", "--all", "--missing=print").count("?")
    assert missing > 5
