"""What a release branch has that main's branch point has not, in a small repository of git."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.repositories import Made, Maker
from tritonsmith.core.errors import FactError
from tritonsmith.doctor.pins import releases_with, report

pytestmark = pytest.mark.unit


@pytest.fixture
def triton(make: Maker) -> tuple[Made, dict[str, str]]:
    """A Triton with release/3.8.x: a pick that names its commit, others that do not, and own commits."""
    made, commits = make("triton"), {}
    commits["point"] = made.commit("start (#1)")
    made.git("branch", "release/3.8.x")
    for number, text in ((2, "fix"), (3, "speed"), (4, "clean"), (5, "old idea")):
        commits[text] = made.commit(f"{text} (#{number})", {f"lib/{text}.cpp": text})
    commits["revert"] = made.commit('Revert "old idea (#5)" (#6)', {"lib/old idea.cpp": None})
    made.git("checkout", "--quiet", "release/3.8.x")
    made.git("cherry-pick", "-x", commits["fix"])
    made.git("cherry-pick", commits["speed"])
    made.commit("[release/3.8] clean, for this branch (#4) (#9)", {"lib/clean.cpp": "otherwise"})
    made.commit('[release/3.8] Revert "clean (#4)" (#10)', {"lib/clean.cpp": None})
    made.commit("3.8.0", {"setup.py": "3.8.0"})
    made.git("tag", "v3.8.0")
    made.git("checkout", "--quiet", "main")
    return made, commits


@pytest.mark.parametrize("name", ["release/3.8.x", "3.8.x", "v3.8.0"])
def test_each_commit_has_its_original_or_none(triton: tuple[Made, dict[str, str]], name: str) -> None:
    made, commits = triton
    found = releases_with.find_picks(name, made.path)
    assert (found.main, found.point) == ("main", commits["point"])
    assert [(one.subject, one.original, one.how) for one in found.picks] == [
        ("fix (#2)", commits["fix"], "names it"),
        ("speed (#3)", commits["speed"], "same change"),
        ("[release/3.8] clean, for this branch (#4) (#9)", commits["clean"], "same pull request"),
        ('[release/3.8] Revert "clean (#4)" (#10)', "", ""),
        ("3.8.0", "", ""),
    ]
    assert "5 commits since, 3 of them known on main, 2 not" in list(report.picked(found))
    assert json.loads(json.dumps(report.picks_json(found)))["picks"][-1]["original"] is None


def test_without_the_branch_or_main_it_is_an_error(
    triton: tuple[Made, dict[str, str]], tmp_path: Path
) -> None:
    made, _ = triton
    with pytest.raises(FactError, match=r"no branch, tag or commit '3\.7\.x'"):
        releases_with.find_picks("3.7.x", made.path)
    made.git("branch", "-m", "main", "trunk")
    with pytest.raises(FactError, match="this clone has no main"):
        releases_with.find_picks("3.8.x", made.path)
    with pytest.raises(FactError, match="not a git repository"):
        releases_with.find_picks("3.8.x", tmp_path)
