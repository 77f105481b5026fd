"""Where a manifest may go, and the gist of what the compiler says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.kernels.resources.test_reading import manifest as made
from tests.unit.kernels.resources.test_reading import point
from tritonsmith.errors import UsageError
from tritonsmith.kernels import manifest

TYPED = """at 3:24:
def bad(x, n, BLOCK: tl.constexpr):
    tl.store(x + o, o + undefined_thing, mask=o < n)
                        ^
NameError('undefined_thing is not defined')
at /k/bad.py:5"""
OLDER = """at 4:8:
    w = tl.dot(v, tl.trans(v))
        ^
at /k/crash.py:6
AssertionError: Input shapes should have M >= 16"""
PASSES = """RuntimeError: PassManager::run failed
python: /project/lib/Tools/LinearLayout.cpp:246: Assertion `llvm::isPowerOf2_32(size)' failed.
/k/crash.py:3:1: error: Failures have been detected while processing an MLIR pass pipeline"""


def test_a_folder_of_ours_a_new_one_and_an_empty_one_may_be_written_to(tmp_path: Path) -> None:
    (tmp_path / manifest.FILE).write_text(made(tmp_path).render(), encoding="utf-8")
    manifest.check_output(tmp_path)
    manifest.check_output(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    manifest.check_output(tmp_path / "empty")


@pytest.mark.parametrize("content", ["{}", "[]", "no json", '{"name": "a web page"}'])
def test_somebody_elses_manifest_is_not_written_over(tmp_path: Path, content: str) -> None:
    (tmp_path / manifest.FILE).write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"not one of kernel\.compile's"):
        manifest.check_output(tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(UsageError, match="--out names a file"):
        manifest.check_output(tmp_path / "out")


@pytest.mark.parametrize(
    ("error", "gist"),
    [
        (TYPED, "NameError('undefined_thing is not defined')"),
        (OLDER, "AssertionError: Input shapes should have M >= 16"),
        (PASSES, PASSES.splitlines()[1]),
        ("ValueError: num_ctas > 1 not supported", "ValueError: num_ctas > 1 not supported"),
        ("the compiler died: SIGABRT\nLLVM ERROR: no\n", "LLVM ERROR: no"),
        ("at 1:2:\n  ^", "at 1:2:"),
        ("", ""),
    ],
)
def test_the_gist_of_an_error(tmp_path: Path, error: str, gist: str) -> None:
    assert point(tmp_path, "cuda:80:32", {}, {}, status="failed", error=error).gist == gist
