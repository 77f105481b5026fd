"""The flags that all experiments have."""

from __future__ import annotations

from pathlib import Path

import pytest

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
