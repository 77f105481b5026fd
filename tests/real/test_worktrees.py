"""Worktrees of a real clone: what is in them of nobody else's is named, and stays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.harness import Smith, commit, git
from tests.support import REAL_SOURCE

from .regenerate_checkouts import COMMITS, History

VERSION = "2024-08-29"


@pytest.fixture
def smith(history: History, tmp_path: Path) -> Smith:
    """Somebody in a clone of their own of upstream, checked out at an old commit."""
    if not history.has(COMMITS[VERSION]):
        pytest.skip(f"{os.environ[REAL_SOURCE]} lacks {COMMITS[VERSION][:10]}, the commit of {VERSION}")
    clone = tmp_path / "triton"
    source = str(Path(os.environ[REAL_SOURCE]).expanduser().absolute())
    git(tmp_path, "clone", "--quiet", "--shared", "--no-checkout", source, str(clone))
    git(clone, "checkout", "--quiet", "-B", "mine", COMMITS[VERSION])
    return Smith(tmp_path, cwd=clone)


def modified(tree: Path) -> str:
    (tree / "bin" / "triton-opt.cpp").write_text("// mine\n", encoding="utf-8")
    return "bin/triton-opt.cpp"


def untracked(tree: Path) -> str:
    (tree / "test" / "Triton" / "mine.mlir").touch()
    return "test/Triton/mine.mlir"


def unpushed(tree: Path) -> str:
    return commit(tree, "My pass")[:7]


@pytest.mark.parametrize("change", [modified, untracked, unpushed])
def test_work_that_exists_nowhere_else_is_named_and_stays(
    smith: Smith, change: Callable[[Path], str]
) -> None:
    before = git(smith.cwd, "for-each-ref"), git(smith.cwd, "status", "--porcelain", "--ignored")
    smith("worktree.add", COMMITS[VERSION], "--name", "other")
    (row,) = json.loads(smith("worktree.list", "--json").out)["worktrees"]
    tree = Path(row["path"])
    pin = git(smith.cwd, "show", f"{COMMITS[VERSION]}:cmake/llvm-hash.txt")
    assert (row["name"], row["commit"], row["pin"], row["dirty"]) == ("other", COMMITS[VERSION], pin, False)
    work = change(tree)
    error = smith("worktree.remove", "--yes", "other", code=1).error
    assert "work would be lost" in error
    assert work in error
    head = git(tree, "rev-parse", "HEAD")
    assert json.loads(smith("worktree.list", "--json").out)["worktrees"][0]["commit"] == head
    smith("worktree.remove", "--yes", "other", "--discard")
    assert json.loads(smith("worktree.list", "--json").out)["worktrees"] == []
    assert not tree.exists()
    assert (git(smith.cwd, "for-each-ref"), git(smith.cwd, "status", "--porcelain", "--ignored")) == before


def test_a_worktree_without_work_of_its_own_goes_and_its_branch_stays(smith: Smith) -> None:
    smith("worktree.add", COMMITS[VERSION], "--name", "other", "--branch", "topic")
    tree = Path(json.loads(smith("worktree.list", "--json").out)["worktrees"][0]["path"])
    work = unpushed(tree)
    assert "branch topic stays" in smith("worktree.remove", "--yes", "other").err
    assert git(smith.cwd, "rev-parse", "topic").startswith(work)
    assert git(smith.cwd, "worktree", "list").count("\n") == 0
