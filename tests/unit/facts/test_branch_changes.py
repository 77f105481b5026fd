"""What differs from the branch that a checkout will be merged into."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import require
from tests.unit.facts import fakes
from tritonsmith.core.errors import FactError
from tritonsmith.facts import branch_changes
from tritonsmith.facts.branch_changes import BranchChanges


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """`main`, and a branch of one commit, on which one file is changed and one new."""
    require("git")
    root = tmp_path / "repository"
    root.mkdir()
    for name in ("kept", "gone", "changed", "committed"):
        (root / name).write_text("one\n", encoding="utf-8")
    fakes.commit(root)
    subprocess.run(("git", "-C", root, "branch", "--force", "main"), check=True)
    subprocess.run(("git", "-C", root, "checkout", "--quiet", "-b", "topic"), check=True)
    (root / "committed").write_text("two\n", encoding="utf-8")
    fakes.commit(root)
    (root / "changed").write_text("two\n", encoding="utf-8")
    (root / "new").touch()
    (root / "gone").unlink()
    return root


def test_commits_of_the_branch_and_what_is_not_committed(repository: Path) -> None:
    files = tuple(repository / name for name in ("changed", "committed", "new"))
    assert branch_changes.read(repository) == BranchChanges("main", files, (repository / "gone",))
    assert branch_changes.read(repository, "HEAD").files == (repository / "changed", repository / "new")


def test_a_checkout_may_be_a_folder_of_a_repository(repository: Path) -> None:
    inner = repository / "inner"
    inner.mkdir()
    (inner / "changed").touch()
    fakes.commit(repository)
    (inner / "changed").write_text("two\n", encoding="utf-8")
    (inner / "new").touch()
    assert branch_changes.read(inner, "HEAD").files == (inner / "changed", inner / "new")


@pytest.mark.parametrize("base", ["nowhere", "--upload-pack=touch x"])
def test_a_branch_that_is_none_is_refused(repository: Path, base: str) -> None:
    with pytest.raises(FactError, match="nothing to compare with"):
        branch_changes.read(repository, base)
