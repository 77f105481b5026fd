"""Listing and clearing a large cache, against `find` and `rm -rf` on the same entries, in one run.

`python benchmarks/caches.py [--entries N] [--runs N] [--folder PATH]`. Whole commands, interpreter and all;
medians; the ratio is what carries over to other machines. The folder decides what is measured:
a RAM disk shows the programs, a disk shows the disk.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
INVOKE = (sys.executable, "-m", "invoke", "--search-root", str(REPOSITORY))
STAGES = {
    "source": 4200,
    "ttir": 2800,
    "ttgir": 3300,
    "llir": 10500,
    "ptx": 8800,
    "cubin": 10100,
    "json": 1200,
}


def make_cache(root: Path, entries: int) -> None:
    """Entries of an hour ago in the layout of 3.3 and later, 50 kernels among them.

    Args:
        root: the new cache.
        entries: how many.
    """
    root.mkdir()
    hour_ago = time.time() - 3600
    for number in range(entries):
        folder = root / base64.b32encode(os.urandom(32)).decode().rstrip("=")
        folder.mkdir()
        kernel = f"kernel_{number % 50}"
        for suffix, size in {f"__grp__{kernel}.json": 900, **STAGES}.items():
            name = suffix if suffix.startswith("__grp__") else f"{kernel}.{suffix}"
            content = b'{"triton_version": "3.9.0"}' if name == f"{kernel}.json" else b"x" * (size // 100)
            descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT)
            os.write(descriptor, content)
            os.close(descriptor)
        os.utime(folder, (hour_ago, hour_ago))


def seconds(argv: tuple[str, ...], home: Path) -> float:
    """Wall time of a command that must succeed, in seconds."""
    environ = {**os.environ, "TRITONSMITH_HOME": str(home)}
    began = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ)
    return time.perf_counter() - began


def median(run: Callable[[], float], runs: int) -> float:
    """Median of several runs, in seconds."""
    return statistics.median(run() for _ in range(runs))


def main() -> None:
    """Print one line per pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", help="where the cache is made; the temporary folder by default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        root, home = Path(folder) / "cache", Path(folder) / "home"
        named = ("--root", str(root))

        def removal(argv: tuple[str, ...]) -> float:
            shutil.rmtree(root, ignore_errors=True)
            make_cache(root, given.entries)
            return seconds(argv, home)

        make_cache(root, given.entries)
        find = ("find", str(root), "-type", "f", "-printf", "%s\n")
        seconds(find, home)  # warm
        rows = {
            "find -type f -printf %s": median(lambda: seconds(find, home), given.runs),
            "invoke cache.list": median(lambda: seconds((*INVOKE, "cache.list", *named), home), given.runs),
            "rm -rf": median(lambda: removal(("rm", "-rf", str(root))), given.runs),
            "invoke clear-cache": median(
                lambda: removal((*INVOKE, "clear-cache", "--yes", *named)), given.runs
            ),
        }
    names = list(rows)
    print(f"{given.entries} entries of {len(STAGES) + 1} files in {given.folder or tempfile.gettempdir()}")
    for yardstick, ours in ((names[0], names[1]), (names[2], names[3])):
        print(f"{yardstick:<26}{rows[yardstick]:>8.2f} s")
        print(f"{ours:<26}{rows[ours]:>8.2f} s{rows[ours] / rows[yardstick]:>10.2f} x")


if __name__ == "__main__":
    main()
