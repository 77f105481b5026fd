"""CPU seconds of a candidate of `reduce FILE.py`, and wall time of two jobs against one.

`python benchmarks/kernel_reduce.py PYTHON [--against CHECKOUT] [--rounds N] [--case NAME]`. PYTHON has
Triton, CHECKOUT is another checkout of the tool, such as a worktree of the commit before. Checkouts and
numbers of jobs take turns, all write the same file, and the least of each is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tritonsmith.core.plan import files

REPOSITORY = Path(__file__).parents[1]
SMITH = str(Path(sys.executable).with_name("tritonsmith"))
DOT = """\
import triton
import triton.language as tl


@triton.jit
def dot(a, b, out, unused, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    x = tl.load(a + at)
    y = tl.load(b + at, mask=at < 100, other=0.0)
    if BLOCK > 64:
        tl.static_assert(BLOCK < 128, "too wide")
    tl.store(out + at, tl.dot(x, y))
"""
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
SCRIPT = """\
import runpy
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

kernel = runpy.run_path(sys.argv[1])["dot"]
types = {"a": "*fp32", "b": "*fp32", "out": "*fp32", "unused": "i32", "BLOCK": "constexpr"}
signature = {name: types[name] for name in kernel.arg_names}
values = {(kernel.arg_names.index("BLOCK"),): 32} if "BLOCK" in kernel.arg_names else {}
source = ASTSource(kernel, signature=signature, constexprs=values)
sys.exit("tf32" not in triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ttgir"])
"""
FILES = {"dot.py": DOT, "product.py": PRODUCT, "script.py": SCRIPT}
_DOT = ("dot.py:dot", "--target", "sm_90", "--signature")
_MATMUL = "*fp16:16,*fp16:16,*fp32:16,i32,i32,i32,i32:16,i32:16,i32:16,128,128,64"
CASES = {
    "tiles": (
        *(f"{REPOSITORY}/examples/aot/kernels.py:matmul", "--target", "sm_90", "--signature", _MATMUL),
        *("--when", "ptx contains wgmma.mma_async"),
    ),
    "failure": (*_DOT, "*fp32:16,*fp32:16,*fp32:16,i32,BLOCK=128"),
    "text": (*_DOT, "*fp32:16,*fp32:16,*fp32:16,i32,BLOCK=32", "--when", "ttgir contains tf32"),
    # triton-lang/triton#11305, in 3.9.0
    "wrong": (
        *("product.py:product", "--target", "sm_90", "--signature", "*fp32:16,*fp32:16,i32,i32,32"),
        *("--when", "wrong"),
    ),
    "script": ("dot.py:dot", "--", "python", "script.py", "{}"),
}


def reduced(
    tool: Path, home: Path, python: Path, jobs: int, words: tuple[str, ...]
) -> tuple[float, float, int, str]:
    """CPU seconds, wall seconds, number of candidates and the smaller file."""
    env = {**os.environ, "PYTHONPATH": str(tool / "src"), "TRITONSMITH_HOME": str(home)}
    argv = (
        SMITH,
        "reduce",
        "--python",
        str(python),
        "--jobs",
        str(jobs),
        "--json",
        "--out",
        "small.py",
        *words,
    )
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        started = subprocess.Popen(argv, env=env, cwd=home.parent, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(started.pid, 0)
        wall = time.monotonic() - began
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode:
            raise SystemExit(f"{argv} ended with {started.returncode}")
        out.seek(0)
        tries = json.load(out)["tries"]
    text = (home.parent / "small.py").read_text(encoding="utf-8")
    return usage.ru_utime + usage.ru_stime, wall, tries, text


def main() -> None:
    """Print a line for each case, checkout and number of jobs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", choices=CASES, action="append")
    given = parser.parse_args()
    python = given.python.absolute()
    tools = {"now": REPOSITORY, **({"before": given.against.absolute()} if given.against else {})}
    print(f"{'case':<10}{'tool':<8}{'jobs':>4}{'tries':>7}{'CPU s':>8}{'a try':>8}{'wall s':>8}{'to one':>8}")
    for case in given.case or CASES:
        runs: dict[tuple[str, int], list[tuple[float, float, int]]] = {}
        texts = set()
        for _ in range(given.rounds):
            for name, tool in tools.items():
                for jobs in (1, 2):
                    with tempfile.TemporaryDirectory() as folder:
                        for file, text in FILES.items():
                            Path(folder, file).write_text(text, encoding="utf-8")
                        home = Path(folder, "home")
                        home.mkdir()
                        files.mark(home)
                        cpu, wall, tries, text = reduced(tool, home, python, jobs, CASES[case])
                        texts.add(text)
                        runs.setdefault((name, jobs), []).append((cpu, wall, tries))
        if len(texts) > 1:
            raise SystemExit(f"{case}: not all results are the same")
        for (name, jobs), rows in runs.items():
            cpu, wall = (min(row[place] for row in rows) for place in (0, 1))
            tries = min(row[2] for row in rows)
            ratio = wall / min(row[1] for row in runs[name, 1])
            print(f"{case:<10}{name:<8}{jobs:>4}{tries:>7}{cpu:>8.1f}{cpu / tries:>8.2f}", end="")
            print(f"{wall:>8.1f}{ratio:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
