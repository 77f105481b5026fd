from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.facts import fakes
from tritonsmith.facts import build_folder


def gone(folder: Path, *entries: str) -> list[str]:
    """Names that lead nowhere."""
    fakes.cmake_cache(folder, *entries)
    cache = build_folder.read_cmake_cache(folder)
    assert cache is not None
    return [name for name, _ in cache.gone()]


def test_entries(tmp_path: Path) -> None:
    file = fakes.cmake_cache(
        tmp_path,
        "CMAKE_BUILD_TYPE:STRING=Debug",
        "CMAKE_CXX_FLAGS:STRING=-Wno-error=deprecated-declarations -DA=b:c",
        "EMPTY:STRING=",
        "CMAKE_AR-ADVANCED:INTERNAL=1",
        "LLVM_DIR:PATH=/usr/lib/llvm-19/lib/cmake/llvm",
        "not an entry",
    )
    cache = build_folder.read_cmake_cache(tmp_path)
    assert cache is not None
    assert cache.file == file
    assert cache.get("CMAKE_BUILD_TYPE") == "Debug"
    assert cache.get("CMAKE_CXX_FLAGS") == "-Wno-error=deprecated-declarations -DA=b:c"
    assert cache.get("LLVM_DIR") == "/usr/lib/llvm-19/lib/cmake/llvm"
    assert (cache.get("EMPTY"), cache.get("NO_SUCH")) == ("", "")
    assert len(cache.entries) == 5


def test_a_folder_that_was_never_configured(tmp_path: Path) -> None:
    assert build_folder.read_cmake_cache(tmp_path) is None
    assert build_folder.read_cmake_cache(tmp_path / "nowhere") is None
    (tmp_path / "CMakeCache.txt").mkdir()
    assert build_folder.read_cmake_cache(tmp_path) is None


def test_line_ends_of_windows_and_bytes_of_no_encoding(tmp_path: Path) -> None:
    file = tmp_path / "CMakeCache.txt"
    file.write_bytes(
        b"# \xe9\r\nA:STRING=x\r\nB:PATH=" + str(tmp_path).encode() + b"\r\nC:PATH=/gone\xe9\r\n"
    )
    cache = build_folder.read_cmake_cache(tmp_path)
    assert cache is not None
    assert (cache.get("A"), cache.get("B")) == ("x", str(tmp_path))
    assert [name for name, _ in cache.gone()] == ["C"]


@pytest.mark.parametrize(
    "entry",
    [
        "CMAKE_C_COMPILER:FILEPATH=/gone/clang",
        "CMAKE_CXX_COMPILER:STRING=/gone/clang++",
        "CMAKE_CXX_COMPILER_LAUNCHER:STRING=/gone/ccache",
        "CMAKE_COMMAND:INTERNAL=/tmp/pip-build-env-x/overlay/bin/cmake",
        "CMAKE_MAKE_PROGRAM:STRING=/gone/ninja",
        "CMAKE_HOME_DIRECTORY:INTERNAL=/gone/triton",
        "CMAKE_CACHEFILE_DIR:INTERNAL=/where/it/was/moved/from",
        "LLVM_DIR:PATH=/gone",
        "LLVM_SYSPATH:UNINITIALIZED=/gone",
        "Python3_EXECUTABLE:STRING=/gone/python",
        "pybind11_DIR:PATH=/tmp/pip-build-env-x/overlay",
        "CMAKE_PREFIX_PATH:PATH=/;/gone",
    ],
)
def test_what_leads_nowhere(tmp_path: Path, entry: str) -> None:
    assert gone(tmp_path, entry, f"THERE_DIR:PATH={tmp_path}") == [entry.partition(":")[0]]


@pytest.mark.parametrize(
    "entry",
    [
        "CMAKE_ADDR2LINE:FILEPATH=CMAKE_ADDR2LINE-NOTFOUND",
        "CMAKE_C_COMPILER:STRING=clang",
        "CMAKE_INSTALL_PREFIX:PATH=/not/yet",
        "CMAKE_LIBRARY_OUTPUT_DIRECTORY:PATH=/not/yet",
        "CMAKE_PREFIX_PATH:PATH=/;/usr",
        "CPACK_SOURCE_X:FILEPATH=/gone",
        "FETCHCONTENT_BASE_DIR:PATH=/not/yet",
        "TRITON_CACHE_PATH:PATH=/not/yet/.triton",
        "TRITON_WHEEL_DIR:UNINITIALIZED=/not/yet",
        "LLD_DIR:STRING=/usr/lib/llvm-x/lib/cmake/lld",  # named for every era, and not every one wants it
        "pybind11_DIR:STRING=/gone",
        "EMPTY_DIR:PATH=",
        "CMAKE_CXX_FLAGS:STRING=/gone",
        "NOT_ABSOLUTE:PATH=lib/x",
    ],
)
def test_what_is_there_or_need_not_be(tmp_path: Path, entry: str) -> None:
    assert gone(tmp_path, entry) == []


def test_a_link_that_dangles_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(tmp_path / "gone")
    assert gone(tmp_path, f"Python3_EXECUTABLE:FILEPATH={tmp_path / 'python'}") == ["Python3_EXECUTABLE"]
