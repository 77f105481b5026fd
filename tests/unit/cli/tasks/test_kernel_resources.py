"""`kernel.resources` on an output folder: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from invoke.exceptions import Exit

from tests.unit.compiler.resources import elf_maker
from tests.unit.compiler.resources.test_measure import manifest, point
from tritonsmith.cli.tasks.kernel import resources
from tritonsmith.compiler.manifest import FILE
from tritonsmith.core.errors import EXIT_USAGE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A kernel for two numbers of warps; it spills with the first."""
    spilling = elf_maker.cubin(frame=8, code=elf_maker.access(0x387, 5))
    made = manifest(
        tmp_path,
        point(tmp_path, "cuda:80:32", {"num_warps": 4}, {"cubin": spilling, "sass": "x"}),
        point(tmp_path, "cuda:80:32", {"num_warps": 8}, {"cubin": elf_maker.cubin(), "sass": "x"}),
    )
    (tmp_path / FILE).write_text(made.render(), encoding="utf-8")
    return tmp_path


def run(**flags: Any) -> None:
    resources.body(None, **flags)


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(kernel=str(folder), json=True)
    content = json.loads(capsys.readouterr().out)
    assert [row["values"]["spill_store_bytes"] for row in content["rows"]] == [8, 0]


def test_csv_of_those_that_spill(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(kernel=str(folder), csv=True, spills=True)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_plot_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(kernel=str(folder), plot=str(folder / "map.svg"))
    assert (folder / "map.svg").stat().st_size > 0
    assert "map.svg" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"json": True, "csv": True}, "contradict"),
        ({"num_warps": "4"}, "already compiled"),
        ({"from_cache": "all"}, "takes no kernel"),
        ({"from_cache": "all", "plot": "map.svg"}, "requires a sweep, not a cache"),
        ({"plot": "map.pdf"}, "cannot write map.pdf"),
    ],
)
def test_what_is_refused(folder: Path, flags: dict[str, Any], words: str) -> None:
    with pytest.raises(Exit) as caught:
        run(kernel=str(folder), **flags)
    assert caught.value.code == EXIT_USAGE
    assert words in str(caught.value)


def test_an_entry_is_compiled_for_another_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for as kernel.compile does; an empty kernel is not the current folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    with pytest.raises(Exit, match="no entry 'NOTHING'"):
        run(from_cache="NOTHING", target=["cuda:90"])


def test_points_that_did_not_compile_end_in_an_error(tmp_path: Path) -> None:
    made = manifest(tmp_path, point(tmp_path, "cuda:80:32", {}, {}, status="failed", error="PTXASError: no"))
    (tmp_path / FILE).write_text(made.render(), encoding="utf-8")
    with pytest.raises(Exit) as caught:
        run(kernel=str(tmp_path))
    assert caught.value.code == 1
    assert "PTXASError" in str(caught.value)
