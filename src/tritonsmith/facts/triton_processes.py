"""Find processes that have Triton loaded: they may be compiling into a cache, or reading from one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.facts import installed_tritons

_LIBRARY = re.compile(rb"(/.*)/_C/libtriton[^/\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class TritonProcess:
    """A process that has `libtriton` mapped.

    Attributes:
        pid: its id.
        command: its command line.
        version: version of its Triton; empty if it cannot be read.
    """

    pid: int
    command: str
    version: str = ""


def living(proc: Path = Path("/proc")) -> tuple[TritonProcess, ...] | None:
    """Return such processes of this user on this machine; None where the system hides them (macOS)."""
    if not (proc / "self" / "maps").exists():
        return None
    processes = []
    for folder in proc.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            match = _LIBRARY.search((folder / "maps").read_bytes())
            if match:
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                version = installed_tritons.version_of(Path(match[1].decode(errors="surrogateescape")))
                processes.append(TritonProcess(int(folder.name), " ".join(filter(None, words)), version))
        except OSError:  # it has ended, or is someone else's
            continue
    return tuple(sorted(processes, key=lambda process: process.pid))
