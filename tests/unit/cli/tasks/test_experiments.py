"""The flags that all experiments have."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.option_fields import OutFile
from tritonsmith.core.errors import UsageError
from tritonsmith.lab import journal
from tritonsmith.lab.journal import Journal

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


def test_the_status_names_the_command_that_began_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["triage", "k.py:k", "--", "env", "API_TOKEN=swordfish", "python", "a b.py"]
    monkeypatch.setattr(sys, "argv", ["tritonsmith", *words])
    monkeypatch.setenv("COLUMNS", "300")
    rules = ExperimentOptions().rules
    Journal(tmp_path / journal.FILE, "key", command=rules.command).begin()
    assert ExperimentOptions(status=True).show_status(tmp_path)
    shown = capsys.readouterr().out
    assert "begun by: tritonsmith triage k.py:k -- env" in shown
    assert "'a b.py'" in shown
    assert "swordfish" not in shown
    assert "swordfish" not in (tmp_path / journal.FILE).read_text(encoding="utf-8")


def test_a_status_comes_before_a_dry_run(smith: Smith, tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("import triton\n@triton.jit\ndef k(a): pass\n", encoding="utf-8")
    flags = ("--signature", "*fp32", "--target", "sm_80", "--python", sys.executable)
    answer = smith("knockout", f"{tmp_path / 'k.py'}:k", *flags, "--status", "--dry-run")
    assert (answer.code, answer.out) == (0, ""), answer.err
    assert "nothing was tested yet" in answer.err
