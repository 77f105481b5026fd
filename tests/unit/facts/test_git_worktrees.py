from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support import require
from tests.unit.facts import fakes
from tests.unit.facts.fakes import git
from tritonsmith.facts import git as facts_git

HASH = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A repository with one commit on the branch `main`."""
    require("git")
    root = tmp_path / "main"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / "file").touch()
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "one")
    return root


def add(main: Path, name: str) -> Path:
    """One more worktree."""
    root = main.parent / name
    git(main, "worktree", "add", "--quiet", "--detach", str(root))
    return root


def test_a_repository_without_worktrees(main: Path) -> None:
    assert facts_git.git_folder(main) == facts_git.common_folder(main) == main / ".git"
    assert facts_git.worktrees(main) == (main,)


def test_worktrees_see_each_other(main: Path) -> None:
    one, two = add(main, "one"), add(main, "with a space")
    for root in (main, one, two):
        assert facts_git.common_folder(root) == main / ".git"
        assert facts_git.worktrees(root) == (main, one, two)
    assert facts_git.git_folder(one) == main / ".git" / "worktrees" / "one"


def test_a_worktree_whose_folder_was_deleted_is_none(main: Path) -> None:
    one, two = add(main, "one"), add(main, "two")
    shutil.rmtree(one)
    assert (main / ".git" / "worktrees" / "one").is_dir()
    assert facts_git.worktrees(two) == (main, two)


def test_a_worktree_whose_repository_was_deleted(main: Path) -> None:
    one = add(main, "one")
    shutil.rmtree(main)
    assert facts_git.worktrees(one) == (one,)
    assert facts_git.branches(one) == {}
    assert facts_git.divergence(one) is None


def test_worktrees_of_a_bare_repository(main: Path) -> None:
    bare = main.parent / "bare.git"
    git(main, "clone", "--quiet", "--bare", str(main), str(bare))
    one = main.parent / "one"
    git(bare, "worktree", "add", "--quiet", str(one), "main")
    assert facts_git.worktrees(one) == (one,)
    assert list(facts_git.branches(one)) == ["main"]


def test_paths_that_are_relative_as_git_2_48_can_write_them(main: Path) -> None:
    one = add(main, "one")
    (main / ".git" / "worktrees" / "one" / "gitdir").write_text("../../../../one/.git\n")
    (one / ".git").write_text("gitdir: ../main/.git/worktrees/one\n")
    assert facts_git.worktrees(one) == facts_git.worktrees(main) == (main, one)


def test_a_submodule_is_a_checkout_of_its_own(main: Path) -> None:
    outer = main.parent / "outer"
    outer.mkdir()
    git(outer, "init", "--quiet")
    git(
        outer,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "--quiet",
        str(main),
        "third_party/triton",
    )
    inner = outer / "third_party" / "triton"
    assert (inner / ".git").is_file()
    assert facts_git.common_folder(inner) == outer / ".git" / "modules" / "third_party" / "triton"
    assert facts_git.worktrees(inner) == (inner,)
    assert list(facts_git.branches(inner)) == ["main"]


@pytest.mark.parametrize("content", [None, "nonsense\n", "gitdir: /gone/.git/worktrees/x\n"])
def test_a_folder_that_is_no_checkout(tmp_path: Path, content: str | None) -> None:
    if content:
        (tmp_path / ".git").write_text(content)
    assert facts_git.worktrees(tmp_path) == (tmp_path,)
    assert facts_git.branches(tmp_path) == {}


def test_a_checkout_below_a_link(main: Path) -> None:
    one = add(main, "one")
    link = main.parent / "link"
    link.symlink_to(main)
    assert facts_git.worktrees(link) == (main, one)


def test_branches_loose_and_packed(main: Path) -> None:
    commit = git(main, "rev-parse", "HEAD")
    git(main, "branch", HASH)
    git(main, "branch", "feature/one")
    git(main, "tag", "v1")
    assert facts_git.branches(main) == {"main": commit, HASH: commit, "feature/one": commit}
    git(main, "pack-refs", "--all")
    assert not (main / ".git" / "refs" / "heads" / HASH).exists()
    assert facts_git.branches(add(main, "one")) == {"main": commit, HASH: commit, "feature/one": commit}


def test_a_loose_branch_is_newer_than_the_packed_one(main: Path) -> None:
    git(main, "pack-refs", "--all")
    git(main, "commit", "--quiet", "--allow-empty", "--message", "two")
    assert facts_git.branches(main) == {"main": git(main, "rev-parse", "HEAD")}


def test_a_branch_whose_name_has_no_encoding(main: Path) -> None:
    commit = git(main, "rev-parse", "HEAD")
    (main / ".git" / "packed-refs").write_bytes(
        b"# pack-refs with: peeled fully-peeled sorted \n"
        + b"".join(f"{commit} ".encode() + name + b"\n" for name in (b"refs/heads/m\xfcll", b"refs/heads/x"))
    )
    assert set(facts_git.branches(main)) == {"main", "x", "m\N{REPLACEMENT CHARACTER}ll"}


def test_divergence(main: Path) -> None:
    assert facts_git.divergence(main) is None
    clone = main.parent / "clone"
    git(main, "clone", "--quiet", str(main), str(clone))
    assert facts_git.divergence(clone) == (0, 0)
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "mine")
    for text in ("theirs", "theirs too"):
        git(main, "commit", "--quiet", "--allow-empty", "--message", text)
    git(clone, "fetch", "--quiet")
    assert facts_git.divergence(clone) == (2, 1)
    git(clone, "checkout", "--quiet", "--detach")
    assert facts_git.divergence(clone) is None


def test_objects(main: Path) -> None:
    commit = git(main, "rev-parse", "HEAD")
    assert facts_git.has_object(main, commit[:7])
    assert facts_git.has_object(main, commit)
    other = f"{int(commit[:7], 16) ^ 1:07x}"
    assert not facts_git.has_object(main, other)
    assert not facts_git.has_object(main.parent, commit[:7])


def test_a_fake_checkout_under_git(tmp_path: Path) -> None:
    require("git")
    root = fakes.checkout(tmp_path / "triton", "3.5")
    commit = fakes.commit(root)
    assert set(facts_git.branches(root).values()) == {commit}
