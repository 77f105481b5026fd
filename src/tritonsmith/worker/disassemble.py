"""Find the available disassemblers of binary stages, and run them."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

from .messages import DisassemblerRequest


def available(tool: DisassemblerRequest, origin: str) -> DisassemblerRequest:
    """Return a tool with those of its programs that are there; `origin` is the folder of Triton's package."""
    paths = [path.replace("{triton}", origin) for path in tool.programs]
    return dataclasses.replace(tool, programs=tuple([path for path in paths if os.access(path, os.X_OK)]))


def disassembled(tool: DisassemblerRequest, path: str) -> bytes | None:
    """Return the text of the first disassembler that can read a file; None if none can: the log says why."""
    said = []
    for program in tool.programs:
        argv = [program, *tool.flags, path]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode == 0:
            return done.stdout
        said.append(done.stderr.decode(errors="replace"))
    sys.stderr.write("".join(said))
    return None
