"""CPU seconds of `explain`, the first time and again, against another checkout of the tool.

`python benchmarks/explain.py CHECKOUT LLVM OTHER [--runs N]`. CHECKOUT is one of Triton, LLVM has llvm-tblgen
and MLIR's files, OTHER is a checkout of the tool, such as a worktree of the commit before. Both take turns,
and print the same.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tritonsmith.core.plan import files

REPOSITORY = Path(__file__).parents[1]
SMITH = str(Path(sys.executable).with_name("tritonsmith"))
WORDS = ("tt.dot", "tritongpu-coalesce", "tl.dot", "cse", "arith.addi")


def asked(tool: Path, home: Path, argv: tuple[str, ...]) -> tuple[float, bytes]:
    """CPU seconds of a command with its children, and what it prints."""
    env = {**os.environ, "PYTHONPATH": str(tool / "src"), "TRITONSMITH_HOME": str(home)}
    with tempfile.TemporaryFile() as out:
        started = subprocess.Popen((SMITH, *argv), env=env, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode:
            raise SystemExit(f"{argv} ended with {started.returncode}")
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, out.read()


def main() -> None:
    """Print one line per word."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("checkout", "llvm", "other"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    print(f"{'word':<22}{'other':>9}{'first':>9}{'again':>9}{'again / other':>15}")
    with tempfile.TemporaryDirectory() as home:
        files.mark(Path(home))
        for word in WORDS:
            argv = ("explain", word, "--all", "--source", str(given.checkout), "--llvm-dir", str(given.llvm))
            first, answer = asked(REPOSITORY, Path(home), argv)
            others: list[float] = []
            again: list[float] = []
            for _ in range(given.runs):
                for tool, seconds in ((given.other, others), (REPOSITORY, again)):
                    took, printed = asked(tool, Path(home), argv)
                    if printed != answer:
                        raise SystemExit(f"{tool} explains {word} in another way")
                    seconds.append(took)
            before, now = statistics.median(others), statistics.median(again)
            print(f"{word:<22}{before:>7.2f} s{first:>7.2f} s{now:>7.2f} s{now / before:>15.2f}")


if __name__ == "__main__":
    main()
