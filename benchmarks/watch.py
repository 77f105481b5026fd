"""What `watch` adds between a save and the result on the screen, beyond the command: as seconds, in one run.

`python benchmarks/watch.py [--files N] [--runs N]`. A folder under git of as many files as Triton has;
in it a command that says when it begins and when it ends. Medians. Then a task of this tool, alone and
watched.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SMITH = str(Path(sys.executable).with_name("tritonsmith"))
FILES = 2000
IN_A_FOLDER = 5
PAUSE = 0.5  # seconds between a result and the next save
COMMAND = "import time; print('began', time.time()); print('ended', time.time())"
TASK = "env.list"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--runs", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        tree = top / "tree"
        plant(tree, given.files)
        source = tree / "0" / "0.cpp"
        environ = {**os.environ, "TRITONSMITH_HOME": str(top / "home")}
        before, after = of_command(tree, source, environ, given.runs)
        alone, watched = of_task(tree, source, environ, given.runs)
    print(f"{given.files} files; medians of {given.runs} saves")
    print(f"{'save -> command begins':<32}{before:>8.3f} s")
    print(f"{'command ends -> result is shown':<32}{after:>8.3f} s")
    print(f"{'watch adds':<32}{before + after:>8.3f} s")
    print(f"{f'tritonsmith {TASK}':<32}{alone:>8.3f} s")
    print(f"{'watched: save -> result is shown':<32}{watched:>8.3f} s{watched / alone:>8.2f} x")


def plant(tree: Path, files: int) -> None:
    """A folder under git."""
    for number in range(files):
        path = tree / str(number // IN_A_FOLDER) / f"{number}.cpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for argv in (("init", "--quiet"), ("add", "--all")):
        subprocess.run(("git", "-C", str(tree), *argv), check=True)


def of_command(tree: Path, source: Path, environ: dict[str, str], runs: int) -> tuple[float, float]:
    """Seconds before and after a command."""
    before, after = [], []
    with watching(tree, environ, "--", sys.executable, "-c", COMMAND) as until:
        until("ok (run")
        for number in range(runs):
            saved = save(source, number)
            _, lines = until("ok (run")
            shown, lines = until("+ended")
            times = dict(line.lstrip("+").split() for line in lines if line.startswith(("+began", "+ended")))
            before.append(float(times["began"]) - saved)
            after.append(shown - float(times["ended"]))
    return statistics.median(before), statistics.median(after)


def of_task(tree: Path, source: Path, environ: dict[str, str], runs: int) -> tuple[float, float]:
    """Seconds of a task alone, and from a save to its result."""
    alone, watched = [], []
    with watching(tree, environ, "--run", TASK, "--path", str(source)) as until:
        until("ok (run")
        for number in range(runs):
            saved = save(source, number)
            watched.append(until("ok (run")[0] - saved)
            began = time.time()
            subprocess.run((SMITH, TASK), cwd=tree, env=environ, check=True, stdout=subprocess.DEVNULL)
            alone.append(time.time() - began)
    return statistics.median(alone), statistics.median(watched)


def save(source: Path, number: int) -> float:
    """Save a file after a pause; when that was."""
    time.sleep(PAUSE)
    source.write_text(f"{number}\n", encoding="utf-8")
    return time.time()


@contextmanager
def watching(
    folder: Path, environ: dict[str, str], *argv: str
) -> Iterator[Callable[[str], tuple[float, list[str]]]]:
    """Run `watch`; gives what waits for a line, and returns when it came, and the lines up to it."""
    with subprocess.Popen(
        (SMITH, "watch", *argv),
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:

        def until(text: str) -> tuple[float, list[str]]:
            lines: list[str] = []
            for line in process.stdout or ():
                lines.append(line.rstrip("\n"))
                if text in line:
                    return time.time(), lines
            sys.exit(f"watch ended before it said {text!r}")

        yield until
        process.terminate()


if __name__ == "__main__":
    main()
