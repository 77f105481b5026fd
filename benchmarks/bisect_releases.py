"""CPU seconds and wall time of `invoke bisect` over releases, from nothing and with the environments there.

`python benchmarks/bisect_releases.py FOLDER GOOD BAD FILE:KERNEL --signature S --when TERM [--target T]
[--against CHECKOUT] [--rounds N] [--first COMMAND]`. FOLDER has a wheel of each release, and whatever these
require; no index is asked. CHECKOUT is another checkout of the tool. Both take turns; each begins with an
empty workspace, and then searches once more in it, without the outcomes.

COMMAND is run before each first search. A virtual machine that gives freed memory back to its host pays for
each page that it uses first, on one of them 2.6 s of system time for a GB; `cat LARGE_FILE > /dev/null` fills
the page cache, as it is on a machine that has been in use.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tritonsmith.core.plan import files

REPOSITORY = Path(__file__).parents[1]
SMITH = str(Path(sys.executable).with_name("tritonsmith"))
OUTCOMES = ("bisects", "compiled", "dumped")  # folders of the workspace
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h


def measured(tool: Path, home: Path, wheels: Path, words: list[str]) -> tuple[float, float, float, str]:
    """User, system and wall seconds of one bisect, and its answer."""
    env = {**os.environ, "PYTHONPATH": str(tool / "src"), "TRITONSMITH_HOME": str(home)}
    env |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        started = subprocess.Popen((SMITH, "bisect", *words), env=env, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(started.pid, 0)
        wall = time.monotonic() - began
        user, system = usage.ru_utime, usage.ru_stime
        # The server that processes are forked from outlives the tool by a moment: it is then a child of this.
        with suppress(ChildProcessError):
            while True:
                usage = os.wait4(-1, 0)[2]
                user, system = user + usage.ru_utime, system + usage.ru_stime
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode:
            raise SystemExit(f"bisect {' '.join(words)} ended with {started.returncode}")
        out.seek(0)
        answer = out.readline().decode()
    return user, system, wall, answer


def main() -> None:
    """Print a line for each bisect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("good")
    parser.add_argument("bad")
    parser.add_argument("kernel")
    parser.add_argument("--signature", required=True)
    parser.add_argument("--when", required=True)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--first", default="")
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    words = ["--good", given.good, "--bad", given.bad, "--kernel", given.kernel, "--target", given.target]
    words += ["--signature", given.signature, "--when", given.when]
    tools = {"now": REPOSITORY, **({"before": given.against.absolute()} if given.against else {})}
    print(f"{'tool':<8}{'begins with':<14}{'user s':>8}{'system s':>10}{'wall s':>8}  answer")
    for _ in range(given.rounds):
        for name, tool in tools.items():
            with tempfile.TemporaryDirectory() as folder:
                home = Path(folder, "home")
                home.mkdir()
                files.mark(home)
                subprocess.run(("sh", "-c", given.first), check=True)
                for begins_with in ("nothing", "environments"):
                    user, system, wall, answer = measured(tool, home, given.wheels.absolute(), words)
                    print(
                        f"{name:<8}{begins_with:<14}{user:>8.1f}{system:>10.1f}{wall:>8.1f}  {answer.strip()}"
                    )
                    for outcomes in OUTCOMES:
                        files.remove_owned(home / outcomes, home)


if __name__ == "__main__":
    main()
