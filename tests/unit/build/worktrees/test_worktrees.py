"""Worktrees of real repositories: added in parts and whole, listed, removed only where nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.build.conftest import Golden
from tests.unit.repositories import Made, Maker
from tritonsmith.build import worktree_add, worktree_remove
from tritonsmith.build import worktree_add as records
from tritonsmith.build.worktree_add import TritonClone, WorktreeRecord, WorktreeRequest
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, LockedError, SmithError, UsageError
from tritonsmith.core.plan import Plan, locks
from tritonsmith.facts import git_worktrees

PIN = "86b69c31642e98f8357df62c09d118ad1da4e16a"
TREE = {
    "setup.py": 'TRITON_VERSION = "3.4.0"\n',
    "include/triton/x.h": "",
    "third_party/nvidia/x": "",
    "cmake/llvm-hash.txt": f"{PIN}\n",
    ".gitignore": "build/\n*.o\n",
}


@pytest.fixture
def space() -> Workspace:
    found = workspace.default()
    found.claim()
    return found


@pytest.fixture
def triton(make: Maker) -> Made:
    """A clone of Triton, with a tag; its path has a space and an é."""
    made = make("tritoné")
    made.commit("first", TREE)
    made.git("tag", "v3.4.0")
    made.commit("second", {"lib/a.cpp": "a"})
    return made


def clone(of: Path) -> TritonClone:
    repository = git_worktrees.repository_of(of)
    assert repository
    return TritonClone(repository, of)


def added(of: Path, space: Workspace, ref: str = "3.4.0", **more: str) -> WorktreeRecord:
    prepared = worktree_add.prepare(WorktreeRequest(ref, **more), clone(of), space)  # type: ignore[arg-type]
    space.run(prepared.plan, "worktree.add", quiet=True)
    return prepared.record


def git(folder: str | Path, *argv: str) -> str:
    who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.invalid")
    done = subprocess.run(["git", "-C", str(folder), *who, *argv], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def losses(of: WorktreeRecord, space: Workspace) -> list[str]:
    return [loss.what for loss in worktree_remove.prepare(of, space, {}).losses]


def removed(of: WorktreeRecord, space: Workspace) -> None:
    prepared = worktree_remove.prepare(of, space, {})
    worktree_remove.check(prepared, of)
    space.run(prepared.plan, "worktree.remove", quiet=True)


def test_a_worktree_has_an_environment_that_inherits(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space, env="debug")
    assert made.folder == triton.path.with_name(f"{triton.path.name}-wt-3.4.0")
    assert (made.folder / "setup.py").is_file()
    assert git(made.folder, "rev-parse", "HEAD") == made.commit == triton.git("rev-parse", "v3.4.0")
    loaded = settings.load("wt-3.4.0")
    origin = dict(loaded.origin)
    assert loaded.triton.source == str(made.folder)
    assert origin["triton.source"] == str(records.env_file(space, "wt-3.4.0"))
    assert loaded.llvm.build_type == settings.load("debug").llvm.build_type == "Debug"
    assert origin["llvm.build-type"] == str(settings.find("debug"))


def test_an_environment_of_a_wheel_becomes_one_of_the_worktree(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space, env="wheel")
    loaded = settings.load(made.name)
    assert (loaded.triton.wheel, loaded.triton.source) == ("", str(made.folder))


def test_a_worktree_is_built_as_its_environment_was_built_last(triton: Made, space: Workspace) -> None:
    last = {
        "triton.build-type": "Debug",
        "triton.backends": ["nvidia"],
        "triton.proton": True,
        "triton.cmake-args": ['-DX="é b"'],
        "llvm.dir": "/usr/lib/llvm-19",  # of another pin, perhaps
    }
    receipt = space.env("dev").receipt("build-triton")
    receipt.parent.mkdir(parents=True)
    receipt.write_text(receipts.render("build-triton", {"settings": last}), encoding="utf-8")
    loaded = settings.load(added(triton.path, space, env="dev").name)
    assert loaded.triton.build_type == "Debug"
    assert loaded.triton.backends == ("nvidia",)
    assert loaded.triton.proton is True
    assert loaded.triton.cmake_args == ('-DX="é b"',)
    assert loaded.llvm.dir == ""
    assert settings.load(added(triton.path, space, env="debug", name="other").name).triton.backends == (
        "nvidia",
        "amd",
    )


def test_adding_twice_changes_nothing(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space)
    again = worktree_add.prepare(WorktreeRequest("v3.4.0"[1:]), clone(triton.path), space)
    assert again.record == made
    assert again.plan.steps == ()


def test_a_branch_is_checked_out_unless_a_worktree_has_it(triton: Made, space: Workspace) -> None:
    triton.git("branch", "topic")
    assert git_worktrees.branch_of(added(triton.path, space, "topic").folder) == "topic"
    assert git_worktrees.branch_of(added(triton.path, space, "topic", name="second").folder) == ""
    assert git_worktrees.branch_of(added(triton.path, space, "main").folder) == ""
    assert git_worktrees.branch_of(added(triton.path, space, branch="fresh").folder) == "fresh"
    with pytest.raises(UsageError, match="already exists"):
        added(triton.path, space, branch="topic", name="third")


@pytest.mark.parametrize("name", ["dev", "a/b", "..", "x.toml", "-x"])
def test_names_that_are_taken_or_no_names(triton: Made, space: Workspace, name: str) -> None:
    with pytest.raises(UsageError):
        added(triton.path, space, name=name)
    assert len(git_worktrees.linked(triton.path / ".git")) == 0


def test_a_name_of_another_worktree_is_refused(triton: Made, space: Workspace) -> None:
    added(triton.path, space, name="mine")
    with pytest.raises(UsageError, match="a worktree named 'mine' already exists"):
        added(triton.path, space, "main", name="mine")


def test_a_folder_with_files_is_refused(triton: Made, space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(UsageError, match="not empty"):
        worktree_add.prepare(WorktreeRequest("main", path=tmp_path / "full"), clone(triton.path), space)


def test_a_shallow_clone_says_so(triton: Made, space: Workspace, tmp_path: Path) -> None:
    shallow = tmp_path / "a shallow clone"
    git(tmp_path, "clone", "--quiet", "--depth=1", triton.path.as_uri(), shallow.name)
    with pytest.raises(FactError, match=r"no commit 'v3\.4\.0'") as caught:
        added(shallow, space, "v3.4.0")
    assert caught.value.hints == (
        f"its history is shallow: git -C '{shallow}' fetch --unshallow",
        f"fetch it there: git -C '{shallow}' fetch origin v3.4.0",
    )
    assert (added(shallow, space, "main").folder / "lib" / "a.cpp").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("how", [("--bare",), ("--mirror",), ("--filter=blob:none", "--no-checkout")])
def test_bare_and_partial_clones(
    triton: Made, space: Workspace, tmp_path: Path, how: tuple[str, ...]
) -> None:
    git(tmp_path, "clone", "--quiet", *how, triton.path.as_uri(), "other.git")
    made = added(tmp_path / "other.git", space)
    assert (made.folder / "include" / "triton" / "x.h").is_file()
    assert losses(made, space) == []
    removed(made, space)
    assert not made.folder.exists()


def test_a_clone_that_is_a_submodule(triton: Made, space: Workspace, make: Maker) -> None:
    around = make("around")
    around.commit("one", {"file": "1"})
    allowed = ("-c", "protocol.file.allow=always")
    around.git(*allowed, "submodule", "--quiet", "add", triton.path.as_uri(), "deep/triton")
    inside = around.path / "deep" / "triton"
    made = added(inside, space, "main")
    assert (made.commit, made.folder) == (triton.git("rev-parse", "main"), inside.with_name("triton-wt-main"))
    assert losses(made, space) == []
    removed(made, space)
    assert inside.is_dir()


def test_a_folder_that_is_no_clone_and_a_damaged_one(triton: Made, space: Workspace, tmp_path: Path) -> None:
    for folder, told in (
        (tmp_path / "unpacked", ""),
        (triton.path / "an archive in another repository", ""),
        (triton.path, "fatal: "),
    ):
        folder.mkdir(exist_ok=True)
        if told:
            (folder / ".git" / "HEAD").write_text("nonsense")
        with pytest.raises(FactError, match="not in a git repository") as caught:
            worktree_add.clone_of(settings.load("dev", {"triton.source": str(folder)}), space, Path("/"))
        assert told in (caught.value.why or "")


def test_from_within_another_worktree_it_goes_beside_the_clone(triton: Made, space: Workspace) -> None:
    first = added(triton.path, space)
    found = worktree_add.clone_of(settings.load(first.name), space, Path("/"))
    assert (found.repository, found.root) == (triton.path / ".git", triton.path)


def test_the_tools_own_clone_has_all_refs(triton: Made, space: Workspace, tmp_path: Path) -> None:
    chosen = settings.load("dev", {"triton.source": triton.path.as_uri()})
    own = worktree_add.clone_of(chosen, space, tmp_path)
    assert not worktree_add.up_to_date(own, "v3.4.0")
    space.run(own.fetch, "fetch", quiet=True)
    space.run(own.fetch, "fetch", quiet=True)
    commit = triton.git("rev-parse", "HEAD")
    assert worktree_add.up_to_date(own, commit)
    made = worktree_add.prepare(WorktreeRequest("main"), own, space)
    space.run(made.plan, "worktree.add", quiet=True)
    assert made.record.folder == space.worktrees / "wt-main"
    assert (made.record.commit, losses(made.record, space)) == (commit, [])


def test_another_run_that_fetches_the_tools_clone_is_waited_for(
    triton: Made, space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = worktree_add.clone_of(
        settings.load("dev", {"triton.source": triton.path.as_uri()}), space, tmp_path
    )
    space.claim()
    space.sources.mkdir()
    lock = space.sources / f".{own.repository.name}.lock"
    monkeypatch.setattr(worktree_add, "_ANOTHER_FETCHES", 0.0)
    with locks.hold(lock, purpose="worktree.add"), pytest.raises(LockedError, match="fetching this clone"):
        worktree_add.fetch(own, space, "bisect")
    assert not worktree_add.resolve(own, "v3.4.0")
    worktree_add.fetch(own, space, "bisect")
    assert worktree_add.resolve(own, "v3.4.0")


@pytest.mark.slow
def test_a_removal_leaves_nothing(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space)
    (made.folder / "build").mkdir()
    (made.folder / "build" / "x.o").touch()
    space.env(made.name).make()
    assert "build/" in " ".join(worktree_remove.prepare(made, space, {}).notes)
    removed(made, space)
    assert not made.folder.exists()
    assert not space.env(made.name).path.exists()
    assert list(space.worktrees.iterdir()) == []
    assert git_worktrees.linked(triton.path / ".git") == ()
    assert triton.git("status", "--porcelain") == ""


def changed(folder: Path) -> None:
    (folder / "include" / "triton" / "x.h").write_text("changed")


def staged(folder: Path) -> None:
    (folder / "setup.py").write_text("changed")
    git(folder, "add", "setup.py")
    (folder / "setup.py").write_text(TREE["setup.py"])


def untracked(folder: Path) -> None:
    (folder / "notes é.txt").touch()


def hidden(folder: Path) -> None:
    git(folder, "update-index", "--assume-unchanged", "setup.py")
    (folder / "setup.py").write_text("changed")


def committed(folder: Path) -> None:
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "mine")


def left_behind(folder: Path) -> None:
    committed(folder)
    git(folder, "checkout", "--quiet", "--detach", "v3.4.0")


def merging(folder: Path) -> None:
    committed(folder)
    git(folder, "branch", "kept")
    git(folder, "merge", "--quiet", "--no-commit", "--no-ff", "main")
    git(folder, "read-tree", "--reset", "-u", "HEAD")


def locked(folder: Path) -> None:
    git(folder, "worktree", "lock", "--reason", "on a stick", ".")


def cloned(folder: Path) -> None:
    (folder / "build").mkdir()
    git(folder / "build", "init", "--quiet", "llvm-project")


def orphaned(folder: Path) -> None:
    committed(folder)
    git(folder, "checkout", "--quiet", "--orphan", "new")
    git(folder, "rm", "-rq", "--force", ".")


def rebased(folder: Path) -> None:
    """With a conflict, on a detached HEAD that is left afterwards; the original stays on a branch."""
    (folder / "lib").mkdir()
    (folder / "lib" / "a.cpp").write_text("mine")
    git(folder, "add", "lib/a.cpp")
    git(folder, "commit", "--quiet", "-m", "mine")
    git(folder, "branch", "original")
    with pytest.raises(subprocess.CalledProcessError):
        git(folder, "rebase", "--quiet", "main")
    (folder / "lib" / "a.cpp").write_text("resolved")
    git(folder, "add", "lib/a.cpp")
    git(folder, "-c", "core.editor=true", "rebase", "--continue")
    git(folder, "checkout", "--quiet", "--detach", "v3.4.0")


def reset(folder: Path) -> None:
    """A commit of plumbing, which the reflog describes by no word for a commit."""
    tree = git(folder, "rev-parse", "HEAD^{tree}")
    git(folder, "reset", "--quiet", "--hard", git(folder, "commit-tree", "-p", "HEAD", "-m", "mine", tree))
    git(folder, "reset", "--quiet", "--hard", "v3.4.0")


def own_ref(folder: Path) -> None:
    committed(folder)
    git(folder, "update-ref", "refs/worktree/kept", "HEAD")
    git(folder, "checkout", "--quiet", "--detach", "v3.4.0")
    git(folder, "reflog", "expire", "--expire=now", "--all")


def own_blob(folder: Path) -> None:
    git(folder, "update-ref", "refs/worktree/notes", git(folder, "hash-object", "-w", "setup.py"))


def cloned_deep(folder: Path) -> None:
    deep = folder / "build" / "a" / "b" / "r"
    deep.mkdir(parents=True)
    git(deep, "init", "--quiet")
    committed(deep)


def cloned_bare(folder: Path) -> None:
    deep = folder / "build" / "a" / "b"
    deep.mkdir(parents=True)
    git(deep, "clone", "--quiet", "--bare", str(folder), "r")
    git(deep / "r", "remote", "remove", "origin")


def merging_notes(folder: Path) -> None:
    """A conflict of notes, which git keeps in its folder of the worktree until it is resolved."""
    git(folder, "notes", "add", "-m", "mine")
    git(folder, "notes", "--ref=theirs", "add", "-m", "theirs")
    with suppress(subprocess.CalledProcessError):
        git(folder, "notes", "merge", "theirs")


def noted_deep(folder: Path) -> None:
    """A commit under a ref that is no branch: git's notes."""
    cloned_whole(folder)
    git(folder / "build" / "a" / "b" / "r", "notes", "add", "-m", "mine")


def worked_elsewhere(folder: Path) -> None:
    """A worktree that lies elsewhere, and whose repository goes."""
    cloned_whole(folder)
    git(folder / "build" / "a" / "b" / "r", "worktree", "add", "--quiet", "--detach", f"{folder}-elsewhere")


def cloned_whole(folder: Path) -> None:
    """A clone in an ignored folder that has nothing of its own."""
    deep = folder / "build" / "a" / "b"
    deep.mkdir(parents=True)
    git(deep, "clone", "--quiet", str(folder), "r")


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (noted_deep, "repository build/a/b/r in a folder that git ignores: commits that no remote has"),
        (
            worked_elsewhere,
            "repository build/a/b/r in a folder that git ignores: worktrees that belong to it",
        ),
        (orphaned, "commits that no branch, tag or remote has"),
        (rebased, "commits that no branch, tag or remote has"),
        (reset, "commits that no branch, tag or remote has"),
        (own_ref, "commits that no branch, tag or remote has"),
        (own_blob, "refs/worktree/notes (blob)"),
        (cloned_deep, "repository build/a/b/r in a folder that git ignores: commits that no remote has"),
        (cloned_bare, "repository build/a/b/r in a folder that git ignores: commits that no remote has"),
        (changed, "changes that are not committed"),
        (staged, "changes that are not committed"),
        (untracked, "changes that are not committed"),
        (hidden, "hidden from `git status`"),
        (committed, "commits that no branch, tag or remote has"),
        (left_behind, "commits that no branch, tag or remote has"),
        (merging, "a merge is under way"),
        (merging_notes, "a merge of notes is under way"),
        (locked, "on a stick"),
        (cloned, "build/llvm-project"),
    ],
)
def test_work_is_not_lost(triton: Made, space: Workspace, work: Callable[[Path], None], told: str) -> None:
    made = added(triton.path, space)
    work(made.folder)
    with pytest.raises(SmithError, match="work would be lost") as caught:
        removed(made, space)
    assert told in str(caught.value)
    assert made.folder.is_dir()
    assert records.records(space) == (made,)
    space.run(worktree_remove.prepare(made, space, {}).plan, "worktree.remove", quiet=True)  # --discard
    assert not made.folder.exists()
    assert git_worktrees.linked(triton.path / ".git") == ()


def test_work_that_is_done_while_the_user_is_asked(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space)
    changed(made.folder)
    shown = worktree_remove.prepare(made, space, {})
    worktree_remove.check_unchanged(worktree_remove.prepare(made, space, {}), shown, made)
    committed(made.folder)
    with pytest.raises(SmithError, match="has changed since you were asked"):
        worktree_remove.check_unchanged(worktree_remove.prepare(made, space, {}), shown, made)


def test_what_a_branch_or_a_stash_has_is_no_loss(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space, branch="topic")
    committed(made.folder)
    git(made.folder, "commit", "--quiet", "--amend", "--allow-empty", "-m", "amended")
    changed(made.folder)
    git(made.folder, "stash", "--quiet")
    prepared = worktree_remove.prepare(made, space, {})
    assert prepared.losses == ()
    assert f"branch topic stays in {triton.path / '.git'}" in prepared.notes
    assert "stashes belong to the clone, and stay: 1" in prepared.notes
    removed(made, space)
    assert triton.git("log", "-1", "--format=%s", "topic") == "amended"
    assert "refs/stash" in triton.git("for-each-ref")


@pytest.mark.slow
def test_submodules_hold_work_too(triton: Made, space: Workspace, make: Maker) -> None:
    other = make("other")
    other.commit("one", {"file": "1"})
    url = other.path.as_uri()
    allowed = ("-c", "protocol.file.allow=always")
    triton.git(*allowed, "submodule", "--quiet", "add", url, "third_party/other")
    triton.commit("with a submodule")
    made = added(triton.path, space, "main")
    git(made.folder, *allowed, "submodule", "--quiet", "update", "--init")
    assert losses(made, space) == []
    inside = made.folder / "third_party" / "other"
    (inside / "file").write_text("2")
    git(inside, "stash", "--quiet")
    (inside / "file").write_text("3")
    git(inside, "commit", "--quiet", "--all", "-m", "mine")
    (inside / "new").touch()
    told = losses(made, space)
    assert told == [
        "changes that are not committed",  # the submodule is at another commit
        "submodule third_party/other: changes that are not committed",
        "submodule third_party/other: commits that no remote has",
        "submodule third_party/other: stashes",
    ]
    space.run(worktree_remove.prepare(made, space, {}).plan, "worktree.remove", quiet=True)
    assert git_worktrees.linked(triton.path / ".git") == ()


@pytest.fixture
def with_submodule(triton: Made, space: Workspace, make: Maker) -> WorktreeRecord:
    """A worktree with a submodule that is checked out."""
    other = make("other")
    other.commit("one", {"file": "1"})
    allowed = ("-c", "protocol.file.allow=always")
    triton.git(*allowed, "submodule", "--quiet", "add", other.path.as_uri(), "third_party/other")
    triton.commit("with a submodule")
    made = added(triton.path, space, "main")
    git(made.folder, *allowed, "submodule", "--quiet", "update", "--init")
    return made


@pytest.mark.slow
def test_a_commit_that_a_submodule_has_left(with_submodule: WorktreeRecord, space: Workspace) -> None:
    """`git submodule update` moves a detached HEAD back; only the reflog there has the commit."""
    inside = with_submodule.folder / "third_party" / "other"
    git(inside, "checkout", "--quiet", "--detach")
    committed(inside)
    git(with_submodule.folder, "submodule", "--quiet", "update", "--force")
    assert losses(with_submodule, space) == ["submodule third_party/other: commits that no remote has"]


@pytest.mark.slow
@pytest.mark.parametrize("branch", ["topic", ""])
def test_a_submodule_that_is_not_checked_out_any_more(
    with_submodule: WorktreeRecord, space: Workspace, branch: str
) -> None:
    inside = with_submodule.folder / "third_party" / "other"
    git(inside, "checkout", "--quiet", *(("-b", branch) if branch else ("--detach",)))
    committed(inside)
    git(inside, "tag", "mine")  # of nobody else's
    git(with_submodule.folder, "submodule", "--quiet", "deinit", "--force", "third_party/other")
    what = "submodule third_party/other, which is not checked out: commits that no remote has"
    assert losses(with_submodule, space) == [what]


def test_a_submodule_on_a_new_branch_without_commits(
    with_submodule: WorktreeRecord, space: Workspace
) -> None:
    inside = with_submodule.folder / "third_party" / "other"
    git(inside, "checkout", "--quiet", "--detach")
    committed(inside)
    git(inside, "checkout", "--quiet", "--orphan", "new")
    told = losses(with_submodule, space)
    assert "submodule third_party/other: commits that no remote has" in told


def test_what_is_no_loss(triton: Made, space: Workspace) -> None:
    """The steps of a rebase whose result is on a branch, and a clone of CMake's that is as its remote is."""
    made = added(triton.path, space, branch="topic")
    for number in range(3):
        (made.folder / f"{number}").touch()
        git(made.folder, "add", ".")
        git(made.folder, "commit", "--quiet", "-m", f"fixup! {number}" if number else "first")
    editor = "sed -i '2,3s/^pick/squash/'"
    git(
        made.folder,
        *("-c", f"sequence.editor={editor}", "-c", "core.editor=true"),
        *("rebase", "--quiet", "--interactive", "main"),
    )
    assert git(made.folder, "log", "--format=%s", "main..") != ""
    fetched = made.folder / "build" / "_deps" / "googletest" / "src"
    fetched.parent.mkdir(parents=True)
    git(made.folder, "clone", "--quiet", str(triton.path), str(fetched))
    git(fetched, "checkout", "--quiet", "v3.4.0")
    assert losses(made, space) == []


def test_where_git_cannot_tell_nothing_is_removed(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space)
    (admin,) = (triton.path / ".git" / "worktrees").iterdir()
    (admin / "HEAD").write_text("nonsense")
    assert losses(made, space) == ["git cannot tell what this worktree has"]


def test_an_editable_install_leads_into_it(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space)
    for name in (made.name, "other"):
        site = space.env(name).venv / "lib" / "python3.11" / "site-packages"
        info = site / "triton-3.4.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Name: triton\nVersion: 3.4.0\n")
        (info / "RECORD").write_text("__editable__.triton-3.4.0.pth,,\n")
        (info / "direct_url.json").write_text(
            f'{{"url": "{made.folder.as_uri()}", "dir_info": {{"editable": true}}}}'
        )
        (site / "__editable__.triton-3.4.0.pth").write_text(f"{made.folder}\n")
    (loss,) = worktree_remove.prepare(made, space, {}).losses
    assert loss.what == "editable installs lead to it"
    assert loss.items == (f"triton 3.4.0 in {site}",)


def test_a_program_that_runs_in_it(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space)
    program = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        cwd=made.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with program:
        assert program.stdout
        program.stdout.readline()
        (loss,) = worktree_remove.prepare(made, space, {}).losses
        program.communicate(b"\n")
    assert str(program.pid) in loss.items[0]
    assert losses(made, space) == []


def test_a_clone_that_is_gone_leaves_the_users_folder_alone(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space)
    triton.path.rename(triton.path.with_name("moved"))
    assert "gone" in worktree_remove.rows(space)[0].problem
    removed(made, space)
    assert (made.folder / "setup.py").is_file()
    assert records.records(space) == ()


def test_a_worktree_of_the_tool_whose_clone_is_gone_needs_consent(triton: Made, space: Workspace) -> None:
    prepared = worktree_add.prepare(
        WorktreeRequest("main", name="own", path=space.worktrees / "own"), clone(triton.path), space
    )
    space.run(prepared.plan, "worktree.add", quiet=True)
    triton.path.rename(triton.path.with_name("moved"))
    assert "git cannot tell" in losses(prepared.record, space)[0]


def test_a_folder_that_was_moved_by_hand_is_not_harmed(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space)
    committed(made.folder)
    moved = made.folder.rename(made.folder.with_name("moved"))
    assert "folder is gone" in worktree_remove.rows(space)[0].problem
    with pytest.raises(UsageError, match="repair"):
        added(triton.path, space)
    told = losses(made, space)
    assert told == ["commits that no branch, tag or remote has", "its folder is gone"]
    triton.git("worktree", "repair", str(moved))
    removed(made, space)
    assert records.records(space) == ()
    assert git(moved, "log", "-1", "--format=%s") == "mine"


def parts(plan: Plan) -> list[Plan]:
    return [Plan(plan.title, plan.steps[:count]) for count in range(len(plan.steps) + 1)]


@pytest.mark.parametrize("count", range(6))
@pytest.mark.parametrize("branch", ["", "topic"])
def test_a_stopped_addition_is_completed_or_removed(
    triton: Made, space: Workspace, count: int, branch: str
) -> None:
    request = WorktreeRequest("3.4.0", branch=branch)
    whole = worktree_add.prepare(request, clone(triton.path), space)
    space.run(parts(whole.plan)[count], "worktree.add", quiet=True)
    worktree_remove.rows(space)
    again = worktree_add.prepare(request, clone(triton.path), space)
    space.run(again.plan, "worktree.add", quiet=True)
    assert worktree_remove.rows(space)[0].problem == ""
    assert (again.record.folder / "setup.py").is_file()
    assert not again.record.partial.exists()
    removed(again.record, space)
    assert len(git_worktrees.linked(triton.path / ".git")) == 0
    assert [path.name for path in triton.path.parent.iterdir() if "wt-" in path.name] == []


@pytest.mark.parametrize("count", range(5))
def test_a_stopped_addition_can_be_removed_at_once(triton: Made, space: Workspace, count: int) -> None:
    whole = worktree_add.prepare(WorktreeRequest("3.4.0"), clone(triton.path), space)
    space.run(parts(whole.plan)[count + 1], "worktree.add", quiet=True)
    removed(whole.record, space)
    assert git_worktrees.linked(triton.path / ".git") == ()
    assert [path.name for path in triton.path.parent.iterdir() if "wt-" in path.name] == []


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("headless", [False, True])
def test_a_stopped_removal_is_completed(triton: Made, space: Workspace, count: int, headless: bool) -> None:
    made = added(triton.path, space)
    space.run(parts(worktree_remove.prepare(made, space, {}).plan)[count], "worktree.remove", quiet=True)
    if headless and git_worktrees.at(triton.path / ".git", made.partial):  # killed while git deleted it
        (made.partial / ".git").unlink()
        (made.partial / "setup.py").unlink()
    removed(made, space)
    assert git_worktrees.linked(triton.path / ".git") == ()
    assert [path.name for path in triton.path.parent.iterdir() if "wt-" in path.name] == []
    assert records.records(space) == ()


def test_the_list_tells_what_is_there(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space)
    (row,) = worktree_remove.rows(space)
    assert (row.problem, row.commit, row.pin, row.llvm, row.built) == (
        "",
        made.commit,
        PIN,
        "missing",
        "not built",
    )
    changed(made.folder)
    (row,) = worktree_remove.rows(space)
    assert row.dirty
    told = worktree_remove.as_json((row,), made.made + 60)["worktrees"][0]
    assert told["bytes"] > 0
    assert (told["age"], told["ref"], told["path"]) == (60, "3.4.0", os.fspath(made.folder))


def test_a_damaged_record_is_told(triton: Made, space: Workspace) -> None:
    made = added(triton.path, space)
    records.file(space, made.name).write_text('{"name": "other"}')
    with pytest.raises(FactError, match="cannot read the record"):
        worktree_remove.rows(space)


def test_an_unknown_name_is_told(space: Workspace) -> None:
    with pytest.raises(UsageError, match="no worktree named 'x'"):
        records.find(space, "x")


def test_the_plans_as_scripts(triton: Made, space: Workspace, golden: Golden) -> None:
    def script(plan: Plan) -> str:
        text = plan.shell().replace(made.render().strip(), "RECORD").replace(made.commit, "COMMIT")
        for path, name in ((space.root, "HOME"), (triton.path.parent, "ROOT")):
            text = text.replace(str(path), name)
        return text.replace(triton.path.name, "CLONE")

    prepared = worktree_add.prepare(WorktreeRequest("3.4.0"), clone(triton.path), space)
    made = prepared.record
    golden("worktree-add.sh", script(prepared.plan))
    space.run(prepared.plan, "worktree.add", quiet=True)
    golden("worktree-remove.sh", script(worktree_remove.prepare(made, space, {}).plan))


def test_the_script_does_what_the_plan_does(triton: Made, space: Workspace) -> None:
    prepared = worktree_add.prepare(WorktreeRequest("3.4.0"), clone(triton.path), space)
    subprocess.run(["sh", "-c", prepared.plan.shell()], check=True, capture_output=True)
    assert worktree_remove.rows(space)[0].problem == ""
    removal = worktree_remove.prepare(prepared.record, space, {})
    subprocess.run(["sh", "-c", removal.plan.shell()], check=True, capture_output=True)
    assert worktree_remove.rows(space) == ()
