"""`pins --nightlies URL --at COMMIT`, of a page without a clone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.tasks.conftest import Smith

WHEELS = (
    "pytorch_triton-3.6.0.dev20251012+gitfeedf00d-py3-none-any.whl",
    "pytorch_triton-3.6.0.dev20251103+git0badcafe-py3-none-any.whl",
)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)  # in no clone
    file = tmp_path / "nightly.html"
    file.write_text("".join(f"<a href='{name}'>{name}</a>" for name in WHEELS), encoding="utf-8")
    return file.as_uri()


def test_the_nightly_of_a_commit(page: str, smith: Smith) -> None:
    answer = smith("pins", "--nightlies", page, "--at", "feedf00d")
    assert answer.code == 0
    assert "first nightly with feedf00d: 3.6.0.dev20251012+gitfeedf00d" in answer.out
    told = json.loads(smith("pins", "--nightlies", page, "--at", "0badcafe", "--json").out)
    assert told["first"] == "3.6.0.dev20251103+git0badcafe"
    assert [row["standing"] for row in told["nightlies"]] == ["unknown", "built from it"]


def test_a_name_alone_decides_nothing_of_other_commits(page: str, smith: Smith) -> None:
    answer = smith("pins", "--nightlies", page, "--at", "deadbeef")
    assert answer.code == 5
    assert "no nightly is known to have deadbeef" in answer.err


def test_both_flags_belong_together(page: str, smith: Smith) -> None:
    assert "--nightlies requires --at" in smith("pins", "--nightlies", page).err
    assert "--at requires --nightlies" in smith("pins", "--at", "feedf00d").err
