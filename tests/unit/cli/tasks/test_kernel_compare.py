"""The words of `kernel.compare`: A B [FILE]."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from tests.unit.lab.compare.making import point, written
from tritonsmith.cli.tasks.kernel_compare import compare_
from tritonsmith.compiler import output_folder
from tritonsmith.core.envs.workspace import Workspace


@pytest.mark.parametrize(
    ("argv", "positional"),
    [
        (["a", "b"], ["side_a", "side_b"]),
        (["a", "b", "k.py"], ["side_a", "side_b", "kernel"]),
        (["--json", "a", "b", "k.py"], ["side_a", "side_b", "kernel"]),
        (["a", "b", "--json"], ["side_a", "side_b"]),
        (["a", "b", "--dry-run", "k.py"], ["side_a", "side_b", "kernel"]),
        (["--target", "h100", "a", "--target=a100", "b"], ["side_a", "side_b"]),
        (["a", "b", "--fail-on", "spills>0", "--diff", "--stage", "ptx"], ["side_a", "side_b"]),
        (["a", "--fail-on", "spills>0", "b", "k.py"], ["side_a", "side_b", "kernel"]),
        (["a"], ["side_a", "side_b"]),
        ([], ["side_a", "side_b"]),
        (["--help"], []),
    ],
)
def test_the_file_is_a_word_only_if_it_is_there(
    argv: list[str], positional: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["tritonsmith", "kernel.compare", *argv])
    arguments = compare_.get_arguments()
    assert [one.name for one in arguments if one.positional] == positional


def test_another_task_pays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tritonsmith", "kernel.compile", "k.py"])
    assert not any(one.name == "kernel" and one.positional for one in compare_.get_arguments())


def test_one_comparison_at_a_time_writes_to_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where nothing is compiled; what writes nothing waits for nobody."""
    a, b = (str(written(tmp_path / name, [point()]).folder) for name in "ab")
    out, other = tmp_path / "out", Workspace(tmp_path / "another home")
    other.claim()
    with output_folder.held(out, other, "kernel.compare"):
        with pytest.raises(Exit) as caught:
            compare_(Context(), side_a=a, side_b=b, out=str(out))
        assert caught.value.code == 1
        assert "another run is busy in this output folder" in str(caught.value)
        compare_(Context(), side_a=a, side_b=b)
    assert not (out / "compare.json").exists()
    compare_(Context(), side_a=a, side_b=b, out=str(out))
    assert (out / "compare.json").is_file()
    assert capsys.readouterr().out.count("compiles to the same") == 2
