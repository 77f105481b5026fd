"""README.md, CONTRIBUTING.md and docs/: links lead somewhere, and pages begin with a command."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.documented import DOCS, REPOSITORY

PAGES = (*REPOSITORY.glob("*.md"), *sorted(DOCS.glob("*.md")), *sorted(REPOSITORY.glob("examples/**/*.md")))
_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)[^`].*?\1", re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_NO_COMMAND = {"architecture.md", "glossary.md", "recipes.md", "security.md"}


def prose(page: Path) -> str:
    """A page without its code."""
    return _CODE.sub("code", _FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> list[str]:
    """The anchors of a page as GitHub and the site make them of headings, and those it declares."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = [_LINKED.sub(r"\1", heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    slugs = [re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings]
    return [*slugs, *re.findall(r'<a id="([^"]+)"></a>', text)]


def dead_links(page: Path) -> Iterator[str]:
    """Yield the links of a page that lead to no file, or to no heading of it."""
    for link in _LINK.findall(prose(page)):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield f"{page.name}: {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert list(dead_links(page)) == []


def test_dead_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `--flag`, or two\n[a](#a---flag-or-two) [b](#gone) [c](gone.md) `[d](gone.md)`\n"
        "```\n# [e](gone.md)\n```\n[f](page.md#a---flag-or-two) [g](page.md#e)\n",
        encoding="utf-8",
    )
    assert list(dead_links(page)) == ["page.md: #gone", "page.md: gone.md", "page.md: page.md#e"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_headings_of_a_page_differ(page: Path) -> None:
    """GitHub and the site number headings of one name in different ways."""
    assert [anchor for anchor, times in Counter(anchors(page)).items() if times > 1] == []


@pytest.mark.parametrize("name", sorted({path.name for path in DOCS.glob("*.md")} - _NO_COMMAND))
def test_a_page_begins_with_a_command(name: str) -> None:
    lines = (DOCS / name).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert [lines[1], lines[2][:3]] == ["", "```"]


def test_the_site_has_every_page() -> None:
    """The list of mkdocs.yml, whose other tags only mkdocs knows."""
    text = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.safe_load(text[text.index("\nnav:") :])["nav"]
    listed = [page for group in nav for pages in group.values() for page in pages]
    assert sorted(listed) == sorted(path.name for path in DOCS.glob("*.md"))
