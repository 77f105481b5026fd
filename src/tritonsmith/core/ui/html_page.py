"""HTML pages without a script: escaped, self-contained, and with a policy that lets them load nothing.

Differences for the screen: a unified diff in colours, and words that were replaced.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text


_STYLE = Path(__file__).with_name("page.css")
_FRAME = Path(__file__).with_name("page.html")


def render(template: Path, title: str, **values: object) -> str:
    """Return a page made from a template that extends `page.html`.

    Everything that a template prints is escaped; a name that it is not given is an error.

    Args:
        template: a Jinja template.
        title: plain text.
        values: what the template prints.
    """
    import jinja2  # noqa: PLC0415 - takes 40 ms, and most commands write no page

    folders = [template.parent, _FRAME.parent]
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style = _STYLE.read_text(encoding="utf-8")
    return pages.get_template(template.name).render(title=title, style=style, policy=_policy(style), **values)


def document(title: str, body: Iterable[str]) -> str:
    """Return a page whose body is HTML already."""
    return render(_FRAME.with_name("body.html"), title, body="\n".join(body))


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
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


_STYLES = {"+": "green", "-": "red", "@": "cyan"}  # by a line's first character


def coloured(lines: Iterable[str]) -> Text:
    """Return the lines of a diff, each with a line end."""
    from rich.text import Text  # noqa: PLC0415 - plans are compared without Rich

    text = Text()
    for line in lines:
        text.append(f"{line}\n", style=_STYLES.get(line[:1], ""))
    return text


NOTHING = "nothing"


def changed_words(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]]:
    """Return removed words and their replacements, in order; either may be empty."""
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        (" ".join(before[first:last]), " ".join(after[start:end]))
        for kind, first, last, start, end in changes
        if kind != "equal"
    ]


def in_words(before: Sequence[str], after: Sequence[str]) -> str:
    """Return `-g -> -gsplit-dwarf`, `+ -DNDEBUG`, `without -Wall`; `nothing` if both are equal."""
    words = []
    for old, new in changed_words(before, after):
        words.append(f"{old} -> {new}" if old and new else f"+ {new}" if new else f"without {old}")
    return "; ".join(words) or NOTHING
