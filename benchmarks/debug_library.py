"""What `debug-library --pass` costs, beside the whole library of the pass: from nothing, without a cache.

`python benchmarks/debug_library.py --llvm-source FOLDER [--env NAME] [--pass cse,licm]`. Triton is built, and
has no debug library afterwards. CPU and wall seconds of everything that runs, links included.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from rebuild import INVOKE, measured


def main() -> None:
    """Print one line per pass: its file alone, its whole library, and the share of the CPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--llvm-source", required=True, type=Path)
    parser.add_argument("--env", default="dev")
    parser.add_argument("--pass", dest="passes", default="cse,licm")
    given = parser.parse_args()
    environ = os.environ | {"CCACHE_DISABLE": "1"}
    task = (*INVOKE, "debug-library", "--env", given.env)
    undo = (*task, "--undo")
    # The first debug library of an environment configures Triton once more.
    first = (*task, "--llvm-source", str(given.llvm_source.resolve()), "--pass", given.passes)
    for argv in (first, undo):
        subprocess.run(argv, check=True, env=environ, stdout=sys.stderr)
    print(f"{'pass':<24}{'file: CPU':>12}{'wall':>10}{'library: CPU':>16}{'wall':>10}{'share':>8}")
    for name in given.passes.split(","):
        costs: list[tuple[float, float]] = []
        for more in ((), ("--whole-library",)):
            costs.append(measured((*task, "--pass", name, *more), environ))
            subprocess.run(undo, check=True, env=environ, stdout=subprocess.DEVNULL)
        (wall, cpu), (whole_wall, whole) = costs
        print(
            f"{name:<24}{cpu:>10.1f} s{wall:>8.1f} s{whole:>14.1f} s{whole_wall:>8.1f} s{cpu / whole:>8.2f}"
        )


if __name__ == "__main__":
    main()
