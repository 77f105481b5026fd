"""`setup-mlir` for an LLVM that is in the store already: when it is configured, built, or taken as it is."""

from __future__ import annotations

import lzma
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.harness import CMAKE, HERE, LLVM_PROGRAMS, Smith, capture, git, plant, ready
from tests.integration.test_llvm_closure import RUN_LINE, TRITON
from tests.support import require
from tritonsmith.core.plan.download import sha256_of

LISTING = (HERE / "mini_llvm" / "llvm" / "CMakeLists.txt").read_text(encoding="utf-8")
LEVERS = """
thin-archives = false
optimized-tablegen = false
precompiled-headers = "off"
[toolchain]
jobs = 1
link-jobs = 1
[cache]
remote = "file://{cache}"
"""


@dataclass(frozen=True)
class World:
    """A Triton, and sources of the LLVM that it pins.

    Attributes:
        smith: the tool, in the checkout of Triton.
        llvm: a clone of LLVM at the pin.
    """

    smith: Smith
    llvm: Path

    def env(self, name: str, more: str = "", provider: str = "source", source: Path | None = None) -> Path:
        """Write an env file."""
        path = self.smith.root / f"{name}.toml"
        head = f'[llvm]\nprovider = "{provider}"\nsource = "{source or self.llvm}"\n'
        path.write_text(head + more.format(cache=self.smith.root.parent / "remote"), encoding="utf-8")
        return path

    def setup(self, env: Path, *more: str, code: int = 0) -> str:
        """`setup-mlir`, and what it said on the screen; a real LLVM would take more disk than may be free."""
        return self.smith("setup-mlir", "--env", env, "--force", *more, code=code).err

    def prefix(self, env: str) -> Path:
        """The LLVM that an environment got."""
        return Path(str(self.smith.receipt("setup-mlir", env)["prefix"]))

    def script(self, env: Path, *more: str) -> list[str]:
        """Commands of a dry run."""
        lines = self.smith("setup-mlir", "--env", env, "--force", *more, "--dry-run").out.splitlines()
        return [line for line in lines if line and not line.startswith("#") and line != "set -eu"]


@pytest.fixture
def world(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    require("git", *LLVM_PROGRAMS)
    root = tmp_path / "a space"
    root.mkdir()
    place = 'set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")'  # as LLVM's own
    listing = LISTING.replace("add_executable(FileCheck", f"{place}\nadd_executable(FileCheck", 1)
    llvm = plant("mini_llvm", root / "llvm-project", {"llvm/CMakeLists.txt": listing})
    pin = git(llvm, "rev-parse", "HEAD")
    changes = {"CMakeLists.txt": TRITON, "test/twice.mlir": RUN_LINE, "cmake/llvm-hash.txt": f"{pin}\n"}
    smith = Smith(root, cwd=plant("mini_triton", root / "triton", changes))
    return World(ready(smith, tmp_path_factory, "one", "two", "shared", "static"), llvm)


def configured(prefix: Path) -> tuple[int, str]:
    """When CMake ran last, and with what."""
    call = (prefix / "tritonsmith-cache.cmake").read_text(encoding="utf-8")
    return (prefix / "CMakeCache.txt").stat().st_mtime_ns, call


@pytest.mark.parametrize("provider", ["source", "auto"])
def test_envs_with_other_levers_share_an_entry_and_leave_it_as_it_is(world: World, provider: str) -> None:
    one, two = world.env("one", provider=provider), world.env("two", LEVERS, provider)
    world.setup(one)
    before = configured(world.prefix("one"))
    for env in (two, one, two):
        assert world.script(env) == []
        world.setup(env)
    assert world.prefix("two") == world.prefix("one")
    assert configured(world.prefix("one")) == before


def test_what_is_missing_is_built_without_a_configure_whatever_the_jobs(world: World) -> None:
    one, two = world.env("one"), world.env("two", LEVERS)
    world.setup(one, "--scope", "python-module")
    prefix = world.prefix("one")
    before = configured(prefix)
    world.setup(two)
    world.setup(one, "--scope", "all", "--jobs", "2")
    assert (prefix / "lib" / "libLLVMUnused.a").is_file()
    assert configured(prefix) == before


def test_changed_sources_are_built_again_without_a_configure(world: World) -> None:
    (world.llvm / "llvm" / "lib" / "Support.cpp").write_text("int mini_support() { return 3; }\n")
    world.setup(world.env("one"))
    prefix = world.prefix("one")
    before = configured(prefix)
    (made,) = prefix.rglob("Support.cpp.o")
    (world.llvm / "llvm" / "lib" / "Support.cpp").write_text("int mini_support() { return 2; }\n")
    os.utime(world.llvm / "llvm" / "lib" / "Support.cpp", (made.stat().st_mtime + 5,) * 2)
    compiled = made.read_bytes()
    world.setup(world.env("two", LEVERS))
    assert world.prefix("two") == prefix
    assert made.read_bytes() != compiled
    assert configured(prefix) == before


@pytest.mark.parametrize("pinned", [True, False])
def test_a_tarball_that_was_built_is_taken_as_it_is(world: World, tmp_path: Path, pinned: bool) -> None:
    plain, tarball = tmp_path / "plain.tar", tmp_path / "llvm-project-19.1.7.src.tar.xz"
    git(world.llvm, "archive", "--prefix=llvm/", f"--output={plain}", "HEAD")
    tarball.write_bytes(lzma.compress(plain.read_bytes(), preset=0))
    more = f'sha256 = "{sha256_of(tarball)}"\n' if pinned else ""
    one, two = world.env("one", more, source=tarball), world.env("two", more + LEVERS, source=tarball)
    world.setup(one)
    before = configured(world.prefix("one"))
    for env in (one, two):
        assert world.script(env) == []
        world.setup(env)
    assert configured(world.prefix("two")) == before
    (source,) = (path for path in (world.smith.home / "sources").iterdir() if path.is_dir())
    (world.smith.home / "sources" / f".{source.name}.done").unlink()  # nobody knows what is in it by now
    assert world.script(one) != []


@pytest.mark.parametrize("provider", ["source", "auto"])
def test_reconfigure_configures_an_entry_of_the_store(world: World, provider: str) -> None:
    one, two = world.env("one", provider=provider), world.env("two", LEVERS, provider)
    world.setup(one)
    when, call = configured(world.prefix("one"))
    said = world.setup(two, "--reconfigure")
    assert "is also used by one" in said
    again, other = configured(world.prefix("two"))
    assert world.prefix("two") == world.prefix("one")
    assert again > when
    assert other != call
    assert "is also used by" not in world.setup(one)


def test_a_part_that_is_adopted_is_given_out_once_all_of_it_is_built(world: World) -> None:
    world.setup(world.env("one"))
    tree, store = world.prefix("one"), world.smith.root / "another store"
    adopt = ("store.adopt", tree, "--store", store)
    assert "build steps left" in world.smith(*adopt).err
    env = world.env("two", f'store = "{store}"\n', "store")
    assert "its build is incomplete" in world.setup(env, code=1)
    capture(CMAKE.with_name("ninja"), "-C", tree)
    assert "changed since it was adopted" in world.setup(env, code=1)
    assert "warning" not in world.smith(*adopt).err
    said = world.setup(env, "--reconfigure")
    assert "is not reconfigured: the entry is adopted" in said
    assert world.prefix("two") == tree


def test_shared_libraries_are_built_taken_and_built_against(world: World) -> None:
    shared, static = world.env("shared", "shared = true\n"), world.env("static")
    world.setup(shared)
    prefix = world.prefix("shared")
    assert (prefix / "lib" / "libLLVMSupport.so").is_file()
    assert world.script(shared) == []
    asked = ("build-triton", "--env", shared, "--backends", "amd", "--dry-run")
    assert str(prefix) in world.smith(*asked).out
    refused = world.smith("build-triton", "--env", static, "--llvm-dir", prefix, "--dry-run", code=1)
    assert "static component libraries" in refused.error
