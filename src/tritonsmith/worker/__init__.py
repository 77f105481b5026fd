"""Code that runs in the env's interpreter instead of the tool's: `python FOLDER COMMAND ARGUMENT`.

The worker needs that interpreter (Python 3.8 or later), its Triton (3.0 or later) and nothing else: any env
can run it. Nothing here imports the rest of the tool. Modules import each other relatively, because the env's
interpreter imports them under another name than the tool (`__main__.py`). Only the tool imports this file.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def sources() -> dict[str, str]:
    """Return the worker's files by name: any interpreter that has Triton can run its commands with them."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}


def text() -> str:
    """Return the source of the whole worker: cached answers are valid as long as it stays the same."""
    return "".join(sources().values())
