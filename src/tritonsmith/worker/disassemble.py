"""Find the available disassemblers of binary stages, and run them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .json_types import Table


def find_disassemblers(request: Table, origin: str) -> list[str]:
    """Set the available programs of each tool, and return the stages without one."""
    missing: list[str] = []
    for tool in request["disassemblers"].values():
        paths = [path.replace("{triton}", origin) for path in tool["programs"]]
        tool["found"] = [path for path in paths if os.access(path, os.X_OK)]
        missing += [] if tool["found"] else [tool["stage"]]
    return missing


def disassembled(tool: Table, path: str) -> bytes | None:
    """Return the text of the first disassembler that can read a file; None if none can: the log says why."""
    said = []
    for program in tool["found"]:
        argv = [program, *tool["flags"], path]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode == 0:
            return done.stdout
        said.append(done.stderr.decode(errors="replace"))
    sys.stderr.write("".join(said))
    return None
