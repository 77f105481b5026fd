"""`passes.isolate` and `passes.reduce` with the newest wheel: an assertion, from the dump to a few lines."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.harness import Done, Smith, git, interrupt, plant, wait_for
from tritonsmith.compiler import up
from tritonsmith.compiler.dump import index as indexes
from tritonsmith.ir.ir_text import parse

MATMUL = Path(up.__file__).parent / "examples" / "tiled_matmul.py"
SIGNATURE = ("--signature", "*fp16:16,*fp16:16,*fp16:16,i32,i32,i32,64,64,32")
# A pack of 3 is no power of two: TritonAMDGPUAccelerateMatmul asserts.
CRASHING = ("--target", "hip:gfx942", "--option", "kpack=3")
FAILING = "tritonamdgpu-accelerate-matmul"


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool, with the dump `crashed` of a compile that crashed and `fine` of one that did not."""
    root = tmp_path_factory.mktemp("jane's reduce")
    made = with_wheel.beside(root)
    made("passes.dump", MATMUL, *SIGNATURE, *CRASHING, "--out", root / "crashed", code=1)
    made("passes.dump", MATMUL, *SIGNATURE, "--target", "cuda:80", "--out", root / "fine")
    return made


@pytest.fixture(scope="module")
def isolated(smith: Smith) -> tuple[Path, Done]:
    """The folder that `passes.isolate --reduce` makes of the dump `crashed`."""
    out = smith.cwd / "for the issue"
    return out, smith("passes.isolate", "crashed", "--reduce", "--out", out)


def python(smith: Smith) -> Path:
    return smith.env("wheel") / "venv" / "bin" / "python"


def test_the_failing_pass_fails_alone(isolated: tuple[Path, Done]) -> None:
    out, done = isolated
    assert f"{FAILING} fails alone, as in the dump: assertion: " in done.out
    names = {"input.mlir", "reduced.mlir", "command.sh", "reproduce.py", "error.txt", "README.md"}
    names |= {"isolated.json"}
    assert {path.name for path in out.iterdir()} == names
    first = (out / "input.mlir").read_text().splitlines()[0]
    assert first.startswith(f"// RUN: triton-opt %s --pass-pipeline='builtin.module({FAILING}{{")
    assert "kPack=3" in first
    assert "Assertion" in (out / "error.txt").read_text()
    readme = (out / "README.md").read_text()
    for text in (FAILING, "hip:gfx942", "isPowerOf2_32", "Locations were removed"):
        assert text in readme


def test_a_few_operations_are_left_of_a_matmul(isolated: tuple[Path, Done]) -> None:
    out, _ = isolated
    before, after = (parse((out / name).read_text()).count() for name in ("input.mlir", "reduced.mlir"))
    assert before > 60
    assert after <= 15


def test_no_private_path_is_in_the_folder(smith: Smith, isolated: tuple[Path, Done]) -> None:
    for path in isolated[0].iterdir():
        text = path.read_text()
        assert str(smith.root.parent) not in text
        assert smith.cwd.name not in text
        assert "loc(" not in text
        assert not re.search(r"(?<![\w.])/(?:home|root|tmp|Users)/", text), path


@pytest.mark.parametrize("file", ["input.mlir", "reduced.mlir"])
def test_reproduce_fails_in_the_environments_python(
    smith: Smith, isolated: tuple[Path, Done], tmp_path: Path, file: str
) -> None:
    moved = tmp_path / "attached"
    shutil.copytree(isolated[0], moved)
    environ = {"PATH": "/usr/bin:/bin"}
    argv = (python(smith), moved / "reproduce.py", moved / file)
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode
    assert "isPowerOf2_32" in done.stderr
    environ["PYTHON"] = str(python(smith))
    whole = subprocess.run(
        ("sh", moved / "command.sh"), env=environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert whole.returncode
    assert "isPowerOf2_32" in whole.stderr


@pytest.mark.slow
def test_reducing_again_gives_the_same_file(
    smith: Smith, isolated: tuple[Path, Done], tmp_path: Path
) -> None:
    done = smith("passes.reduce", isolated[0] / "input.mlir", "--out", tmp_path / "again.mlir", "--json")
    assert (tmp_path / "again.mlir").read_text() == (isolated[0] / "reduced.mlir").read_text()
    answer = json.loads(done.out)
    assert answer["kind"] == "assertion"
    assert answer["done"]
    assert answer["after"]["ops"] < answer["before"]["ops"]
    assert answer["candidates"] > 10


def test_a_pass_that_does_not_fail_alone_comes_with_those_before_it(smith: Smith, tmp_path: Path) -> None:
    folder = tmp_path / "crashed"
    shutil.copytree(smith.cwd / "crashed", folder)
    made = indexes.read(folder)
    failing = [dump for dump in made.dumps if dump.argument == FAILING][-1]
    given = made.path(failing).read_text()
    head = given[given.index("\nmodule") : given.index("{\n", given.index("\nmodule"))]
    made.path(failing).unlink()  # a hard link, perhaps
    made.path(failing).write_text(f"{head.strip()} {{\n}}\n")  # on which nothing fails
    done = smith("passes.isolate", folder, "--out", tmp_path / "out", "--json")
    answer = json.loads(done.out)
    assert answer["passes"][-1] == FAILING
    assert len(answer["passes"]) > 1
    assert answer["same"]
    assert answer["numbers"][0] < failing.number
    assert "shortest end of the pipeline" in (tmp_path / "out" / "README.md").read_text()


UNREACHABLE = """\
planted: no such layout
UNREACHABLE executed at /home/jane/triton/lib/Dialect/TritonGPU/Transforms/Prefetch.cpp:447!
PLEASE submit a bug report to https://github.com/llvm/llvm-project/issues/ and include the crash backtrace.
 #0 0x00007f0 llvm::sys::PrintStackTrace (/lib/libtriton.so+0x11)
 #1 0x00007f1 SignalHandler(int) Signals.cpp:0:0
 #3 0x00007f4 (anonymous namespace)::Prefetcher::initialize() (/lib/libtriton.so+0x44)
 #4 0x00007f5 mlir::second() (/lib/libtriton.so+0x55)
"""
PREFETCH = """\
// -----// IR Dump Before TritonGPUPrefetch (tritongpu-prefetch) ('builtin.module' operation) //----- //
module attributes {"ttg.target" = "cuda:90"} {
  tt.func public @add(%arg0: i32) {
    tt.return
  }
}


"""


@pytest.fixture
def unreachable(tmp_path: Path) -> tuple[Smith, Path]:
    """A dump of a pass that reaches `llvm_unreachable`, and a build of a modified checkout to replay it."""
    checkout = plant("mini_triton", tmp_path / "checkout")
    (checkout / "setup.py").write_text("# edited\n" + (checkout / "setup.py").read_text())
    opt = tmp_path / "build" / "bin" / "triton-opt"
    opt.parent.mkdir(parents=True)
    (tmp_path / "build" / "source").symlink_to(checkout)
    (tmp_path / "said").write_text(UNREACHABLE)
    opt.write_text(f"#!/bin/sh\ncat > /dev/null\ncat '{tmp_path}/said' >&2\nkill -ABRT $$\n")
    opt.chmod(0o755)
    tool = Smith(tmp_path, cwd=tmp_path)
    (tmp_path / "log").write_text(PREFETCH + UNREACHABLE)
    tool("passes.import", "log", "--out", "dump")
    return tool, opt


def test_unreachable_code_is_told_with_its_message_its_frames_and_a_modified_checkout(
    unreachable: tuple[Smith, Path],
) -> None:
    tool, opt = unreachable
    done = tool("passes.isolate", "dump", "--triton-opt", opt, "--out", "issue")
    what = "assertion: unreachable: planted: no such layout in Prefetch.cpp"
    assert f"tritongpu-prefetch fails alone, as in the dump: {what}" in " ".join(done.out.split())
    assert "top frames: Prefetcher::initialize, mlir::second" in done.out
    readme = (tool.cwd / "issue" / "README.md").read_text()
    commit = git(tool.cwd / "checkout", "rev-parse", "HEAD")
    assert f"{commit} (modified: the checkout has changes that are not committed)" in readme


def test_another_failure_than_the_dumps_is_no_success(unreachable: tuple[Smith, Path]) -> None:
    tool, opt = unreachable
    (tool.cwd / "said").write_text(UNREACHABLE.replace("no such layout", "no such type"))
    done = tool("passes.isolate", "dump", "--triton-opt", opt, "--out", "issue", code=1)
    assert "tritongpu-prefetch fails alone, but not as in the dump" in done.error
    assert "no such type" in (tool.cwd / "issue" / "README.md").read_text()
    answer = tool("passes.isolate", "dump", "--triton-opt", opt, "--out", "issue", "--json", code=1)
    assert json.loads(answer.out)["same"] is False


def test_a_dump_without_a_failure(smith: Smith) -> None:
    done = smith("passes.isolate", "fine", code=1)
    assert "no pass of tiled_matmul failed in this dump" in done.error
    assert "--pattern" in done.error


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("ttg.local_alloc", "of ttgir: 0 before"),
        ("ld.shared", "LLVM's backend, from llir to ptx: 0 before"),
        ("HMMA", "ptxas, from ptx to machine code: 0 before"),
        ("tt.dot", "occurs before the first pass"),
    ],
)
def test_the_first_pass_after_which_a_text_is_there(smith: Smith, pattern: str, said: str) -> None:
    assert said in smith("passes.isolate", "fine", "--pattern", pattern).out


@pytest.mark.slow
def test_a_pattern_that_is_nowhere_and_a_limit(smith: Smith) -> None:
    assert "does not occur" in smith("passes.isolate", "fine", "--pattern", "no such text", code=1).error
    done = smith("passes.isolate", "fine", "--when", "registers>2,spills>100000", "--json")
    first, second = json.loads(done.out)["terms"]
    assert first["holds"]
    assert not second["holds"]
    assert first["value"] > 2


def test_a_file_that_is_not_interesting_at_the_start(smith: Smith, tmp_path: Path) -> None:
    file = tmp_path / "fine.mlir"
    file.write_text("module {\n  tt.func @f() {\n    tt.return\n  }\n}\n")
    assert "the passes succeed on this file" in smith("passes.reduce", file, "--pass", "cse", code=1).error
    script = "echo no such thing; exit 1"
    done = smith("passes.reduce", file, "--", "sh", "-c", script, code=1)
    assert "does not report the file as interesting" in done.error
    assert "no such thing" in done.error
    file.write_text("module {\n  tt.func @f() {\n    tt.retur\n  }\n}\n")
    done = smith("passes.reduce", file, "--pass", "cse", code=1)
    assert "no pass ran on this file" in done.error
    assert "tt.retur" in done.error


def test_passes_that_are_not_there(smith: Smith, tmp_path: Path) -> None:
    file = tmp_path / "fine.mlir"
    file.write_text("module {\n}\n")
    done = smith("passes.reduce", file, "--pass", "tritongpu-coalesc", code=1)
    assert "did you mean 'tritongpu-coalesce'?" in done.error
    assert "--triton-opt PATH" in done.error
    assert "no failing pass is named" in smith("passes.reduce", file, code=2).error
    assert (
        "--timeout cannot be"
        in smith("passes.reduce", file, "--pass", "cse", "--timeout", "-1", code=2).error
    )


def test_any_command_says_what_is_interesting(
    smith: Smith, isolated: tuple[Path, Done], tmp_path: Path
) -> None:
    file = shutil.copy(isolated[0] / "input.mlir", tmp_path / "whole.mlir")
    smith("passes.reduce", file, "--", "sh", "-c", "grep -q tt.dot {}")
    left = (tmp_path / "whole.reduced.mlir").read_text()
    assert "tt.dot" in left
    assert parse(left).count() <= 2


@pytest.mark.slow
def test_interrupted_it_keeps_the_best(smith: Smith, isolated: tuple[Path, Done], tmp_path: Path) -> None:
    file = shutil.copy(isolated[0] / "input.mlir", tmp_path / "whole.mlir")
    shutil.copy(isolated[0] / "input.mlir", tmp_path / "before.mlir")
    asked = tmp_path / "asked"
    script = f"echo >> '{asked}'; sleep 0.1; grep -q tt.dot {{}}"
    with smith.running("passes.reduce", file, "--", "sh", "-c", script) as process:
        wait_for(lambda: asked.exists() and len(asked.read_text()) > 8, process)
        done = interrupt(process)
    assert process.returncode == 130, done.err
    assert "the best so far is kept" in done.err
    left = (tmp_path / "whole.reduced.mlir").read_text()
    assert "tt.dot" in left
    assert len(left) < len((tmp_path / "before.mlir").read_text())


# What is undefined is 0 to passes.check, and anything to a pass: so canonicalize changes the result here.
UNDEFINED = """\
module {
  tt.func public @k(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
    %c3 = arith.constant 3 : i32
    %poison = ub.poison : f32
    %v = tt.load %x : !tt.ptr<f32>
    %w = arith.addf %v, %v : f32
    %cond = arith.cmpi sgt, %n, %c3 : i32
    %s = arith.select %cond, %poison, %w : f32
    %t = arith.mulf %s, %w : f32
    tt.store %out, %t : !tt.ptr<f32>
    tt.return
  }
}
"""


@pytest.mark.slow
def test_a_pass_that_changes_the_result(smith: Smith) -> None:
    file = smith.cwd / "undefined.mlir"
    file.write_text(UNDEFINED, encoding="utf-8")
    told = json.loads(smith("passes.reduce", file, "--pass", "canonicalize", "--when", "wrong", "--json").out)
    assert (told["kind"], told["failure"]) == ("wrong", "result")
    left = Path(told["path"]).read_text(encoding="utf-8")
    assert "arith.select" in left
    assert "tt.store" in left
    assert "tt.load" not in left


@pytest.mark.slow
def test_a_pass_that_changes_nothing(smith: Smith) -> None:
    file = smith.cwd / "defined.mlir"
    file.write_text(UNDEFINED.replace("%cond, %poison, %w", "%cond, %v, %w"), encoding="utf-8")
    done = smith("passes.reduce", file, "--pass", "canonicalize", "--when", "wrong", code=1)
    assert "the passes do not change the result" in done.err
    done = smith("passes.reduce", "fine", "--when", "wrong", code=1)
    assert re.search(r"none of \d+ passes changes the result", done.err)


@pytest.mark.parametrize("words", [("--when", "slow"), ("--when", "wrong", "--", "true")])
def test_other_words_for_when(smith: Smith, words: tuple[str, ...]) -> None:
    smith("passes.reduce", "fine", *words, code=2)
