"""The worker's children, and what it reads off a binding; libtriton itself is for tests/integration."""

from __future__ import annotations

import importlib.machinery
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.worker import libtriton
from tritonsmith.worker.introspect import form_of
from tritonsmith.worker.processes import in_child


def refuse(*_: Any) -> None:
    os.write(2, b"what the compiler said\n")
    raise RuntimeError("PassManager::run failed")


@pytest.mark.parametrize(
    ("act", "status", "words"),
    [
        (lambda: [1, "x"], "ok", ""),
        (refuse, "failed", "PassManager::run failed"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "crashed", "SIGKILL"),
        (lambda: os._exit(7), "crashed", "exit code 7"),
    ],
)
def test_whatever_a_child_does_is_an_answer(act: Any, status: str, words: str, tmp_path: Path) -> None:
    answer = in_child(act, str(tmp_path / "log"))
    assert answer["status"] == status
    assert words in answer.get("error", "")
    if status == "ok":
        assert answer["value"] == [1, "x"]
    if status == "failed":
        assert (tmp_path / "log").read_text() == "what the compiler said\n"


def test_a_child_that_hangs_is_given_up() -> None:
    answer = in_child(signal.pause, timeout=0.2)
    assert answer["status"] == "timeout"


@pytest.mark.parametrize(
    ("doc", "kinds"),
    [
        ("add_a(arg0: x.ir.pass_manager) -> None", []),
        ("add_a(arg: x.ir.pass_manager, /) -> None", []),
        ("add_a(arg0: x.ir.pass_manager, arg1: typing.SupportsInt, arg2: bool) -> None", ["int", "bool"]),
        ("add_a(arg0: x.ir.pass_manager, arg1: str, arg2: int, /) -> None", ["str", "int"]),
        ("add_a(arg0: x.ir.pass_manager, arg1: mlir::gpu::ClusterInfo) -> None", ["mlir::gpu::ClusterInfo"]),
        ("whatever it is", None),
    ],
)
def test_types_of_arguments(doc: str, kinds: list[str] | None) -> None:
    assert libtriton.kinds_of(types.SimpleNamespace(__doc__=doc)) == kinds


def test_the_library_of_this_python_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may lie beside it; `cpython-314t` comes after `cpython-314` in the alphabet, and is another."""
    own = next(ending for ending in importlib.machinery.EXTENSION_SUFFIXES if "cpython" in ending)
    folder = tmp_path / "triton" / "_C"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    for name in ("libtriton.cpython-30-x86_64-linux-gnu.so", "libtriton_amd_codegen.so"):
        (folder / name).touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    with pytest.raises(libtriton.UnusableError, match=r"no libtriton\.so for this Python"):
        libtriton.library()
    (folder / f"libtriton{own}").touch()
    assert libtriton.library() == str(folder / f"libtriton{own}")


def library(made: list[Any]) -> Any:
    """A libtriton without `get_pipeline_str`, as up to 3.2, whose pass ends the process."""

    class Manager:
        def run(self, _: Any) -> None:
            Path(os.environ["TRITON_REPRODUCER_PATH"]).write_text('pipeline: "builtin.module(any(p{n=3}))"')
            os.kill(os.getpid(), signal.SIGKILL)

    ir = types.ModuleType("ir")
    vars(ir).update(
        context=object,
        load_dialects=made.append,
        pass_manager=lambda _: Manager(),
        parse_mlir_module=lambda *_: 0,
    )
    passes, inner, nvidia = (types.ModuleType(name) for name in ("passes", "ttgpuir", "nvidia"))
    vars(inner)["add_p"] = lambda _, number: made.append(number)
    vars(passes)["ttgpuir"] = inner
    vars(nvidia)["passes"] = types.ModuleType("passes")
    vars(nvidia.passes)["add_q"] = refuse
    return types.SimpleNamespace(ir=ir, passes=passes, nvidia=nvidia)


def test_a_form_is_read_from_the_reproducer_of_a_pass_that_dies() -> None:
    answer = form_of(library([]), "passes.ttgpuir.add_p", [3])
    assert answer == {"status": "ok", "value": "builtin.module(any(p{n=3}))"}


def test_a_binding_that_refuses_says_so() -> None:
    answer = form_of(library([]), "nvidia.passes.add_q", [])
    assert answer["status"] == "failed"


def test_every_binding_is_found() -> None:
    found = [f"{path}.{name}" for _, path, name in libtriton.bindings_of(library([]))]
    assert found == ["nvidia.passes.add_q", "passes.ttgpuir.add_p"]
