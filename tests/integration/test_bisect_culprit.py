"""Where two compiles of one kernel part, by the newest wheel with other options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.harness import Smith
from tritonsmith.compiler import targets, tritons, up
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.lab.isolate import first_pass_with
from tritonsmith.lab.isolate.first_pass_with import Level

EXAMPLES = up.FILE.parent
SIGNATURE = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,TILE_M=64,TILE_N=64,TILE_K=32"


@pytest.fixture
def asked() -> CompileRequest:
    """A kernel with a loop that Triton pipelines."""
    return CompileRequest(EXAMPLES / "tiled_matmul.py", "tiled_matmul", SIGNATURE, (targets.parse("a100"),))


@pytest.fixture
def python(with_wheel: Smith, monkeypatch: pytest.MonkeyPatch) -> str:
    """The interpreter of that environment, in its workspace."""
    monkeypatch.setenv("TRITONSMITH_HOME", str(with_wheel.home))
    return str(with_wheel.env("wheel") / "venv" / "bin" / "python")


@pytest.mark.slow
def test_a_pass_that_does_something_else(asked: CompileRequest, python: str, tmp_path: Path) -> None:
    sides = [tritons.parse(f"{python},num_stages={stages}") for stages in (3, 1)]
    found = first_pass_with.parting(asked, sides[0], sides[1], tmp_path / "out")
    assert found.level is Level.PASSES
    assert "pipeline" in found.name or "latencies" in found.name
    assert found.good != found.bad
    assert f"passes: {found.name} is the first pass" in found.sentence
    assert found.file == ""


@pytest.mark.slow
def test_the_same_compiler_leaves_the_assembler_only(
    asked: CompileRequest, python: str, tmp_path: Path
) -> None:
    small = replace(
        asked, file=EXAMPLES / "vector_add.py", kernel="", signature="*fp32:16,*fp32:16,*fp32:16,i32,64"
    )
    side = tritons.parse(python)
    found = first_pass_with.parting(small, side, side, tmp_path / "out")
    assert found.level is Level.ASSEMBLER
    assert (found.name, found.good, found.bad) == ("", "", "")


@pytest.mark.slow
def test_other_values_differ_from_the_front_end_on(
    asked: CompileRequest, python: str, tmp_path: Path
) -> None:
    second = tritons.parse(f"{python},TILE_K=64")
    found = first_pass_with.parting(asked, tritons.parse(python), second, tmp_path / "out")
    assert found.level is Level.FRONT_END
    assert "tt.func" in found.good
    assert found.good != found.bad


@pytest.mark.slow
def test_a_kernel_that_cannot_be_compiled_is_not_compared(
    asked: CompileRequest, python: str, tmp_path: Path
) -> None:
    found = first_pass_with.parting(asked, tritons.parse(python), tritons.parse("0.1.0"), tmp_path / "out")
    assert found.level is Level.UNKNOWN
    assert found.sentence.startswith("passes: not comparable: ")
