"""Version numbers that sort."""

from __future__ import annotations

import re


def version_key(text: str) -> tuple[int, ...]:
    """Return a version such as `3.4.30` as numbers that sort."""
    return tuple(int(part[:18]) for part in re.findall(r"\d+", text))  # longer ones are no versions
