"""Where the output folders of two sides come from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab.compare.making import point, written
from tritonsmith.compiler import targets
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.lab.compare import inputs, two_sides
from tritonsmith.lab.compare.inputs import ComparedKernel

FILE = "import triton\n\n@triton.jit\ndef add(x):\n    pass\n"
LIST = """
[[kernel]]
file = "k.py"
signature = "*fp32"
options = { num_warps = 2, maxnreg = 64 }

[[kernel]]
file = "k.py"
name = "a new one"
signature = "*fp32"
versions = ">=3.6"
"""
H100 = targets.parse_all(["h100"])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with one kernel, in a folder with a list of it, beside a workspace."""
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    (tmp_path / "list.toml").write_text(LIST)
    path = tmp_path / "k.py"
    path.write_text(FILE)
    return path


def listed(path: Path, options: Mapping[str, Any] | None = None) -> tuple[ComparedKernel, ...]:
    """The kernels of a list, with flags."""
    flags = CompileRequest(Path(), "", "", H100, options or {})
    return inputs.listed(kernel_list.read(path), path, flags)


def test_both_sides_compile_into_folders_of_one_name(file: Path, tmp_path: Path) -> None:
    kernels = inputs.one(CompileRequest(file, "", "*fp32", H100))
    sides = Triton("3.4.0", version="3.4.0"), Triton("wheel", env="wheel")
    found = two_sides.prepare(*sides, kernels, tmp_path / "o")
    assert [job.out for job in found.jobs] == [tmp_path / "o" / "a" / "add", tmp_path / "o" / "b" / "add"]
    assert [job.request.kernel for job in found.jobs] == ["add", "add"]
    assert not found.own


def test_a_side_that_is_a_folder_compiles_nothing(file: Path, tmp_path: Path) -> None:
    kernels = inputs.one(CompileRequest(file, "", "*fp32", H100))
    found = two_sides.prepare(Triton("out", folder=tmp_path), Triton("wheel", env="wheel"), kernels, None)
    assert found.jobs_a == ()
    assert len(found.jobs_b) == 1
    assert found.own
    assert found.out.is_relative_to(tmp_path / "home")


def test_a_list_of_kernels(file: Path) -> None:
    kernels = listed(file.with_name("list.toml"), {"num_warps": 8})
    assert [kernel.name for kernel in kernels] == ["k", "a_new_one"]
    assert kernels[0].asked.options == {"num_warps": 8, "maxnreg": 64}  # flags win
    assert {kernel.asked.kernel for kernel in kernels} == {"add"}
    found = two_sides.prepare(
        Triton("3.4.0", version="3.4.0"), Triton("3.9.0", version="3.9.0"), kernels, None
    )
    assert [job.out.name for job in found.jobs_a] == ["k"]
    assert [job.out.name for job in found.jobs_b] == ["k", "a_new_one"]


@pytest.mark.parametrize(
    ("first", "second"),
    [('name = "a b"', 'name = "a_b"'), ('name = "k"\nversions = ">=3.2"', 'name = "k"\nversions = ">=3.4"')],
)
def test_two_kernels_never_share_a_folder(file: Path, first: str, second: str) -> None:
    one = '[[kernel]]\nfile = "k.py"\nsignature = "*fp32"\n'
    file.with_name("list.toml").write_text(f"{one}{first}\n{one}{second}\n")
    kernels = listed(file.with_name("list.toml"))
    with pytest.raises(UsageError, match="two kernels of the list would use the same folder"):
        two_sides.prepare(Triton("3.4.0", version="3.4.0"), Triton("3.9.0", version="3.9.0"), kernels, None)


def test_a_list_with_nothing_for_a_side(file: Path) -> None:
    file.with_name("list.toml").write_text(
        '[[kernel]]\nfile = "k.py"\nsignature = "*fp32"\nversions = ">=3.6"\n'
    )
    kernels = listed(file.with_name("list.toml"))
    with pytest.raises(UsageError, match=r"no kernel in the list is for Triton 3\.4\.0"):
        two_sides.prepare(Triton("3.4.0", version="3.4.0"), Triton("3.9.0", version="3.9.0"), kernels, None)


def test_a_file_where_the_folder_goes_is_said_before_anything_is_compiled(file: Path) -> None:
    kernels = inputs.one(CompileRequest(file, "", "*fp32", H100))
    sides = Triton("3.4.0", version="3.4.0"), Triton("wheel", env="wheel")
    for out in (file, file / "below"):
        with pytest.raises(UsageError, match="the output folder is a file") as caught:
            two_sides.prepare(*sides, kernels, out)
        assert caught.value.where == str(file)


def test_what_contradicts_itself(file: Path, tmp_path: Path) -> None:
    kernels = inputs.one(CompileRequest(file, "", "*fp32", H100))
    folder, other = Triton("out", folder=tmp_path), Triton("3.4.0", version="3.4.0")
    with pytest.raises(UsageError, match="a kernel cannot be given"):
        two_sides.prepare(folder, folder, kernels, None)
    with pytest.raises(UsageError, match="no kernel is given"):
        two_sides.prepare(folder, other, (), None)
    with pytest.raises(UsageError, match=r"'3\.4\.0' and '3\.4\.0'"):
        two_sides.prepare(other, other, (), None)
    with pytest.raises(SmithError, match="no such file"):
        inputs.one(CompileRequest(file.with_name("kk.py"), "", "*fp32", H100))


def test_output_folders_are_found_below_a_folder(tmp_path: Path) -> None:
    written(tmp_path / "two" / "b", [point()])
    written(tmp_path / "two" / "a", [point()])
    assert [one.folder.name for one in inputs.read(tmp_path / "two")] == ["a", "b"]
    assert [one.folder for one in inputs.read(tmp_path / "two" / "b")] == [tmp_path / "two" / "b"]
    (tmp_path / "none").mkdir()
    with pytest.raises(FactError, match="no compiled kernel"):
        inputs.read(tmp_path / "none")


def test_only_a_folder_of_the_workspace_is_removed(file: Path, tmp_path: Path) -> None:
    kernels = inputs.one(CompileRequest(file, "", "*fp32", H100))
    sides = Triton("3.4.0", version="3.4.0"), Triton("3.9.0", version="3.9.0")
    own, users = (two_sides.prepare(*sides, kernels, place) for place in (None, tmp_path / "o"))
    assert f"rm -rf -- {own.out}" in two_sides.plan(own, "wheel").shell()
    assert "rm -rf" not in two_sides.plan(users, "wheel").shell()
