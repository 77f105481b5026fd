"""A corpus, a rehearsal and their pages, with a real Triton and a real Chromium."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
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


# What each of these kernels depends on is in no text: the content of a file, a module that is found through a
# variable, and one whose name is made at run time.
READS = {
    "by_data": "import json, os\nN = json.load(open(os.path.dirname(__file__) + '/data.json'))",
    "by_path": "from helper import N",
    "by_name": "import importlib\nN = importlib.import_module('lazy' + 'mod').N",
    "by_none": "N = 4",
}
KERNEL = """import triton
import triton.language as tl
{first}
SIZE = tl.constexpr(N)


@triton.jit
def {name}(p):
    tl.store(p, SIZE)
"""


@pytest.mark.slow
def test_a_farm_compiles_again_what_has_read_a_file_that_was_edited(
    with_wheel: Smith, tmp_path: Path
) -> None:
    for name, first in READS.items():
        (tmp_path / f"{name}.py").write_text(KERNEL.format(first=first, name=name))
    entry = '[[kernel]]\nfile = "{name}.py"\nkernel = "{name}"\nsignature = "*i32:16"\n'
    (tmp_path / "list.toml").write_text("".join(entry.format(name=name) for name in READS))
    found = tmp_path / "found"
    found.mkdir()
    read = {
        "by_data": (tmp_path / "data.json", "{}"),
        "by_path": (found / "helper.py", "N = {}\n"),
        "by_name": (tmp_path / "lazymod.py", "N = {}\n"),
    }
    for path, text in read.values():
        path.write_text(text.format(1))
    here = with_wheel.beside(tmp_path)
    smith = replace(here, more={**here.more, "PYTHONPATH": str(found)})
    python = here.env("wheel") / "venv" / "bin" / "python"
    command = ("farm", "list.toml", "--base", python, "--head", "wheel", "--target", "h100", "--json")

    def compiled_now() -> int:
        told = json.loads(smith(*command, code=None).out)
        assert [row["from"]["status"] for row in told["kernels"]] == ["ok"] * len(READS)
        # Those of an interpreter: an environment may be built anew, and compiles all each time.
        assert told["compiled"] + told["kept"] == 2 * len(READS)
        return int(told["compiled"]) - len(READS)

    assert compiled_now() == len(READS)
    assert compiled_now() == 0
    for path, text in read.values():
        path.write_text(text.format(2))
        assert compiled_now() == 1
    for path, text in read.values():
        path.write_text(text.format(1))
    assert compiled_now() == len(read)
    assert compiled_now() == 0
