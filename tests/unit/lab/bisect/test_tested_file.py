"""Which test `--test` names: one of each commit's own, or the very file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.repositories import Made
from tritonsmith.core.errors import UsageError
from tritonsmith.lab.bisect import tested_file
from tritonsmith.lab.bisect.tested_file import TestFile

pytestmark = pytest.mark.unit

LIT, PYTEST = "test/Triton/ops.mlir", "python/test/unit/test_x.py"


@pytest.fixture
def made(make: Callable[[str], Made]) -> Made:
    found = make("triton")
    found.commit(
        "tests", {LIT: "// RUN: x", PYTEST: "'RUN: no lit'", "third_party/amd/test/a.mlir": "// RUN: x"}
    )
    return found


def test_a_path_in_the_clone_is_a_test_of_each_commit(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    head = made.git("rev-parse", "HEAD")
    for text in (LIT, str(made.path / LIT)):
        assert tested_file.parse(text, made.path, head) == TestFile(LIT, lit=True, of_commit=True)
    monkeypatch.chdir(made.path / "python")
    assert tested_file.parse("test/unit/test_x.py::test_a", made.path, head) == TestFile(
        PYTEST, "test_a", of_commit=True
    )


def test_a_file_elsewhere_is_the_very_file(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = made.git("rev-parse", "HEAD")
    (tmp_path / "mine.mlir").write_text("// RUN: x")
    monkeypatch.chdir(tmp_path)
    found = tested_file.parse("mine.mlir", made.path, head)
    assert found == TestFile(str(tmp_path / "mine.mlir"), lit=True)
    assert found.needed == ("test",)  # the configuration of the commit's own


def test_what_cannot_be_tested_is_refused(made: Made) -> None:
    head = made.git("rev-parse", "HEAD")
    with pytest.raises(UsageError, match="no such file on disk, or at the bad end"):
        tested_file.parse("test/none.mlir", made.path, head)
    with pytest.raises(UsageError, match="only lit tests below test/"):
        tested_file.parse("third_party/amd/test/a.mlir", made.path, head)
    with pytest.raises(UsageError, match="a lit test cannot run on a release"):
        tested_file.parse(str(made.path / LIT), None, "")
    assert tested_file.parse(str(made.path / PYTEST), None, "") == TestFile(str(made.path / PYTEST))
