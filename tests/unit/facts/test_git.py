from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import require
from tests.unit.facts import fakes
from tritonsmith.facts import git
from tritonsmith.facts.git import GitHead


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    require("git")
    root = tmp_path / "repository"
    root.mkdir()
    (root / "file").write_text("one\n")
    fakes.commit(root)
    return root


def test_where_it_stands(repository: Path) -> None:
    seen = git.head(repository)
    assert (len(seen.commit), seen.committed) == (40, "2025-07-01T12:00:00+00:00")
    assert (seen.dirty, seen.problem) == (False, "")


def test_dirt_is_a_changed_or_staged_file_and_no_other(repository: Path) -> None:
    (repository / "untracked").touch()
    (repository / "file").touch()  # the same content
    assert not git.head(repository).dirty
    (repository / "file").write_text("two\n")
    assert git.head(repository).dirty
    assert not git.head(repository, dirt=False).dirty
    subprocess.run(("git", "-C", repository, "add", "file"), check=True)
    assert git.head(repository).dirty


def test_it_writes_nothing(repository: Path) -> None:
    before = (repository / ".git" / "index").stat().st_mtime_ns
    (repository / "file").touch()
    git.head(repository)
    assert (repository / ".git" / "index").stat().st_mtime_ns == before


def test_a_folder_in_a_repository_is_none(repository: Path) -> None:
    (repository / "below").mkdir()
    assert git.head(repository / "below") == GitHead()
    assert git.head(repository / "gone") == GitHead()


def test_variables_of_a_hook_do_not_lead_elsewhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "x").touch()
    fakes.commit(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    seen = git.head(repository)
    assert not seen.dirty
    monkeypatch.undo()
    assert seen.commit == git.head(repository).commit


def test_what_git_says_where_it_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("git")
    subprocess.run(("git", "init", "--quiet", tmp_path), check=True)
    assert git.head(tmp_path).problem.startswith("fatal: ")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git.head(tmp_path).problem == "no git on PATH"
