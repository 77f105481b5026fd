"""Where `kernel.inline-ptx` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tests.unit.inspect.export_ptx.test_compiled_kernel import folder, point


@pytest.mark.parametrize(("flags", "name"), [((), "k.cuh"), (("--header",), "k.cuh")])
def test_a_folder_gets_a_file_that_is_called_like_the_kernel(
    smith: Smith, tmp_path: Path, flags: tuple[str, ...], name: str
) -> None:
    (tmp_path / "compiled").mkdir()
    folder(tmp_path / "compiled", point("p"))
    out = tmp_path / "out"
    out.mkdir()
    answer = smith("kernel.inline-ptx", str(tmp_path / "compiled"), *flags, "--out", str(out))
    assert answer.code == 0, answer.err
    assert [path.name for path in out.iterdir()] == [name]
    assert f"written: {out / name}" in answer.err
    answer = smith("kernel.inline-ptx", str(tmp_path / "compiled"), *flags, "--out", f"{tmp_path}/fresh/")
    assert answer.code == 0, answer.err
    assert (tmp_path / "fresh" / name).read_text() == (out / name).read_text()


def test_what_cannot_be_written_is_named(smith: Smith, tmp_path: Path) -> None:
    (tmp_path / "compiled").mkdir()
    folder(tmp_path / "compiled", point("p"))
    (tmp_path / "file").write_text("")
    answer = smith("kernel.inline-ptx", str(tmp_path / "compiled"), "--out", str(tmp_path / "file" / "x.cuh"))
    assert answer.code == 1
    assert str(tmp_path / "file") in answer.err
    assert ".tritonsmith" not in answer.err
