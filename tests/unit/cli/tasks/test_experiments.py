"""The flags that all experiments have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.option_fields import OutFile
from tritonsmith.core.errors import UsageError

pytestmark = pytest.mark.unit


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_tested(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "page.html").mkdir()
    for place in ("file/page.html", "file/", "file/deeper/page.html", "."):
        with pytest.raises(UsageError, match="--page cannot be written"):
            _ = ExperimentOptions(page=OutFile(f"{tmp_path}/{place}")).rules
    for place in ("new.html", "new/page.html", "new/", "file"):
        assert ExperimentOptions(page=OutFile(f"{tmp_path}/{place}")).rules.confirm == 1


def test_the_file_to_reduce_is_never_overwritten(smith: Smith, tmp_path: Path) -> None:
    file, link = tmp_path / "f.mlir", tmp_path / "link.mlir"
    file.write_text("module {}\n", encoding="utf-8")
    link.symlink_to(file)
    for out in (file, link):
        answer = smith("reduce", str(file), "--out", str(out), "--", "grep", "-q", "module", "{}")
        assert answer.code == 2
        assert "--out is the file to reduce, which is never changed" in " ".join(answer.err.split())
    assert file.read_text(encoding="utf-8") == "module {}\n"
