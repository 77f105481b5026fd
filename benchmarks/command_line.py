"""CPU time that the command line takes to answer, against the interpreter's own start and `import invoke`.

`invoke benchmark`, or `python benchmarks/command_line.py [--runs N] [--against CHECKOUT]`. The commands take
turns. A ratio carries over to other machines; with `--against`, each row also has the ratio to the same
command of another checkout of the tool, such as a worktree of the commit before.
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
INVOKE = (sys.executable, "-m", "invoke", "--search-root", str(REPOSITORY))
SMITH = (str(Path(sys.executable).with_name("tritonsmith")),)
COMMANDS = {
    "python -c pass": (sys.executable, "-c", "pass"),
    "python -c 'import invoke'": (sys.executable, "-c", "import invoke"),
    "tritonsmith": SMITH,
    "tritonsmith --list": (*SMITH, "--list"),
    "tritonsmith --help kernel.compile": (*SMITH, "--help", "kernel.compile"),
    "Tab after a task": (*SMITH, "--complete", "--", "tritonsmith kern"),
    "Tab after a flag": (*SMITH, "--complete", "--", "tritonsmith kernel.compile --t"),
    "invoke --list": (*INVOKE, "--list"),
    "invoke up --dry-run": (*INVOKE, "up", "--dry-run"),
    "invoke doctor": (*INVOKE, "doctor", "--env", "wheel"),
}


def cpu_seconds(argv: tuple[str, ...], cwd: Path, env: dict[str, str]) -> float:
    """User and system time of a command and the processes that it waits for, in seconds."""
    # Not RUSAGE_CHILDREN, which has the sum of all of them.
    started = subprocess.Popen(argv, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise SystemExit(f"{argv} ended with {started.returncode}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print one line per command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--against", type=Path, help="a checkout of the tool to compare with")
    arguments = parser.parse_args()
    checkouts = [REPOSITORY, *([arguments.against.absolute()] if arguments.against else [])]
    times: dict[tuple[str, Path], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.runs + 1):
            for name, argv in COMMANDS.items():
                for checkout in checkouts:
                    home = Path(folder, str(checkouts.index(checkout)))
                    files.mark(home)  # the index of tasks is kept in a workspace that exists
                    paths = {"PYTHONPATH": str(checkout / "src"), "TRITONSMITH_HOME": str(home)}
                    words = tuple(str(checkout) if word == str(REPOSITORY) else word for word in argv)
                    took = cpu_seconds(words, Path(folder), {**os.environ, **paths})
                    if number:  # the first one warms up
                        times.setdefault((name, checkout), []).append(took)
    seconds = {name: statistics.median(taken) for name, taken in times.items()}
    bare, invoke = (seconds[name, REPOSITORY] for name in list(COMMANDS)[:2])
    print(f"{'command':<36}{'CPU':>9}{'x Python':>10}{'x Invoke':>10}{'x other':>9}")
    for name in COMMANDS:
        took = seconds[name, REPOSITORY]
        other = f"{took / seconds[name, checkouts[1]]:9.2f}" if checkouts[1:] else ""
        print(f"{name:<36}{took:>7.3f} s{took / bare:>10.1f}{took / invoke:>10.2f}{other}")


if __name__ == "__main__":
    main()
