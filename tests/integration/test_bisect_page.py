"""The page of a bisect in a real Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration import chromium
from tests.support import require
from tests.unit.bisect.findings import FINDINGS
from tritonsmith.bisect import page as bisect_page


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    bisect_page.write(FINDINGS, tmp_path / "bisect.html")
    require(chromium.found())
    with chromium.page(tmp_path / "profile") as page:
        shown = page.read(tmp_path / "bisect.html")
        assert page.js("document.querySelectorAll('svg circle').length") == len(FINDINGS.points)
        back = "getComputedStyle(document.querySelector('code.{}')).backgroundColor"
        assert page.js(back.format("added")) != page.js(back.format("gone"))
        places = (
            "[...document.querySelectorAll('code.gone, code.added')].map(one => one.getBoundingClientRect())"
        )
        (left, right) = page.js(f"{places}.map(one => [one.left, one.top])")
        assert left[0] < right[0], "the good text is on the left"
        assert left[1] == right[1]
        title = page.js("document.querySelector('circle title').textContent")
    assert title == "3.6.0: good: spills 980"
    assert "[Pipeliner] Wait <later> (#123)" in shown
    assert "tritongpu-coalesce" in shown
