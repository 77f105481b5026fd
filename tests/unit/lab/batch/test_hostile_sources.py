"""Kernels files and what they name, made to hang, to fill the memory or to end in a traceback."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.test_fuzz import timed
from tritonsmith.compiler import source, source_tree, targets
from tritonsmith.compiler.dump import import_log
from tritonsmith.compiler.kernels import kernel_list, kernels_file
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import untrusted
from tritonsmith.core.errors import ConfigError, FactError, SmithError
from tritonsmith.ir import ptx
from tritonsmith.lab import corpus

_KERNEL = "import triton\n@triton.jit\ndef k(x):\n    pass\n"
_MEMORY = 3 << 30  # bytes of the process, tests and all


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    """What takes for ever, or the whole memory, fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, hard))
    try:
        with timed():
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(40 << 30)


_ENDLESS = pytest.mark.parametrize("make", [_fifo, _zero, _sparse])


def _listed(folder: Path, text: str) -> Path:
    path = folder / "kernels.toml"
    path.write_text(f'[[kernel]]\nsignature = "*fp32"\n{text}\n')
    return path


@_ENDLESS
def test_a_file_without_end_is_refused_wherever_a_kernels_file_names_it(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "a.py")
    path = _listed(tmp_path, 'file = "a.py"\nkernel = "k"\nsha256 = "ab"')
    (entry,) = kernel_list.read(path)
    with pytest.raises(FactError):
        entry.request(tmp_path, targets.default())
    with pytest.raises(FactError):
        source_tree.of(tmp_path / "a.py", "k")
    with suppress(FactError):  # a pipe is no file that was captured
        assert list(kernels_file.changes([entry], path)) == []
    update = corpus.add(corpus.Corpus(tmp_path / "corpus"), path)
    assert [change.state for change in update.changes] == ["not added"]


@_ENDLESS
def test_a_file_without_end_is_refused_by_other_readers(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for name in ("a.ipynb", "a.ndjson", "a.ptx", "a.toml"):
        make(tmp_path / name)
    for read in (
        lambda: source_tree.as_python(tmp_path / "a.ipynb"),
        lambda: kernels_file.read_trace(tmp_path / "a.ndjson", tmp_path / "sources"),
        lambda: ptx.read(tmp_path / "a.ptx"),
        lambda: kernel_list.read(tmp_path / "a.toml"),
    ):
        with pytest.raises(SmithError):
            read()


@pytest.mark.parametrize("make", [_fifo, _zero])
def test_a_log_is_a_file_or_standard_input(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "log")
    with pytest.raises(FactError, match="cannot read this log") as caught:
        import_log.read(str(tmp_path / "log"), tmp_path / "out")
    assert "passes.dump --from-log -" in caught.value.hints[0]
    assert not (tmp_path / "out").exists()


_DEEP = {
    "minus": f"y = {'-' * 200_000}1",
    "sum": f"y = 1{'+1' * 100_000}",
    "sum that Python parses": f"y = 1{'+1' * 2_000}",
    "attributes": f"y = a{'.b' * 100_000}",
    "lambdas": f"y = {'lambda:' * 50_000}1",
    "conditions": f"y = {'1 if 1 else ' * 50_000}1",
    "nots": f"y = {'not ' * 100_000}1",
    "brackets": f"y = {'(' * 5_000}",
    "a default": f"@triton.jit\ndef j(x={'-' * 2_000}1):\n    pass",
    "a default that cannot be": "@triton.jit\ndef j(x={[]: 1}):\n    pass",
    "NUL": "y = '\0'",
}


@pytest.mark.parametrize("text", _DEEP.values(), ids=_DEEP)
def test_python_that_the_parser_cannot_take(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(f"{_KERNEL}{text}\n")
    with suppress(SmithError):
        seen = source.read(file)
        source.choose(seen, "", file)
        source.find(seen, "k", file)
        source.find(seen, "j", file)
        source.inner_kernels(seen)
    assert source_tree.of(file, "k").main == "a.py"
    update = corpus.add(corpus.Corpus(tmp_path / "corpus"), _listed(tmp_path, 'file = "a.py"\nkernel = "k"'))
    assert len(update.changes) == 1


@pytest.mark.parametrize("codec", ["hex", "idna", "punycode", "zip", "nothing", "rot13"])
def test_a_codec_that_is_none_of_python(codec: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"# coding: {codec}\n{_KERNEL}")
    with pytest.raises(FactError, match="cannot decode"):
        source.read(tmp_path / "a.py")


@pytest.mark.parametrize(
    "text",
    [
        'file = "a\\u0000b.py"',
        f'file = "{"a" * 5000}"',
        'file = "a.py"\noptions = { num_warps = 1979-05-27 }',
        'file = "a.py"\noptions = { x = [12:00:00] }',
        'file = "a.py"\noptions = { extern_libs = { a = "/etc/passwd" } }',
        'file = "a.py"\noptions = { x = { dtype = 1 } }',
        'file = "a.py"\nconfigs = [{ BLOCK = 1979-05-27 }]',
        'file = "a.py"\ngrid = [[1979-05-27]]',
        'file = "a.py"\ngrid = [["1"]]',
        f'file = "a.py"\ncount = 0x{"f" * 5000}',
        f"file = 0x{'f' * 5000}",
        f'file = "a.py"\noptions = {{ x = [0x{"f" * 5000}] }}',
    ],
)
def test_values_that_no_command_line_can_carry(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        kernel_list.read(_listed(tmp_path, text))


def test_values_that_it_can(tmp_path: Path) -> None:
    options = 'a = [["libdevice", "/x.bc"]], b = { dtype = "float16" }, c = 1.5, d = true'
    (entry,) = kernel_list.read(_listed(tmp_path, f'file = "a.py"\noptions = {{ {options} }}'))
    assert entry.options == {"a": [["libdevice", "/x.bc"]], "b": {"dtype": "float16"}, "c": 1.5, "d": True}


@pytest.mark.slow
def test_a_list_of_many_kernels(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(_KERNEL)
    path = tmp_path / "kernels.toml"
    row = '[[kernel]]\nfile = "a.py"\nkernel = "k"\nname = "k{}"\nsignature = "*fp32"\n'
    path.write_text("".join(map(row.format, range(9_000))))
    entries = kernel_list.read(path)
    assert len(entries) == 9_000
    asked = kernels_file.requests(entries, path, CompileRequest(path, "", "", ()), targets.default())
    kernels_file.check_folders(asked)


def _notebook(folder: Path, *cells: str) -> Path:
    path = folder / "a.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]}))
    return path


def test_half_of_a_surrogate_pair_in_a_notebook(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="text that cannot be written to a file") as caught:
        source_tree.as_python(_notebook(tmp_path, "x = 1", "y = '\ud800'"))
    assert "cell 2" in (caught.value.why or "")


@pytest.mark.slow
def test_many_magics_in_a_cell(tmp_path: Path) -> None:
    text = source_tree.as_python(_notebook(tmp_path, "%a\n" * 20_000)).read_text()
    assert text.count("pass  # %a\n") == 20_000
    with pytest.raises(FactError, match="cell 1 has too many lines that only IPython understands"):
        source_tree.as_python(_notebook(tmp_path, "%a\nx = 1\n" * 10_000))


def test_magics_below_each_other_in_a_block(tmp_path: Path) -> None:
    text = source_tree.as_python(
        _notebook(tmp_path, "if x:\n    %a\n    !b\n    y = 10\nz = (5\n%x)")
    ).read_text()
    assert text.endswith("if x:\n    pass  # %a\n    pass  # !b\n    y = 10\nz = (5\n%x)\n")


def test_a_number_that_no_text_can_show(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(f"a = [0x{'f' * 5000}]")
    with pytest.raises(untrusted.UnreadableError, match="does not fit 64 bits"):
        untrusted.read_toml(tmp_path / "a.toml")
