"""Repositories whose own configuration names programs: each attack is shown to work on git as it is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import require
from tests.unit.facts import fakes
from tritonsmith.core.errors import FactError
from tritonsmith.facts import git, git_history, git_reader
from tritonsmith.lab.study import git_sources

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
        git_sources.History(f"{partial}@HEAD").content("3.5.0", "file")
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
    change = git_reader.environ(hostile)
    assert "GIT_CONFIG_KEY_0" not in change
    assert change["GIT_CONFIG_KEY_1"] == "core.fsmonitor"
    assert "GIT_ALLOW_PROTOCOL" not in change
