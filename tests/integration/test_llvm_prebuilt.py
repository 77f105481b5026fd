"""The provider `prebuilt`, from an HTTP server on this machine."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.harness import DEAD, Done, Served, Smith, plant, serving
from tests.support import require
from tritonsmith.core.plan.download import sha256_of

PIN = "86b69c31642e98f8357df62c09d118ad1da4e16a"
SUFFIXES = ("almalinux-arm64", "almalinux-x64", "macos-arm64", "macos-x64", "ubuntu-arm64", "ubuntu-x64")
_CONFIG = "set(LLVM_PACKAGE_VERSION 19.1.7)\nset(LLVM_BUILD_TYPE Release)\n"
_SIZE = 3 << 20  # bytes of the library, which does not compress


@dataclass(frozen=True)
class World:
    """A Triton that names archives with checksums, and the server that has them.

    Attributes:
        smith: the tool, in a checkout of that Triton.
        server: has the archives of every suffix.
        folder: that the server serves.
        env: env file that names the server.
    """

    smith: Smith
    server: Served
    folder: Path
    env: Path

    def setup(self, code: int = 0) -> Done:
        """`setup-mlir` with the env file."""
        return self.smith("setup-mlir", "--env", self.env, code=code)

    @property
    def prefix(self) -> Path:
        """Where the archive was extracted to."""
        return Path(str(self.smith.receipt("setup-mlir", "mirror")["prefix"]))

    @property
    def unpacked(self) -> list[str]:
        """LLVMs, and what might be taken for one, in the store."""
        return sorted(path.name for path in self.smith.home.glob("llvm/llvm-*") if path.is_dir())


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with an archive for every suffix, and their one checksum."""
    folder = tmp_path_factory.mktemp("archives")
    first = folder / _name(SUFFIXES[0])
    noise = (_SIZE // 32 + 1) * bytes(range(7, 39))
    files = {
        "lib/cmake/llvm/LLVMConfig.cmake": _CONFIG.encode(),
        "lib/cmake/mlir/MLIRConfig.cmake": b"",
        "lib/libLLVMSupport.a": noise[:_SIZE],
        "include/llvm/Support/VCSRevision.h": f'#define LLVM_REVISION "{PIN}"\n'.encode(),
    }
    with tarfile.open(first, "w:gz", compresslevel=0) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{first.name.removesuffix('.tar.gz')}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    for suffix in SUFFIXES[1:]:
        (folder / _name(suffix)).hardlink_to(first)
    return folder, sha256_of(first)


@pytest.fixture
def world(tmp_path: Path, archives: tuple[Path, str]) -> Iterator[World]:
    """A fresh workspace."""
    require("git")
    folder, sha256 = archives
    info = {"llvm_hash": PIN, "build_number": 7, "sha256sum": dict.fromkeys(SUFFIXES, sha256)}
    changes = {"cmake/llvm-info.json": json.dumps(info), "cmake/llvm-hash.txt": ""}
    checkout = plant("mini_triton", tmp_path / "triton", changes)
    with serving(folder) as server:
        env = tmp_path / "mirror.toml"
        env.write_text(_env(server.url), encoding="utf-8")
        yield World(Smith(tmp_path, cwd=checkout), server, folder, env)


def test_the_archive_for_this_machine_is_taken_verified_and_extracted(world: World) -> None:
    world.setup()
    ((asked, _),) = world.server.downloads
    assert re.fullmatch(r"/llvm-86b69c31-(ubuntu|almalinux|macos)-(x64|arm64)-7\.tar\.gz", asked)
    assert world.prefix.name == asked[1:].removesuffix(".tar.gz")
    assert (world.prefix / "lib" / "libLLVMSupport.a").stat().st_size == _SIZE
    receipt = json.loads((world.prefix / "tritonsmith-receipt.json").read_text(encoding="utf-8"))
    assert (receipt["provider"], receipt["commit"]) == ("prebuilt", PIN)
    found = json.loads(world.smith("doctor", "--env", world.env, "--only", "builds", "--json").out)[
        "findings"
    ]
    assert {row["id"]: row["status"] for row in found}["builds.llvm"] == "ok"


def test_a_second_run_downloads_nothing_and_needs_no_server(world: World) -> None:
    world.setup()
    library = (world.prefix / "lib" / "libLLVMSupport.a").stat().st_mtime_ns
    asked = len(world.server.downloads)
    world.setup()
    assert len(world.server.downloads) == asked
    assert (world.prefix / "lib" / "libLLVMSupport.a").stat().st_mtime_ns == library


@pytest.mark.parametrize("kept", ["llvm", "archive"])
def test_what_is_there_is_taken_though_the_server_is_gone(world: World, kept: str) -> None:
    with serving(world.folder) as other:
        world.env.write_text(_env(other.url), encoding="utf-8")
        world.setup()
    shutil.rmtree(world.smith.home / "downloads" if kept == "llvm" else world.prefix)
    done = world.setup()
    assert "chosen: prebuilt" in done.err
    assert (world.prefix / "lib" / "libLLVMSupport.a").stat().st_size == _SIZE


def test_a_broken_download_is_resumed_where_it_ended(world: World) -> None:
    world.server.break_after = 1_000_000
    error = world.setup(code=1).error
    assert "cannot download" in error
    assert f"{world.server.url}/llvm-86b69c31-" in error
    (partial,) = (world.smith.home / "downloads").iterdir()
    assert (partial.suffix, partial.stat().st_size) == (".partial", 1_000_000)
    assert world.unpacked == []
    world.setup()
    assert [extent for _, extent in world.server.downloads] == ["", "bytes=1000000-"]
    assert not partial.exists()
    assert world.prefix.is_dir()


def test_an_archive_with_another_checksum_is_refused_and_thrown_away(world: World) -> None:
    _promise(world.smith.cwd, "0" * 64)
    error = world.setup(code=1).error
    assert "has the wrong checksum and was deleted" in error
    assert "0" * 64 in error
    assert list((world.smith.home / "downloads").iterdir()) == []
    assert world.unpacked == []


def test_an_archive_that_is_no_archive_leaves_nothing_under_its_name(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    folder.mkdir()
    for suffix in SUFFIXES:
        (folder / _name(suffix)).write_bytes((world.folder / _name(suffix)).read_bytes()[: _SIZE // 2])
    _promise(world.smith.cwd, sha256_of(folder / _name(SUFFIXES[0])))
    with serving(folder) as damaged:
        world.env.write_text(_env(damaged.url), encoding="utf-8")
        error = world.setup(code=1).error
    assert "cannot extract this archive" in error
    assert [name for name in world.unpacked if not name.endswith(".partial")] == []


def test_a_server_without_the_archive_is_named_with_its_answer(world: World, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with serving(tmp_path / "empty") as empty:
        world.env.write_text(_env(empty.url), encoding="utf-8")
        error = world.setup(code=1).error
    assert f"{empty.url}/llvm-86b69c31-" in error
    assert "404" in error


def test_an_unreachable_server_is_named_together_with_the_other_providers(world: World) -> None:
    world.env.write_text(_env(DEAD), encoding="utf-8")
    error = world.setup(code=1).error
    assert f"{DEAD}/llvm-86b69c31-" in error
    assert "Connection refused" in error
    assert "--provider system" in error
    assert "--provider source" in error
    assert not world.smith.home.exists()


def test_a_checkout_without_checksums_wants_one(world: World) -> None:
    path = world.smith.cwd / "cmake" / "llvm-info.json"
    path.write_text(json.dumps({"llvm_hash": PIN, "build_number": 7}), encoding="utf-8")
    error = world.setup(code=1).error
    assert "cmake/llvm-info.json has no checksum for" in error
    assert "--sha256" in error


def _name(suffix: str) -> str:
    return f"llvm-{PIN[:8]}-{suffix}-7.tar.gz"


def _env(url: str) -> str:
    return f'[llvm]\nprovider = "prebuilt"\nprebuilt-url = "{url}"\n'


def _promise(checkout: Path, sha256: str) -> None:
    """Another checksum for every suffix."""
    path = checkout / "cmake" / "llvm-info.json"
    info = json.loads(path.read_text(encoding="utf-8"))
    info["sha256sum"] = dict.fromkeys(SUFFIXES, sha256)
    path.write_text(json.dumps(info), encoding="utf-8")
