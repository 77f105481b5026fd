"""Render HTML pages: escaped, self-contained, scriptless, under a policy that lets them load nothing."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

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
    # By its digest, the page's own style is the only one that a browser applies.
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
