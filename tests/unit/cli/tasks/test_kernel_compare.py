"""The words of `kernel.compare`: A B [FILE]."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from tests.unit.lab.compare import compiler
from tests.unit.lab.compare.making import point, written
from tritonsmith.cli.tasks import namespace
from tritonsmith.cli.tasks.compare import compare_, rehearse, study
from tritonsmith.compiler import manifest
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
    assert namespace.every["compare"] is compare_  # which gives the task the name that is typed
    monkeypatch.setattr(sys, "argv", ["tritonsmith", "kernel.compare", *argv])
    arguments = compare_.get_arguments()
    assert [one.name for one in arguments if one.positional] == positional


@pytest.mark.parametrize("flags", [{"confirm": "2"}, {"skip": ["k"]}, {"status": True}, {"page": "p.html"}])
def test_flags_of_an_experiment_are_refused_where_nothing_is_compiled(
    flags: dict[str, object], tmp_path: Path
) -> None:
    a, b = (str(written(tmp_path / name, [point()]).folder) for name in "ab")
    with pytest.raises(Exit, match="so nothing is tested") as caught:
        compare_(Context(), side_a=a, side_b=b, **flags)
    assert caught.value.code == 2


@pytest.mark.slow
@pytest.mark.usefixtures("in_threads")
@pytest.mark.parametrize("remark", ["flaky 3.6.0", "breaks 3.6.0"])
def test_a_gate_whose_compiles_disagree_is_undecided(
    remark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    a, b = (str(compiler.make(tmp_path / version, version)) for version in ("3.4.0", "3.6.0"))
    kernel, other = compiler.kernel(tmp_path, "k", remark), compiler.kernel(tmp_path, "other")
    listed = tmp_path / "kernels.toml"
    listed.write_text(
        "".join(f'[[kernel]]\nfile = "{path}"\nsignature = "*fp32,64"\n' for path in (kernel, other))
    )
    flags = {"side_a": a, "side_b": b, "kernel": str(listed), "target": ["h100"], "jobs": "1"}
    with pytest.raises(Exit, match="not sure: compiles of B come out otherwise") as caught:
        compare_(Context(), fail_on="ptx>+10%", confirm="2", **flags)
    assert caught.value.code == 5
    assert "flaky: " in capsys.readouterr().err
    with pytest.raises(Exit, match="violation") as caught:  # what fails surely is a failure all the same
        compare_(Context(), fail_on="ptx>1", confirm="2", **flags)
    assert caught.value.code == 1
    with pytest.raises(Exit, match="violation"):
        compare_(Context(), fail_on="ptx>1", page=f"{tmp_path / 'tests.html'}", **flags)
    assert "other" in (tmp_path / "tests.html").read_text()


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    a, b = (compiler.make(tmp_path / version, version) for version in ("3.4.0", "3.6.0"))
    file = str(compiler.kernel(tmp_path, "k"))
    what = {"signature": "*fp32,64", "target": ["h100"], "page": f"{file}/page.html"}
    with pytest.raises(Exit, match="--page cannot be written") as caught:
        compare_(Context(), side_a=str(a), side_b=str(b), kernel=file, **what)
    assert caught.value.code == 2
    (tmp_path / "kernels.toml").write_text('[[kernel]]\nfile = "k.py"\nsignature = "*fp32,64"\n')
    listed = {"kernels": str(tmp_path / "kernels.toml"), "page": f"{file}/page.html"}
    with pytest.raises(Exit, match="--page cannot be written"):
        rehearse(Context(), from_=str(a), to=str(b), **listed)
    with pytest.raises(Exit, match="--page cannot be written"):
        study(Context(), triton=[str(a)], **listed)
    assert compiler.compiled(a) == compiler.compiled(b) == []


@pytest.mark.usefixtures("in_threads")
def test_the_status_of_another_comparison_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    a, b = (str(compiler.make(tmp_path / version, version)) for version in ("3.4.0", "3.6.0"))
    file = compiler.kernel(tmp_path, "k")
    flags = {"side_a": a, "side_b": b, "kernel": str(file), "signature": "*fp32,64", "target": ["h100"]}
    compare_(Context(), fail_on="ptx>+10%", jobs="1", **flags)
    for fail_on, is_other in (("ptx>+10%", False), ("ptx>+20%", True)):
        capsys.readouterr()
        compare_(Context(), fail_on=fail_on, status=True, dry_run=True, **flags)
        shown = capsys.readouterr()
        assert ("had other inputs" in shown.err, "no worse" in shown.out) == (is_other, True)
    compiler.kernel(tmp_path, "k", "edited")
    compare_(Context(), fail_on="ptx>+10%", status=True, **flags)
    assert "had other inputs" in capsys.readouterr().err


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
    with manifest.hold_output(out, other, "kernel.compare"):
        with pytest.raises(Exit) as caught:
            compare_(Context(), side_a=a, side_b=b, out=str(out))
        assert caught.value.code == 1
        assert "another run is busy in this output folder" in str(caught.value)
        compare_(Context(), side_a=a, side_b=b)
    assert not (out / "compare.json").exists()
    compare_(Context(), side_a=a, side_b=b, out=str(out))
    assert (out / "compare.json").is_file()
    assert capsys.readouterr().out.count("compiles to the same") == 2
