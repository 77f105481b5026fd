"""Dumps taken apart: MB/s against `wc -l`, memory of a gigabyte, what `passes.dump` adds to a compile.

    python benchmarks/pass_dumps.py PYTHON [FOLDER] [--megabytes N] [--rounds N]

PYTHON has Triton 3.0 or later. FOLDER is for the files (default: a temporary one). How long it takes to make
a file is the file system's business: so the rate is measured in /dev/shm too, where there is one. Each round
does all of it; the best counts.
"""

from __future__ import annotations

import argparse
import json
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
TYPES = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16"
SIGNATURE = f"{TYPES},TILE_M={{tile}},TILE_N={{tile}},TILE_K=32"
SMITH = Path(sys.executable).with_name("tritonsmith")
DUMPING = {
    "MLIR_ENABLE_DUMP": "1",
    "LLVM_IR_ENABLE_DUMP": "1",
    "MLIR_ENABLE_TIMING": "1",
    "LLVM_ENABLE_TIMING": "1",
}

SPLIT = """
import json, os, resource, sys, time
from pathlib import Path
from tritonsmith.compiler.dump.splitter import Splitter
log, out = map(Path, sys.argv[1:])
out.mkdir()
began, before = time.perf_counter(), os.times()
splitter = Splitter(out)
with log.open("rb", buffering=0) as file:
    while chunk := file.read(1 << 20):
        splitter.feed(chunk)
splitter.close()
after = os.times()
print(json.dumps({
    "wall": time.perf_counter() - began,
    "user": after.user - before.user,
    "cpu": after.user + after.system - before.user - before.system,
    "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""
LIST = """
import sys, time
from pathlib import Path
from tritonsmith.compiler.dump import index
from tritonsmith.inspect import pipeline_table
began = time.perf_counter()
made = index.read(Path(sys.argv[1]))
kernel = index.choose_kernel(made, "")
pipeline_table.table(made, kernel, pipeline_table.pass_changes(made, kernel.name))
print(time.perf_counter() - began)
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", metavar="PYTHON", help="an interpreter that has Triton 3.0 or later")
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", help="for the files (default: a temporary one)"
    )
    parser.add_argument("--megabytes", type=int, default=1000, metavar="N", help="of a large dump (1000)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="best of so many (3)")
    parser.add_argument("--tile", type=int, default=64, metavar="N", help="rows and columns of a tile (64)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        place = Path(folder)
        log = place / "log"
        overhead(asked.python, SIGNATURE.format(tile=asked.tile), place, log, asked.rounds)
        large = place / "large"
        grow(log, large, asked.megabytes * 1_000_000)
        rates(large, place, asked.rounds)
        lists(log, place, asked.rounds)
    return 0


def overhead(python: str, signature: str, place: Path, log: Path, rounds: int) -> None:
    """A compile that writes its dump to a file, and `passes.dump`."""
    bare = dump = float("inf")
    home = {"TRITONSMITH_HOME": str(place / "home")}
    flags = [f"{KERNEL}", "--signature", signature, "--target", "cuda:90", "--python", python]
    for _ in range(rounds):
        bare = min(
            bare,
            run([str(SMITH), "kernel.compile", *flags, "--out", str(place / "bare")], {**home, **DUMPING}),
        )
        dump = min(
            dump, run([str(SMITH), "passes.dump", *flags, "--llvm", "--out", str(place / "dump")], home)
        )
    shutil.copy(next((place / "bare").glob("*/log")), log)
    size = log.stat().st_size / 1e6
    print(
        f"a compile with its dump in a file ({size:.0f} MB): {bare:.2f} s; passes.dump: {dump:.2f} s", end=""
    )
    print(f" ({100 * (dump / bare - 1):+.0f} %)")


def grow(log: Path, large: Path, least: int) -> None:
    """The same dump many times, each of another kernel."""
    content = log.read_bytes()
    with large.open("wb") as file:
        number = 0
        while file.tell() < least:
            file.write(content.replace(b"tiled_matmul", b"tiled_matm%02d" % number))
            number += 1


def of_children() -> float:
    """Return the CPU seconds so far of processes that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def rates(large: Path, place: Path, rounds: int) -> None:
    """Split a large dump."""
    size = large.stat().st_size / 1e6
    count = count_cpu = float("inf")
    best: dict[str, dict[str, float]] = {}
    memory = Path("/dev/shm")  # noqa: S108 - a file system in memory
    for _ in range(rounds):
        before = of_children()
        count = min(count, run(["wc", "-l", str(large)], {}))
        # Of a small file, it is less than the clock of some kernels can tell.
        count_cpu = min(count_cpu, max(of_children() - before, 1e-3))
        for where in (place, memory) if memory.is_dir() else (place,):
            out = Path(tempfile.mkdtemp(dir=where)) / "out"
            try:
                done = subprocess.run(
                    [sys.executable, "-c", SPLIT, str(large), str(out)], stdout=subprocess.PIPE, check=True
                )
            finally:
                shutil.rmtree(out.parent)
            seen: dict[str, float] = json.loads(done.stdout)
            known = best.setdefault("in memory" if where is memory else "on disk", seen)
            known.update({key: min(known[key], seen[key]) for key in ("wall", "user", "cpu")})
            known["memory"] = max(known["memory"], seen["memory"])
    print(f"wc -l of {size:.0f} MB: {count:.2f} s, {size / count:.0f} MB/s")
    for name, seen in best.items():
        print(
            f"files {name}: {size / seen['wall']:.0f} MB/s, {seen['wall'] / count:.1f} times wc -l; "
            f"{seen['cpu'] / count_cpu:.1f} times its CPU; "
            f"per second of CPU {size / seen['cpu']:.0f} MB, in user mode {size / seen['user']:.0f} MB; "
            f"{seen['memory']:.0f} MiB of memory"
        )


def lists(log: Path, place: Path, rounds: int) -> None:
    """`passes.list` of one kernel's dump: nothing counted yet, and again."""
    out = place / "listed"
    subprocess.run([sys.executable, "-c", SPLIT, str(log), str(out)], stdout=subprocess.DEVNULL, check=True)
    cold = again = whole = float("inf")
    for _ in range(rounds):
        (out / "list.json").unlink(missing_ok=True)
        cold = min(cold, float(subprocess.check_output([sys.executable, "-c", LIST, str(out)])))
        again = min(again, float(subprocess.check_output([sys.executable, "-c", LIST, str(out)])))
        whole = min(whole, run([str(SMITH), "passes.list", str(out)], {}))
    print(f"list of {log.stat().st_size / 1e6:.0f} MB: {cold:.2f} s cold, {again:.2f} s again", end="")
    print(f"; the whole command {whole:.2f} s")


def run(argv: list[str], change: dict[str, str]) -> float:
    """Seconds that a command takes."""
    began = time.perf_counter()
    subprocess.run(
        argv, env={**os.environ, **change}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
