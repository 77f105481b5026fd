"""Repositories whose own configuration names programs: each attack is shown to work on git as it is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import require
from tests.unit.facts import fakes
from tritonsmith.core.errors import FactError
from tritonsmith.facts import git, git_history
from tritonsmith.facts.git import BranchChanges, GitHead
from tritonsmith.lab.compare import study

Arm = Callable[[Path, str], None]


def config(root: Path, **values: str) -> None:
    for key, value in values.items():
        subprocess.run(("git", "-C", root, "config", key.replace("__", "."), value), check=True)


def script(folder: Path, name: str, canary: Path, then: str = "cat") -> str:
    """A program that leaves the canary."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch '{canary}'\n{then}\n")
    path.chmod(0o755)
    return str(path)


def touch_file(root: Path) -> None:
    """The same size, another time stamp: git has to compare the content, through its filters."""
    (root / "file").write_text("two\n")


def monitor(root: Path, program: str) -> None:
    config(root, core__fsmonitor=program)


def clean_filter(root: Path, program: str) -> None:
    config(root, **{"filter__x.y__clean": program, "filter__x.y__required": "true"})
    (root / ".git" / "info" / "attributes").write_text("* filter=x.y\n")


def process_filter(root: Path, program: str) -> None:
    (root / ".git" / "more").write_text(f'[filter "X y"]\n\tprocess = {program}\n')
    config(root, include__path="more")
    (root / ".gitattributes").write_text('* filter="X y"\n')
    (root / ".git" / "info" / "attributes").write_text('"file" filter=x\n')
    config(root, filter__x__process=program)


def filter_with_equals(root: Path, program: str) -> None:
    config(root, **{"filter__a=b__clean": program})
    (root / ".git" / "info" / "attributes").write_text("* filter=a=b\n")


def per_worktree(root: Path, program: str) -> None:
    config(root, extensions__worktreeConfig="true")
    (root / ".git" / "config.worktree").write_text(f"[core]\n\tfsmonitor = {program}\n")


def textconv(root: Path, program: str) -> None:
    config(root, diff__x__textconv=program)
    (root / ".git" / "info" / "attributes").write_text("* diff=x\n")


def external(root: Path, program: str) -> None:
    config(root, diff__external=program)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    require("git")
    root = tmp_path / "hostile"
    root.mkdir()
    (root / "file").write_text("one\n")
    fakes.commit(root)
    return root


@pytest.mark.parametrize(
    "arm", [monitor, clean_filter, process_filter, filter_with_equals, per_worktree, textconv, external]
)
def test_a_look_starts_nothing_that_the_repository_names(
    hostile: Path, tmp_path: Path, canary: Path, arm: Arm
) -> None:
    arm(hostile, script(tmp_path, "program", canary))
    touch_file(hostile)
    seen = git.head(hostile)
    git.changes(hostile)
    git.divergence(hostile)
    git.has_object(hostile, "0000")
    assert not canary.exists()
    assert seen.dirty or "which filters git would start" in seen.problem
    command = "diff" if arm in (textconv, external) else "status"
    subprocess.run(("git", "-C", hostile, command), capture_output=True, check=False)
    assert canary.exists(), "the attack itself does not work"


def test_a_file_that_did_not_change_is_clean_without_its_filter(hostile: Path) -> None:
    clean_filter(hostile, "false")
    (hostile / "file").write_text("one\n")
    assert git.head(hostile) == git.head(hostile, dirt=False)


@pytest.fixture
def partial(hostile: Path, tmp_path: Path) -> Path:
    """A partial clone that lacks the content of every file."""
    config(hostile, uploadpack__allowFilter="true", uploadpack__allowAnySHA1InWant="true")
    clone = tmp_path / "partial"
    argv = ("git", "clone", "-q", "--no-checkout", "--filter=blob:none", hostile.as_uri(), clone)
    subprocess.run(argv, check=True)
    return clone


def read_by_library(clone: Path) -> str | None:
    with git_history.opened(clone) as repository:
        return git_history.text_at(repository, "HEAD", "file")


def test_a_partial_clone_may_fetch(partial: Path) -> None:
    assert read_by_library(partial) == "one\n"


@pytest.mark.parametrize("how", ["uploadpack", "ssh", "ext", "vcs", "elsewhere"])
def test_a_partial_clone_that_says_how_to_fetch_may_not(
    partial: Path, tmp_path: Path, canary: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = script(tmp_path / "bin", "git-remote-evil", canary, "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    if how == "uploadpack":
        config(partial, remote__origin__uploadpack=program)
    elif how == "ssh":
        config(partial, core__sshCommand=program, remote__origin__url="ssh://h/r")
    elif how == "ext":
        config(partial, protocol__ext__allow="always", remote__origin__url=f"ext::{program}")
    elif how == "vcs":
        config(partial, remote__origin__vcs="evil")
    else:
        config(partial, **{f"url__ext::{program} __insteadOf": "file:", "protocol__allow": "always"})
    with pytest.raises(FactError, match="missing in the clone, and could not be fetched"):
        read_by_library(partial)
    with pytest.raises(FactError):
        study.History(f"{partial}@HEAD").content("3.5.0", "file")
    touch_file(partial)
    git.head(partial)
    git.changes(partial)
    assert not canary.exists()
    subprocess.run(("git", "-C", partial, "show", "HEAD:file"), capture_output=True, check=False)
    assert canary.exists(), "the attack itself does not work"


def test_what_the_user_gives_git_by_the_environment_stays(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
    change = git.environ(hostile)
    assert "GIT_CONFIG_KEY_0" not in change
    assert change["GIT_CONFIG_KEY_1"] == "core.fsmonitor"
    assert "GIT_ALLOW_PROTOCOL" not in change


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


# What differs from the branch that a checkout will be merged into.


@pytest.fixture
def branch_repository(tmp_path: Path) -> Path:
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


def test_commits_of_the_branch_and_what_is_not_committed(branch_repository: Path) -> None:
    files = tuple(branch_repository / name for name in ("changed", "committed", "new"))
    assert git.branch_changes(branch_repository) == BranchChanges(
        "main", files, (branch_repository / "gone",)
    )
    assert git.branch_changes(branch_repository, "HEAD").files == (
        branch_repository / "changed",
        branch_repository / "new",
    )


def test_a_checkout_may_be_a_folder_of_a_repository(branch_repository: Path) -> None:
    inner = branch_repository / "inner"
    inner.mkdir()
    (inner / "changed").touch()
    fakes.commit(branch_repository)
    (inner / "changed").write_text("two\n", encoding="utf-8")
    (inner / "new").touch()
    assert git.branch_changes(inner, "HEAD").files == (inner / "changed", inner / "new")


@pytest.mark.parametrize("base", ["nowhere", "--upload-pack=touch x"])
def test_a_branch_that_is_none_is_refused(branch_repository: Path, base: str) -> None:
    with pytest.raises(FactError, match="nothing to compare with"):
        git.branch_changes(branch_repository, base)
