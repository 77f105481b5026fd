"""Names of folders, made from names that come from anywhere: manifests, kernels files."""

from __future__ import annotations

import re

from tritonsmith.core.plan import digest

_FOREIGN = re.compile(r"[^\w.,=+-]")
_LONGEST = 200  # characters


def folder_name(text: str) -> str:
    """A name that every file system takes, and that stays in its folder."""
    name = _FOREIGN.sub("_", text.replace(" -> ", "--")).lstrip(".") or "_"
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{digest(text)}"
