"""The provider `source`: a small llvm-project over file://, as a checkout, as a tarball and over HTTP."""

from __future__ import annotations

import io
import json
import lzma
import os
import random
import shutil
import signal
import subprocess
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.harness import (
    DEAD,
    LLVM_PROGRAMS,
    Smith,
    capture,
    commit,
    git,
    plant,
    serving,
    wait_for,
)
from tests.support import require
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import GitFetch, Plan
from tritonsmith.core.plan.download import sha256_of
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress

NEEDED = ["cmake", "llvm", "mlir", "third-party"]  # of llvm-project, by a Triton without lld and gsan
FILECHECK = ("--target", "FileCheck")


@dataclass(frozen=True)
class World:
    """A Triton, its pin, and the LLVM repository that has it.

    Attributes:
        smith: the tool, in a checkout of Triton.
        upstream: LLVM's repository; its branch is one commit ahead of the pin.
        pin: the commit that Triton names.
        head: of the branch.
    """

    smith: Smith
    upstream: Path
    pin: str
    head: str

    @property
    def url(self) -> str:
        """Of the repository."""
        return self.upstream.as_uri()

    def setup(self, source: str | Path, *more: str | Path, code: int = 0) -> Path:
        """`setup-mlir --provider source`, by force: a real LLVM takes more disk than may be free."""
        argv = ("setup-mlir", "--provider", "source", "--llvm-source", source, "--force", *more)
        self.smith(*argv, code=code)
        return Path(str(self.smith.receipt("setup-mlir")["prefix"]))

    def refused(self, source: str | Path, *more: str | Path, code: int = 1) -> str:
        """The error of a `setup-mlir --provider source` that fails."""
        argv = ("setup-mlir", "--provider", "source", "--llvm-source", source, *more)
        return self.smith(*argv, code=code).error

    @property
    def sources(self) -> Path:
        """Sources of the tool's own."""
        return self.smith.home / "sources"


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """LLVM's repository, its first commit and its branch's head."""
    require("git", *LLVM_PROGRAMS)
    repository = plant("mini_llvm", tmp_path_factory.mktemp("upstream") / "llvm-project")
    git(repository, "config", "uploadpack.allowFilter", "true")
    git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    pin = git(repository, "rev-parse", "HEAD")
    (repository / "llvm" / "later.txt").write_text("What came after the pin.\n", encoding="utf-8")
    return repository, pin, commit(repository, "Later")


@pytest.fixture
def world(tmp_path: Path, upstream: tuple[Path, str, str]) -> World:
    """A fresh workspace, and a Triton that pins the first commit."""
    repository, pin, head = upstream
    root = tmp_path / "a space"
    root.mkdir()
    checkout = plant("mini_triton", root / "triton", {"cmake/llvm-hash.txt": f"{pin}\n"})
    return World(Smith(root, cwd=checkout), repository, pin, head)


@pytest.fixture
def tarball(tmp_path: Path, upstream: tuple[Path, str, str]) -> Path:
    """LLVM's sources at the pin, named as its releases are."""
    repository, pin, _ = upstream
    path = tmp_path / "served" / "llvm-project-19.1.7.src.tar.xz"
    path.parent.mkdir()
    plain = tmp_path / "plain.tar"
    git(repository, "archive", "--prefix=llvm-project-19.1.7.src/", f"--output={plain}", pin)
    path.write_bytes(lzma.compress(plain.read_bytes(), preset=0))
    return path


def test_one_commit_is_fetched_by_its_hash_into_a_sparse_worktree(world: World) -> None:
    prefix = world.setup(world.url, *FILECHECK)
    tree = world.sources / f"llvm-{world.pin[:12]}"
    assert git(tree, "rev-parse", "HEAD") == world.pin
    assert _folders(tree) == NEEDED
    assert capture(prefix / "bin" / "FileCheck") == "FileCheck of mini-llvm\n"
    assert not (prefix / "bin" / "mlir-tblgen").exists()
    receipt = world.smith.receipt("setup-mlir")
    assert (receipt["provider"], receipt["commit"], receipt["pin"]) == ("source", world.pin, world.pin)
    assert (prefix / "tritonsmith-receipt.json").is_file()


def test_what_no_build_needs_is_not_even_downloaded(world: World) -> None:
    world.setup(world.url, *FILECHECK)
    store = world.sources / "llvm-project"
    assert git(store, "rev-list", "--count", world.pin) == "1"
    objects = git(store, "rev-list", "--objects", "--missing=print", world.pin).splitlines()
    missing = {line.removeprefix("?") for line in objects if line.startswith("?")}
    assert git(world.upstream, "rev-parse", f"{world.pin}:flang/README") in missing
    assert git(world.upstream, "rev-parse", f"{world.pin}:llvm/CMakeLists.txt") not in missing


def test_a_second_run_does_nothing_and_needs_no_remote(world: World, tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    shutil.copytree(world.upstream, remote)
    prefix = world.setup(remote.as_uri(), *FILECHECK)
    program = (prefix / "bin" / "FileCheck").stat().st_mtime_ns
    shutil.rmtree(remote)
    world.setup(remote.as_uri(), *FILECHECK)
    log = world.smith.log("setup-mlir")
    assert "ninja: no work to do." in log
    assert "fetch" not in log
    assert (prefix / "bin" / "FileCheck").stat().st_mtime_ns == program


def test_all_of_it_is_built_and_doctor_is_content(world: World) -> None:
    prefix = world.setup(world.url, "--scope", "all", "--build-type", "Release", "--no-assertions")
    assert capture(prefix / "bin" / "mlir-tblgen") == "mlir-tblgen of mini-llvm\n"
    cache = (prefix / "CMakeCache.txt").read_text(encoding="utf-8")
    assert "CMAKE_BUILD_TYPE:STRING=Release" in cache
    assert "LLVM_ENABLE_ASSERTIONS:STRING=OFF" in cache
    found = json.loads(world.smith("doctor", "--only", "builds", "--json").out)["findings"]
    assert {row["id"]: row["status"] for row in found}["builds.llvm"] == "ok"


def test_a_commit_that_the_remote_lacks_is_named_with_the_remote(world: World) -> None:
    nowhere = "0123456789abcdef0123456789abcdef01234567"
    (world.smith.cwd / "cmake" / "llvm-hash.txt").write_text(nowhere, encoding="utf-8")
    error = world.refused(world.url, *FILECHECK)
    assert f"no remote provides commit {nowhere}" in error
    assert world.url in error
    assert "--llvm-source" in error
    assert not world.smith.env("dev").joinpath("receipts").exists()


def test_a_lock_that_a_killed_git_left_is_named(world: World) -> None:
    world.setup(world.url, *FILECHECK)
    next(world.sources.glob(".llvm-*.done")).unlink()
    lock = world.sources / "llvm-project" / ".git" / "shallow.lock"
    lock.touch()
    assert str(lock) in world.refused(world.url, *FILECHECK)
    lock.unlink()
    world.setup(world.url, *FILECHECK)


@pytest.mark.parametrize("first", ["unreachable", "lacks the commit"])
def test_the_second_remote_is_asked_where_the_first_one_fails(
    world: World, tmp_path: Path, first: str
) -> None:
    other = plant("mini_llvm", tmp_path / "other", {"flang/README": "Another history.\n"})
    url = other.as_uri() if first == "lacks the commit" else (tmp_path / "gone").as_uri()
    store = tmp_path / "store"
    _fetch(GitFetch(store, (url, world.url), world.pin, phase="fetch"), tmp_path / "log")
    assert git(store, "rev-parse", "FETCH_HEAD") == world.pin
    tree = tmp_path / "tree"
    git(store, "worktree", "add", "--quiet", "--detach", str(tree), world.pin)
    assert (tree / "flang" / "README").read_text(encoding="utf-8") == "No Triton needs this folder.\n"


def test_where_no_remote_has_it_each_one_is_named_with_its_reason(world: World, tmp_path: Path) -> None:
    urls = ((tmp_path / "gone").as_uri(), f"{DEAD}/llvm-project")
    with pytest.raises(StepError) as caught:
        _fetch(GitFetch(tmp_path / "store", urls, world.pin, phase="fetch"), tmp_path / "log")
    assert caught.value.why is not None
    assert [line.partition(": ")[0] for line in caught.value.why.splitlines()] == list(urls)


def test_a_checkout_at_the_pin_is_used_as_it_is(world: World, tmp_path: Path) -> None:
    mine = _clone(world, tmp_path / "my llvm", world.pin)
    before = _state(mine)
    prefix = world.setup(mine, *FILECHECK)
    assert f"CMAKE_HOME_DIRECTORY:INTERNAL={mine / 'llvm'}\n" in _cache(prefix)
    assert not world.sources.exists()
    assert _state(mine) == before


def test_a_checkout_elsewhere_lends_its_objects_and_is_left_alone(world: World, tmp_path: Path) -> None:
    mine = _clone(world, tmp_path / "my llvm", "main")
    (mine / "llvm" / "CMakeLists.txt").write_text("my work, not committed\n", encoding="utf-8")
    (mine / "llvm" / "untracked").touch()
    before = _state(mine)
    assert before["head"] == world.head
    prefix = world.setup(mine, *FILECHECK)
    tree = world.sources / f"llvm-{world.pin[:12]}"
    assert f"CMAKE_HOME_DIRECTORY:INTERNAL={tree / 'llvm'}\n" in _cache(prefix)
    assert _folders(tree) == NEEDED
    assert _state(mine) == before


def test_a_checkout_that_lacks_the_pin_says_so(world: World, tmp_path: Path) -> None:
    mine = plant("mini_llvm", tmp_path / "my llvm", {"flang/README": "Another history.\n"})
    error = world.refused(mine, *FILECHECK)
    assert "does not have the commit that Triton pins [commit-not-in-clone]" in error
    assert world.pin in error
    assert "git fetch origin" in error


def test_any_commit_takes_a_checkout_where_it_stands(world: World, tmp_path: Path) -> None:
    mine = _clone(world, tmp_path / "my llvm", "main")
    before = _state(mine)
    argv = ("--provider", "source", "--llvm-source", mine, "--any-commit", *FILECHECK)
    done = world.smith("setup-mlir", *argv)
    assert f"the sources' commit is {world.head[:12]}" in done.err
    assert world.smith.receipt("setup-mlir")["commit"] == world.head
    assert not world.sources.exists()
    assert _state(mine) == before


def test_of_a_tarball_only_the_needed_folders_are_extracted(world: World, tarball: Path) -> None:
    prefix = world.setup(tarball, "--sha256", sha256_of(tarball), *FILECHECK)
    assert (prefix / "bin" / "FileCheck").is_file()
    (tree,) = (path for path in world.sources.iterdir() if path.is_dir())
    assert _folders(tree) == NEEDED
    assert sorted(path.name for path in tree.iterdir()) == NEEDED


def test_a_tarball_with_another_checksum_is_not_extracted(world: World, tarball: Path) -> None:
    error = world.refused(tarball, "--sha256", "0" * 64, *FILECHECK)
    assert "the archive has the wrong checksum" in error
    assert sha256_of(tarball) in error
    assert tarball.is_file()
    assert not any(path.is_dir() for path in world.sources.glob("*"))


def test_a_tarball_comes_over_http_once(world: World, tarball: Path) -> None:
    with serving(tarball.parent) as server:
        url = f"{server.url}/{tarball.name}"
        for _ in range(2):
            world.setup(url, "--sha256", sha256_of(tarball), *FILECHECK)
        assert server.downloads == [(f"/{tarball.name}", "")]
    assert "ninja: no work to do." in world.smith.log("setup-mlir")


def test_a_tarball_over_http_with_another_checksum_is_thrown_away(world: World, tarball: Path) -> None:
    with serving(tarball.parent) as server:
        error = world.refused(f"{server.url}/{tarball.name}", "--sha256", "0" * 64, *FILECHECK)
    assert "has the wrong checksum and was deleted" in error
    assert sha256_of(tarball) in error
    assert not any((world.smith.home / "downloads").glob("llvm*"))
    assert not any(path.is_dir() for path in world.sources.glob("*"))


def test_a_tarball_over_http_without_a_checksum_is_a_usage_error(world: World) -> None:
    error = world.refused(f"{DEAD}/llvm.tar.gz", *FILECHECK, code=2)
    assert "needs a checksum" in error
    assert "--sha256" in error


def test_a_run_that_was_killed_while_it_extracted_heals(world: World, tmp_path: Path) -> None:
    tarball = _large(world.upstream, tmp_path / "llvm-large.tar.gz")
    argv = ("setup-mlir", "--provider", "source", "--llvm-source", tarball, *FILECHECK)
    with world.smith.running(*argv) as process:
        wait_for(lambda: any(world.sources.glob("*.partial")), process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert [path.suffix for path in world.sources.iterdir()] == [".partial"]
    world.setup(tarball, *FILECHECK)
    (tree,) = (path for path in world.sources.iterdir() if path.is_dir())
    assert len(list((tree / "llvm" / "many").iterdir())) == _MANY


@pytest.mark.parametrize("kind", ["worktree", "tarball"])
def test_sources_that_somebody_deleted_are_made_again(world: World, tarball: Path, kind: str) -> None:
    source = world.url if kind == "worktree" else tarball
    world.setup(source, *FILECHECK)
    (tree,) = (path for path in world.sources.glob("llvm-*") if path.is_dir() and path.name != "llvm-project")
    shutil.rmtree(tree)
    world.setup(source, *FILECHECK)
    assert _folders(tree) == NEEDED


@pytest.mark.parametrize("kind", ["worktree", "tarball"])
def test_sources_without_their_stamp_are_made_again(world: World, tarball: Path, kind: str) -> None:
    source = world.url if kind == "worktree" else tarball
    world.setup(source, *FILECHECK)
    (stamp,) = world.sources.glob(".*.done")
    (tree,) = (path for path in world.sources.glob("llvm-*") if path.is_dir() and path.name != "llvm-project")
    stamp.unlink()
    shutil.rmtree(tree / "mlir")
    (tree / "llvm" / "CMakeLists.txt").write_text("half a file", encoding="utf-8")
    world.setup(source, *FILECHECK)
    assert _folders(tree) == NEEDED
    assert stamp.is_file()


def test_a_failing_configure_of_llvm_shows_its_place(world: World, tmp_path: Path) -> None:
    mine = _clone(world, tmp_path / "my llvm", world.pin)
    listing = mine / "llvm" / "CMakeLists.txt"
    listing.write_text('project(broken NONE)\nmessage(FATAL_ERROR "not today")\n', encoding="utf-8")
    error = world.refused(mine, *FILECHECK)
    assert "configure LLVM failed" in error
    assert "CMakeLists.txt:2" in error
    assert "not today" in error
    assert "full log: " in error


@pytest.mark.parametrize("kind", ["worktree", "tarball"])
def test_the_script_of_a_dry_run_does_the_same_by_hand(world: World, tarball: Path, kind: str) -> None:
    source = world.url if kind == "worktree" else tarball
    argv = ("setup-mlir", "--provider", "source", "--llvm-source", source, *FILECHECK)
    script = world.smith(*argv, "--dry-run").out
    assert not world.smith.home.exists()
    done = subprocess.run(
        ("sh", "-s"),
        input=script,
        env=world.smith.environ,
        cwd=world.smith.root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (program,) = (world.smith.home / "llvm").glob("*/bin/FileCheck")
    assert capture(program) == "FileCheck of mini-llvm\n"
    (tree,) = (path for path in world.sources.glob("llvm-*") if path.is_dir() and path.name != "llvm-project")
    assert _folders(tree) == NEEDED


def test_an_env_that_names_a_url_gets_a_checkout_of_the_tools_own(world: World, tmp_path: Path) -> None:
    env = tmp_path / "mine.toml"
    env.write_text(f'[triton]\nsource = "{world.smith.cwd.as_uri()}"\n', encoding="utf-8")
    elsewhere = Smith(world.smith.root, cwd=tmp_path)
    commit(world.smith.cwd, "The pin")
    argv = ("setup-mlir", "--env", env, "--provider", "source", "--llvm-source", world.url, *FILECHECK)
    elsewhere(*argv)
    assert (world.sources / "triton-mine" / "setup.py").is_file()
    assert elsewhere.receipt("setup-mlir", "mine")["pin"] == world.pin


_MANY = 4000


def _large(repository: Path, path: Path) -> Path:
    """A tarball whose extraction takes long enough to be seen."""
    content = bytes(1024)
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for name in ("llvm", "mlir", "cmake", "third-party"):
            tar.add(repository / name, f"llvm-large/{name}")
        for number in range(_MANY):
            member = tarfile.TarInfo(f"llvm-large/llvm/many/{number}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def _fetch(step: GitFetch, log: Path) -> None:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    Runner(log, PhaseProgress(live=False, silent=True), environ).run(Plan("fetch", (step,)))


def _folders(tree: Path) -> list[str]:
    """Folders of a source tree."""
    return sorted(path.name for path in tree.iterdir() if path.is_dir() and path.name != ".git")


def _cache(prefix: Path) -> str:
    return (prefix / "CMakeCache.txt").read_text(encoding="utf-8")


def _clone(world: World, path: Path, revision: str) -> Path:
    """A clone of a person's own."""
    git(world.upstream, "clone", "--quiet", str(world.upstream), str(path))
    git(path, "checkout", "--quiet", revision)
    return path


def _state(repository: Path) -> dict[str, object]:
    """Everything about a checkout that is its owner's."""
    files = (path for path in repository.rglob("*") if ".git" not in path.parts and path.is_file())
    return {
        "head": git(repository, "rev-parse", "HEAD"),
        "branch": git(repository, "rev-parse", "--abbrev-ref", "HEAD"),
        "refs": git(repository, "for-each-ref"),
        "status": git(repository, "status", "--porcelain"),
        "files": {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files},
    }


@pytest.mark.slow
def test_killed_at_random_beside_a_collection(world: World) -> None:
    """Either may die at any moment: no half entry is shown, nothing in use goes, and the next run goes on."""
    begin = ("setup-mlir", "--provider", "source", "--llvm-source", world.url, *FILECHECK)
    chance = random.Random(6)  # noqa: S311 - the same each time
    for _ in range(int(os.environ.get("TRITONSMITH_FUZZ", "2"))):
        with world.smith.running(*begin) as setup, world.smith.running("store.gc", "--yes") as collection:
            time.sleep(chance.uniform(0.2, 8))
            victim = chance.choice((setup, setup, collection))
            victim.kill()
            said = [process.communicate(timeout=300)[1] for process in (setup, collection)]
        assert not any("Traceback" in text for text in said), said
        assert {setup.returncode, collection.returncode} <= {0, 1, -signal.SIGKILL}, said
        entries = json.loads(world.smith("store.list", "--json").out)["entries"]
        assert {entry["status"] for entry in entries} <= {"ready", "unfinished"}, entries
        if entries and {entry["status"] for entry in entries} == {"ready"}:
            assert "intact" in world.smith("store.verify").out
    prefix = world.setup(world.url, *FILECHECK)
    assert "used by" in world.smith("store.gc", "--yes").out
    assert capture(prefix / "bin" / "FileCheck") == "FileCheck of mini-llvm\n"
    assert world.smith("store.verify").out.endswith(": intact\n")
