"""The worker against a stand-in for Triton: what it does around the compiler. The compiler itself is for
tests/integration."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tritonsmith.kernels import worker


class NewSource:
    def __init__(self, fn: object, signature: object, constexprs: object = None) -> None:
        self.given = {"fn": fn, "signature": signature, "constexprs": constexprs}


class OldSource:
    def __init__(self, fn: object, signature: object, constants: object = None) -> None:
        self.given = {"fn": fn, "signature": signature, "constants": constants}


def compile_(_source: Any, target: tuple[str, object, int]) -> SimpleNamespace:
    if target[0] == "broken":
        raise RuntimeError("no such backend")
    return SimpleNamespace(asm={"ttir": "module {}", "cubin": b"\x7fELF", "unknown": "x"})


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> Callable[[type], None]:
    """Puts a stand-in where the worker looks for Triton."""

    def put(source: type) -> None:
        modules = {
            name: ModuleType(name) for name in ("triton", "triton.compiler", "triton.backends.compiler")
        }
        vars(modules["triton"]).update(compile=compile_, __version__="9.9.9")
        vars(modules["triton.compiler"]).update(ASTSource=source)
        vars(modules["triton.backends.compiler"]).update(GPUTarget=lambda *parts: parts)
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)

    return put


def test_sources_since_3_3(triton: Callable[[type], None]) -> None:
    triton(NewSource)
    made = worker.make_source("k", {"x": "*fp32"}, {"BLOCK": 1})
    assert made.given == {
        "fn": "k",
        "signature": {"x": "*fp32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 1},
    }


def test_sources_up_to_3_2(triton: Callable[[type], None]) -> None:
    triton(OldSource)
    made = worker.make_source("k", {"x": "*fp32"}, {"BLOCK": 1})
    assert made.given == {"fn": "k", "signature": {"x": "*fp32"}, "constants": {"BLOCK": 1}}


def test_a_kernel_is_loaded_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "my kernels.py").write_text("def add():\n    return 'added'\n")
    assert worker.load_kernel(str(tmp_path / "my kernels.py"), "add")() == "added"
    with pytest.raises(ImportError, match="no Python file"):
        worker.load_kernel(str(tmp_path / "notes.txt"), "add")


@pytest.mark.parametrize(
    ("targets", "code"), [([["broken", 1, 1], ["cuda", 90, 32]], 1), ([["cuda", 90, 32]], 0)]
)
def test_a_target_that_fails_does_not_keep_the_others(
    triton: Callable[[type], None],
    tmp_path: Path,
    targets: list[list[object]],
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    triton(NewSource)
    (tmp_path / "kernel.py").write_text("add = 1\n")
    request = {
        "file": str(tmp_path / "kernel.py"),
        "kernel": "add",
        "signature": {},
        "constexprs": {},
        "targets": targets,
        "output": str(tmp_path / "out"),
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    assert worker.main(str(tmp_path / "request.json"), str(tmp_path / "response.json")) == code
    answer = json.loads((tmp_path / "response.json").read_text())
    assert answer["triton"] == "9.9.9"
    good = answer["results"][-1]
    assert good["target"] == "cuda:90:32"
    assert {name: stage["bytes"] for name, stage in good["stages"].items()} == {"ttir": 9, "cubin": 4}
    assert Path(good["stages"]["cubin"]["path"]).read_bytes() == b"\x7fELF"
    if code:
        assert answer["results"][0]["target"] == "broken:1:1"
        assert "no such backend" in answer["results"][0]["error"]
        assert "no such backend" in capsys.readouterr().err
