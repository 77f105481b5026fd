"""Processes for units of work end with the process that started them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


_UNIT = """
import json, os
from tritonsmith.lab.batch import pool
if __name__ == "__main__":
    os.environ["OF_THE_FIRST"] = "seen"
    with pool.opened("", 1) as processes:
        names = ("OF_THE_FIRST", "PYTHONSAFEPATH")
        units = [processes.executor.submit(os.getenv, name) for name in names]
        print(json.dumps([unit.result() for unit in units]))
"""


@pytest.mark.slow
def test_a_file_of_the_current_folder_is_no_module_of_a_process(tmp_path: Path) -> None:
    """Whoever reduces `copy.py` is there."""
    program, folder = tmp_path / "program.py", tmp_path / "here"
    program.write_text(_UNIT)
    folder.mkdir()
    for name in ("copy", "random", "json"):
        (folder / f"{name}.py").write_text("raise SystemExit(3)\n")
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
    argv = [sys.executable, str(program)]
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["seen", None]
