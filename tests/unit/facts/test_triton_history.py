"""The commits of small repositories that git makes: what each changed, its pin, and which share libraries."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.unit.repositories import Made
from tritonsmith.core.errors import FactError
from tritonsmith.facts import triton_history
from tritonsmith.facts.triton_history import TritonCommit

pytestmark = pytest.mark.unit

OLD, NEW = "a" * 40, "b" * 40


def started(make: Callable[[str], Made]) -> tuple[Made, str]:
    """A Triton with sources of every kind, and its first commit."""
    made = make("triton")
    made.commit("before")
    files = {
        "cmake/llvm-hash.txt": OLD + "\n",
        "lib/A.cpp": "1",
        "python/triton/jit.py": "1",
        "README.md": "1",
    }
    return made, made.commit("[BACKEND] start (#1)", files)


def read(made: Made, good: str, bad: str = "HEAD") -> tuple[TritonCommit, ...]:
    return triton_history.read(made.path, good, bad)


def test_a_commit_tells_what_it_may_change_and_whether_libraries_must_be_built(
    make: Callable[[str], Made],
) -> None:
    made, first = started(make)
    changes: dict[str, dict[str, str | None]] = {
        "common": {"lib/A.cpp": "2", "include/B.h": "1"},
        "nvidia": {"third_party/nvidia/lib/C.cpp": "1"},
        "amd python": {"third_party/amd/backend/compiler.py": "1"},
        "hip library": {"python/triton/language/extra/hip/libdevice.py": "1"},
        "python": {"python/triton/jit.py": "2"},
        "tests": {"test/x.mlir": "1", "third_party/amd/test/CMakeLists.txt": "1", "README.md": "2"},
        "profiler": {"third_party/proton/csrc/p.cpp": "1"},
        "build": {"setup.py": "1"},
    }
    for subject, files in changes.items():
        made.commit(subject, files)
    told = {commit.subject: commit for commit in read(made, first)[1:]}
    assert {
        subject: (set(commit.areas), commit.sources, commit.headers) for subject, commit in told.items()
    } == {
        "common": ({"common"}, 2, 1),
        "nvidia": ({"nvidia"}, 1, 0),
        "amd python": ({"amd"}, 0, 0),
        "hip library": ({"amd"}, 0, 0),
        "python": ({"common"}, 0, 0),
        "tests": (set(), 0, 0),
        "profiler": (set(), 1, 0),
        "build": ({"common"}, 1, 0),
    }
    assert told["common"].concerns("amd")
    assert not told["nvidia"].concerns("amd")


def test_equal_native_trees_have_equal_keys_however_they_came_about(make: Callable[[str], Made]) -> None:
    made, first = started(make)
    made.commit("changed", {"lib/A.cpp": "2"})
    made.commit("python only", {"python/triton/jit.py": "2"})
    made.commit('Revert "changed" (#1) (#4)', {"lib/A.cpp": "1"})
    made.commit("moved", {"lib/A.cpp": None, "lib/B.cpp": "1"})
    start, changed, python, reverted, moved = (commit.native for commit in read(made, first))
    assert changed == python
    assert reverted == start
    assert len({start, changed, moved}) == 3
    later = read(made, "HEAD~2")  # the key does not depend on where reading begins
    assert [commit.native for commit in later] == [python, reverted, moved]


def test_the_pin_is_a_hash_in_whichever_file_has_it(make: Callable[[str], Made]) -> None:
    made, first = started(make)
    made.commit("bump", {"cmake/llvm-hash.txt": NEW + "\n"})
    made.commit("space only", {"cmake/llvm-hash.txt": NEW})
    info = json.dumps({"llvm_hash": NEW, "build_number": 1})
    made.commit("moved to JSON", {"cmake/llvm-hash.txt": None, "cmake/llvm-info.json": info})
    made.commit("back", {"cmake/llvm-info.json": json.dumps({"llvm_hash": OLD})})
    commits = read(made, first)
    assert [commit.pin for commit in commits] == [OLD, NEW, NEW, NEW, OLD]
    assert [commit.bump for commit in commits] == [False, True, False, False, True]


def test_a_subject_names_pull_requests_and_says_that_it_undoes(make: Callable[[str], Made]) -> None:
    made, first = started(make)
    made.commit('Revert "[BACKEND] faster (#12)" (#15)')
    made.commit("[RELAND] faster, after #12 and #15 (#20)")
    made.commit('[AMD][NFC] Reapply "sooner" (#22)')
    made.commit("[AMD] something else (#21)")
    _, revert, reland, again, other = read(made, first)
    assert (revert.pull, revert.undoes, revert.named) == (15, True, (12,))
    assert (reland.pull, reland.undoes, reland.named) == (20, True, (12, 15))
    assert (again.pull, again.undoes) == (22, True)
    assert (other.pull, other.undoes, other.named) == (21, False, ())


def test_a_merge_is_one_commit_with_all_that_came_by_it(make: Callable[[str], Made]) -> None:
    made, first = started(make)
    made.git("checkout", "--quiet", "-b", "side")
    side = made.commit("on the side", {"lib/S.cpp": "1"})
    made.commit("again", {"lib/T.cpp": "1"})
    made.git("checkout", "--quiet", "main")
    made.commit("on main", {"lib/A.cpp": "2"})
    made.git("merge", "--quiet", "--no-edit", "--no-ff", "side")
    commits = read(made, first)
    assert [commit.subject for commit in commits[1:]] == ["on main", "Merge branch 'side'"]
    assert (len(commits[-1].parents), commits[-1].sources) == (2, 2)
    from_side = read(made, side)  # main came to it by the merge
    assert [commit.native for commit in from_side[1:]] == [commit.native for commit in commits[1:]]


def test_a_release_branch_begins_at_its_branch_point(make: Callable[[str], Made]) -> None:
    made, first = started(make)
    point = made.commit("last common one", {"lib/A.cpp": "2"})
    made.git("checkout", "--quiet", "-b", "release")
    made.commit("picked", {"lib/A.cpp": "3"})
    made.git("checkout", "--quiet", "main")
    made.commit("on", {"lib/A.cpp": "4"})
    assert triton_history.branch_point(made.path, "release", "main") == point
    with pytest.raises(FactError, match="release is not an ancestor of main"):
        read(made, "release", "main")
    with pytest.raises(FactError, match="no commit, tag or branch named 'nowhere'"):
        read(made, first, "nowhere")


def test_of_one_commit_there_is_one(make: Callable[[str], Made]) -> None:
    made, first = started(make)
    (only,) = read(made, first, first)
    assert (only.commit, only.pin, only.bump) == (first, OLD, False)
