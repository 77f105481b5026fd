from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tritonsmith.compiler import describe, module_file, request
from tritonsmith.core.errors import FactError


@pytest.mark.parametrize(
    ("text", "file", "kernel"),
    [
        ("/a/k.py:k", "/a/k.py", "k"),
        ("/a/k.py:make.k", "/a/k.py", "make.k"),
        ("/a/k.py", "/a/k.py", ""),
        ("/a:b/k.py", "/a:b/k.py", ""),
        ("/a:k.py", "/a:k.py", ""),
    ],
)
def test_a_file_and_a_kernel(text: str, file: str, kernel: str) -> None:
    assert request.kernel_of(text) == (Path(file), kernel)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("package.module:kernel", ("package.module", "kernel")),
        ("package:make.k", ("package", "make.k")),
        ("k.py:kernel", ("", "")),
        ("folder/k:kernel", ("", "")),
        ("package.module", ("", "")),
    ],
)
def test_a_module_and_a_kernel(text: str, found: tuple[str, str]) -> None:
    assert request.module_of(text) == found


def test_what_is_there_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("package").mkdir()
    Path("script").touch()
    assert request.module_of("package:kernel") == ("package", "kernel")
    assert request.module_of("script:kernel") == ("", "")


def test_a_module_is_found_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine" / "ops").mkdir(parents=True)
    for name in ("mine/__init__.py", "mine/ops/__init__.py", "mine/ops/k.py"):
        (tmp_path / name).write_text("raise SystemExit('it was run')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    python = Path(sys.executable)
    assert module_file.file_of("mine.ops.k", python) == tmp_path / "mine" / "ops" / "k.py"
    assert module_file.file_of("mine.ops", python) == tmp_path / "mine" / "ops" / "__init__.py"
    for name, missing in (("mine.nosuch.k", "mine.nosuch"), ("nosuch_at_all.k", "nosuch_at_all")):
        with pytest.raises(FactError, match=f"no module {missing}"):
            module_file.file_of(name, python)
    with pytest.raises(FactError, match="not written in Python"):
        module_file.file_of("time", python)


def test_a_package_is_suggested_only_if_it_is_known_to_be_meant() -> None:
    assert "pip install flash-attn" in describe.provided("flash_attn")[0]
    assert not any("pip install" in hint for hint in describe.provided("mypkg"))
    assert any("PYTHONPATH=/folder/that/has/mypkg" in hint for hint in describe.provided("mypkg"))
