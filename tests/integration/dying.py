"""Runs `tritonsmith`, and kills it before one of its changes: `python dying.py AT FOLDER ARGUMENT...`.

Changes are those of files below the folder, and the starts of programs there. AT counts them from 0; a run
that makes fewer comes to its end.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from tritonsmith import program

_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink"}
_WRITES = os.O_WRONLY | os.O_RDWR


def _die_at(at: int, inside: str) -> None:
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event == "subprocess.Popen":
            where = arguments[2]
        elif event in _CHANGES or (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        ):
            where = arguments[0]
        else:
            return
        if not str(where).startswith(inside):
            return
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    sys.addaudithook(hook)


if __name__ == "__main__":
    _die_at(int(sys.argv[1]), sys.argv[2])
    sys.argv[:] = ["tritonsmith", *sys.argv[3:]]
    program.main()
