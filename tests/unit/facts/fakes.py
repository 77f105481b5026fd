"""Small checkouts of Triton: the files that facts are read from, in the shape that each era gave them."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

HASH = "10dc3a8e916d73291269e5e2b82dd22681489aa1"
NVIDIA = {"ptxas": "12.8.93", "ptxas-blackwell": "12.9.86", "cudacrt": "12.8.61", "cudart": "12.8.57"}

_SETUP_21 = """
def get_pybind11_package_info():
    name = "pybind11-2.10.0"
def get_llvm_package_info():
    name = 'llvm-17.0.0-c5dede880d17'
    return Package("llvm", f"https://github.com/x/releases/download/llvm-17.0.0-c5dede880d17/{name}.tar.xz")
def download_and_copy_ptxas():
    base_dir = os.path.dirname(__file__)
    version = "12.1.105"
    url = f"https://conda.anaconda.org/nvidia/label/cuda-12.1.1/linux-64/cuda-nvcc-{version}-0.tar.bz2"
setup(name="triton", version="2.1.0")
"""
_SETUP_31 = """
url = "https://github.com/nlohmann/json/releases/download/v3.11.3/include.zip"
names = ("ptxas", "cuobjdump", "nvdisasm", "cudacrt", "cudart", "cupti")
setup(name="triton", version="3.0.0")
"""
_SETUP_33 = 'TRITON_HOME = os.getenv("TRITON_HOME")\nsetup(version="3.3.0" + get_git_commit_hash())\n'
_SETUP_35 = """
MIN_PYTHON = (3, 10)
MAX_PYTHON = (3, 14)
TRITON_VERSION = "3.5.0" + get_git_version_suffix()
cmake_dir = os.getenv("TRITON_BUILD_DIR", default=os.getenv("TRITON_HOME"))
entry_points["triton.backends"] = backends
"""
_REQUIRES = '[build-system]\nrequires = ["setuptools>=40.8.0", {}]\n'
_CMAKE_31 = (
    "option(TRITON_BUILD_TUTORIALS)\noption(TRITON_BUILD_PYTHON_MODULE)\nset(TRITON_CODEGEN_BACKENDS)\n"
)
_CMAKE_35 = """
option(TRITON_BUILD_PYTHON_MODULE "x" OFF)
option(TRITON_BUILD_WITH_CCACHE "x" ON)
set(LLVM_SYSPATH "${LLVM_SYSPATH}")
configure_file(${LLVM_SYSPATH}/bin/FileCheck ${TRITON_WHEEL_DIR}/FileCheck COPYONLY)
list(APPEND TRITON_LIBRARIES LLVMX86CodeGen)
"""

ERAS: dict[str, dict[str, str]] = {
    "2.1": {
        "python/setup.py": _SETUP_21,
        "python/triton/__init__.py": "__version__ = '2.1.0'\n",
        "python/pyproject.toml": _REQUIRES.format('"wheel", "cmake>=3.18"'),
        "CMakeLists.txt": f"{_CMAKE_31}include_directories(${{PYBIND11_INCLUDE_DIR}})\n",
    },
    "3.1": {
        "python/setup.py": _SETUP_31,
        "python/triton/__init__.py": "\n__version__ = '3.0.0'\n",
        "python/pyproject.toml": _REQUIRES.format('"wheel", "cmake>=3.18", "ninja>=1.11.1"'),
        "cmake/llvm-hash.txt": f"{HASH}\n",
        "cmake/nvidia-toolchain-version.txt": "12.4.99",
        "cmake/pybind11-version.txt": "2.11.1\n",
        "CMakeLists.txt": f"{_CMAKE_31}include_directories(${{PYBIND11_INCLUDE_DIR}})\nLLVMX86CodeGen\n",
        "third_party/nvidia/backend/driver.py": "",
    },
    "3.3": {
        "python/setup.py": _SETUP_33,
        "python/triton/__init__.py": '__version__ = "3.3.0"\n',
        "python/pyproject.toml": _REQUIRES.format('"pybind11>=2.13.1"'),
        "cmake/llvm-hash.txt": HASH,
        "cmake/nvidia-toolchain-version.json": json.dumps(NVIDIA),
        "cmake/json-version.txt": "v3.11.3\n",
        "CMakeLists.txt": _CMAKE_31 + "option(TRITON_PARALLEL_LINK_JOBS)\nLLVMX86CodeGen\n",
        "third_party/nvidia/backend/driver.py": "",
    },
    "3.5": {
        "setup.py": _SETUP_35,
        "python/triton/__init__.py": '__version__ = "3.4.0"\n',
        "pyproject.toml": _REQUIRES.format('"cmake>=3.20,<4.0", "pybind11>=2.13.1"'),
        "cmake/llvm-hash.txt": HASH,
        "cmake/nvidia-toolchain-version.json": json.dumps(NVIDIA),
        "cmake/json-version.txt": "v3.11.3\n",
        "CMakeLists.txt": _CMAKE_35,
        "third_party/nvidia/backend/driver.py": "",
        "third_party/amd/CMakeLists.txt": "find_package(LLD REQUIRED CONFIG)",
    },
    "3.8": {
        "setup.py": _SETUP_35.replace("3.5.0", "3.8.0"),
        "python/triton/__init__.py": '__version__ = "3.8.0"\n',
        "python/build_helpers.py": "def write_thirdparty_cmake_vars(): ...\n",
        "pyproject.toml": _REQUIRES.format('"cmake>=3.20,<4.0", "nanobind==2.10.2"'),
        "cmake/llvm-info.json": json.dumps(
            {
                "llvm_hash": HASH,
                "build_number": 7,
                "sha256sum": {"ubuntu-x64": "a" * 64, "macos-arm64": "b" * 64},
            }
        ),
        "cmake/amd-llvm-info.json": json.dumps({"llvm_hash": "f" * 40}),
        "cmake/nvidia-toolchain-version.json": json.dumps(NVIDIA),
        "cmake/json-version.txt": "v3.11.3\n",
        "CMakeLists.txt": _CMAKE_35 + "find_package(nanobind CONFIG REQUIRED)\nset(TRITON_OFFLINE_BUILD)\n",
        "third_party/nvidia/backend/driver.py": "",
        "third_party/nvidia/CMakeLists.txt": "set(TRITON_GSAN_CLANGXX ${LLVM_SYSPATH}/bin/clang++)",
        "third_party/amd/CMakeLists.txt": "find_package(LLD REQUIRED CONFIG)",
    },
}


def checkout(root: Path, era: str) -> Path:
    """Write a checkout of that era."""
    for name, text in {**ERAS[era], "include/triton/Tools.h": "", "third_party/README": ""}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


_LLVM_CONFIG = """
set(LLVM_VERSION_MAJOR 19)
set(LLVM_PACKAGE_VERSION {version})
set(LLVM_BUILD_TYPE {build_type})
set(LLVM_ENABLE_ASSERTIONS {assertions})
set(LLVM_ENABLE_RTTI ON)
set(LLVM_TARGETS_TO_BUILD "{targets}")
"""


def llvm(
    prefix: Path,
    *,
    version: str = "19.1.7",
    build_type: str = "RelWithDebInfo",
    assertions: str = "OFF",
    targets: str = "X86;NVPTX;AMDGPU",
    files: tuple[str, ...] = (),
) -> Path:
    """Write an LLVM: its CMake package, and empty files."""
    text = _LLVM_CONFIG.format(version=version, build_type=build_type, assertions=assertions, targets=targets)
    config = prefix / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake"
    config.parent.mkdir(parents=True)
    config.write_text(text)
    for name in files:
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / name).touch()
    return prefix


def commit(root: Path) -> str:
    """Put a folder under git; the hash of its only commit."""
    from git import Actor, Repo

    me = Actor("A", "a@example.invalid")
    with Repo.init(root) as repo:
        repo.git.add(all=True)
        return repo.index.commit("all", author=me, committer=me, commit_date="1751371200 +0000").hexsha


def git(root: Path, *argv: str) -> str:
    """Git itself, as a person whose settings do not matter."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.invalid", "-c", "commit.gpgsign=false")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ = {**clean, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ("git", "-C", root, *who, *argv), env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def cmake_cache(folder: Path, *entries: str) -> Path:
    """Write CMakeCache.txt: lines such as `LLVM_DIR:PATH=/usr`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "CMakeCache.txt"
    file.write_text("# This is the CMakeCache file.\n//Its comment\n" + "\n".join(entries) + "\n")
    return file


def libstdcxx(folder: Path, *tags: str) -> Path:
    """Write what is looked for in a libstdc++.so.6: its tags, each ended by a NUL, among other bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "libstdc++.so.6"
    library.write_bytes(b"\x7fELF\xff" + b"".join(b"\0GLIBCXX_%s\0" % tag.encode() for tag in tags))
    return library


@dataclass(frozen=True)
class Mounted:
    """What psutil tells of a mounted file system, as far as it is looked at."""

    mountpoint: str
    fstype: str


def mounts(monkeypatch: pytest.MonkeyPatch, *found: tuple[Path | str, str]) -> None:
    """What the kernel tells: folders and the kinds of their file systems, in the order of mounting."""
    parts = [Mounted(str(folder), kind) for folder, kind in found]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: parts)
