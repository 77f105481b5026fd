"""Processes that have Triton loaded: they may be compiling into a cache, or reading from one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TritonProcess:
    """A process that has `libtriton` mapped.

    Attributes:
        pid: its id.
        command: its command line.
    """

    pid: int
    command: str


def living(proc: Path = Path("/proc")) -> tuple[TritonProcess, ...] | None:
    """Those of this user on this machine; None where the system does not tell (macOS).

    Args:
        proc: mount point of the kernel's process file system.
    """
    if not (proc / "self" / "maps").exists():
        return None
    found = []
    for folder in proc.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            if b"/libtriton" in (folder / "maps").read_bytes():
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                found.append(TritonProcess(int(folder.name), " ".join(filter(None, words))))
        except OSError:  # it has ended, or is someone else's
            continue
    return tuple(sorted(found, key=lambda process: process.pid))
