"""`ir-env` and `ir-override` with the newest wheel."""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.harness import Smith
from tritonsmith.compiler import up

KERNEL = Path(up.__file__).parent / "examples" / "vector_add.py"
SIGNATURE = ("--signature", "*fp32:16,*fp32:16,*fp32:16,i32,1024")
SCRIPT = """
import importlib.util, sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
spec = importlib.util.spec_from_file_location("kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["kernel"] = module
spec.loader.exec_module(module)
kinds = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n_elements": "i32", "BLOCK": "constexpr"}
source = ASTSource(fn=module.vector_add, signature=kinds, constexprs={"BLOCK": 1024})
made = triton.compile(source, target=GPUTarget("cuda", 90, 32))
print("script's own words", len(made.asm["ptx"]))
"""


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool in a folder with a script that compiles."""
    root = tmp_path_factory.mktemp("by hand")
    (root / "my script.py").write_text(SCRIPT)
    return with_wheel.beside(root)


def with_editor(smith: Smith, *words: str) -> Smith:
    return replace(smith, more={**smith.more, "EDITOR": shlex.join(words)})


def python(smith: Smith) -> Path:
    return smith.env("wheel") / "venv" / "bin" / "python"


@pytest.mark.slow
def test_a_shell_that_takes_the_profile_makes_triton_dump(smith: Smith) -> None:
    said = smith("ir-env", "nvidia", "--env", "wheel").out
    script = f'{said} exec {shlex.quote(str(python(smith)))} "my script.py" {shlex.quote(str(KERNEL))}'
    done = subprocess.run(
        ["sh", "-c", script], cwd=smith.cwd, env=smith.environ, capture_output=True, text=True, check=True
    )
    assert "script's own words" in done.stdout
    assert "IR Dump Before" in done.stderr
    assert "TritonGPUCoalesce" in done.stderr


def test_a_command_runs_under_the_profile_with_its_own_exit_code(smith: Smith) -> None:
    code = "import os, sys; print(os.environ['MLIR_ENABLE_TIMING'], sys.argv[1]); sys.exit(5)"
    done = smith(
        "ir-env", "timing", "--triton", "3.9.0", "--", python(smith), "-c", code, "two  words", code=5
    )
    assert done.out == "1 two  words\n"


def test_folders_that_the_variables_name_are_made(smith: Smith) -> None:
    command = (python(smith), "my script.py", KERNEL)
    smith("ir-env", "reproducer", "--env", "wheel", "--out", "made here", "--", *command)
    found = list((smith.cwd / "made here").iterdir())
    assert any("pass_manager" in path.read_text() or "pipeline" in path.read_text() for path in found)


def test_wrong_words_of_profiles(smith: Smith) -> None:
    (smith.root / "a file").write_text("mine")
    done = smith("ir-env", "stages", "--triton", "3.9", "--out", "a file", "--", "true", code=2)
    assert "cannot create --out" in done.error
    assert "contradict" in smith("ir-env", "nvidia", "--unset", "--json", code=2).error
    assert "contradict" in smith("ir-env", "nvidia", "--env", "wheel", "--triton", "3.9", code=2).error
    listed = json.loads(smith("ir-env", ",", "--json").out)
    assert listed["schema"] == 1
    assert "nvidia" in [row["name"] for row in listed["profiles"]]


@pytest.mark.slow
def test_an_edited_stage_changes_the_stages_after_it(smith: Smith) -> None:
    sed = with_editor(smith, "sed", "-i", "s/arith.addf/arith.mulf/")
    done = sed("ir-override", KERNEL, *SIGNATURE, "--target", "h100", "--stage", "ttgir", "--diff")
    assert "+  " in done.out
    assert "arith.mulf" in done.out
    lines = [line.split() for line in done.out.splitlines()]
    rows = {line[0]: (int(line[1]), int(line[2])) for line in lines if len(line) == 3 and line[1].isdigit()}
    assert rows["ttgir"] == (1, 1)
    assert rows["llir"][0] == rows["llir"][1] > 0
    assert rows["ptx"][0] == rows["ptx"][1] > 0
    ptx = next(Path(done.out.splitlines()[-1]).joinpath("after").glob("*/vector_add.ptx")).read_text()
    assert "mul.f32" in ptx
    assert "add.f32" not in ptx


@pytest.mark.slow
def test_a_command_is_run_twice_and_says_its_own_words(smith: Smith) -> None:
    mine = smith.root / "mine.ttgir"
    command = ("--python", python(smith), "--", python(smith), "my script.py", KERNEL)
    sed = with_editor(smith, "sed", "-i", f"s/arith.addf/arith.subf/; w {mine}")
    done = sed("ir-override", "--stage", "ttgir", "--out", "first", *command)
    assert done.out.count("script's own words") == 2
    again = smith("ir-override", "--stage", "ttgir", "--edited", mine, "--out", "second", *command)
    tables = [
        [row for row in map(str.split, out.splitlines()) if len(row) == 3] for out in (done.out, again.out)
    ]
    assert tables[0] == tables[1]
    assert ["ttgir", "1", "1"] in tables[0]


def test_what_triton_cannot_parse_is_said_with_its_line(smith: Smith) -> None:
    sed = with_editor(smith, "sed", "-i", "s/arith.addf/arith.nonsense/")
    done = sed("ir-override", KERNEL, *SIGNATURE, "--target", "mi300x", "--stage", "ttgir", code=1)
    assert "Triton did not compile it" in done.error
    assert "arith.nonsense" in done.error
    assert "vector_add.ttgir" in done.error


@pytest.mark.slow
def test_wrong_words(smith: Smith) -> None:
    nothing = with_editor(smith, "true")
    asked = (KERNEL, *SIGNATURE, "--target", "h100")
    assert "the file was not changed" in nothing("ir-override", *asked, code=1).error
    assert "name a kernel's file" in smith("ir-override", code=2).error
    assert "no file" in smith("ir-override", *asked, "--edited", "no such", code=2).error
    (smith.root / "full").mkdir()
    (smith.root / "full" / "mine").write_text("mine")
    assert "not an empty folder" in nothing("ir-override", *asked, "--out", "full", code=2).error
    assert (smith.root / "full" / "mine").read_text() == "mine"
    assert [path.name for path in (smith.root / "full").iterdir()] == ["mine"]


@pytest.mark.parametrize("task", ["ir-override", "passes.dump"])
def test_a_mistake_comes_before_a_missing_triton(smith: Smith, tmp_path: Path, task: str) -> None:
    empty = with_editor(Smith(tmp_path, cwd=smith.cwd), "true")
    error = empty(task, "no such.py", *SIGNATURE, code=1).error
    assert "no such.py" in error
    assert "no Python interpreter with Triton" not in error
