"""What no text may show."""

from __future__ import annotations

import re

_LOGIN = re.compile(r"://[^/\s]+@")  # up to the last @ before the path: a password may hold one


def without_passwords(text: str) -> str:
    """The text, each `://user:password@` of a URL as `://***@`."""
    return _LOGIN.sub("://***@", text)
