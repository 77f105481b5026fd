"""Passes of the newest wheel: dumps of a kernel and of a program, crashes in the middle, lists, searches."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith
from tritonsmith.compiler.dump import index as indexes
from tritonsmith.compiler.dump.index import DumpIndex

KERNELS = """
import triton
import triton.language as tl


@triton.jit
def scale(a_ptr, b_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    rows = tl.load(a_ptr + at[:, None] * SIZE + at[None, :])
    tl.store(b_ptr + at, tl.sum(rows, axis=0))


@triton.jit
def product(a_ptr, b_ptr, c_ptr, depth, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    sums = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for step in range(0, depth, SIZE):
        left = tl.load(a_ptr + at[:, None] * depth + (step + at)[None, :])
        right = tl.load(b_ptr + (step + at)[:, None] * SIZE + at[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(c_ptr + at[:, None] * SIZE + at[None, :], sums)


@triton.jit
def double(a_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(a_ptr + at, tl.load(a_ptr + at) * 2)
"""

PROGRAM = """
import os
import sys
from kernels import double, scale
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def compiled(fn, signature, place, warps):
    source = ASTSource(fn=fn, signature=signature, constexprs={(place,): 32})
    triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": warps})


print("begins")
with open("cache_folder", "w") as file:
    file.write(os.environ.get("TRITON_CACHE_DIR", ""))
compiled(double, {"a_ptr": "*fp32", "SIZE": "constexpr"}, 1, 1)
print("in the middle", file=sys.stderr, flush=True)
compiled(double, {"a_ptr": "*fp32", "SIZE": "constexpr"}, 1, 2)
compiled(scale, {"a_ptr": "*fp32", "b_ptr": "*fp32", "SIZE": "constexpr"}, 2, 1)
print("ends", sys.argv[1:])
sys.exit(5)
"""

SIGNATURE = ("--signature", "*fp32:16,*fp32:16,SIZE=32")


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool beside some kernels, with the newest wheel in the environment `wheel`."""
    root = tmp_path_factory.mktemp("pass es")
    (root / "kernels.py").write_text(KERNELS)
    (root / "program.py").write_text(PROGRAM)
    return with_wheel.beside(root)


@pytest.fixture(scope="module")
def scale(smith: Smith) -> DumpIndex:
    """A dump of one kernel, with LLVM's passes and PTX."""
    flags = ("--target", "h100", "--llvm", "--backend", "--reproducers", "--out", "scale")
    smith("passes.dump", "kernels.py:scale", *SIGNATURE, *flags)
    return indexes.read(smith.root / "scale")


def answer(smith: Smith, *argv: str | Path) -> dict[str, Any]:
    """What a task says as JSON."""
    content: dict[str, Any] = json.loads(smith(*argv, "--json").out)
    return content


def test_every_pass_of_every_stage_has_a_file(scale: DumpIndex) -> None:
    (kernel,) = scale.kernels
    assert (kernel.name, kernel.target, kernel.failed) == ("scale", "cuda:90", "")
    assert list(dict.fromkeys(dump.stage for dump in scale.dumps)) == ["ttir", "ttgir", "llir", "llvm", "ptx"]
    assert all(dump.whole and scale.path(dump).stat().st_size == dump.size for dump in scale.dumps)
    assert scale.triton.startswith("3.")


def test_the_stream_is_in_the_folder(scale: DumpIndex) -> None:
    stream = b"".join(scale.pieces())
    assert len(stream) == scale.size
    assert stream.count(b"IR Dump Before") == sum(dump.when == "before" for dump in scale.dumps)


def test_each_mlir_pass_has_its_time_and_most_have_a_change_or_none(scale: DumpIndex) -> None:
    passes = [dump for dump in scale.dumps if dump.stage in ("ttir", "ttgir", "llir") and not dump.inside]
    timed = [dump for dump in passes if dump.seconds is not None]
    assert len(timed) > 0.9 * len(passes)  # a pass on functions has one time for all of them
    assert all(dump.changed is not None for dump in passes[:-1])
    coalesce = next(dump for dump in passes if dump.argument == "convert-triton-to-tritongpu")
    assert coalesce.changed
    assert coalesce.stage == "ttgir"


def test_the_stages_are_those_of_the_pipelines_reproducers(scale: DumpIndex) -> None:
    """Triton names the file of a pipeline's reproducer by its stage; the file holds the pipeline."""
    made = {name: (scale.folder / name).read_text() for name in scale.reproducers}
    assert {name.split(".")[1] for name in made} == {"make_ttir", "make_ttgir", "make_llir"}
    for name, text in made.items():
        stage = name.split(".")[1].removeprefix("make_")
        pipeline = next(line for line in text.splitlines() if "pipeline:" in line)
        mine = [dump for dump in scale.dumps if dump.stage == stage and dump.operation == "builtin.module"]
        assert mine
        assert mine[0].argument in pipeline


@pytest.mark.usefixtures("scale")
def test_the_list_shows_where_layouts_come_and_go(smith: Smith) -> None:
    made = answer(smith, "passes.list", "scale")
    rows = {row["argument"]: row for row in made["passes"] if row["stage"] == "ttgir"}
    assert rows["convert-triton-to-tritongpu"]["operations"]["ttg.convert_layout"] > 0
    assert rows["convert-triton-to-tritongpu"]["changed"]
    shown = smith("passes.list", "scale", "--changed").out
    assert "convert-triton-to-tritongpu" in shown
    assert shown.count("\n") < smith("passes.list", "scale").out.count("\n")


@pytest.mark.usefixtures("scale")
def test_a_text_is_followed_to_its_end(smith: Smith) -> None:
    events = answer(smith, "passes.find", "scale", "convert_layout")["events"]
    assert (events[0]["argument"], events[0]["what"]) == ("convert-triton-to-tritongpu", "born")
    assert events[-1]["what"] == "died"
    smith("passes.find", "scale", "no such text", code=1)


@pytest.mark.usefixtures("scale")
def test_one_pass_is_shown_before_and_after(smith: Smith) -> None:
    before = smith("passes.show", "scale", "convert-triton-to-tritongpu").out
    after = smith("passes.show", "scale", "convert-triton-to-tritongpu", "--after").out
    assert "ttg.num-warps" not in before
    assert "ttg.num-warps" in after
    assert "loc(" not in smith("passes.show", "scale", "convert-triton-to-tritongpu", "--normal").out


@pytest.fixture(scope="module")
def products(smith: Smith) -> tuple[DumpIndex, DumpIndex]:
    """Dumps of a matrix product for two GPUs: their instructions are not the same."""
    signature = ("--signature", "*fp16:16,*fp16:16,*fp32:16,i32:16,SIZE=64")
    for target in ("h100", "a100"):
        smith("passes.dump", "kernels.py:product", *signature, "--target", target, "--out", target)
    return indexes.read(smith.root / "h100"), indexes.read(smith.root / "a100")


@pytest.mark.slow
@pytest.mark.usefixtures("products")
def test_what_one_pass_did_line_by_line(smith: Smith) -> None:
    text = smith("passes.diff", "h100", "tritongpu-accelerate-matmul").out
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("-") and "tt.dot" in line]
    assert [line for line in lines if line.startswith("+") and "ttng.warp_group_dot" in line]
    assert "loc(" not in text
    assert len([line for line in lines if line[:1] in "+-"]) < 20  # a hundred values have new names


def test_what_several_passes_did(smith: Smith, products: tuple[DumpIndex, DumpIndex]) -> None:
    numbers = {dump.argument: dump.number for dump in products[0].dumps}
    first, last = numbers["convert-triton-to-tritongpu"], numbers["tritongpu-allocate-warp-groups"]
    rows = answer(smith, "passes.diff", "h100", str(first), str(last))["operations"]
    counts = {row["what"]: row["after"] - row["before"] for row in rows}
    assert counts["tt.dot"] == -1
    assert counts["ttng.warp_group_dot"] >= 1
    assert "nothing changed" in smith("passes.diff", "h100", str(first), str(first)).out


@pytest.mark.usefixtures("products")
def test_operations_and_layouts_are_counted(smith: Smith) -> None:
    made = answer(smith, "passes.diff", "h100", "tritongpu-coalesce")
    assert set(made) == {"schema", "operations", "layouts", "diff"}
    assert all(row["after"] > row["before"] for row in made["operations"])
    assert [row["what"] for row in made["operations"]] == ["ttg.convert_layout"]
    assert all(row["what"].startswith("#ttg.blocked<{") for row in made["layouts"])
    text = smith("passes.diff", "h100", "tritongpu-coalesce", "--ops").out
    assert "ttg.convert_layout" in text
    assert "@@" not in text
    wide = replace(smith, more={**smith.more, "COLUMNS": "400"})
    (line,) = [
        line
        for line in wide("passes.diff", "h100", "tritongpu-coalesce", "--layouts").out.splitlines()
        if made["layouts"][0]["what"] in line
    ]
    assert line.split()[-1] == f"{made['layouts'][0]['after'] - made['layouts'][0]['before']:+}"


def test_two_targets_part_at_the_pass_that_chooses_instructions(
    smith: Smith, products: tuple[DumpIndex, DumpIndex]
) -> None:
    made = answer(smith, "passes.diff", "h100", "--against", "a100")
    places = [
        next(dump.number for dump in one.dumps if dump.argument == "tritongpu-accelerate-matmul")
        for one in products
    ]
    assert made["parted"]
    assert made["passes"] == places
    assert any("warp_group_dot" in line for line in made["diff"]["lines"])
    assert (
        "the first difference is at tritongpu-accelerate-matmul"
        in smith("passes.diff", "h100", "--against", "a100").out
    )
    same = answer(smith, "passes.diff", "h100", "--against", "h100")
    assert (same["parted"], same["passes"]) == (False, [None, None])


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["999"], 2, "no pass 999"),
        (["canonicalize"], 2, "ran more than once"),
        (["0", "999"], 2, "no pass 999"),
        (["tritongpu-coalesc"], 2, "did you mean 'tritongpu-coalesce'"),
        ([], 2, "name a pass"),
        (["0", "--against", "a100"], 2, "--against compares whole dumps"),
        (["--against", "nowhere"], 1, "its index is missing"),
        (["--against", "a100", "--kernel", "produce"], 2, "did you mean 'product'"),
        (["enable-line-info"], 1, "nothing was printed after it"),
    ],
)
def test_what_cannot_be_compared_is_said(smith: Smith, words: list[str], code: int, said: str) -> None:
    assert said in smith("passes.diff", "h100", *words, code=code).error


@pytest.mark.slow
def test_kernels_of_one_dump_are_compared_by_name(smith: Smith) -> None:
    flags = ("--target", "h100", "--sweep", "num_warps=1,2", "--out", "warps")
    smith("passes.dump", "kernels.py:double", "--signature", "*fp32:16,SIZE=32", *flags)
    made = answer(smith, "passes.diff", "warps", "--against", "warps", "--kernel", "double,double-2")
    assert "convert-triton-to-tritongpu" in made["said"]
    smith("passes.diff", "warps", "--against", "warps", "--kernel", "a,b,c", code=2)


@pytest.mark.usefixtures("scale")
def test_a_text_of_llvms_is_born_by_the_translation(smith: Smith) -> None:
    events = answer(smith, "passes.find", "scale", "ret void")["events"]
    assert (events[0]["before"], events[0]["what"]) == (0, "born")
    assert events[-1]["what"] == "died"
    smith("passes.find", "scale", "", code=2)


def test_a_saved_log_gives_the_same(smith: Smith, scale: DumpIndex) -> None:
    log = smith.root / "log"
    log.write_bytes(b"".join(scale.pieces()))
    smith("passes.import", "log", "--out", "imported")
    again = indexes.read(smith.root / "imported")
    assert again.dumps == scale.dumps
    assert again.kernels == scale.kernels
    lines = b"".join(scale.pieces()).splitlines(keepends=True)
    log.write_bytes(b"".join(b"2026-11-21T10:00:00.5Z " + line for line in lines))
    assert "2026-11-21" in smith("passes.import", "log", "--out", "times").err
    assert indexes.read(smith.root / "times").dumps == scale.dumps
    assert "it is a folder" in smith("passes.import", "scale", "--out", "folder", code=1).error


@pytest.mark.slow
def test_a_program_keeps_its_output_and_its_exit_code(smith: Smith) -> None:
    python = smith.env("wheel") / "venv" / "bin" / "python"
    done = smith("passes.dump", "--no-line-info", "--out", "all", "--", python, "program.py", "a b", code=5)
    assert done.out == "begins\nends ['a b']\n"
    assert "in the middle\n" in done.err
    assert "IR Dump" not in done.err
    made = indexes.read(smith.root / "all")
    assert [(one.name, one.function) for one in made.kernels] == [
        ("double", "double"),
        ("double-2", "double"),
        ("scale", "scale"),
    ]
    assert len(made.of("double")) == len(made.of("double-2"))
    assert made.triton.startswith("3.")
    work = Path((smith.root / "cache_folder").read_text()).parent  # others work beside it
    assert work.parent == smith.home / "passes" / ".work"
    assert not work.exists()


def test_an_assertion_in_a_pass_names_the_pass(smith: Smith) -> None:
    """Three CTAs are no power of two: an assertion of the wheel's own."""
    flags = ("--target", "h100", "--option", "num_ctas=3", "--out", "asserted")
    done = smith("passes.dump", "kernels.py:scale", *SIGNATURE, *flags, code=1)
    made = indexes.read(smith.root / "asserted")
    assert made.kernels[0].failed == "ConvertTritonToTritonGPU"
    assert "Assertion" in made.kernels[0].error
    assert "Assertion" in done.err
    assert made.dumps[-1].name == "ConvertTritonToTritonGPU"
    assert made.dumps[-1].whole


def test_a_crash_in_llvm_keeps_all_that_came_before(smith: Smith) -> None:
    """A flag that is no flag of its kind: LLVM gives up, and the process dies."""
    crashing = Smith(smith.root, smith.cwd, {**smith.more, "DISABLE_LLVM_OPT": "stop-after"}, smith.shared)
    flags = ("--target", "h100", "--out", "crashed")
    crashing("passes.dump", "kernels.py:double", "--signature", "*fp32:16,SIZE=32", *flags, code=1)
    (kernel,) = indexes.read(smith.root / "crashed").kernels
    assert kernel.failed == "after LLVMDIScope"  # MLIR's last one: its time was printed, so it had ended
    assert "LLVM ERROR" in kernel.error


def test_what_would_be_run_is_shown(smith: Smith) -> None:
    text = smith("passes.dump", "kernels.py:scale", *SIGNATURE, "--target", "h100", "--dry-run").out
    assert "MLIR_ENABLE_DUMP=1" in text
    assert re.search(r"worker'? compile\b", text)
    assert not (smith.home / "passes" / "kernels.scale").exists()


def test_a_kernel_and_a_program_are_one_too_many(smith: Smith) -> None:
    smith("passes.dump", "kernels.py:scale", "--", "python", "program.py", code=2)
    smith("passes.dump", "--", "no-such-program", code=1)
    smith("passes.list", "nowhere", code=1)
    smith("passes.show", "scale", "no-such-pass", code=2)


@pytest.mark.slow
def test_what_a_compiler_printed_comes_out_again_to_the_byte(smith: Smith) -> None:
    """A stream that went to a file, and not through this tool: passes, times, PTX, output."""
    python = smith.env("wheel") / "venv" / "bin" / "python"
    variables = ("MLIR_ENABLE_DUMP", "LLVM_IR_ENABLE_DUMP", "NVPTX_ENABLE_DUMP", "TRITON_ALWAYS_COMPILE")
    times = ("MLIR_ENABLE_TIMING", "LLVM_ENABLE_TIMING", "PYTHONUNBUFFERED")
    environ = {**os.environ, **dict.fromkeys((*variables, *times), "1"), "TRITON_HOME": str(smith.root)}
    log = smith.root / "by hand.log"
    with log.open("wb") as file:
        subprocess.run(
            [python, "program.py"], cwd=smith.root, env=environ, stdout=file, stderr=file, check=False
        )
    (smith.root / "by hand.log.gz").write_bytes(gzip.compress(log.read_bytes()))
    for name in (log.name, f"{log.name}.gz"):
        smith("passes.import", name, "--out", "by hand")
        made = indexes.read(smith.root / "by hand")
        assert b"".join(made.pieces()) == log.read_bytes()
        assert {dump.path.rpartition(".")[2] for dump in made.dumps} >= {"mlir", "ll", "ptx"}
        assert all(dump.whole for dump in made.dumps)
        assert all(made.path(dump).stat().st_size == dump.size for dump in made.dumps)
        assert len(made.kernels) == 3
