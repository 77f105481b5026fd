"""Export and import: what goes into an archive, and what comes out of it elsewhere."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.unit.build.store import made, operations
from tritonsmith.build.store import describe_tree, transfer
from tritonsmith.build.store import transfer as store_export
from tritonsmith.build.store.store import Store
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import (
    DownloadError,
    FactError,
    PreflightError,
    SmithError,
    StepError,
    UsageError,
)
from tritonsmith.core.plan.archive import read_ar
from tritonsmith.core.plan.download import sha256_of
from tritonsmith.core.plan.steps import pack as steps_pack
from tritonsmith.facts import llvm_tree

Files = dict[str, bytes | tarfile.TarInfo]


@pytest.fixture
def built(store: Store, space: Workspace, tmp_path: Path) -> Store:
    """A build tree with its sources, a link out of it, and what nobody needs."""
    source = tmp_path / "llvm project"
    for name in (
        "llvm/include/llvm/IR.h",
        "llvm/cmake/modules/AddLLVM.cmake",
        "llvm/lib/IR.cpp",
        "mlir/include/IR.td",
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    tree = operations.a_build(store.path("one"))
    (tree / "CMakeCache.txt").write_text(
        f"CMAKE_HOME_DIRECTORY:INTERNAL={source}/llvm\nCMAKE_CACHEFILE_DIR:INTERNAL={tree}\n"
    )
    with (tree / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake").open("a") as config:
        config.write(f'set(LLVM_INCLUDE_DIRS "{source}/llvm/include;{tree}/include")\n')
    for name in ("include/llvm/Config/llvm-config.h", "tools/mlir/include/Ops.inc", "NATIVE/bin/llvm-tblgen"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    (tree / "bin" / "FileCheck").chmod(0o755)
    (tmp_path / "outside.h").write_text("outside")
    (tree / "include" / "linked.h").symlink_to(tmp_path / "outside.h")
    (tree / "include" / "dangling.h").symlink_to("nothing")
    (tree / "include" / "loop").symlink_to(tree / "include")
    for name in ("lib/cmake/llvm/CMakeFiles/x.cmake", "lib/IR/CMakeFiles/IR.o", "bin/__pycache__/x.pyc"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    made.act(
        space, *store.publish(describe_tree.manifest("one", "built", llvm_tree.read(tree), made.MACHINE))
    )
    return store


def export(store: Store, space: Workspace, dest: str, name: str = "one") -> Path:
    found = store_export.prepare_export(store.entry(name), dest, space, made.MACHINE)
    made.act(space, *found.plan.steps)
    return Path(found.dest)


def bring(store: Store, space: Workspace, place: str, **more: Any) -> transfer.StoreImport:
    source = transfer.locate(place, space, more.pop("sha256", ""))
    made.act(space, *source.plan.steps)
    found = transfer.prepare_import(source, store, space, more.pop("machine", made.MACHINE), **more)
    made.act(space, *found.plan.steps)
    return found


@pytest.fixture
def archive(built: Store, space: Workspace, tmp_path: Path) -> Path:
    """The entry, packed; then it is gone, and so are its sources."""
    packed = export(built, space, str(tmp_path / "one.tar.zst"))
    shutil.rmtree(built.path("one"))
    built.manifest("one").unlink()
    shutil.rmtree(tmp_path / "llvm project")
    return packed


@pytest.fixture
def other(space: Workspace, tmp_path: Path) -> Store:
    return made.store_in(space, str(tmp_path / "another store"))


def test_everything_arrives_and_names_its_new_place(archive: Path, other: Store, space: Workspace) -> None:
    found = bring(other, space, str(archive))
    tree = other.path("one")
    assert (found.there, other.entry("one").status) == (False, "ready")
    assert describe_tree.problems(other.entry("one")) == ()
    files = {str(path.relative_to(tree)) for path in tree.rglob("*") if not path.is_dir()}
    assert files == {
        ".tritonsmith-import",
        "tritonsmith-checksums.json",
        "NATIVE/bin/llvm-tblgen",
        "bin/FileCheck",
        "bin/mlir-tblgen",
        "bin/tblgen",
        "include/linked.h",
        "include/llvm/Config/llvm-config.h",
        "lib/cmake/llvm/LLVMConfig.cmake",
        "lib/cmake/mlir/MLIRConfig.cmake",
        "lib/libLLVMSupport.a",
        "source-include/llvm/cmake/modules/AddLLVM.cmake",
        "source-include/llvm/include/llvm/IR.h",
        "source-include/mlir/include/IR.td",
        "tools/mlir/include/Ops.inc",
    }
    config = (tree / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake").read_text()
    assert f'set(LLVM_INCLUDE_DIRS "{tree}/source-include/llvm/include;{tree}/include")' in config
    assert (tree / "lib" / "cmake" / "mlir" / "MLIRConfig.cmake").read_text() == f'set(X "{tree}/lib")\n'
    assert (tree / "include" / "linked.h").read_text() == "outside"
    assert (tree / "bin" / "tblgen").readlink() == Path("mlir-tblgen")
    assert (tree / "bin" / "FileCheck").stat().st_mode & 0o777 == 0o755
    library = read_ar(tree / "lib" / "libLLVMSupport.a")
    assert (library.thin, [member.size for member in library.objects]) == (False, [300_001, 70_000])
    have = other.entry("one").manifest
    assert have is not None
    assert (have.kind, have.source, have.origin) == ("imported", "", str(archive))


def test_the_same_tree_gives_the_same_archive(built: Store, space: Workspace, tmp_path: Path) -> None:
    one = export(built, space, str(tmp_path / "one.tar.zst"))
    (built.path("one") / "bin" / "FileCheck").touch()
    two = export(built, space, str(tmp_path / "two.tar.zst"))
    assert sha256_of(one) == sha256_of(two)


def test_what_was_imported_can_be_exported(
    archive: Path, other: Store, space: Workspace, tmp_path: Path
) -> None:
    bring(other, space, str(archive))
    again = export(other, space, str(tmp_path / "again.tar.zst"))
    third = made.store_in(space, str(tmp_path / "third"))
    bring(third, space, str(again))
    config = (third.path("one") / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake").read_text()
    assert str(third.path("one") / "source-include" / "llvm" / "include") in config
    assert str(other.root) not in config
    assert (third.path("one") / "source-include" / "llvm" / "include" / "llvm" / "IR.h").is_file()


def test_an_export_says_what_it_lacks(built: Store, space: Workspace, tmp_path: Path) -> None:
    split = replace(built.entry("one").manifest or made.manifest(), debug_info="split", sanitizer="address")
    made.act(space, *built.publish(split))
    found = store_export.prepare_export(built.entry("one"), str(tmp_path), space, made.MACHINE)
    assert found.dest == f"{tmp_path}/one.tar.zst"
    assert any(".dwo" in note for note in found.notes)
    assert any("sanitizer address" in note for note in found.notes)
    script = found.plan.shell()
    assert "thin archives become regular ones" in script
    assert f"sha256sum '{tmp_path}" in script or f"sha256sum {tmp_path}" in script


def test_what_cannot_be_exported(built: Store, space: Workspace, tmp_path: Path) -> None:
    def refused(name: str, dest: str) -> str:
        with pytest.raises(SmithError) as caught:
            store_export.prepare_export(built.entry(name), dest, space, made.MACHINE)
        return str(caught.value)

    assert "ends in .tar.zst" in refused("one", str(tmp_path / "one.tar.gz"))
    assert "web server" in refused("one", "https://user:secret@example.org/x/")
    assert "secret" not in refused("one", "https://user:secret@example.org/x/")
    built.path("half").mkdir()
    assert "unfinished" in refused("half", str(tmp_path))
    (built.path("one") / "lib" / "obj" / "A.cpp.o").unlink()
    assert "names an object that is missing" in refused("one", str(tmp_path))


def test_the_second_import_has_nothing_to_do(archive: Path, other: Store, space: Workspace) -> None:
    bring(other, space, str(archive))
    before = (other.path("one") / steps_pack.CHECKSUMS).stat()
    assert bring(other, space, str(archive)).there
    assert (other.path("one") / steps_pack.CHECKSUMS).stat() == before


def test_an_import_that_lacks_its_manifest_alone_gets_it(
    archive: Path, other: Store, space: Workspace
) -> None:
    bring(other, space, str(archive))
    other.manifest("one").unlink()
    before = (other.path("one") / steps_pack.CHECKSUMS).stat()
    assert not bring(other, space, str(archive)).there
    assert (other.path("one") / steps_pack.CHECKSUMS).stat() == before
    assert other.entry("one").status == "ready"


def test_a_build_in_its_place_stays(archive: Path, other: Store, space: Workspace) -> None:
    other.path("one").mkdir()
    with pytest.raises(FactError, match=r"store --gc --name one"):
        bring(other, space, str(archive))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arch": "aarch64"}, "it is for Linux on x86_64"),
        ({"glibc": "2.31"}, "it was built with glibc 2.36, this machine has glibc 2.31"),
        ({"glibcxx": "3.4.28"}, "it was built with GLIBCXX_3.4.30, this machine has GLIBCXX_3.4.28"),
    ],
)
def test_an_archive_for_another_machine(
    archive: Path, other: Store, space: Workspace, change: dict[str, str], words: str
) -> None:
    machine = replace(made.MACHINE, **change)  # type: ignore[arg-type]
    with pytest.raises(PreflightError, match=words):
        bring(other, space, str(archive), machine=machine)
    assert other.entries() == ()
    bring(other, space, str(archive), machine=machine, force=True)


def test_the_checksum_comes_first(archive: Path, other: Store, space: Workspace) -> None:
    with pytest.raises(DownloadError, match="wrong checksum"):
        bring(other, space, str(archive), sha256="0" * 64)
    right = sha256_of(archive)
    archive.with_name("one.tar.zst.sha256").write_text("not hex\n")
    with pytest.raises(UsageError, match="checksum"):
        bring(other, space, str(archive))
    archive.with_name("one.tar.zst.sha256").unlink()
    with pytest.raises(DownloadError, match="no checksum beside"):
        bring(other, space, str(archive))
    bring(other, space, archive.as_uri(), sha256=right.upper())
    assert other.entry("one").status == "ready"


def test_a_path_that_cmake_misreads(archive: Path, space: Workspace, tmp_path: Path) -> None:
    store = made.store_in(space, str(tmp_path / "a;b"))
    with pytest.raises(StepError, match="CMake packages cannot contain"):
        bring(store, space, str(archive))


def test_there_is_no_archive(other: Store, space: Workspace, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="no such archive"):
        bring(other, space, str(tmp_path / "none.tar.zst"))


def pack(path: Path, files: Files) -> Path:
    """An archive with a right checksum beside it."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, content in files.items():
            about = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            data = content if isinstance(content, bytes) else b""
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    path.write_bytes(zstandard.ZstdCompressor().compress(plain.getvalue()))
    steps_pack.checksum_file(path).write_text(f"{sha256_of(path)}  {path.name}\n")
    return path


def head(**changes: Any) -> bytes:
    manifest = {**json.loads(made.manifest().render()), "name": "evil"}
    return json.dumps({"schema": 1, "manifest": manifest, "texts": ["*.cmake"], **changes}).encode()


def entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    about = tarfile.TarInfo(name)
    about.type, about.linkname = kind, target
    return about


@pytest.mark.parametrize(
    "evil",
    [
        {"/etc/evil": b"x"},
        {"tree/../../evil": b"x"},
        {"tree/up": entry("tree/up", tarfile.SYMTYPE, "../../.."), "tree/up/evil": b"x"},
        {"tree/up": entry("tree/up", tarfile.SYMTYPE, "/etc")},
        {"tree/up": entry("tree/up", tarfile.LNKTYPE, "../../users")},
        {"tree/null": entry("tree/null", tarfile.CHRTYPE)},
        {"tree/pipe": entry("tree/pipe", tarfile.FIFOTYPE)},
    ],
)
def test_an_evil_archive(other: Store, space: Workspace, tmp_path: Path, evil: Files) -> None:
    path = pack(tmp_path / "evil.tar.zst", {steps_pack.HEAD: head(), **evil, steps_pack.SUMS: b""})
    before = {file for file in tmp_path.rglob("*") if "log" not in file.name and "another" not in str(file)}
    with pytest.raises(DownloadError, match="cannot extract"):
        bring(other, space, str(path))
    after = {file for file in tmp_path.rglob("*") if "log" not in file.name and "another" not in str(file)}
    assert before == {file for file in after if "logs" not in str(file)}
    assert other.entries() == ()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"tree/a": b"x", steps_pack.SUMS: b""}, "a: not listed"),
        ({"tree/a": b"x", steps_pack.SUMS: b"0" * 64 + b"  a\n"}, "a: wrong checksum"),
        ({"tree/a": b"", steps_pack.SUMS: b"0" * 64 + b"  b\n"}, "b: missing"),
    ],
)
def test_an_archive_that_breaks_its_promise(
    other: Store, space: Workspace, tmp_path: Path, files: Files, words: str
) -> None:
    path = pack(tmp_path / "evil.tar.zst", {steps_pack.HEAD: head(), **files})
    with pytest.raises(DownloadError) as caught:
        bring(other, space, str(path))
    assert words in str(caught.value)
    assert other.entries() == ()


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"other": b"x"},
        {steps_pack.HEAD: b"{"},
        {steps_pack.HEAD: b"[]"},
        {steps_pack.HEAD: b'{"schema": 2}'},
        {steps_pack.HEAD: b'{"schema": 1, "manifest": {}, "texts": []}'},
        {steps_pack.HEAD: b'{"schema": 1}'},
    ],
)
def test_what_is_no_archive_of_a_store(other: Store, space: Workspace, tmp_path: Path, files: Files) -> None:
    with pytest.raises(DownloadError, match="not an archive of a store"):
        bring(other, space, str(pack(tmp_path / "x.tar.zst", files)))


@pytest.mark.parametrize("kept", [0, 3, 100, 5000])
def test_a_truncated_archive(archive: Path, other: Store, space: Workspace, kept: int) -> None:
    archive.write_bytes(archive.read_bytes()[:kept])
    steps_pack.checksum_file(archive).write_text(sha256_of(archive))
    with pytest.raises(DownloadError):
        bring(other, space, str(archive))
    assert other.entries() == ()


def test_a_flipped_bit(archive: Path, other: Store, space: Workspace) -> None:
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)
    with pytest.raises(DownloadError, match="wrong checksum"):
        bring(other, space, str(archive))
    steps_pack.checksum_file(archive).write_text(sha256_of(archive))
    with pytest.raises(DownloadError):
        bring(other, space, str(archive))
    assert other.entries() == ()


def test_through_an_object_store(built: Store, other: Store, space: Workspace) -> None:
    url = "memory://bucket/team/"
    found = store_export.prepare_export(built.entry("one"), url, space, made.MACHINE)
    made.act(space, *found.plan.steps)
    assert found.dest == f"{url}one.tar.zst"
    assert not (space.downloads / "one.tar.zst").exists()
    bring(other, space, found.dest)
    have = other.entry("one").manifest
    assert have is not None
    assert have.origin == found.dest
    assert list(space.downloads.iterdir()) == []
    with pytest.raises(DownloadError, match="no checksum beside"):
        bring(other, space, f"{url}two.tar.zst")


def test_an_object_store_that_has_something_else(built: Store, other: Store, space: Workspace) -> None:
    found = store_export.prepare_export(built.entry("one"), "memory://other/one.tar.zst", space, made.MACHINE)
    made.act(space, *found.plan.steps)
    with pytest.raises(DownloadError, match="wrong checksum"):
        bring(other, space, found.dest, sha256="0" * 64)
    assert list(space.downloads.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "words"),
    [("s3://bucket/x.tar.zst", r"tritonsmith\[s3\]"), ("s4://bucket/x.tar.zst", "unknown kind of URL")],
)
def test_a_client_that_is_missing(other: Store, space: Workspace, url: str, words: str) -> None:
    with pytest.raises(SmithError, match=words):
        bring(other, space, url)


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("https://u:p@host/a.tar.zst?sig=secret", "https://***@host/a.tar.zst"),
        ("s3://bucket/a", "s3://bucket/a"),
        ("/a?b", "/a?b"),
    ],
)
def test_what_is_written_down(place: str, shown: str) -> None:
    assert transfer.shown(place) == shown


def test_a_path_from_a_url() -> None:
    assert transfer.local("file:///a%20b/c") == Path("/a b/c")
    assert not transfer.is_url("file:///a")


@pytest.mark.parametrize(
    "url", ["reference://x", "zip://x", "tar://x", "dir://x", "cached://x", "filecache://x", "nothing://x"]
)
def test_a_url_that_no_store_of_files_has(url: str, space: Workspace) -> None:
    with pytest.raises(SmithError):
        transfer.locate(url, space)
