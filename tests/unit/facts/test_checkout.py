from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import require
from tests.unit.facts import fakes
from tritonsmith.core.errors import FactError
from tritonsmith.facts import checkout
from tritonsmith.facts.checkout import LlvmPin

PIN = LlvmPin(fakes.HASH, "cmake/llvm-hash.txt")
ALL = tuple((name, "12.4.99") for name in ("cudacrt", "cudart", "cuobjdump", "cupti", "nvdisasm", "ptxas"))
EXPECTED: dict[str, dict[str, object]] = {
    "2.1": {
        "version": "2.1.0",
        "features": {"pybind11-variable"},
        "options": {"TRITON_BUILD_PYTHON_MODULE", "TRITON_BUILD_TUTORIALS", "TRITON_CODEGEN_BACKENDS"},
        "pins": (LlvmPin("c5dede880d175f7229c9b2923f4753e12702305d", "python/setup.py"),),
        "requires": ("setuptools>=40.8.0", "wheel", "cmake>=3.18", "pybind11==2.10.0"),
        "nvidia": (("ptxas", "12.1.105"),),
        "json_version": "",
        "python": ("3.7", "3.11"),
        "setup_dir": "python",
    },
    "3.1": {
        "version": "3.0.0",
        "features": {"pybind11-variable", "llvm-hash-txt", "needs-host-codegen", "nvidia-backend"},
        "options": {"TRITON_BUILD_PYTHON_MODULE", "TRITON_BUILD_TUTORIALS", "TRITON_CODEGEN_BACKENDS"},
        "pins": (PIN,),
        "requires": ("setuptools>=40.8.0", "wheel", "cmake>=3.18", "ninja>=1.11.1", "pybind11==2.11.1"),
        "nvidia": ALL,
        "json_version": "3.11.3",
        "python": ("3.8", "3.12"),
        "setup_dir": "python",
    },
    "3.3": {
        "version": "3.3.0",
        "features": {"llvm-hash-txt", "needs-host-codegen", "nvidia-backend", "triton-home"},
        "options": {
            "TRITON_BUILD_PYTHON_MODULE",
            "TRITON_BUILD_TUTORIALS",
            "TRITON_CODEGEN_BACKENDS",
            "TRITON_PARALLEL_LINK_JOBS",
        },
        "pins": (PIN,),
        "requires": ("setuptools>=40.8.0", "pybind11>=2.13.1"),
        "nvidia": tuple(sorted(fakes.NVIDIA.items())),
        "json_version": "3.11.3",
        "python": ("3.9", "3.13"),
        "setup_dir": "python",
    },
    "3.5": {
        "version": "3.5.0",
        "features": {
            "root-setup",
            "llvm-hash-txt",
            "nvidia-backend",
            "needs-filecheck",
            "needs-lld",
            "needs-host-codegen",
            "triton-home",
            "build-dir-variable",
            "entry-point-backends",
        },
        "options": {
            "TRITON_BUILD_PYTHON_MODULE",
            "TRITON_BUILD_WITH_CCACHE",
            "TRITON_WHEEL_DIR",
            "LLVM_SYSPATH",
        },
        "pins": (PIN,),
        "requires": ("setuptools>=40.8.0", "cmake>=3.20,<4.0", "pybind11>=2.13.1"),
        "nvidia": tuple(sorted(fakes.NVIDIA.items())),
        "json_version": "3.11.3",
        "python": ("3.10", "3.14"),
        "setup_dir": "",
    },
    "3.8": {
        "version": "3.8.0",
        "features": {
            "root-setup",
            "llvm-info-json",
            "nvidia-backend",
            "needs-filecheck",
            "needs-lld",
            "needs-clang",
            "needs-host-codegen",
            "nanobind",
            "cmake-resolves-dependencies",
            "triton-home",
            "build-dir-variable",
            "entry-point-backends",
            "amd-llvm-pin",
        },
        "options": {
            "TRITON_BUILD_PYTHON_MODULE",
            "TRITON_BUILD_WITH_CCACHE",
            "TRITON_WHEEL_DIR",
            "TRITON_OFFLINE_BUILD",
            "LLVM_SYSPATH",
        },
        "pins": (
            LlvmPin(
                fakes.HASH,
                "cmake/llvm-info.json",
                build=7,
                sha256=(("macos-arm64", "b" * 64), ("ubuntu-x64", "a" * 64)),
            ),
            LlvmPin("f" * 40, "cmake/amd-llvm-info.json", role="amd"),
        ),
        "requires": ("setuptools>=40.8.0", "cmake>=3.20,<4.0", "nanobind==2.10.2"),
        "nvidia": tuple(sorted(fakes.NVIDIA.items())),
        "json_version": "3.11.3",
        "python": ("3.10", "3.14"),
        "setup_dir": "",
    },
}


@pytest.mark.parametrize("era", fakes.ERAS)
def test_what_is_read_of_each_era(tmp_path: Path, era: str) -> None:
    seen = checkout.read(fakes.checkout(tmp_path / "triton", era))
    assert seen.root == tmp_path / "triton"
    assert seen.pin == seen.pins[0]
    assert (seen.commit, seen.committed, seen.dirty) == ("", "", False)
    found = {name: getattr(seen, name) for name in EXPECTED[era]}
    found["setup_dir"] = str(seen.setup_dir.relative_to(seen.root)).strip(".")
    assert found == EXPECTED[era]
    assert all(seen.has(name) for name in seen.features)
    assert not seen.has("no-such-feature")


def test_commit_and_dirt(tmp_path: Path) -> None:
    require("git")
    root = fakes.checkout(tmp_path, "3.5")
    commit = fakes.commit(root)
    seen = checkout.read(root)
    assert (seen.commit, seen.committed, seen.dirty) == (commit, "2025-07-01T12:00:00+00:00", False)
    (root / "untracked").touch()
    assert not checkout.read(root).dirty
    (root / "setup.py").write_text((root / "setup.py").read_text() + "# changed\n")
    assert checkout.read(root).dirty
    assert checkout.read(root).commit == commit


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    require("git")
    from git import Repo

    root = fakes.checkout(tmp_path, "3.5")
    Repo.init(root).close()
    seen = checkout.read(root)
    assert seen.commit == ""
    assert seen.git_problem


def test_a_worktree_whose_repository_is_gone(tmp_path: Path) -> None:
    root = fakes.checkout(tmp_path, "3.5")
    (root / ".git").write_text("gitdir: /gone/.git/worktrees/x\n")
    assert checkout.read(root).git_problem
    (root / ".git").unlink()
    assert checkout.read(root).git_problem == ""


@pytest.mark.parametrize("name", ["setup.py", "CMakeLists.txt"])
def test_a_file_in_another_encoding(tmp_path: Path, name: str) -> None:
    root = fakes.checkout(tmp_path, "3.5")
    plain = checkout.read(root)
    (root / name).write_bytes(b"# caf\xe9\n" + (root / name).read_bytes())
    assert checkout.read(root) == plain


def test_a_repository_around_the_checkout_is_not_its_own(tmp_path: Path) -> None:
    require("git")
    (tmp_path / "file").touch()
    fakes.commit(tmp_path)
    assert checkout.read(fakes.checkout(tmp_path / "triton", "3.5")).commit == ""


def test_a_machine_without_git(tmp_path: Path) -> None:
    root = fakes.checkout(tmp_path, "3.5")
    (root / ".git").mkdir()
    code = "import sys; from pathlib import Path; from tritonsmith.facts import checkout, llvm_tree;"
    code += (
        "print(checkout.read(Path(sys.argv[1])).version, llvm_tree.source_commit(Path(sys.argv[1])) or '-')"
    )
    environ = {**os.environ, "PATH": str(tmp_path)}
    argv = (sys.executable, "-c", code, str(root))
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("3.5.0 -\n", 0), done.stderr


@pytest.mark.parametrize("lacks", ["everything", "setup.py", "include/triton"])
def test_a_folder_that_is_none(tmp_path: Path, lacks: str) -> None:
    root = tmp_path / "folder"
    if lacks != "everything":
        fakes.checkout(root, "3.5")
        (root / lacks).rename(tmp_path / "away")
    with pytest.raises(FactError, match="not a checkout of Triton") as caught:
        checkout.read(root)
    assert caught.value.where == str(root)
    assert "--source PATH" in str(caught.value)


def test_half_a_checkout(tmp_path: Path) -> None:
    root = fakes.checkout(tmp_path, "3.1")
    (root / "CMakeLists.txt").unlink()
    assert checkout.read(root).options == frozenset()
    (root / "python" / "triton" / "__init__.py").unlink()
    with pytest.raises(FactError, match="cannot determine the version"):
        checkout.read(root)


def test_a_checkout_without_any_pin(tmp_path: Path) -> None:
    root = fakes.checkout(tmp_path, "3.5")
    (root / "cmake" / "llvm-hash.txt").unlink()
    seen = checkout.read(root)
    assert (seen.pins, seen.pin) == ((), None)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"llvm_hash": "0123456789abcdef", "sha256sum": [1]}'])
def test_a_pin_file_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    root = fakes.checkout(tmp_path, "3.8")
    (root / "cmake" / "llvm-info.json").write_text(text)
    with pytest.raises(FactError, match="cannot read this pin file") as caught:
        checkout.read(root)
    assert caught.value.where == str(root / "cmake" / "llvm-info.json")


def test_when_bisecting_the_newest_shape_of_a_pin_wins(tmp_path: Path) -> None:
    root = fakes.checkout(tmp_path, "3.8")
    (root / "cmake" / "llvm-hash.txt").write_text("0" * 40)
    pin = checkout.read(root).pin
    assert pin is not None
    assert pin.commit == fakes.HASH


def test_a_path_in_the_home_folder_and_a_relative_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes.checkout(home / "triton", "3.5")
    assert checkout.read(Path("~/triton")).root == home / "triton"
    fakes.checkout(tmp_path / "triton", "3.5")
    monkeypatch.chdir(tmp_path)
    assert checkout.read(Path("triton")).root == tmp_path / "triton"


def test_enclosing(tmp_path: Path) -> None:
    root = fakes.checkout(tmp_path / "triton", "3.5")
    assert checkout.enclosing(root) == root
    assert checkout.enclosing(root / "third_party" / "nvidia" / "backend") == root
    assert checkout.enclosing(tmp_path) is None


@pytest.mark.parametrize("era", fakes.ERAS)
def test_the_pin_alone_is_that_of_the_whole(tmp_path: Path, era: str) -> None:
    root = fakes.checkout(tmp_path / "triton", era)
    assert checkout.pin_of(root) == checkout.read(root).pin


def test_the_pin_of_what_has_none(tmp_path: Path) -> None:
    assert checkout.pin_of(tmp_path) is None
    root = fakes.checkout(tmp_path / "3.5", "3.5")
    (root / "cmake" / "llvm-hash.txt").unlink()
    assert checkout.pin_of(root) is None
    root = fakes.checkout(tmp_path / "3.8", "3.8")
    (root / "cmake" / "llvm-info.json").unlink()  # the AMD backend's stays, and is not the core's
    assert checkout.pin_of(root) is None
    (root / "cmake" / "llvm-info.json").write_text("<<<<<<< HEAD\n")
    with pytest.raises(FactError, match="cannot read this pin file"):
        checkout.pin_of(root)


@pytest.mark.parametrize("name", ["pyproject.toml", "cmake/nvidia-toolchain-version.json"])
def test_the_marks_of_a_merge(tmp_path: Path, name: str) -> None:
    root = fakes.checkout(tmp_path, "3.5")
    text = (root / name).read_text()
    (root / name).write_text(f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> theirs\n")
    with pytest.raises(FactError, match="this file is not valid") as caught:
        checkout.read(root)
    assert caught.value.where == str(root / name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cmake/llvm-hash.txt", "../../../.."),
        ("cmake/llvm-hash.txt", "--upload-pack=touch evil"),
        ("cmake/llvm-info.json", '{"llvm_hash": "../../x"}'),
        ("cmake/llvm-info.json", f'{{"llvm_hash": "{fakes.HASH}", "build_number": "../../x"}}'),
        ("cmake/json-version.txt", "3.11.3/../../x"),
        ("cmake/nvidia-toolchain-version.json", '{"ptxas": "../../x"}'),
        ("pyproject.toml", '[build-system]\nrequires = ["setuptools", "--index-url=https://evil"]'),
        ("pyproject.toml", '[build-system]\nrequires = ["-e."]'),
        ("pyproject.toml", '[build-system]\nrequires = ["ninja==/../../evil.tar.gz"]'),
        ("pyproject.toml", '[build-system]\nrequires = ["ninja @ file:///evil.whl"]'),
    ],
)
def test_what_would_lead_elsewhere_is_refused(tmp_path: Path, name: str, text: str) -> None:
    """These become parts of paths, of URLs and of command lines."""
    root = fakes.checkout(tmp_path, "3.5")
    (root / name).write_text(text)
    with pytest.raises(FactError, match="has an invalid value") as caught:
        checkout.read(root)
    assert str(root / name) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "build-system = 5",
        "[build-system]\nrequires = 5",
        "[build-system]\nrequires = [-5]",
        "[build-system]\nrequires = 'a'",
    ],
)
def test_requirements_that_are_no_list(tmp_path: Path, text: str) -> None:
    root = fakes.checkout(tmp_path, "3.5")
    (root / "pyproject.toml").write_text(text)
    with pytest.raises(FactError, match="has an invalid value") as caught:
        checkout.read(root)
    assert caught.value.where == str(root / "pyproject.toml")


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ('#include "TritonAMDGPUToLLVM/Passes.h"\n', True),
        ('#ifdef USE_ROCM\n#include "TritonAMDGPUToLLVM/Passes.h"\n#endif\n', False),  # before 5b37ffa58
        ('#include "triton/Dialect/Triton/IR/Dialect.h"\n', False),
    ],
)
def test_whether_bin_needs_a_backend_is_read_off_its_includes(tmp_path: Path, text: str, needs: bool) -> None:
    root = fakes.checkout(tmp_path, "3.5")
    (root / "bin").mkdir(exist_ok=True)
    (root / "bin" / "RegisterTritonDialects.h").write_text(text, encoding="utf-8")
    assert checkout.read(root).has("bin-needs-amd") is needs


# Programs that lit tests call, from RUN lines as they stand in Triton's tests.


def called(tmp_path: Path, *lines: str, name: str = "a.mlir") -> tuple[str, ...]:
    folder = tmp_path / "test" / "Conversion"
    folder.mkdir(parents=True)
    (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return checkout.lit_programs(tmp_path)


@pytest.mark.parametrize(
    ("line", "programs"),
    [
        ("// RUN: triton-opt %s -split-input-file -cse | FileCheck %s", ("FileCheck", "triton-opt")),
        ("// RUN: split-file %s %t && llc < %t/a.ll | FileCheck %s", ("FileCheck", "llc", "split-file")),
        ("// RUN: not triton-opt %s 2>&1 | FileCheck %s", ("FileCheck", "not", "triton-opt")),
        ("// RUN: env TRITON_DUMP=1 not --crash opt %s", ("env", "not", "opt")),
        ("; RUN: mlir-translate --mlir-to-llvmir %s; opt -passes='a|b' %t", ("mlir-translate", "opt")),
        ("// RUN:   | FileCheck --check-prefix=GFX950 %s", ("FileCheck",)),
        ("// RUN: %PYTHON -m triton %s", ()),
        ("// RUN: --allocate-shared-memory \\", ()),
        ("// CHECK: opt %s", ()),
    ],
)
def test_a_line(tmp_path: Path, line: str, programs: tuple[str, ...]) -> None:
    assert called(tmp_path, line) == programs


def test_several_files_and_lines_give_one_sorted_list(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "b.ll").write_text("; RUN: opt %s\n; RUN: llc %s\n", encoding="utf-8")
    assert called(tmp_path, "// RUN: opt %s", "// RUN: FileCheck %s") == ("FileCheck", "llc", "opt")


def test_other_files_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "binary.ll").write_bytes(b"\xff\xfe RUN: opt \xff\n")
    assert called(tmp_path, "# RUN: llc", name="CMakeLists.cmake") == ("opt",)


def test_a_checkout_without_tests(tmp_path: Path) -> None:
    assert checkout.lit_programs(tmp_path) == ()
