"""HTML pages without a script: escaped, self-contained, and with a policy that lets them load nothing."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from pathlib import Path

_STYLE = Path(__file__).with_name("page.css")


def document(title: str, body: Iterable[str]) -> str:
    """Return a whole page.

    Args:
        title: plain text.
        body: HTML.
    """
    style = _STYLE.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def text(what: object) -> str:
    """Plain text, as HTML."""
    return html.escape(str(what))


def tag(name: str, *inner: str, of: str = "", **attributes: object) -> str:
    """Return an element.

    Args:
        name: of the element.
        inner: HTML.
        of: its class.
        attributes: plain text.
    """
    merged = {**({"class": of} if of else {}), **attributes}
    written = "".join(f' {key.replace("_", "-")}="{text(value)}"' for key, value in merged.items())
    return f"<{name}{written}>{''.join(inner)}</{name}>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()) -> str:
    """Return a table.

    Args:
        heads: plain text.
        rows: cells of HTML.
        numbers: heads of columns with numbers.
    """
    classes = ["number" if head in numbers else "" for head in heads]
    first = tag("tr", *(tag("th", text(head), of=of) for head, of in zip(heads, classes, strict=True)))
    rest = (
        tag("tr", *(tag("td", cell, of=of) for cell, of in zip(row, classes, strict=True))) for row in rows
    )
    return tag("div", tag("table", tag("thead", first), tag("tbody", *rest)), of="scroll")


def folded(summary: str, *inner: str) -> str:
    """Return an element whose content is shown after a click.

    Args:
        summary: plain text.
        inner: HTML.
    """
    return tag("details", tag("summary", text(summary)), *inner)
