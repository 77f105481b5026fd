"""What runs in the env's interpreter, and not in the tool's: `python FOLDER WHAT ARGUMENT`.

It needs that interpreter (Python 3.8 or later), its Triton (3.0 or later) and nothing else, so that any env
can run it; nothing here imports the rest of the tool. Modules import each other relatively, because the env's
interpreter knows them by another name than the tool (`__main__.py`). Only the tool imports this file.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def text() -> str:
    """The source of the whole worker: an answer that is kept holds as long as this stays the same."""
    return "".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py")))
