"""A corpus, a rehearsal and their pages, with a real Triton and a real Chromium."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.integration import chromium
from tests.integration.harness import Smith
from tests.support import require
from tritonsmith.compiler import up

EXAMPLE = Path(up.__file__).parent / "examples" / "tiled_matmul.py"
LIST = """
[[kernel]]
file = "program/matmul.py"
kernel = "tiled_matmul"
signature = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,TILE_M=64,TILE_N=64,TILE_K=32"

[[kernel]]
file = "program/matmul.py"
kernel = "tiled_matmul"
name = "broken <b>"
signature = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,TILE_M=64,TILE_N=64,TILE_K=33"
"""


@pytest.fixture
def smith(with_wheel: Smith, tmp_path: Path) -> Smith:
    """Somebody with a corpus, whose program is gone."""
    program = tmp_path / "program"
    program.mkdir()
    shutil.copy(EXAMPLE, program / "matmul.py")
    (tmp_path / "list.toml").write_text(LIST)
    here = with_wheel.beside(tmp_path)
    assert "2 new: tiled_matmul, broken <b>" in here("corpus.add", "list.toml", "--corpus", "corpus").out
    shutil.rmtree(program)
    return here


@pytest.mark.slow
def test_a_rehearsal_and_its_page(smith: Smith, tmp_path: Path) -> None:
    python = str(smith.env("wheel") / "venv" / "bin" / "python")
    command = ("rehearse", "--corpus", "corpus", "--from", python, "--to", "wheel", "--target", "h100")
    done = smith(*command, "--out", "page.html", "--json")
    told = json.loads(done.out)
    assert (told["verdict"], told["compiled"]) == ("not sure: 1 kernel compiles by neither", 4)
    (fine, broken) = told["kernels"]
    # Of one binary by both, nothing is disassembled.
    assert "instructions tensor core" not in fine["from"]["metrics"]
    assert fine["from"]["metrics"]["registers_per_thread"] > 0
    assert fine["from"]["metrics"]["code_bytes"] == fine["to"]["metrics"]["code_bytes"]
    assert "power of 2" in broken["to"]["error"]
    again = json.loads(smith(*command, "--json").out)
    assert (again["compiled"], again["kept"]) == (2, 2)  # an environment may be built anew
    require(chromium.found())
    with chromium.page(tmp_path / "profile") as page:
        shown = page.read(tmp_path / "page.html")
    assert "not sure: 1 kernel compiles by neither" in shown
    assert "broken <b>" in shown
