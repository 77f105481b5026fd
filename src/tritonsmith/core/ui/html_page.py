"""HTML pages without a script: escaped, self-contained, and with a policy that lets them load nothing.

Differences for the screen: a unified diff in colours, and words that were replaced.
"""

from __future__ import annotations

import base64
import hashlib
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


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


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
