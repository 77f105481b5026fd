"""Processes for units of work end with the process that started them."""

from __future__ import annotations

import subprocess
import sys

_FIRST_SIGNAL_IS_LOST = """
import multiprocessing, os, signal, time
from tritonsmith.lab.batch import pool
reader, writer = multiprocessing.Pipe(duplex=False)
pool._begin(reader, os.environ.copy())
seen = []
signal.signal(signal.SIGTERM, lambda *_: os._exit(7) if seen else seen.append(1))
writer.close()
time.sleep(30)
"""


def test_a_signal_that_is_lost_comes_again() -> None:
    """One that comes between the last look for signals and the wait for work does not end the wait."""
    done = subprocess.run([sys.executable, "-c", _FIRST_SIGNAL_IS_LOST], check=False)
    assert done.returncode == 7
