"""Read Xids: the errors that NVIDIA's driver has written to the kernel's log since the machine started."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tritonsmith.core.plan import process

# `NVRM: Xid (PCI:0000:06:00): 79, pid=1234, name=python3, GPU has fallen off the bus.`; some leave out PCI:
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+)\b")
_SOURCES = (("dmesg",), ("journalctl", "--dmesg", "--boot", "--quiet", "--no-pager", "--output=cat"))
_PATIENCE = 10.0  # seconds


def read() -> str | None:
    """Return the kernel's log; None if this user may not read it."""
    for argv in _SOURCES:
        text = process.capture(argv, timeout=_PATIENCE)
        if text:
            return text
    return None


def xids(lines: Iterable[str]) -> tuple[tuple[int, str], ...]:
    """Return number and place on the bus of each event, in order; names of programs are left out."""
    matches = (_XID.search(line) for line in lines)
    return tuple((int(match[2]), match[1]) for match in matches if match)
