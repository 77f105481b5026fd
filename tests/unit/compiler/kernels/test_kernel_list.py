"""TOML files of kernels: what they say, and which entry and key is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lab.compare import compiler
from tritonsmith.compiler import targets
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.core import configs
from tritonsmith.core.errors import ConfigError, UsageError

A100 = targets.parse_all(["a100"])


def written(folder: Path, text: str) -> Path:
    """A file with this text."""
    path = folder / "kernels.toml"
    path.write_text(text)
    return path


def test_an_entry(tmp_path: Path) -> None:
    file = compiler.kernel(tmp_path, "add")
    path = written(tmp_path, """
        [[kernel]]
        file = "add.py"
        signature = "*fp32,64"
        targets = ["mi300x"]
        options = { num_warps = 8 }
        versions = ">=3.4,<3.6"
    """)  # fmt: skip
    (entry,) = kernel_list.read(path)
    asked = entry.request(tmp_path, A100)
    assert (asked.file, asked.kernel, asked.signature, asked.options) == (
        file,
        "add",
        "*fp32,64",
        {"num_warps": 8},
    )
    assert asked.targets == targets.parse_all(["mi300x"])
    assert [entry.fits(version) for version in ("3.3.1", "3.4.0", "3.6.0", "")] == [False, True, False, True]


def test_what_a_capture_adds(tmp_path: Path) -> None:
    path = written(tmp_path, """
        [captured]
        command = "python script.py"
        [[kernel]]
        file = "add.py"
        signature = "*fp32,BLOCK=64"
        sha256 = "ab"
        count = 3
        grid = [[64, 1, 1], [32, 1, 1]]
        largest = {n = 4096}
        where = ["script.py:33"]
        module = "pkg.add"
        configs = [{ BLOCK = 64, num_warps = 4 }, { BLOCK = 128, num_warps = 8 }]
    """)  # fmt: skip
    (entry,) = kernel_list.read(path)
    assert (entry.sha256, entry.count, entry.grids) == ("ab", 3, ((64, 1, 1), (32, 1, 1)))
    assert entry.largest == {"n": 4096}
    assert (entry.launched_from, entry.module) == (("script.py:33",), "pkg.add")
    assert entry.configs[1] == {"BLOCK": 128, "num_warps": 8}


def test_arguments_by_name(tmp_path: Path) -> None:
    text = "@triton.jit\ndef k(a_ptr, b_ptr, stride_am, n, N: tl.constexpr, M: tl.constexpr = 3):\n    pass\n"
    path = written(tmp_path, """
        [arguments]
        "*stride*" = "i32:16"
        n = "i32"
        [[kernel]]
        file = "k.py"
        arguments = { b_ptr = "*fp32", "*_ptr" = "*fp16:16", N = "64" }
    """)  # fmt: skip
    (entry,) = kernel_list.read(path)
    asked = entry.request(tmp_path, A100, text)
    assert asked.signature == "a_ptr=*fp16:16,b_ptr=*fp32,stride_am=i32:16,n=i32,N=64"
    with pytest.raises(ConfigError, match="no type or value for x of k"):
        entry.request(tmp_path, A100, text.replace("n,", "x,"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "this file lists no kernels"),
        ("kernel = 3", "kernel must be a list"),
        ("[[kernl]]", "did you mean 'kernel'"),
        ('[[kernel]]\nsignature = ""', "file is missing"),
        ('[[kernel]]\nfile = "k.py"\nsignatur = ""', "did you mean 'signature'"),
        ('[[kernel]]\nfile = "k.py"', "either signature or arguments"),
        ('[[kernel]]\nfile = "k.py"\nsignature = ""\narguments = {}', "are mutually exclusive"),
        ('[[kernel]]\nfile = "k.py"\nsignature = ""\ntargets = ["h10"]', "did you mean 'h100'"),
        ('[[kernel]]\nfile = "k.py"\nsignature = ""\nversions = "3.4"', "versions cannot be '3.4'"),
        ('[[kernel]]\nfile = "k.py"\narguments = { N = 64 }', "N must be a text, not 64"),
        ('[[kernel]]\nfile = 3\nsignature = ""', "file must be a text, not 3"),
        ('[[kernel]]\nfile = "k.py"\nsignature = ""\ngrid = [1]', "grid must list lists, not 1"),
        ('[[kernel]]\nfile = "k.py"\nsignature = ""\nlargest = {n = "4"}', "n must be a number, not '4'"),
        ('[[kernel]]\nfile = "k.py"\nsignature = ""\nconfigs = [4]', "configs must list tables, not 4"),
        ("[[kernel", "not valid TOML"),
    ],
)
def test_errors_name_the_place(text: str, says: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        kernel_list.read(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_second_entry_is_named(tmp_path: Path) -> None:
    good = '[[kernel]]\nfile = "k.py"\nsignature = ""\n'
    path = written(tmp_path, f'{good}[[kernel]]\nfile = "k.py"\nkernel = ""\nname = "x"\n')
    with pytest.raises(ConfigError, match=r"either signature") as caught:
        kernel_list.read(path)
    assert caught.value.where == f"{path}, [[kernel]] 2"
    with pytest.raises(ConfigError, match="k is listed twice"):
        kernel_list.read(written(tmp_path, good + good))
    with pytest.raises(UsageError, match="no such file") as missing:
        kernel_list.read(tmp_path / "kernel.toml")
    assert "did you mean 'kernels.toml'?" in missing.value.hints


def test_the_example_lists_the_tutorials() -> None:
    entries = kernel_list.read(configs.data_dir("configs").parent / "examples" / "tutorials.toml")
    assert len(entries) == 17
    assert {entry.file[17:19] for entry in entries} == {f"0{number}" for number in range(1, 10)}


def test_the_list_of_public_regressions_has_a_file_for_each_kernel_and_an_entry_for_each_file() -> None:
    folder = Path(__file__).parents[4] / "benchmarks" / "regressions"
    entries = kernel_list.read(folder / "regressions.toml")
    requests = [entry.request(folder, ()) for entry in entries]
    assert {request.file for request in requests} == set(folder.glob("*.py"))
    assert all(request.targets and request.signature for request in requests)
