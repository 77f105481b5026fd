"""Changed pipelines, by the newest wheel: a pass left out, the last one, a program, and each in turn."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.integration.harness import Smith, wait_for
from tritonsmith.compiler import up

ADD = Path(up.__file__).parent / "examples" / "vector_add.py"
ASKED = ("--signature", "*fp32:16,*fp32:16,*fp32:16,i32:16,BLOCK=1024")
TARGET = ("--target", "cuda:90")


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    return with_wheel.beside(tmp_path_factory.mktemp("surgery"))


@pytest.mark.slow
def test_without_coalesce_a_thread_loads_other_elements(smith: Smith) -> None:
    smith("kernel.compile", ADD, *ASKED, *TARGET, "--out", "whole")
    smith("kernel.compile", ADD, *ASKED, *TARGET, "--skip-pass", "tritongpu-coalesce", "--out", "cut")
    texts = [next(smith.cwd.glob(f"{name}/*/*.ptx")).read_text() for name in ("whole", "cut")]
    assert ["ld.global.v4" in text for text in texts] == [True, False]
    (point,) = json.loads((smith.cwd / "cut" / "manifest.json").read_text())["points"]
    assert [one["pass"] for one in point["passes"] if not one["times"]] == ["tritongpu-coalesce"]


@pytest.mark.slow
def test_what_has_no_effect_is_an_error(smith: Smith) -> None:
    done = smith("kernel.compile", ADD, *ASKED, *TARGET, "--skip-pass", "tritongpu-coalese", code=1)
    assert "did you mean tritongpu-coalesce" in done.error
    done = smith("kernel.compile", ADD, *ASKED, *TARGET, "--skip-pass", "tritongpu-coalesce#2", code=1)
    assert "reaches tritongpu-coalesce 1 time: there is no tritongpu-coalesce#2" in done.error
    done = smith("kernel.compile", ADD, *ASKED, *TARGET, "--set-llvm", "disable-foo", code=1)
    assert "Unknown command line argument '-disable-foo'" in done.error
    done = smith("kernel.compile", ADD, *ASKED, "--target", "hip:gfx942", "--ptxas-option=-O1", code=1)
    assert "ptxas did not run" in done.error


def test_llvm_stops_after_so_many_passes(smith: Smith) -> None:
    smith("kernel.compile", ADD, *ASKED, *TARGET, "--set-llvm", "opt-bisect-limit=5", "--out", "few")
    log = next(smith.cwd.glob("few/*/log")).read_text()
    assert "BISECT: running pass (5)" in log
    assert "BISECT: NOT running pass (6)" in log


def test_the_last_pass_ends_the_compile(smith: Smith) -> None:
    smith("kernel.compile", ADD, *ASKED, *TARGET, "--stop-after", "tritongpu-coalesce", "--out", "begun")
    (point,) = json.loads((smith.cwd / "begun" / "manifest.json").read_text())["points"]
    assert [name for name in point["stages"] if name != "source"] == ["ttir", "ttgir"]


def test_a_program_whose_python_has_no_triton(smith: Smith) -> None:
    (smith.cwd / "needs.py").write_text(
        "import sys\n"
        "try:\n"
        "    import triton\n"
        "except ModuleNotFoundError as error:\n"
        "    sys.exit(f'{error}')\n"  # as a traceback ends, which the harness takes for one of ours
    )
    done = smith("passes.run", "--skip-pass", "cse", "--", sys.executable, "needs.py", code=1)
    assert "the program needs triton, which its Python does not have" in done.error
    assert "passes.replay --env wheel -- python script.py" in done.error


@pytest.mark.slow
def test_a_program_compiles_without_a_pass(smith: Smith) -> None:
    (smith.cwd / "program.py").write_text(
        "import triton, triton.language as tl\n"
        "from triton.backends.compiler import GPUTarget\n"
        "from triton.compiler import ASTSource\n"
        "@triton.jit\n"
        "def k(x, y, B: tl.constexpr):\n"
        "    o = tl.arange(0, B)\n"
        "    tl.store(y + o, tl.load(x + o) + 1)\n"
        "kinds = {'x': '*fp32', 'y': '*fp32', 'B': 'constexpr'}\n"
        "source = ASTSource(fn=k, signature=kinds, constexprs={(2,): 1024})\n"
        "print(triton.compile(source, target=GPUTarget('cuda', 90, 32)).metadata.name)\n"
    )
    run = ("passes.run", "--env", "wheel", "--skip-pass")
    done = smith(*run, "tritongpu-coalesce", "--", "python", "program.py")
    assert "k: without tritongpu-coalesce#1" in done.err
    done = smith(*run, "tritongpu-coalese", "--", "python", "program.py", code=1)
    assert "no kernel was compiled as requested" in done.error


@pytest.mark.slow
def test_each_pass_is_left_out(smith: Smith) -> None:
    found = json.loads(smith("passes.knockout", ADD, *ASKED, *TARGET, "--json").out)
    (kernel,) = found["kernels"]
    verdicts = {(one["name"], one["number"]): one["verdict"] for one in kernel["passes"]}
    assert verdicts["convert-triton-to-tritongpu", 1] == "needed"
    assert verdicts["tritongpu-coalesce", 1] == "changes the code"
    assert verdicts["tritongpu-pipeline", 1] == "no effect"


@pytest.mark.slow
def test_a_knockout_that_was_killed_goes_on(smith: Smith) -> None:
    # Under a name of its own: tests on other workers knock out the same kernel, in the same workspace.
    own = smith.cwd / "killed_add.py"
    own.write_bytes(ADD.read_bytes())
    words = ("knockout", own, *ASKED, *TARGET, "--jobs", "1", "--json")

    def journals() -> list[Path]:
        folders = (smith.home / "passes" / "knockout").glob("killed_add*")
        return [
            path
            for folder in folders
            for path in folder.rglob("journal.jsonl")
            if path.read_text().count("without") > 10
        ]

    with smith.running(*words) as process:
        wait_for(lambda: bool(journals()), process)
        process.kill()
    (journal,) = journals()
    compiled = {path: path.stat().st_mtime_ns for path in journal.parents[1].glob("cuda*/0/manifest.json")}
    assert compiled
    (resumed,) = json.loads(smith(*words).out)["kernels"]
    assert {path: path.stat().st_mtime_ns for path in compiled} == compiled, "not again"
    assert not journal.exists()
    (whole,) = json.loads(smith(*words).out)["kernels"]
    assert {path: path.stat().st_mtime_ns for path in compiled} != compiled, "what has ended begins anew"
    facts = ("name", "number", "verdict", "values", "error")
    effects, others = ([[one[fact] for fact in facts] for one in made["passes"]] for made in (resumed, whole))
    assert effects == others
