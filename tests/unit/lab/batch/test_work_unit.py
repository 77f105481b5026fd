"""A unit that goes to another machine and comes back."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.lab.compare import compiler
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import DownloadError, SmithError
from tritonsmith.lab.batch import work_unit
from tritonsmith.lab.batch.work_unit import PackedResult, RemoteJob, RemoteResult

A100 = targets.parse_all(["a100"])


def parcel(file: Path, python: Path) -> RemoteJob:
    """A unit as it is sent: only bytes arrive there."""
    asked = CompileRequest(file, "", "*fp32,64", A100)
    packed = work_unit.pack(asked, tritons.parse(str(python)), 60, "wheel")
    made: RemoteJob = pickle.loads(pickle.dumps(packed))  # noqa: S301
    return made


def test_there_and_back(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    file = compiler.kernel(tmp_path, remark="tell")
    sent = parcel(file, python)
    file.unlink()  # nothing of ours is there
    answer = pickle.loads(pickle.dumps(work_unit.compile_there(sent)))  # noqa: S301
    assert isinstance(answer, RemoteResult)
    made = work_unit.unpack(answer, tmp_path / "out")
    assert made.file == str(file)
    path = made.path(made.points[0], "ptx")
    assert path is not None
    assert path.is_relative_to(tmp_path / "out")
    ran = Path(path.read_text())  # which file was compiled
    assert ran.name == "k.py"
    assert ran.is_relative_to(workspace.default().root)
    assert not ran.exists()
    assert not (tmp_path / "out" / "manifest.json").exists()  # its writer knows the command


@pytest.mark.parametrize("end", ["", " refuse"])
def test_files_that_came_with_a_unit_are_not_told_by_their_paths_there(tmp_path: Path, end: str) -> None:
    python = compiler.make(tmp_path / "venv")
    elsewhere = tmp_path / "data.json"
    elsewhere.write_text("1")
    told = []
    for name in ("k.py", str(elsewhere)):
        answer = work_unit.compile_there(parcel(compiler.kernel(tmp_path, "k", f"reads {name}{end}"), python))
        told.append(list((answer if isinstance(answer, SmithError) else answer.manifest).reads))
    assert told == [[], [str(elsewhere)]]


def test_what_is_kept_comes_back_compressed(tmp_path: Path) -> None:
    sent = parcel(compiler.kernel(tmp_path), compiler.make(tmp_path / "venv"))
    answer = pickle.loads(pickle.dumps(work_unit.compile_there(replace(sent, packs=True))))  # noqa: S301
    assert isinstance(answer, PackedResult)
    (part,) = answer.parts
    assert (part.target, part.measured is None) == ("cuda:80:32", False)
    (point,) = answer.manifest.points
    contents = {file.path: file.content("k") for file in part.files}
    assert {stage.path for stage in point.stages.values()} <= contents.keys()
    assert contents[point.stages["ptx"].path] == b"// ptx"


def test_errors_name_the_file_here(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    answer = work_unit.compile_there(parcel(compiler.kernel(tmp_path, remark="crash"), python))
    assert isinstance(answer, RemoteResult)
    assert answer.manifest.points[0].error == f"{tmp_path}/k.py:3: no"
    refused = work_unit.compile_there(parcel(compiler.kernel(tmp_path, "bad", "refuse"), python))
    assert isinstance(refused, SmithError)
    assert refused.where == f"{tmp_path}/bad.py"
    nobody = work_unit.compile_there(
        replace(parcel(compiler.kernel(tmp_path), python), triton=tritons.parse("dev"))
    )
    assert isinstance(nobody, SmithError)
    assert "no Python interpreter with Triton" in nobody.what


def test_modules_beside_the_file_go_with_it(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    file = compiler.kernel(tmp_path)
    file.write_text(f"import math, one\n{file.read_text()}")
    (tmp_path / "one.py").write_text("def f():\n    from two import x\n    from . import three\n")
    for name in ("two", "three"):
        (tmp_path / f"{name}.py").write_text("import k\n")
    names = ["k.py", "one.py", "three.py", "two.py"]
    assert [name for name, _ in parcel(file, python).files] == names


def test_a_kernel_of_a_package_goes_with_the_package(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    ops = tmp_path / "pack" / "ops"
    ops.mkdir(parents=True)
    for name in (ops.parent / "__init__.py", ops / "__init__.py", ops / "helpers.py"):
        name.touch()
    file = compiler.kernel(tmp_path).rename(ops / "k.py")
    file.write_text(f"from pack.ops import helpers\n{file.read_text()}")
    sent = parcel(file, python)
    assert (sent.main, len(sent.files)) == ("pack/ops/k.py", 4)
    answer = work_unit.compile_there(sent)
    assert isinstance(answer, RemoteResult)
    assert answer.manifest.file == str(file)


def test_a_damaged_answer_is_refused(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    answer = work_unit.compile_there(parcel(compiler.kernel(tmp_path), python))
    assert isinstance(answer, RemoteResult)
    with pytest.raises(DownloadError):
        work_unit.unpack(replace(answer, files=answer.files[:-20]), tmp_path / "out")
    assert not (tmp_path / "out").exists()
