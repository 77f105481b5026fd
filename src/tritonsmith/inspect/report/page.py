"""Write the HTML file around the data.

Everything from a dump is data: JSON or base64 in elements that no browser runs, and the page's script shows
it as text, never as HTML. The page's policy allows one script, by its hash, and no connection.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BUILT = Path(__file__).parent / "built"


def head(title: str) -> str:
    """Return the HTML before the data."""
    style = _built("report.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(_script())}'",
            "style-src 'unsafe-inline'",  # CodeMirror makes its style sheets at run time
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        "<noscript>This page needs JavaScript; it has all of it inside, and loads nothing.</noscript>\n"
        '<main id="app"></main>\n'
    )


def chunk(number: int, content: str) -> str:
    """Return the element of a chunk of packed texts, in base64."""
    return f'<script type="application/octet-stream" id="chunk-{number}">{content}</script>\n'


def tail(data: dict[str, Any]) -> Iterator[str]:
    """Yield the HTML after the chunks: the pipelines, and the script."""
    # `_json` escapes `<`: even inside a JSON string it could end the element, or open a comment in it.
    yield f'<script type="application/json" id="data">{_json(data)}</script>\n'
    yield f'<script type="text/plain" id="licenses">{_built("LICENSES.txt")}</script>\n'
    yield f"<script>{_script()}</script>\n</body>\n</html>\n"


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _script() -> str:
    return _built("report.js")


def _built(name: str) -> str:
    return (_BUILT / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
