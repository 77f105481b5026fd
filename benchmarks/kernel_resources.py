"""`kernel.resources --from-cache` on a cache of 5,000 entries: cold, and again when nothing changed.

    python benchmarks/kernel_resources.py PYTHON [--entries N] [--rounds N]

PYTHON has Triton 3.3 or later. It compiles real kernels into a cache; the rest are copies of their entries.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
KERNEL = HERE.parent / "src" / "tritonsmith" / "compiler" / "examples" / "tiled_matmul.py"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"  # an entry's name is a digest in base 32
LENGTH = 52

COMPILE = """
import importlib.util, itertools, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
spec = importlib.util.spec_from_file_location("kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["kernel"] = module
spec.loader.exec_module(module)
names = ("a_ptr", "b_ptr", "c_ptr", "m", "n", "k")
kinds = dict(zip(names, ("*fp16", "*fp16", "*fp32", "i32", "i32", "i32")))
tiles = ("TILE_M", "TILE_N", "TILE_K")
targets = GPUTarget("cuda", 80, 32), GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64)
points = list(itertools.product(targets, ((64, 64, 32), (128, 64, 32)), (1, 4)))
for target, tile, warps in points[:int(sys.argv[2])]:
    signature = {**kinds, **dict.fromkeys(tiles, "constexpr")}
    source = ASTSource(fn=module.tiled_matmul, signature=signature, constexprs=dict(zip(tiles, tile)))
    triton.compile(source, target=target, options={"num_warps": warps})
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", metavar="PYTHON", help="an interpreter that has Triton 3.3 or later")
    parser.add_argument("--entries", type=int, default=5000, metavar="N", help="of the cache (5000)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="best of so many (3)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        cache = place / "cache"
        make(cache, arguments.python, arguments.entries)
        count = len(list(cache.iterdir()))
        cold = again = (float("inf"), float("inf"))
        for number in range(arguments.rounds):
            home = place / f"home {number}"  # knows nothing of the cache
            cold = min(cold, run(cache, home))
            again = min(again, run(cache, home))
    for what, (took, spent) in (("cold", cold), ("unchanged", again)):
        each = 1000 * took / count
        print(f"{count} entries, {what:<9} {took:6.2f} s ({spent:.2f} s of CPU time), {each:.2f} s per 1,000")
    return 0


def make(cache: Path, python: str, entries: int) -> None:
    """A cache of real entries, and copies of them under other names."""
    environ = {**os.environ, "TRITON_CACHE_DIR": str(cache)}
    subprocess.run([python, "-c", COMPILE, str(KERNEL), str(entries)], check=True, env=environ)
    real = sorted(path for path in cache.iterdir() if any(path.glob("__grp__*")))
    for number in range(len(list(cache.iterdir())), entries):
        shutil.copytree(real[number % len(real)], cache / name(number))


def name(number: int) -> str:
    """The name of an entry that no kernel has."""
    digits = ""
    while number:
        number, digit = divmod(number, len(LETTERS))
        digits = LETTERS[digit] + digits
    return digits.rjust(LENGTH, "A")


def cpu() -> float:
    """Seconds of CPU time of children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(cache: Path, home: Path) -> tuple[float, float]:
    """Seconds of the whole command: wall, CPU."""
    argv = [
        str(Path(sys.executable).with_name("tritonsmith")),
        "kernel.resources",
        "--from-cache",
        str(cache),
        "--csv",
    ]
    environ = {**os.environ, "TRITONSMITH_HOME": str(home)}
    began, before = time.monotonic(), cpu()
    subprocess.run(argv, check=True, env=environ, stdout=subprocess.DEVNULL)
    return time.monotonic() - began, cpu() - before


if __name__ == "__main__":
    sys.exit(main())
