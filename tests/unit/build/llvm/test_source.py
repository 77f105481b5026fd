"""LLVM's sources: what a path or URL names, and the steps that bring them at the pin."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from git import Actor, Repo

from tests.unit.build import made
from tests.unit.build.conftest import Golden
from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.llvm.source import LlvmSource, SourceTree, locate, obtain
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan, Remove
from tritonsmith.facts.llvm_tree import LlvmRequest
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


BROUGHT = {
    "git": (locate(""), made.request(made.PIN, "needs-lld")),
    "another-remote": (locate("https://mirror.example/llvm.git"), made.request()),
    "checkout-elsewhere": (LlvmSource("checkout", "/home/dev/llvm-project", made.OTHER), made.request()),
    "tarball": (LlvmSource("tarball", "/srv/llvm_19.1.7.orig.tar.xz"), made.request()),
    "tarball-from-a-url": (locate(TARBALL), made.request(sha256="ab" * 32)),
}


@pytest.mark.parametrize("kind", BROUGHT)
def test_sources_are_brought_into_a_folder_of_the_tools_own(kind: str, golden: Golden) -> None:
    """A worktree where there is git. Before it is made, what an interrupted run left has to go."""
    source, request = BROUGHT[kind]
    tree = obtain(source, request, SPACE)
    assert all(step.root == SPACE.root for step in tree.steps if isinstance(step, Remove))
    golden(f"llvm-sources-{kind}.sh", made.shell(Plan(f"{tree.path} at {tree.commit or '?'}", tree.steps)))


def test_a_checkout_at_the_pin_is_built_where_it_is() -> None:
    source = LlvmSource("checkout", "/home/dev/llvm-project", made.PIN)
    assert obtain(source, made.request(), SPACE) == SourceTree(Path(source.location), made.PIN, ())


def test_any_commit_builds_a_checkout_elsewhere_too() -> None:
    source = LlvmSource("checkout", "/home/dev/llvm-project", made.OTHER)
    tree = obtain(source, made.request(any_commit=True), SPACE)
    assert tree == SourceTree(Path("/home/dev/llvm-project"), made.OTHER, ())


def test_sources_without_a_commit_are_built_as_they_are_or_not_at_all() -> None:
    source = LlvmSource("checkout", "/home/dev/llvm-19.1.7")
    with pytest.raises(UsageError, match="is unknown") as caught:
        obtain(source, made.request(), SPACE)
    assert "--any-commit" in str(caught.value)
    with pytest.raises(UsageError, match="dubious ownership"):
        obtain(replace(source, problem="dubious ownership"), made.request(), SPACE)
    assert obtain(source, made.request(any_commit=True), SPACE) == SourceTree(Path(source.location), "", ())


def test_other_projects_are_another_folder() -> None:
    source = LlvmSource("tarball", "/srv/llvm.tar.xz")
    paths = {obtain(source, made.request(made.PIN, *names), SPACE).path for names in ((), ("needs-lld",))}
    assert len(paths) == 2


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
        name(PINNED, made.request(build_type="Debug", optimized_tablegen=False)),
        name(PINNED, made.request(debug_info="none")),
        name(PINNED, made.request(made.PIN, "needs-lld")),
        name(replace(PINNED, dirty=True)),
        name(replace(PINNED, commit=made.OTHER)),
    ]
    assert len({default, *others}) == 13


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
    release = [name(PINNED, made.request(build_type="Release", debug_info=kind)) for kind in ("none", "full")]
    assert len(set(release)) == 1


def test_changed_sources_are_built_in_a_folder_of_their_own_place() -> None:
    """So that a change is rebuilt in place, and another tree's changes are not mixed into it."""
    mine = replace(PINNED, dirty=True)
    assert name(mine) == name(replace(mine, steps=()))
    assert name(mine) != name(replace(mine, path=Path("/home/dev/other")))


def test_sources_without_a_commit_give_their_folders_name() -> None:
    tree = SourceTree(Path("/srv/llvm-19.1.7"), "", ())
    assert name(tree).startswith("llvm-19.1.7-RelWithDebInfo-asserts-")
    assert name(tree) != name(replace(tree, path=Path("/opt/llvm-19.1.7")))
