"""Kernels made small by a real Triton: a failure, a limit, a command; what is refused, and ^C."""

from __future__ import annotations

import ast
import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith, interrupt, wait_for

KERNELS = """\
import os
import triton
import triton.language as tl

WIDTH = tl.constexpr(2)


def host():
    return os.getcwd()


@triton.jit
def doubled(x, factor: tl.constexpr):
    y = x * factor
    return y


@triton.jit
def dot(a, b, out, unused, BLOCK: tl.constexpr):
    # as many rows as columns
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    x = tl.load(a + at)
    y = tl.load(b + at, mask=at < 100, other=0.0)
    if BLOCK > 8:
        x = doubled(x, WIDTH)
    tl.store(out + at, tl.dot(x, y))


@triton.jit
def refused(a, out, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(a + i, mask=i < N)
    for start in range(0, N, BLOCK):
        x += 1
        tl.static_assert(BLOCK < 8, "too wide")
    tl.store(out + i, x)
"""
DOT = ("kernels.py:dot", "--signature", "*fp32:16,*fp32:16,*fp32:16,i32,BLOCK=32", "--target", "sm_90")
REFUSED = ("kernels.py:refused", "--signature", "*fp32,*fp32,i32,64", "--target", "sm_90")


@pytest.fixture
def smith(with_wheel: Smith, tmp_path: Path) -> Smith:
    """Beside the kernels."""
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    return with_wheel.beside(tmp_path)


def reduced(smith: Smith, *words: str) -> tuple[dict[str, Any], str]:
    """The answer as JSON, and the file; what was given is as it was."""
    found: dict[str, Any] = json.loads(smith("kernel.reduce", "--json", *words).out)
    assert (smith.cwd / "kernels.py").read_text(encoding="utf-8") == KERNELS
    text = Path(found["path"]).read_text(encoding="utf-8")
    ast.parse(text)
    assert found["done"]
    assert found["after"]["lines"] < found["before"]["lines"]
    return found, text


def python_of(smith: Smith) -> Path:
    """The interpreter that has Triton."""
    return smith.home / "envs" / "wheel" / "venv" / "bin" / "python"


@pytest.mark.slow
def test_a_compile_that_fails_and_the_same_at_each_number_of_jobs(smith: Smith) -> None:
    """The front end refuses each candidate, so a second reduction costs little here."""
    found, text = reduced(smith, *REFUSED, "--jobs", "1")
    again, other = reduced(smith, *REFUSED, "--jobs", "2", "--out", "two.py")
    assert other.replace("two.py", "refused.reduced.py") == text
    assert again["after"] == found["after"]
    assert "too wide" in found["expected"]
    assert found["after"]["arguments"] == 0
    assert "static_assert" in text
    assert "tl.load" not in text
    assert "host" not in text
    assert found["alone"]
    assert "# Expected: " in text
    argv = (python_of(smith), found["path"])
    alone = subprocess.run(argv, env=smith.environ, capture_output=True, text=True, check=False)
    assert alone.returncode == 1
    assert "too wide" in alone.stderr
    (line,) = (line for line in text.splitlines() if line.startswith("#   invoke"))
    named = line.removeprefix("#   invoke ").partition(" --")[0].split()
    assert named == ["kernel.compile", "refused.reduced.py:refused"]


@pytest.mark.slow
def test_a_text_in_a_stage(smith: Smith) -> None:
    """The source has the name of a module that Triton imports; what is written has another one."""
    folder = smith.cwd / "source"
    folder.mkdir(exist_ok=True)
    shutil.copy(smith.cwd / "kernels.py", folder / "copy.py")
    found, text = reduced(smith, "source/copy.py:dot", *DOT[1:], "--when", "ttgir contains tf32")
    assert found["alone"]
    assert text.count("tl.dot(") == 1
    assert "doubled" not in text
    assert "mask" not in text
    assert found["after"]["arguments"] == 1
    assert "invoke kernel.show dot.reduced.py:dot" in text
    argv = (python_of(smith), found["path"])
    alone = subprocess.run(argv, env=smith.environ, capture_output=True, text=True, check=True)
    assert alone.stdout == "True\n"


def test_a_command(smith: Smith) -> None:
    found, text = reduced(smith, "kernels.py:dot", "--out", "small.py", "--", "grep", "-q", "tl[.]dot", "{}")
    assert "tl.dot" in text
    assert found["after"]["statements"] <= 4
    assert not found["alone"]
    assert "# Expected: exit code 0 of" in text


# What a command compiles, and the number of processes that came to an end of the script.
SCRIPT = """\
import runpy
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

with open("pids", "a") as file:
    print(len(sys.argv), "_tritonsmith_worker" in sys.modules, file=file)
if "TWICE" in sys.argv[2:]:
    assert "_tritonsmith_worker" not in sys.modules
kernel = runpy.run_path(sys.argv[1])["dot"]
types = {"a": "*fp32", "b": "*fp32", "out": "*fp32", "unused": "i32", "BLOCK": "constexpr"}
signature = {name: types[name] for name in kernel.arg_names}
values = {(kernel.arg_names.index("BLOCK"),): 32} if "BLOCK" in kernel.arg_names else {}
source = ASTSource(kernel, signature=signature, constexprs=values)
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
sys.exit("tf32" not in compiled.asm["ttgir"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("TWICE",)], ids=["forks", "alone"])
def test_a_script_is_run_by_forks_unless_it_wants_a_process_of_its_own(
    smith: Smith, words: tuple[str, ...]
) -> None:
    """The command itself has the last word: each smaller file was shown to it."""
    (smith.cwd / "script.py").write_text(SCRIPT, encoding="utf-8")
    (smith.cwd / "kernels.py").write_text(KERNELS, encoding="utf-8")
    command = (str(python_of(smith)), "script.py", "{}", *words)
    found, text = reduced(smith, "kernels.py:dot", "--out", "small.py", "--", *command)
    assert "tl.dot" in text
    assert "doubled" not in text
    rows = (smith.cwd / "pids").read_text(encoding="utf-8").splitlines()
    forked, alone = (sum(row.endswith(end) for row in rows) for end in ("True", "False"))
    assert forked == 1 if words else forked > found["tries"]
    assert alone > found["tries"] if words else 0 < alone < found["tries"]


@pytest.mark.slow
def test_what_shows_nothing_is_an_error_with_what_was_seen(smith: Smith) -> None:
    said = smith("kernel.reduce", *DOT, code=1).error
    assert "the symptom is not there" in said
    assert "it compiles" in said
    said = smith("kernel.reduce", *DOT, "--when", "registers>4000", code=1).error
    assert "registers" in said
    said = smith("kernel.reduce", "kernels.py", "--", "false", code=1).error
    assert "exit code 1" in said
    assert not list(smith.cwd.glob("*.reduced.py"))


def test_what_contradicts_is_refused(smith: Smith) -> None:
    said = smith("kernel.reduce", *DOT, "--", "true", code=2).error
    assert "not for a command" in said
    assert "never changed" in smith("kernel.reduce", *DOT, "--out", "kernels.py", code=2).error


@pytest.mark.slow
def test_an_interrupted_run_leaves_the_best_so_far(smith: Smith) -> None:
    file = smith.cwd / "refused.reduced.py"
    with smith.running("kernel.reduce", *REFUSED) as process:
        # In seconds: every kernel that is tried is checked, pass by pass, and so is the last one after ^C.
        wait_for(file.exists, process, 1200)
        done = interrupt(process, 1200)
    assert done.code == 130
    text = file.read_text(encoding="utf-8")
    assert "static_assert" in text
    assert "too wide" in smith("kernel.compile", "refused.reduced.py", *_flags(text), code=1).error


PRODUCT = """\
import triton
import triton.language as tl


@triton.jit
def product(x, out, n, unused, K: tl.constexpr):
    m = tl.arange(0, 8)
    total = tl.full((8,), 1.0, dtype=tl.float32)
    for i in tl.range(0, n):
        total = total * tl.sum(tl.load(x + m[:, None] * K + tl.arange(0, K)), axis=1)
    tl.store(out + m, total)
"""


@pytest.mark.slow
def test_a_wrong_result(smith: Smith) -> None:
    """3.9.0 begins the product with 0 (triton-lang/triton#11305); a newer wheel may have that mended."""
    (smith.cwd / "product.py").write_text(PRODUCT, encoding="utf-8")
    asked = ("product.py:product", "--signature", "*fp32:16,*fp32:16,i32,i32,32", "--target", "sm_90")
    file = smith.cwd / "product.reduced.py"
    with smith.running("kernel.reduce", *asked, "--when", "wrong") as process:
        # In seconds: every kernel that is tried is checked, pass by pass, and so is the last one after ^C.
        wait_for(lambda: file.exists() or process.poll() is not None, process, 1200)
        if not file.exists():
            assert process.returncode == 1
            assert "the symptom is not there" in process.communicate()[1]
            return
        done = interrupt(process, 1200)
    assert done.code == 130
    text = file.read_text(encoding="utf-8")
    assert "# Expected: product: tritongpu-optimize-thread-locality changes the result" in text
    (line,) = (line for line in text.splitlines() if "passes.check" in line)
    words = shlex.split(line.removeprefix("#   invoke passes.check"))
    # All inputs were checked for the file already: the first of them shows it, too.
    again = smith("passes.check", *words, "--seeds", "1", code=1)
    assert "changes the result" in again.error


def _flags(text: str) -> list[str]:
    """The flags of the command that a file names."""
    (line,) = (line for line in text.splitlines() if line.startswith("#   invoke"))
    return shlex.split(line.removeprefix("#   invoke kernel.compile"))[1:]
