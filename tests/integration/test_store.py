"""The store, with archives that a compiler made, a web server, full disks and read-only ones."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import CMAKE, SMITH, Done, Served, Smith, capture, serving, wait_for
from tests.support import require
from tritonsmith.core.plan import archive, locks

NINJA = SMITH.with_name("ninja")
BIG = 4 << 20  # bytes of one object
SOURCES = {
    "llvm/CMakeLists.txt": """
cmake_minimum_required(VERSION 3.20)
project(LLVM LANGUAGES CXX)
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> crT <TARGET> <OBJECTS>")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
file(WRITE "${CMAKE_BINARY_DIR}/include/llvm/Config/generated.h" "#define GENERATED 7\\n")
add_library(LLVMSupport STATIC lib/Support/Support.cpp lib/Support/Big.cpp)
target_include_directories(LLVMSupport PUBLIC include "${CMAKE_BINARY_DIR}/include")
add_library(MLIRIR STATIC ../mlir/lib/IR.cpp)
target_include_directories(MLIRIR PUBLIC ../mlir/include)
target_link_libraries(MLIRIR PUBLIC LLVMSupport)
add_executable(FileCheck lib/Support/FileCheck.cpp)
target_link_libraries(FileCheck PRIVATE LLVMSupport)
set(packages "${CMAKE_BINARY_DIR}/lib/cmake")
export(TARGETS LLVMSupport MLIRIR FILE "${packages}/llvm/LLVMExports.cmake")
file(WRITE "${packages}/llvm/LLVMConfig.cmake" "\\
set(LLVM_PACKAGE_VERSION 19.1.7)
set(LLVM_BUILD_TYPE Release)
set(LLVM_ENABLE_ASSERTIONS ON)
set(LLVM_ENABLE_RTTI OFF)
set(LLVM_TARGETS_TO_BUILD \\"X86;NVPTX\\")
set(LLVM_CMAKE_DIR \\"${CMAKE_CURRENT_SOURCE_DIR}/cmake/modules\\")
set(LLVM_INCLUDE_DIRS \\"${CMAKE_CURRENT_SOURCE_DIR}/include;${CMAKE_BINARY_DIR}/include\\")
include(\\"${packages}/llvm/LLVMExports.cmake\\")
")
file(WRITE "${packages}/mlir/MLIRConfig.cmake" "\\
find_package(LLVM REQUIRED CONFIG HINTS \\"${packages}/llvm\\")
")
""",
    "llvm/cmake/modules/AddLLVM.cmake": 'message(STATUS "modules of LLVM are there")\n',
    "llvm/include/llvm/Support.h": "#pragma once\n#include <llvm/Config/generated.h>\nint support();\n",
    "llvm/lib/Support/Support.cpp": "#include <llvm/Support.h>\nint support() { return GENERATED; }\n",
    "llvm/lib/Support/Big.cpp": f"extern const char big[{BIG}];\nconst char big[{BIG}] = {{1}};\n",
    "llvm/lib/Support/FileCheck.cpp": "#include <llvm/Support.h>\nint main() { return support(); }\n",
    "mlir/include/mlir/IR.h": "#pragma once\nint ir();\n",
    "mlir/lib/IR.cpp": """
#include <llvm/Support.h>
#include <mlir/IR.h>
int ir() { return 6 * support(); }
""",
}
CONSUMER = {
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES CXX)
find_package(MLIR REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH "${LLVM_CMAKE_DIR}")
include(AddLLVM)
add_executable(answer answer.cpp)
target_include_directories(answer PRIVATE ${LLVM_INCLUDE_DIRS})
target_link_libraries(answer PRIVATE MLIRIR)
""",
    "answer.cpp": '#include <cstdio>\n#include <mlir/IR.h>\nint main() { std::printf("%d\\n", ir()); }\n',
}


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def cmake(source: Path, build: Path, *more: str) -> str:
    """Configure and build."""
    done = capture(CMAKE, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={NINJA}", "-S", source, "-B", build, *more)
    return done + capture(NINJA, "-C", build)


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build tree with thin archives, adopted and exported; then it and its sources are deleted."""
    require("c++", "ar")
    root = tmp_path_factory.mktemp("where it was built")
    sources, build = put(root / "llvm project", SOURCES), root / "a build"
    cmake(sources / "llvm", build, "-DCMAKE_BUILD_TYPE=Release")
    assert archive.read_ar(build / "lib" / "libLLVMSupport.a").thin
    smith = Smith(root, cwd=root)
    smith("store.adopt", build, "--name", "mini")
    assert smith("store.verify").out == "mini: intact\n"
    smith("store.export", "mini", f"{root}/")
    shutil.rmtree(sources)
    shutil.rmtree(build)
    listed = json.loads(smith("store.list", "--json").out)["entries"]
    assert [(row["name"], row["status"]) for row in listed] == [("mini", "gone")]
    smith("store.forget", "mini")
    return root / "mini.tar.zst"


@pytest.fixture
def smith(tmp_path: Path) -> Smith:
    """The tool, on another machine so to speak."""
    root = tmp_path / "another machine"
    root.mkdir()
    return Smith(root, cwd=root)


@pytest.fixture
def served(packed: Path) -> Iterator[Served]:
    """The archive over HTTP."""
    with serving(packed.parent) as server:
        yield server


def entries(smith: Smith, *more: str) -> dict[str, dict[str, Any]]:
    rows = json.loads(smith("store.list", "--json", *more).out)["entries"]
    return {row["name"]: row for row in rows}


def test_what_was_imported_is_built_against(smith: Smith, packed: Path, tmp_path: Path) -> None:
    smith("store", "--import", packed)
    tree = smith.home / "llvm" / "mini"
    said = cmake(put(tmp_path / "consumer", CONSUMER), tmp_path / "out", f"-DMLIR_DIR={tree}/lib/cmake/mlir")
    assert "modules of LLVM are there" in said
    assert capture(tmp_path / "out" / "answer") == "42\n"
    assert subprocess.run([tree / "bin" / "FileCheck"], check=False).returncode == 7
    old = str(packed.parent).encode()
    assert [path for path in tree.rglob("*.cmake") if old in path.read_bytes()] == []
    assert smith("store.verify").out == "mini: intact\n"
    (tree / "include" / "llvm" / "Config" / "generated.h").write_text("#define GENERATED 8\n")
    assert "generated.h was changed" in smith("store.verify", code=1).out


def test_over_http_broken_off_and_resumed(smith: Smith, packed: Path, served: Served) -> None:
    sha256 = packed.with_name("mini.tar.zst.sha256").read_text().split()[0]
    served.break_after = 1000
    broken = smith("store", "--import", f"{served.url}/mini.tar.zst", "--sha256", sha256, code=1)
    assert "the connection ended" in broken.error or "IncompleteRead" in broken.error
    smith("store", "--import", f"{served.url}/mini.tar.zst")
    assert any(extent for _, extent in served.downloads)
    assert entries(smith)["mini"]["manifest"]["origin"] == f"{served.url}/mini.tar.zst"
    assert list((smith.home / "downloads").iterdir()) == []
    again = smith("store", "--import", f"{served.url}/mini.tar.zst")
    assert again.out.startswith("already there: ")
    assert "404" in smith("store", "--import", f"{served.url}/none.tar.zst", code=1).error


def test_a_plan_changes_nothing(smith: Smith, packed: Path, served: Served) -> None:
    assert "zstd -dc" in smith("store", "--import", packed, "--dry-run").out
    assert "curl" in smith("store", "--import", f"{served.url}/mini.tar.zst", "--dry-run").out
    assert not (smith.home / "llvm").exists()
    smith("store", "--import", packed)
    before = sorted((smith.home / "llvm").rglob("*"))
    assert "zstd -6" in smith("store.export", "mini", "x.tar.zst", "--dry-run").out
    assert "rm -rf" in smith("store.gc", "--dry-run").out
    assert json.loads(smith("store.gc", "--json").out)["going"][0]["name"] == "mini"
    assert sorted((smith.home / "llvm").rglob("*")) == before


def test_a_store_that_is_shared_keeps_what_another_workspace_uses(smith: Smith, packed: Path) -> None:
    shared = str(smith.root / "a shared store")
    smith("store", "--import", packed, "--store", shared)
    tree = Path(shared) / "mini"
    theirs = smith.root / "their workspace" / "envs" / "dev" / "receipts"
    put(theirs, {"setup-mlir.json": json.dumps({"schema": 1, "prefix": str(tree)})})
    record = {"workspace": str(theirs.parents[2]), "env": "dev", "checkout": "/src/triton", "entry": "mini"}
    record |= {"user": "somebody", "host": os.uname().nodename, "since": "2026-01-01T00:00:00+00:00"}
    put(Path(shared) / "users", {"x.json": json.dumps(record)})
    os.utime(Path(shared) / "users" / "x.json", (0, 0))
    (user,) = entries(smith, "--store", shared)["mini"]["users"]
    assert (user["env"], user["checkout"], user["why"]) == ("dev", "/src/triton", "setup-mlir")
    kept = smith("store.gc", "--store", shared, "--yes")
    assert "nothing to delete" in kept.out
    shutil.rmtree(theirs)
    assert "deleted" in smith("store.gc", "--store", shared, "--yes").out
    assert entries(smith, "--store", shared) == {}
    assert not tree.exists()


def test_an_env_file_names_the_store(smith: Smith, packed: Path) -> None:
    shared = smith.root / "named store"
    put(smith.root, {"mine.toml": f'[llvm]\nstore = "{shared}"\n'})
    smith("store", "--import", packed, "--env", "./mine.toml")
    assert set(entries(smith, "--env", "./mine.toml")) == {"mini"}
    assert (shared / "mini.json").is_file()
    assert entries(smith) == {}


def test_killed_on_its_way(smith: Smith, packed: Path) -> None:
    scratch = smith.home / "llvm" / ".import-mini"
    with smith.running("store", "--import", packed) as process:
        wait_for(scratch.exists, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert set(entries(smith)) <= {"mini"}
    assert all(row["status"] == "ready" for row in entries(smith).values())
    smith("store", "--import", packed)
    assert entries(smith)["mini"]["status"] == "ready"
    assert not scratch.exists()


def test_two_at_once(smith: Smith, packed: Path) -> None:
    (smith.home / "llvm").mkdir(parents=True)
    smith("store.list")
    shutil.rmtree(smith.home)
    with smith.running("store", "--import", packed) as one, smith.running("store", "--import", packed) as two:
        said = [process.communicate(timeout=300) for process in (one, two)]
    assert sorted((one.returncode, two.returncode)) in ([0, 0], [0, 1]), said
    assert entries(smith)["mini"]["status"] == "ready"
    assert smith("store.verify").out == "mini: intact\n"
    with locks.hold(smith.home / "llvm" / "mini.lock", purpose="setup-mlir --env other"):
        refused = smith("store", "--import", packed, code=1).error
    assert "another run is busy with mini in the store of LLVMs" in refused
    assert "runs `setup-mlir --env other`" in refused


def in_namespace(smith: Smith, script: str, *arguments: str | Path) -> Done:
    """A shell script that may mount things, which nobody else sees."""
    require("unshare", "mount")
    argv = ("unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-euc", script, SMITH, *arguments)
    done = subprocess.run(argv, cwd=smith.cwd, env=smith.environ, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount: " in done.stderr:
        pytest.skip(f"missing: the right to mount ({done.stderr.strip()})")
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_full_disk(smith: Smith, packed: Path) -> None:
    """Two MiB, where the tree takes more than four; then enough."""
    script = """
mkdir -p small && mount -t tmpfs -o size=2m none small
if "$0" store --import "$1" --store small/store; then exit 9; fi
"$0" store.list --store small/store
mount -o remount,size=50m small
"$0" store --import "$1" --store small/store
"$0" store.verify --store small/store
find small/store -name '.*'
"""
    done = in_namespace(smith, script, packed)
    assert done.code == 0, done
    assert "No space left on device" in done.err
    assert "nothing in" in done.out
    assert "mini: intact" in done.out
    assert done.out.rstrip().endswith(".tritonsmith-import")


def test_a_read_only_store_is_used(smith: Smith, packed: Path, tmp_path: Path) -> None:
    store = smith.root / "a store"
    smith("store", "--import", packed, "--store", str(store))
    put(tmp_path / "consumer", CONSUMER)
    script = """
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"
"$0" store.list --store "$1" --json
"$0" store.verify --store "$1" >&2
"$0" store.export mini out.tar.zst --store "$1" >&2
if "$0" store --import "$2" --store "$1"; then exit 9; fi
if "$0" store.gc --store "$1" --yes; then exit 9; fi
"""
    done = in_namespace(smith, script, store, packed)
    assert done.code == 0, done
    listed = json.loads(done.out[: done.out.rindex("}\n") + 2])
    assert (listed["writable"], listed["entries"][0]["status"]) == (False, "ready")
    assert "mini: intact" in done.err
    assert "read-only" in done.err.lower()
    assert (smith.cwd / "out.tar.zst.sha256").is_file()


def test_words_for_what_goes_wrong(smith: Smith, packed: Path) -> None:
    smith("store", "--import", packed)
    assert "did you mean 'mini'" in smith("store.export", "mimi", "x.tar.zst", code=2).error
    assert "deletes it" in smith("store.forget", "mini", code=2).error
    assert "not a size" in smith("store.gc", "--max-size", "big", code=2).error
    assert "is not an age" in smith("store.gc", "--older-than", "long", code=2).error
    assert "--yes" in smith("store.gc", code=1).error
    assert "tritonsmith[s3]" in smith("store.export", "mini", "s3://bucket/x/", code=1).error
    assert "no LLVM to build against" in smith("store.adopt", smith.root, code=1).error
    assert "in the store already" in smith("store.adopt", smith.home / "llvm" / "mini", code=2).error
