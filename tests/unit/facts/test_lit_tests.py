"""Programs that lit tests call, from RUN lines as they stand in Triton's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.facts import lit_tests


def called(tmp_path: Path, *lines: str, name: str = "a.mlir") -> tuple[str, ...]:
    folder = tmp_path / "test" / "Conversion"
    folder.mkdir(parents=True)
    (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return lit_tests.programs(tmp_path)


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
    assert lit_tests.programs(tmp_path) == ()
