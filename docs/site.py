"""What the site needs beside the pages: links to files of the repository that it does not have.

mkdocs.yml names this file as a hook; mkdocs calls `on_page_markdown` for each page.
"""
# ruff: noqa: INP001 - a script, beside the pages

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#\s]+)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Name files outside docs/ by their paths: a link to them works in the repository only."""
    return _OUTSIDE.sub(_named, markdown)


def _named(link: re.Match[str]) -> str:
    text, path = link.groups()
    named = text.strip("`") in {path, path.rpartition("/")[2]}
    return f"`{path}`" if named else f"{text} (`{path}`)"
