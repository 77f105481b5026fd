"""`passes.replay` with the newest wheel, through libtriton's own bindings."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for start in tl.range(0, n, BLOCK, num_stages=2):
        mask = start + offsets < n
        tl.store(y_ptr + start + offsets, tl.load(x_ptr + start + offsets, mask=mask) * 2, mask=mask)
"""


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool in a folder with dumps of a kernel: for an NVIDIA GPU and for one of AMD's."""
    made = with_wheel.beside(tmp_path_factory.mktemp("my dumps"))
    (made.cwd / "copy.py").write_text(KERNEL)
    for target, name in (("cuda:90", "nvidia"), ("hip:gfx942", "amd")):
        signature = "*fp32:16,*fp32:16,i32,BLOCK=256"
        made("passes.dump", "copy.py", "--signature", signature, "--target", target, "--out", name)
    return made


def answer(smith: Smith, *argv: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(smith("passes.replay", *argv, "--json").out)
    return made


@pytest.mark.parametrize("name", ["nvidia", "amd"])
def test_every_pass_replays_exactly(smith: Smith, name: str) -> None:
    made = answer(smith, name, "--all")
    verdicts = {" ".join(one["passes"]): one["verdict"] for one in made["passes"]}
    assert set(verdicts.values()) <= {"exact", "same", "inside", "alone"}, verdicts
    assert verdicts["tritongpu-coalesce"] in ("exact", "same")
    assert verdicts["canonicalize"] in ("exact", "same", "inside")
    assert sum(one["verdict"] in ("exact", "same") for one in made["passes"]) > 40
    assert len([one for one in made["passes"] if one["verdict"] == "alone"]) == 1
    (pipeline,) = [one for one in made["passes"] if one["passes"][0].endswith("gpu-pipeline")]
    assert pipeline["calls"][0]["binding"].endswith(".add_pipeline")


def test_one_pass_and_a_file_for_what_it_made(smith: Smith) -> None:
    done = smith("passes.replay", "nvidia", "convert-triton-to-tritongpu", "--out", "mine.mlir")
    assert "the result equals the next dump" in done.out
    text = (smith.cwd / "mine.mlir").read_text()
    assert '"ttg.num-warps" = 4' in text
    assert "#blocked" in text


def test_a_range_of_passes_is_run_as_one(smith: Smith) -> None:
    made = answer(smith, "nvidia", "--until", "15")
    (one,) = made["passes"]
    assert one["numbers"][0] == 0
    assert one["numbers"][-1] == 15
    assert len(one["calls"]) == len(one["numbers"])
    assert one["verdict"] in ("exact", "same")


@pytest.mark.slow
def test_a_dump_that_is_not_what_the_pass_makes(smith: Smith) -> None:
    shutil.copytree(smith.cwd / "nvidia", smith.cwd / "changed")
    everything = answer(smith, "nvidia", "--all")["passes"]
    (coalesce,) = [one for one in everything if one["passes"] == ["tritongpu-coalesce"]]
    path = smith.cwd / "changed" / Path(coalesce["next"]).relative_to(smith.cwd / "nvidia")
    path.write_text(path.read_text().replace("2.000000e+00", "3.000000e+00"))
    done = smith("passes.replay", "changed", "tritongpu-coalesce", code=1)
    assert "the result differs from the next dump" in done.error
    assert str(path) in done.error
    assert "edited" not in done.error  # a wheel
    done = smith("passes.replay", "changed", "tritongpu-coalesce", "--source", smith.cwd, code=1)
    assert "edited since the dump was recorded" in " ".join(done.error.split())
    path = smith.cwd / "changed" / Path(coalesce["input"]).relative_to(smith.cwd / "nvidia")
    path.write_text(path.read_text().replace("arith.mulf", "arith.mulff"))
    done = smith("passes.replay", "changed", "tritongpu-coalesce", code=1)
    assert "arith.mulff" in done.error


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["tritongpu-coalesc"], 2, "no pass tritongpu-coalesc"),
        (["tritongpu-coalesce", "--gdb"], 2, "--gdb needs a build's triton-opt"),
        (["tritongpu-coalesce", "--debug"], 1, "the sources of tritongpu-coalesce are required"),
        (["--all", "--out", "x"], 2, "--all takes neither"),
        (["--all", "--kernel", "paste"], 2, "no kernel 'paste'"),
        (["tritongpu-coalesce", "--triton-opt", "gone"], 1, "no such program"),
        (["tritongpu-coalesce", "--python", "/bin/sh"], 1, "this interpreter has no Triton"),
        (["tritongpu-coalesce", "--triton-opt", "/bin/true"], 1, "wrote no IR"),
        (["--from", "9", "--until", "3"], 2, "no pass from 9 to 3"),
    ],
)
def test_what_it_cannot_do_is_said(smith: Smith, flags: list[str], code: int, words: str) -> None:
    assert words in smith("passes.replay", "amd", *flags, code=code).error


@pytest.mark.slow
def test_what_an_earlier_replay_left_is_no_answer(smith: Smith) -> None:
    """A program that writes nothing, where a triton-opt had written what was expected."""
    program = smith.cwd / "opt"
    (number,) = [
        one for one in answer(smith, "nvidia", "--all")["passes"] if one["passes"] == ["triton-combine"]
    ]
    program.write_text(f'#!/bin/sh\nfor last; do :; done; cp "{number["next"]}" "$last"\n')
    program.chmod(0o755)
    flags = ("nvidia", "triton-combine", "--triton-opt", "opt")
    assert "byte by byte" in smith("passes.replay", *flags).out
    program.write_text("#!/bin/sh\n")
    assert "wrote no IR" in smith("passes.replay", *flags, code=1).error


def test_other_dumps_are_no_input_of_a_pass(smith: Smith) -> None:
    (smith.cwd / "llvm.log").write_text(
        "// -----// IR Dump Before A (a) ('builtin.module' operation) //----- //\n"
        "module {\n  tt.func public @f() {\n    tt.return\n  }\n}\n\n"
        "; *** IR Dump After B on f ***\ndefine void @f() {\n  ret void\n}\n"
    )
    smith("passes.import", "llvm.log", "--out", "imported")
    made = json.loads((smith.cwd / "imported" / "index.json").read_text())
    made["python"] = json.loads((smith.cwd / "nvidia" / "index.json").read_text())["python"]
    (smith.cwd / "imported" / "index.json").write_text(json.dumps(made))
    done = smith("passes.replay", "imported", "1", code=2)
    assert "only MLIR passes can be run alone" in done.error


def test_a_file_that_is_gone_is_named(smith: Smith) -> None:
    shutil.copytree(smith.cwd / "nvidia", smith.cwd / "less")
    path = next((smith.cwd / "less").rglob("*tritongpu-coalesce.mlir"))
    path.unlink()
    assert str(path.name) in smith("passes.replay", "less", "tritongpu-coalesce", code=1).error


def test_another_triton_is_said(smith: Smith) -> None:
    shutil.copytree(smith.cwd / "nvidia", smith.cwd / "older")
    path = smith.cwd / "older" / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "triton": "1.2.3"}))
    told = smith("passes.replay", "older", "triton-combine").err
    assert "the dump is by Triton 1.2.3, but Triton 3." in told


def test_a_dry_run_prints_the_commands(smith: Smith) -> None:
    done = smith("passes.replay", "nvidia", "tritongpu-coalesce", "--dry-run")
    assert re.search(r"worker'? replay\b", done.out)
    assert "passes.ttgpuir.add_coalesce" in done.out
