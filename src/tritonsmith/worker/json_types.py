"""Names for the type checker; nothing imports this file at run time: Python 3.8 cannot evaluate it."""

from __future__ import annotations

from typing import Any

Table = dict[str, Any]  # what JSON carries
