"""How long the command line takes to answer, against the interpreter's own start, in one run.

`invoke benchmark`, or `python benchmarks/command_line.py [--runs N]`. Medians; the ratio is what carries
over to other machines.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
INVOKE = (sys.executable, "-m", "invoke", "--search-root", str(REPOSITORY))


def median_seconds(argv: tuple[str, ...], runs: int, cwd: Path) -> float:
    """Median wall time of a command, in seconds, after one run to warm up."""
    times = []
    for _ in range(runs + 1):
        began = time.perf_counter()
        subprocess.run(argv, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def main() -> None:
    """Print one line per command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    commands = {
        "python -c pass": (sys.executable, "-c", "pass"),
        "python -c 'import invoke'": (sys.executable, "-c", "import invoke"),
        "invoke --list": (*INVOKE, "--list"),
        "invoke up --dry-run": (*INVOKE, "up", "--dry-run"),
        "invoke doctor": (*INVOKE, "doctor", "--env", "wheel"),
    }
    with tempfile.TemporaryDirectory() as folder:
        seconds = {name: median_seconds(argv, runs, Path(folder)) for name, argv in commands.items()}
    base = seconds["python -c pass"]
    print(f"{'command':<28}{'median':>10}{'x bare Python':>16}")
    for name, took in seconds.items():
        print(f"{name:<28}{took:>8.3f} s{took / base:>16.1f}")


if __name__ == "__main__":
    main()
