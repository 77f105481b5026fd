"""What `--for` builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.build.triton import recipe
from tritonsmith.core.envs.settings import Purpose, TritonSettings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with three programs, of which its lit tests run two, and one of LLVM's."""
    for name in ("bin/triton-opt.cpp", "bin/triton-lsp.cpp", "bin/triton-tensor-layout.cpp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "test").mkdir()
    run = "// RUN: triton-opt %s | FileCheck %s\n// RUN: triton-tensor-layout %s\n"
    (tmp_path / "test" / "a.mlir").write_text(run, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("purpose", "targets"),
    [
        ("all", ()),
        ("opt", ("triton-opt",)),
        ("python", ("triton",)),
        ("tests", ("triton-opt", "triton-tensor-layout")),
    ],
)
def test_a_purpose_names_targets(purpose: Purpose, targets: tuple[str, ...], root: Path) -> None:
    assert recipe.resolve_targets(TritonSettings(for_=purpose), root) == targets


def test_named_targets_go_first(root: Path) -> None:
    assert recipe.resolve_targets(TritonSettings(for_="tests", targets=("triton-lsp",)), root) == (
        "triton-lsp",
    )
