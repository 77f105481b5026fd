"""The file system of a path, and whether it is a network file system."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import configs


@dataclass(frozen=True)
class FileSystem:
    """A mounted file system.

    Attributes:
        kind: as the kernel names it: `ext4`, `nfs4`.
        mount: where it is mounted.
        network: it is a network file system (`configs/resources.toml`).
    """

    kind: str
    mount: Path
    network: bool


def of(path: Path) -> FileSystem | None:
    """Return the file system of an existing or future path; None if unknown."""
    import psutil  # noqa: PLC0415 - builds import this module and ask it nothing

    real = path.resolve()
    holding = [
        part for part in psutil.disk_partitions(all=True) if real.is_relative_to(Path(part.mountpoint))
    ]
    if not holding:
        return None
    network = configs.load("resources")["file-systems"]["network"]
    # of two at one place the later covers the earlier, as NFS does autofs
    nearest = max(reversed(holding), key=lambda part: len(Path(part.mountpoint).parts))
    return FileSystem(nearest.fstype, Path(nearest.mountpoint), nearest.fstype in network)


def free_name(path: Path, ending: str) -> Path:
    """Return a free name beside a path: `NAME.backup`, `NAME.backup1` ..."""
    candidates = (path.with_name(f"{path.name}{ending}{number or ''}") for number in itertools.count())
    return next(candidate for candidate in candidates if not os.path.lexists(candidate))
