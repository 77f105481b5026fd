"""Where `passes.report` and `passes.reduce` write: a file, or a folder that gets the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tests.unit.compiler.dump.streams import banner, module, split


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A folder that exists."""
    (tmp_path / "there").mkdir()
    return tmp_path / "there"


@pytest.mark.parametrize(
    ("out", "file"),
    [("there", "there/report.html"), ("new/", "new/report.html"), ("mine.html", "mine.html")],
)
def test_a_report(smith: Smith, there: Path, out: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(there.parent)
    made = split(banner("First", "first") + module("x"), there.parent / "dump")
    answer = smith("passes.report", str(made.folder), "--out", out)
    assert answer.code == 0, answer.err
    assert (there.parent / file).read_text().startswith("<!")


@pytest.mark.parametrize(
    ("out", "file"),
    [("there", "there/in.reduced.mlir"), ("new/", "new/in.reduced.mlir"), ("mine.mlir", "mine.mlir")],
)
def test_a_reduced_file(
    smith: Smith, there: Path, out: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(there.parent)
    Path("in.mlir").write_text('module {\n  "a.b"() : () -> ()\n  "c.d"() : () -> ()\n}\n')
    answer = smith("passes.reduce", "in.mlir", "--out", out, "--", "grep", "-q", "a.b", "{}")
    assert answer.code == 0, answer.err
    assert "c.d" not in (there.parent / file).read_text()
