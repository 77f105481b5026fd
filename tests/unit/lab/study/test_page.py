"""The static page of a study."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.unit.lab.study.test_study import cells_of
from tritonsmith.compiler.resources.measure import ResourceRow
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.lab.study import report as study_page
from tritonsmith.lab.study.study import StudyCell


def page(cells: list[StudyCell], folder: Path) -> tuple[ET.Element, str]:
    """The body of the page, and its text."""
    text = study_page.write_page(cells, folder).read_text()
    body = ET.fromstring(text[text.index("<body>") : text.index("</html>")])  # noqa: S314 - ours
    return body, " ".join(" ".join(body.itertext()).split())


def titles(body: ET.Element) -> list[str]:
    return [str(one.text) for one in body.iter("title")]


def test_a_chart_for_each_number_of_each_kernel(tmp_path: Path) -> None:
    body, text = page(cells_of(), tmp_path / "site")
    assert [one.text for one in body.iter("h3")] == ["add", "dot", "add"]
    assert len(list(body.iter("figure"))) == 3 * 4
    assert titles(body)[:4] == ["3.9.0: 32", "3.10.0: 33", "3.9.0: 8", "3.10.0: 12"]
    assert "3.9.0: 1.5" in titles(body)
    assert titles(body).count("3.10.0: x; does not compile: failed: no such thing") == 4
    points = [one.get("points", "").split() for one in body.iter("polyline")]
    assert points[:1] == [["6.0,7.0", "194.0,6.0"]]  # 32 and 33 of 33
    assert "From left to right: 3.9.0, 3.10.0." in text
    data = json.loads((tmp_path / "site" / "study.json").read_text())
    assert len(data["rows"]) == 5
    assert (tmp_path / "site" / "study.csv").read_text().startswith("kernel,target,triton")


def test_what_the_last_version_changed_comes_first(tmp_path: Path) -> None:
    body, _ = page(cells_of(), tmp_path)
    (table,) = body.iter("table")
    rows = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")][1:]
    assert rows == [
        ["add", "cuda:80:32", "registers per thread", "32 → 33"],
        ["add", "cuda:80:32", "spills, bytes per thread", "8 → 12"],
        ["dot", "cuda:80:32", "registers per thread", "- → x"],
        ["dot", "cuda:80:32", "spills, bytes per thread", "- → x"],
        ["dot", "cuda:80:32", "code, bytes", "- → x"],
        ["add", "hip:gfx942:64", "registers spilled", "0 → 1"],
    ]
    assert {one.get("class") for one in table.iter("span")} == {"worse"}
    same = [replace(cell, triton="3.11.0") for cell in cells_of() if cell.triton == "3.10.0"]
    assert "Changed by 3.11.0 nothing" in page([*cells_of(), *same], tmp_path)[1]
    assert "Changed by" not in page(cells_of()[:2], tmp_path)[1]


def test_what_was_not_compiled_is_not_a_change(tmp_path: Path) -> None:
    """A clone without the commit says nothing about the compiler."""
    first = cells_of()[0]
    lost = ResourceRow("add", "", "cuda:80:32", error="not compiled: this clone has no commit 63068fcc27")
    body, text = page([first, StudyCell("3.10.0", lost, compiled=False)], tmp_path)
    assert "Changed by 3.10.0 nothing" in text
    (table,) = body.iter("table")
    rows = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
    assert rows == [["reason", "kernels"], [lost.error, "add 3.10.0 cuda:80:32"]]
    assert "var(--worse)" not in {circle.get("fill") for circle in body.iter("circle")}


def test_a_ring_tells_that_the_file_changed(tmp_path: Path) -> None:
    first = cells_of()[0]
    later = [replace(first, triton=f"3.1{n}.0", source=char * 64) for n, char in enumerate("011")]
    body, _ = page([first, *later], tmp_path)
    fills = [one.get("fill") for one in body.iter("circle")][:4]
    assert fills == ["var(--accent)", "var(--accent)", "var(--page)", "var(--accent)"]


def test_names_are_text(tmp_path: Path) -> None:
    first = cells_of()[0]
    evil = replace(first, row=replace(first.row, kernel="<script>x</script>"))
    body, _ = page([evil], tmp_path)
    assert list(body.iter("script")) == []
    assert [one.text for one in body.iter("h3")] == ["<script>x</script>"]


def test_a_page_of_somebody_else_stays(tmp_path: Path) -> None:
    study_page.check(tmp_path / "new")
    study_page.write_page(cells_of(), tmp_path / "site")
    study_page.check(tmp_path / "site")
    (tmp_path / "index.html").write_text("<h1>Mine</h1>")
    with pytest.raises(UsageError, match=r"a page that `--site` did not write"):
        study_page.check(tmp_path)
    with pytest.raises(UsageError, match="is a file"):
        study_page.check(tmp_path / "index.html")
    with pytest.raises(SmithError, match="cannot write the site"):
        study_page.write_page(cells_of(), tmp_path / "index.html")
