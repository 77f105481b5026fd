from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.facts import tools
from tritonsmith.facts.tools import Tool


def program(path: Path, says: str = "version 1.2.3", code: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_find(path: Path, tmp_path: Path) -> None:
    assert tools.find("tool") is None
    on_path = program(path / "tool")
    assert tools.find("tool") == Tool("tool", on_path, "1.2.3")
    beside = program(tmp_path / "beside" / "tool", "tool 4.5")
    assert tools.find("tool", folders=[tmp_path / "none", beside.parent]) == Tool("tool", beside, "4.5")


def test_other_names_come_after_the_usual_one(path: Path, tmp_path: Path) -> None:
    versioned = program(tmp_path / "beside" / "tool-19", "19.1.7")
    found = tools.find("tool", folders=[versioned.parent], names=["tool-20", "tool-19"])
    assert found == Tool("tool", versioned, "19.1.7")
    usual = program(path / "tool", "14.0")
    assert tools.find("tool", folders=[versioned.parent], names=["tool-19"]) == Tool("tool", usual, "14.0")


def test_what_cannot_be_run_is_no_tool(path: Path) -> None:
    (path / "text").write_text("not a program")
    (path / "folder").mkdir()
    assert tools.find("text") is None
    assert tools.find("folder") is None


@pytest.mark.parametrize(
    ("says", "code", "version", "major"),
    [
        ("Debian clang version 19.1.7 (3~deb12u1)", 0, "19.1.7", 19),
        ("cmake version 3.31.10", 0, "3.31.10", 3),
        ("1.13.2.git.kitware", 0, "1.13.2", 1),
        ("LLD 19", 0, "", 0),
        ("", 0, "", 0),
        ("1.2.3", 1, "", 0),
    ],
)
def test_versions(path: Path, says: str, code: int, version: str, major: int) -> None:
    found = tools.find(program(path / "tool", says, code).name)
    assert found is not None
    assert (found.version, found.major) == (version, major)


def test_the_tools_own_programs_come_first(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path / "cmake", "4.0.0")
    monkeypatch.setattr("sys.executable", str(tmp_path / "venv" / "bin" / "python"))
    assert tools.own("cmake") == Tool("cmake", path / "cmake", "4.0.0")
    own = program(tmp_path / "venv" / "bin" / "cmake", "3.31.0")
    assert tools.own("cmake") == Tool("cmake", own, "3.31.0")
    behind = tmp_path / "venv/lib/python3.12/site-packages/cmake/data/bin"
    behind.mkdir(parents=True)
    script = program(behind / "cmake", "3.31.0")
    assert tools.own("cmake") == Tool("cmake", script, "3.31.0")


def test_compilers_of_one_release(path: Path, tmp_path: Path) -> None:
    llvm = tmp_path / "llvm" / "bin"
    for folder, version in ((path, "14.0.0"), (llvm, "19.1.7")):
        for name in ("clang", "clang++", "ld.lld"):
            program(folder / name, version)
    program(path / "ccache", "4.8")
    found = tools.compilers()
    assert (found.cxx, found.cc) == (
        Tool("clang++", path / "clang++", "14.0.0"),
        Tool(str(path / "clang"), path / "clang", "14.0.0"),
    )
    assert found.launcher == Tool("ccache", path / "ccache", "4.8")
    found = tools.compilers(llvm_bin=llvm)
    assert [tool.path.parent for tool in (found.cxx, found.cc, found.linker) if tool] == [llvm] * 3


def test_versioned_names_of_distributions(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "llvm-19" / "bin"
    for name in ("clang", "clang++"):
        program(real / name, "19.1.7")
        (path / f"{name}-19").symlink_to(real / name)
        program(path / f"{name}-15", "15.0.0")
    program(path / "ld.lld-19", "LLD 19.1.7")
    found = tools.compilers()
    assert found.cxx == Tool("clang++", real / "clang++", "19.1.7")
    assert found.cc is not None
    assert found.cc.path == real / "clang"
    assert found.linker == Tool("ld.lld", path / "ld.lld-19", "19.1.7")


def test_what_was_asked_for(path: Path) -> None:
    for name in ("gcc-13", "g++-13", "clang", "clang++", "mold", "ld.lld", "ccache", "sccache"):
        program(path / name)
    found = tools.compilers(compiler=str(path / "g++-13"), linker="mold", launcher="sccache")
    assert found.cxx is not None
    assert found.cc is not None
    assert found.linker is not None
    assert found.launcher is not None
    names = [tool.path.name for tool in (found.cxx, found.cc, found.linker, found.launcher)]
    assert names == ["g++-13", "gcc-13", "mold", "sccache"]
    found = tools.compilers(linker="default", launcher="none")
    assert (found.linker, found.launcher) == (None, None)


@pytest.mark.parametrize("linker", ["lld", "mold", "default"])
def test_nothing_there(linker: str) -> None:
    found = tools.compilers(linker=linker)
    assert (found.cc, found.cxx, found.linker, found.launcher) == (None, None, None, None)


NAMES = ("_ZN4mlir4Pass6absentEv", "_ZN4llvm24DisableABIBreakingChecksE")


def demangle_program(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A demangler that is the only program there."""
    (folder / "c++filt").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "c++filt").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_each_name_by_the_program_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demangle_program(tmp_path, 'for name in "$@"; do echo "plain ${name#_ZN}"; done', monkeypatch)
    assert tools.demangled_names(NAMES) == tuple(f"plain {name[3:]}" for name in NAMES)
    assert (
        tools.demangled_text(f"no {NAMES[0]}, {NAMES[0]}!")
        == f"no plain {NAMES[0][3:]}, plain {NAMES[0][3:]}!"
    )


@pytest.mark.parametrize("script", ["exit 1", "echo one line"])
def test_names_stay_where_the_program_does_not_answer_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    demangle_program(tmp_path, script, monkeypatch)
    assert tools.demangled_names(NAMES) == NAMES


def test_names_stay_without_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tools.demangled_names(NAMES) == NAMES
    assert tools.demangled_text(NAMES[0]) == NAMES[0]
