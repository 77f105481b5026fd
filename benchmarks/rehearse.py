"""`rehearse` with one job and with several, and a second run with nothing changed.

    python benchmarks/rehearse.py PYTHON OTHER [--kernels N] [--jobs N]

PYTHON and OTHER have Triton, from wheels of two releases. Each run has a workspace of its own, and compiles N
variants of the example's matrix product by both.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SMITH = Path(sys.executable).with_name("tritonsmith")
KERNEL = Path(__file__).parents[1] / "src" / "tritonsmith" / "compiler" / "examples" / "tiled_matmul.py"
TYPES = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16"
TILES = itertools.product((32, 64, 128), (32, 64, 128), (32, 64), (1, 2, 3, 4), (4, 8))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", type=Path, metavar="PYTHON", help="an interpreter that has Triton")
    parser.add_argument("other", type=Path, metavar="OTHER", help="one that has another release")
    parser.add_argument("--kernels", type=int, default=100, metavar="N", help="how many (100, at most 144)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="compared with one (2)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        file = place / "kernels.toml"
        file.write_text("".join(map(entry, itertools.islice(TILES, arguments.kernels))), encoding="utf-8")
        sides = ("--from", str(arguments.python), "--to", str(arguments.other))
        one = run(file, sides, place / "one", 1)
        many = run(file, sides, place / "many", arguments.jobs)
        again = run(file, sides, place / "many", arguments.jobs)
    print(f"{arguments.kernels} kernels by two releases")
    print(f"one job    {one:7.1f} s")
    print(f"{arguments.jobs} jobs     {many:7.1f} s   {one / many:.2f} times as fast")
    print(f"once more  {again:7.1f} s   nothing has changed")
    return 0


def entry(values: tuple[int, ...]) -> str:
    """A kernel of the list."""
    *tile, stages, warps = values
    name = "x".join(map(str, (*tile, stages, warps)))
    return (
        f'[[kernel]]\nname = "{name}"\nfile = "{KERNEL}"\nsignature = "{TYPES},{",".join(map(str, tile))}"\n'
        f"options = {{ num_stages = {stages}, num_warps = {warps} }}\n"
    )


def run(file: Path, sides: tuple[str, ...], home: Path, jobs: int) -> float:
    """Seconds of a rehearsal, whatever its verdict is."""
    argv = (str(SMITH), "rehearse", str(file), *sides, "--target", "h100", "--jobs", str(jobs), "--json")
    began = time.monotonic()
    done = subprocess.run(
        argv, env={**os.environ, "TRITONSMITH_HOME": str(home)}, capture_output=True, text=True, check=False
    )
    took = time.monotonic() - began
    if not done.stdout:
        sys.exit(done.stderr)
    return took


if __name__ == "__main__":
    sys.exit(main())
