"""The sides of a farm: which commit a word names, what compiles alike, and what the clone keeps."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.repositories import Made
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, StepError, UsageError
from tritonsmith.lab.batch import kept, kept_files, store
from tritonsmith.lab.bisect import sides
from tritonsmith.lab.bisect.candidates import CommitBuilds
from tritonsmith.lab.bisect.sides import Sides

pytestmark = pytest.mark.unit

INIT = "python/triton/__init__.py"
TREE = {
    INIT: "__version__ = '3.6.0'\n",
    "include/triton/a.h": "",
    "third_party/nvidia/backend/compiler.py": "",
    "third_party/nvidia/backend/driver.c": "",
    "lib/a.cpp": "",
    "cmake/llvm-hash.txt": "a" * 40,
}


@pytest.fixture
def clone(make: Callable[[str], Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A clone of something like Triton, on its main; the current folder is elsewhere."""
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    repository = make("clone")
    repository.commit("first", TREE)
    return repository


def resolve(clone: Made, base: str = "", head: str = "") -> Sides:
    return sides.resolve(base, head, clone.path, "dev")


def content(clone: Made, name: str) -> str:
    """The key of what compiles by a commit."""
    source = resolve(clone, name, name).head.triton.source
    assert source is not None
    return source.content


@pytest.mark.parametrize(
    ("files", "same"),
    [
        ({"README.md": "more"}, True),
        ({"python/test/unit/test_core.py": "more", "test/a.mlir": "more"}, True),
        ({"python/triton/README.md": "more"}, True),
        ({INIT: "__version__ = '3.6.0'\nmore = 1\n"}, False),
        ({"third_party/nvidia/backend/compiler.py": "more"}, False),
        ({"lib/a.cpp": "more"}, False),
        ({"cmake/llvm-hash.txt": "b" * 40}, False),
        ({"third_party/nvidia/backend/driver.c": None}, False),
    ],
)
def test_what_compiles_is_the_key(clone: Made, files: dict[str, str | None], same: bool) -> None:
    clone.git("checkout", "--quiet", "-b", "feature")
    clone.commit("change", files)
    pair = resolve(clone)
    assert pair.are_same is same
    assert pair.base.triton.label == f"main {clone.git('rev-parse', 'main')[:12]}"
    assert pair.head.triton.label == f"HEAD {clone.git('rev-parse', 'feature')[:12]}"
    assert pair.notes == ()
    folders = {kept.folder_of(side.triton) for side in (pair.base, pair.head)}
    assert len(folders) == (1 if same else 2)


def test_a_change_and_its_revert_compile_alike(clone: Made) -> None:
    before = content(clone, "HEAD")
    clone.commit("change", {"lib/a.cpp": "more"})
    clone.commit("revert", {"lib/a.cpp": ""})
    assert content(clone, "HEAD") == before != content(clone, "HEAD~1")


def test_settings_of_the_build_count(clone: Made, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[triton]\nbuild-type = "Debug"\n')
    debug = sides.resolve("main", "main", clone.path, str(tmp_path / "mine.toml")).head.triton.source
    assert debug is not None
    assert debug.content != content(clone, "main")


@pytest.mark.parametrize(
    ("file", "same"),
    [
        ("llvm/lib/libLLVMCore.a", False),
        ("llvm/lib/cmake/llvm/LLVMConfig.cmake", False),
        ("llvm/bin/llc", True),
        ("plugin/lib/pass.cpp", False),
        ("plugin/.git/index", True),
    ],
)
def test_what_is_named_by_its_path_counts_by_its_state(
    clone: Made, tmp_path: Path, file: str, *, same: bool
) -> None:
    """A library that is built again in place is another one, and so is a plugin that was edited."""
    llvm, plugin, path = tmp_path / "llvm", tmp_path / "plugin", tmp_path / file
    settings = f'[triton]\nplugin-dirs = ["{plugin}"]\n[llvm]\ndir = "{llvm}"\n'
    (tmp_path / "mine.toml").write_text(settings)
    path.parent.mkdir(parents=True)
    path.write_text("before")

    def mine() -> str:
        source = sides.resolve("main", "main", clone.path, str(tmp_path / "mine.toml")).head.triton.source
        assert source is not None
        return source.content

    before = mine()
    assert mine() == before
    path.write_text("afterwards")
    assert (mine() == before) is same


def test_other_settings_have_another_interpreter(clone: Made, tmp_path: Path) -> None:
    """Neither exchanges the libraries under the other, which may be compiling."""
    (tmp_path / "mine.toml").write_text('[triton]\nbackends = ["amd"]\n')
    mine = sides.resolve("main", "main", clone.path, str(tmp_path / "mine.toml")).head.triton
    assert mine.python != resolve(clone, "main", "main").head.triton.python


def test_changes_are_one_commit_and_leave_no_trace(clone: Made) -> None:
    first = clone.git("rev-parse", "HEAD")
    (clone.path / "lib" / "a.cpp").write_text("changed")
    (clone.path / "lib" / "b.cpp").write_text("added")
    clone.git("add", "lib/b.cpp")
    (clone.path / "lib" / "c.cpp").write_text("untracked")
    index = (clone.path / ".git" / "index").read_bytes()
    status = clone.git("status", "--porcelain")
    pair = resolve(clone)
    assert (clone.path / ".git" / "index").read_bytes() == index
    assert clone.git("status", "--porcelain") == status
    assert clone.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert clone.git("stash", "list") == ""
    head = pair.head.triton
    assert head.label == f"HEAD {first[:12]} + changes"
    (note,) = pair.notes
    assert note.startswith(f"1 untracked file is not in {head.label}: lib/c.cpp; ")
    assert clone.git("rev-parse", f"{head.commit}~1") == first
    names = clone.git("diff", "--name-only", first, head.commit).split()
    assert names == ["lib/a.cpp", "lib/b.cpp"]
    # Twice the same: its interpreter and its journal are found again.
    assert resolve(clone).head.triton == head
    (clone.path / "lib" / "a.cpp").write_text("")
    clone.git("rm", "--quiet", "--cached", "lib/b.cpp")
    clean = resolve(clone)
    assert clean.head.triton.commit == first
    assert clean.head.triton.label == f"HEAD {first[:12]}"


def test_a_file_of_the_moment_of_the_index_is_read(clone: Made) -> None:
    """As git does: at the same size and time, only its content tells that it was changed."""
    path, index = clone.path / "lib" / "a.cpp", clone.path / ".git" / "index"
    clone.commit("second", {"lib/a.cpp": "one"})
    # The time of a status cannot be set, and would tell of the change.
    clone.git("config", "core.trustctime", "false")
    moment = (1_700_000_000, 1_700_000_000)
    os.utime(path, moment)
    clone.git("update-index", "--refresh")
    os.utime(index, moment)
    path.write_text("two")
    os.utime(path, moment)
    assert resolve(clone).head.triton.label.endswith(" + changes")


def test_changes_of_a_strangers_checkout_run_nothing_of_it(clone: Made, tmp_path: Path) -> None:
    """Not what its settings name, when git compares contents or writes an index."""
    canary, program = tmp_path / "canary", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "filter.x.clean", "gpg.program", "core.sshCommand"):
        clone.git("config", key, str(program))
    clone.git("config", "commit.gpgSign", "true")
    hooks = clone.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction"):
        (hooks / name).write_text(program.read_text())
        (hooks / name).chmod(0o755)
    (clone.path / ".git" / "info").mkdir(exist_ok=True)
    (clone.path / ".git" / "info" / "attributes").write_text("* filter=x\n")
    (clone.path / "lib" / "a.cpp").write_text("changed")
    assert resolve(clone).head.triton.label.endswith(" + changes")
    assert not canary.exists()
    clone.git("status")
    assert canary.exists()


def test_many_untracked_files_are_a_short_note(clone: Made) -> None:
    for number in range(9):
        (clone.path / f"new{number}").write_text("")
    note = resolve(clone).notes[0]
    assert note.startswith("9 untracked files are not in HEAD ")
    assert "new0, new1, new2, new3, new4, new5 and 3 more" in note


def test_the_main_that_the_branch_left_last_is_the_base(clone: Made) -> None:
    """A local main is often behind."""
    old = clone.git("rev-parse", "HEAD")
    new = clone.commit("on main", {"lib/a.cpp": "newer"})
    clone.git("update-ref", "refs/remotes/origin/main", new)
    clone.git("checkout", "--quiet", "-b", "feature")
    clone.git("branch", "--force", "main", old)
    clone.commit("change", {"lib/a.cpp": "mine"})
    assert resolve(clone).base.triton.label == f"origin/main {new[:12]}"
    assert resolve(clone, "main").base.triton.label == f"main {old[:12]}"


def test_a_clean_main_is_its_own_base_and_says_so(clone: Made) -> None:
    pair = resolve(clone)
    assert pair.are_same
    assert "compare it with another commit, as --base HEAD~1" in pair.notes[0]


def test_a_clone_without_main(clone: Made) -> None:
    clone.git("branch", "--move", "main", "other")
    with pytest.raises(UsageError, match="nothing in common with a branch main"):
        resolve(clone)


def test_words_of_each_kind(clone: Made) -> None:
    first = clone.git("rev-parse", "HEAD")
    clone.git("tag", "v3.6.0")
    clone.git("branch", "release/3.6.x")
    clone.git("branch", "dev")
    for word, label in (
        ("v3.6.0", f"v3.6.0 {first[:12]}"),  # a tag; the release has no v
        ("release/3.6.x", f"release/3.6.x {first[:12]}"),
        ("dev", f"dev {first[:12]}"),  # the clone's own names win over an environment's
        ("commit dev", f"dev {first[:12]}"),
        (first[:9], first[:12]),
    ):
        side = resolve(clone, word, "HEAD").base
        assert (side.triton.label, side.triton.commit) == (label, first)
        assert side.triton.triton == "3.6.0"
        assert not side.triton.version
    release = resolve(clone, "3.6.0", "HEAD").base
    assert (release.triton.version, release.commit) == ("3.6.0", None)
    release.make()  # a release is installed when it compiles
    assert resolve(clone, "wheel", "HEAD").base.triton.env == "wheel"


def test_many_tritons_are_named_like_sides(clone: Made) -> None:
    release, commit = sides.resolve_all(["3.6.0", "main"], clone.path, "dev")
    assert (release.triton.version, release.commit) == ("3.6.0", None)
    assert commit.triton.commit == clone.git("rev-parse", "main")
    assert [side.triton.version for side in sides.resolve_all(["3.9.0"], None, "dev")] == ["3.9.0"]
    with pytest.raises(UsageError, match="--triton"):
        sides.resolve_all(["main"], None, "dev")


def test_the_checkout_around_the_current_folder(clone: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clone.path / "lib")
    assert sides.resolve("", "", None, "dev").head.triton.commit == clone.git("rev-parse", "HEAD")


def test_a_bare_clone_has_no_working_tree(clone: Made, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    clone.git("clone", "--quiet", "--bare", str(clone.path), str(bare))
    assert sides.resolve("", "", bare, "dev").head.triton.label.startswith("HEAD ")


def test_another_ptxas_is_another_compiler(clone: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tritonsmith.wheels.ptxas.resolve", lambda text, _python: f"{text}.88")
    pair = resolve(clone, "main", "main,ptxas=13.0")
    assert not pair.are_same
    assert pair.head.triton.label.endswith(",ptxas=13.0.88")
    assert kept.folder_of(pair.head.triton).name.endswith("-ptxas-13.0.88")


@pytest.mark.parametrize(
    ("base", "head", "what"),
    [
        ("no-such", "HEAD", "--base: 'no-such' is not a Triton"),
        ("commit 0123456", "HEAD", "--base: no commit 0123456"),
        ("", "wheel", "--base is missing, as --head is no commit"),
        ("main,wheel", "HEAD", "--base names two Tritons: main and wheel"),
        ("main,num_warps=8", "HEAD", "--base cannot be 'num_warps=8'"),
        ("h100", "HEAD", "--base cannot be 'h100'"),
    ],
)
def test_what_is_no_side(clone: Made, base: str, head: str, what: str) -> None:
    with pytest.raises(UsageError) as raised:
        resolve(clone, base, head)
    assert raised.value.what.startswith(what)
    assert raised.value.hints
    assert not [hint for hint in raised.value.hints if "--from" in hint or "--to" in hint]


@pytest.mark.usefixtures("clone")
def test_without_a_clone_there_are_no_commits(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a clone of Triton"):
        sides.resolve("", "", None, "dev")
    with pytest.raises(UsageError, match="needs a clone of Triton"):
        sides.resolve("commit main", "3.6.0", None, "dev")
    with pytest.raises(UsageError, match="--source is not a folder"):
        sides.resolve("", "", tmp_path / "none", "dev")
    pair = sides.resolve("3.6.0", "3.7.0", None, "dev")
    assert not pair.are_same


@pytest.mark.usefixtures("clone")
def test_a_repository_that_is_not_tritons(make: Callable[[str], Made], tmp_path: Path) -> None:
    other = make("other")
    with pytest.raises(FactError):
        sides.resolve("", "", other.path, "dev")  # no commit yet
    other.commit("first", {"file": "text"})
    with pytest.raises(FactError, match="this is no commit of Triton"):
        sides.resolve("", "", other.path, "dev")
    with pytest.raises(FactError, match="not a git repository"):
        sides.resolve("main", "HEAD", tmp_path, "dev")


def test_a_build_that_fails_names_its_side(clone: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(_builds: CommitBuilds, _commit: object) -> None:
        raise StepError("the build failed", where="log", why="a.cpp:1: error", hints=["look"])

    monkeypatch.setattr(CommitBuilds, "make", make)
    head = resolve(clone, "main", "main").head
    with pytest.raises(SmithError) as raised:
        head.make()
    assert raised.value.what == f"{head.triton.label} cannot be built: the build failed"
    assert (raised.value.why, raised.value.hints) == ("a.cpp:1: error", ("look",))
    (line,) = head.plan
    assert line == f"{head.triton.label}: to be built first, with the LLVM aaaaaaaaaaaa (prebuilt)"


def test_results_of_commits_are_listed_and_cleared(clone: Made, tmp_path: Path) -> None:
    space = Workspace(tmp_path / "home")
    space.claim()
    folder = kept.folder_of(resolve(clone, "main", "main").head.triton)
    kept_files.database().keep(f"commits/{folder.name}", "key", "cuda:90:32", "{}", store.pack({"a/b": b"c"}))
    (row,) = kept.results(space)
    assert (row.folder, row.kernels) == (folder, 1)
    space.run(kept.removal(space), "clear-cache")
    assert not kept.results(space)
