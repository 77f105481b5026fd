"""LLVM's sources: what a path or URL names, and the steps that bring them at the pin."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from git import Actor, Repo

from tests.unit.build import made
from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.llvm.source import LlvmSource, SourceTree, locate, obtain
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Download, Extract, GitFetch, MakeDir, Remove, Run
from tritonsmith.facts.tools import Tool

GIT = "https://github.com/llvm/llvm-project"
TARBALL = f"{GIT}/archive/{made.PIN}.tar.gz"
SPACE = made.workspace()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The folders of LLVM, under git, with one commit."""
    root = tmp_path / "llvm-project"
    (root / "llvm").mkdir(parents=True)
    (root / "llvm" / "CMakeLists.txt").write_text("project(LLVM)\n", encoding="utf-8")
    somebody = Actor("somebody", "somebody@example.org")
    with Repo.init(root) as repo:
        repo.index.add(["llvm/CMakeLists.txt"])
        repo.index.commit("LLVM", author=somebody, committer=somebody)
    return root


@pytest.mark.parametrize(
    ("named", "kind"),
    [
        (GIT, "git"),
        ("git@github.com:llvm/llvm-project.git", "git"),
        ("ssh://git@mirror.example/llvm", "git"),
        ("file:///srv/mirrors/llvm.git", "git"),
        (TARBALL, "tarball"),
        ("file:///srv/llvm-19.1.7.src.tar.xz", "tarball"),
    ],
)
def test_urls(named: str, kind: str) -> None:
    assert locate(named) == LlvmSource(kind, named)  # type: ignore[arg-type]


def test_nothing_named_means_upstream() -> None:
    assert locate("") == LlvmSource("git", GIT)


def test_a_checkout_tells_its_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Repo(checkout) as repo:
        commit = repo.head.commit.hexsha
    assert locate(str(checkout)) == LlvmSource("checkout", str(checkout), commit)
    monkeypatch.chdir(checkout.parent)
    assert locate(checkout.name).location == str(checkout)
    monkeypatch.setenv("HOME", str(checkout.parent))
    assert locate(f"~/{checkout.name}").location == str(checkout)


def test_sources_without_git_have_no_commit(tmp_path: Path) -> None:
    (tmp_path / "llvm").mkdir()
    (tmp_path / "llvm" / "CMakeLists.txt").touch()
    assert locate(str(tmp_path)) == LlvmSource("checkout", str(tmp_path), "")


def test_a_bare_repository_and_a_clone_without_files_are_fetched_from(tmp_path: Path) -> None:
    bare, empty = tmp_path / "llvm.git", tmp_path / "clone"
    Repo.init(bare, bare=True).close()
    Repo.init(empty).close()
    assert [locate(str(path)).kind for path in (bare, empty)] == ["git", "git"]


@pytest.mark.parametrize("name", ["llvm-19.1.7.src.tar.xz", "llvm_19.orig.tar.bz2", "llvm.tgz", "llvm.tar"])
def test_a_tarball_on_this_disk(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert locate(str(tmp_path / name)) == LlvmSource("tarball", str(tmp_path / name))


@pytest.mark.parametrize("name", ["empty", "absent", "notes.txt"])
def test_a_path_without_sources_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(FactError, match="not a source tree of LLVM") as caught:
        locate(str(tmp_path / name))
    assert caught.value.where == str(tmp_path / name)


def runs(tree: SourceTree) -> list[tuple[str, ...]]:
    return [step.argv for step in tree.steps if isinstance(step, Run)]


def test_from_git_one_commit_is_fetched_into_a_worktree_of_the_tools_own() -> None:
    tree = obtain(locate(""), made.request(made.PIN, "needs-lld"), SPACE)
    path = SPACE.sources / "llvm-a66376b0dc3b"
    assert (tree.path, tree.commit) == (path, made.PIN)
    fetch = tree.steps[0]
    assert isinstance(fetch, GitFetch)
    assert (fetch.repository, fetch.commit) == (SPACE.sources / "llvm-project", made.PIN)
    assert len(fetch.urls) == 2  # upstream, then the fork
    add, sparse, checkout = runs(tree)
    assert add[:5] == ("git", "-C", str(fetch.repository), "worktree", "add")
    assert add[-2:] == (str(path), made.PIN)
    assert sparse[3:] == (
        "sparse-checkout",
        "set",
        "cmake",
        "llvm",
        "mlir",
        "third-party",
        "lld",
        "libunwind",
    )
    assert checkout == ("git", "-C", str(path), "checkout", "--force", "--detach", made.PIN)
    stamps = {step.stamp.path for step in tree.steps if step.stamp}
    assert stamps == {SPACE.sources / ".llvm-a66376b0dc3b.done"}


def test_another_remote_is_the_only_one_asked() -> None:
    tree = obtain(locate("https://mirror.example/llvm.git"), made.request(), SPACE)
    fetch = tree.steps[0]
    assert isinstance(fetch, GitFetch)
    assert fetch.urls == ("https://mirror.example/llvm.git",)


def test_what_an_interrupted_run_left_is_removed_before_the_worktree_is_made() -> None:
    """`git worktree add` refuses a folder that is there."""
    steps = obtain(locate(""), made.request(), SPACE).steps
    kinds = [type(step) for step in steps]
    assert kinds == [GitFetch, MakeDir, Remove, Run, Run, Run]
    remove = steps[2]
    assert isinstance(remove, Remove)
    assert (remove.paths, remove.root) == ((SPACE.sources / "llvm-a66376b0dc3b",), SPACE.root)


def test_a_checkout_at_the_pin_is_built_where_it_is() -> None:
    source = LlvmSource("checkout", "/home/dev/llvm-project", made.PIN)
    assert obtain(source, made.request(), SPACE) == SourceTree(Path(source.location), made.PIN, ())


def test_a_checkout_elsewhere_gives_a_worktree_and_stays_as_it_is() -> None:
    source = LlvmSource("checkout", "/home/dev/llvm-project", made.OTHER)
    tree = obtain(source, made.request(), SPACE)
    assert tree.path == SPACE.sources / "llvm-a66376b0dc3b"
    assert not [step for step in tree.steps if isinstance(step, GitFetch)]
    add, *others = runs(tree)
    assert add[:5] == ("git", "-C", "/home/dev/llvm-project", "worktree", "add")
    assert add[-2] == str(tree.path)
    assert all(argv[2] == str(tree.path) for argv in others)


def test_any_commit_builds_a_checkout_elsewhere_too() -> None:
    source = LlvmSource("checkout", "/home/dev/llvm-project", made.OTHER)
    tree = obtain(source, made.request(any_commit=True), SPACE)
    assert tree == SourceTree(Path("/home/dev/llvm-project"), made.OTHER, ())


def test_a_tarball_on_this_disk_is_extracted() -> None:
    tree = obtain(LlvmSource("tarball", "/srv/llvm_19.1.7.orig.tar.xz"), made.request(), SPACE)
    assert re.fullmatch(r"llvm_19\.1\.7-[0-9a-f]{8}", tree.path.name)
    assert (tree.path.parent, tree.commit) == (SPACE.sources, "")
    extract = tree.steps[-1]
    assert isinstance(extract, Extract)
    assert (extract.archive, extract.dest) == (Path("/srv/llvm_19.1.7.orig.tar.xz"), tree.path)
    assert extract.only == ("cmake", "llvm", "mlir", "third-party")
    assert extract.sha256 is None


def test_other_projects_are_another_folder() -> None:
    source = LlvmSource("tarball", "/srv/llvm.tar.xz")
    paths = {obtain(source, made.request(made.PIN, *names), SPACE).path for names in ((), ("needs-lld",))}
    assert len(paths) == 2


def test_a_tarball_from_a_url_is_verified_twice() -> None:
    tree = obtain(locate(TARBALL), made.request(sha256="ab" * 32), SPACE)
    download = next(step for step in tree.steps if isinstance(step, Download))
    assert (download.url, download.sha256) == (TARBALL, "ab" * 32)
    assert download.dest == SPACE.downloads / f"{made.PIN}.tar.gz"
    extract = tree.steps[-1]
    assert isinstance(extract, Extract)
    assert (extract.archive, extract.sha256) == (download.dest, "ab" * 32)


def test_a_tarball_from_a_url_needs_a_checksum() -> None:
    with pytest.raises(UsageError, match="needs a checksum") as caught:
        obtain(locate(TARBALL), made.request(), SPACE)
    assert "--sha256 HEX" in str(caught.value)


def name(tree: SourceTree, request: LlvmRequest | None = None, **means: Any) -> str:
    return llvm_source.key(tree, request or made.request(), made.means(**means)).name


PINNED = SourceTree(Path("/home/dev/llvm-project"), made.PIN, ())


def test_builds_have_folders_of_their_own_where_the_result_differs() -> None:
    default = name(PINNED)
    assert re.fullmatch(r"a66376b0dc3b-RelWithDebInfo-asserts-[0-9a-f]{8}", default)
    newer = made.compilers(cxx=Tool("clang++", Path("/usr/lib/llvm-20/bin/clang++"), "20.1.8"))
    others = [
        name(PINNED, compilers=newer),
        name(PINNED, compilers=made.compilers(linker=None)),
        name(PINNED, machine=made.machine(glibcxx="3.4.30")),
        name(PINNED, made.request(shared=True)),
        name(PINNED, made.request(build_type="Debug")),
        name(PINNED, made.request(assertions=False)),
        name(PINNED, made.request(targets=("X86", "NVPTX", "AMDGPU"))),
        name(PINNED, made.request(debug_info="none")),
        name(PINNED, made.request(made.PIN, "needs-lld")),
        name(replace(PINNED, dirty=True)),
        name(replace(PINNED, commit=made.OTHER)),
    ]
    assert len({default, *others}) == 12


def test_the_same_result_has_one_folder() -> None:
    """A build grows where it is, and what only makes it quicker makes no other one."""
    same = [
        name(replace(PINNED, path=Path("/srv/another/clone"))),
        name(PINNED, precompiled=False),
        name(PINNED, made.request(any_commit=True, ninja_targets=("opt",))),
        name(PINNED, made.request(scope="python-module")),
        name(PINNED, made.request(scope="all")),
        name(PINNED, made.request(thin_archives=False, optimized_tablegen=False)),
    ]
    assert set(same) == {name(PINNED)}


def test_changed_sources_are_built_in_a_folder_of_their_own_place() -> None:
    """So that a change is rebuilt in place, and another tree's changes are not mixed into it."""
    mine = replace(PINNED, dirty=True)
    assert name(mine) == name(replace(mine, steps=()))
    assert name(mine) != name(replace(mine, path=Path("/home/dev/other")))


def test_sources_without_a_commit_give_their_folders_name() -> None:
    tree = SourceTree(Path("/srv/llvm-19.1.7"), "", ())
    assert name(tree).startswith("llvm-19.1.7-RelWithDebInfo-asserts-")
    assert name(tree) != name(replace(tree, path=Path("/opt/llvm-19.1.7")))
