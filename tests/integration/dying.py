"""Death by SIGKILL before one of the changes that a process makes."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink"}
_WRITES = os.O_WRONLY | os.O_RDWR


def die_at(at: int, inside: str) -> None:
    """Kill this process before it changes a file below a folder, or starts a program there.

    Args:
        at: number of that change, from 0; a run that makes fewer comes to its end.
        inside: the folder.
    """
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
