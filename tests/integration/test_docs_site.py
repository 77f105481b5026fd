"""The site of docs/, as `./bootstrap docs` builds it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documented import DOCS, REPOSITORY


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the pages of a copy of docs/ into its folder `site`."""
    return subprocess.run(
        (sys.executable, "-m", "mkdocs", "build", "--strict"),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_site_has_all_pages_and_a_search_and_refuses_a_dead_anchor(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "mkdocs.yml", tmp_path)
    shutil.copytree(DOCS, tmp_path / "docs")
    built = build(tmp_path)
    assert built.returncode == 0, built.stderr
    pages = {path.stem for path in (tmp_path / "site").glob("*.html")} - {"404", "index"}
    assert pages == {path.stem for path in DOCS.glob("*.md")} - {"README"}
    assert "occupancy" in (tmp_path / "site" / "search" / "search_index.json").read_text(encoding="utf-8")
    links = (tmp_path / "site" / "build.html").read_text(encoding="utf-8")
    assert "../configs" not in links  # the site has no such file
    with (tmp_path / "docs" / "build.md").open("a", encoding="utf-8") as page:
        page.write("\n[gone](doctor.md#no-such-heading)\n")
    wrong = build(tmp_path)
    assert wrong.returncode == 1
    assert "no-such-heading" in wrong.stderr
