"""What `build-triton` adds to a bare `ninja` where nothing changed: one built folder, in turns, in one run.

`python benchmarks/rebuild.py --source CHECKOUT [--env dev] [--runs N] [-- --debug]`. What follows `--` is how
the folder was built. The smallest of all runs, wall and CPU seconds: a busy machine only ever adds.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from tritonsmith.core.envs import workspace

REPOSITORY = Path(__file__).parents[1]
INVOKE = (sys.executable, "-m", "invoke", "--search-root", str(REPOSITORY))
NINJA = str(Path(sys.executable).with_name("ninja"))


def measured(argv: tuple[str, ...], environ: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of a command and its children."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, check=True, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print one line per command, and the difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--env", default="dev")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("flags", nargs="*")
    given = parser.parse_args()
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    folder = workspace.default().env(given.env).build
    build = (*INVOKE, "build-triton", "--env", given.env, "--source", given.source, *given.flags)
    subprocess.run(build, check=True, env=environ)  # whatever there is to do, and Python's own caches
    commands = {
        "ninja": (NINJA, "-C", str(folder)),
        "invoke --list": (*INVOKE, "--list"),
        "invoke build-triton": build,
    }
    best = dict.fromkeys(commands, (float("inf"), float("inf")))
    for _ in range(given.runs):
        for name, argv in commands.items():
            wall, cpu = measured(argv, environ)
            best[name] = (min(best[name][0], wall), min(best[name][1], cpu))
    print(f"{'command':<28}{'wall':>10}{'CPU':>10}")
    for name, (wall, cpu) in best.items():
        print(f"{name:<28}{wall:>8.3f} s{cpu:>8.3f} s")
    added = [one - other for one, other in zip(best["invoke build-triton"], best["ninja"], strict=True)]
    print(f"{'added to ninja':<28}{added[0]:>8.3f} s{added[1]:>8.3f} s")


if __name__ == "__main__":
    main()
