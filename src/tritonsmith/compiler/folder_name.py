"""Folder names from names of any origin: manifests, kernels files."""

from __future__ import annotations

import re

from tritonsmith.core.plan import digest

_FOREIGN = re.compile(r"[^\w.,=+-]")
_LONGEST = 200  # characters


def folder_name(text: str) -> str:
    """Return a name that every file system accepts, and that cannot leave its folder."""
    name = _FOREIGN.sub("_", text.replace(" -> ", "--")).lstrip(".") or "_"
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{digest(text)}"
