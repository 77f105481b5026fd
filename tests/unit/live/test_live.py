"""A compiled kernel in this process: its texts, its resources, and how they look."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.unit.compiler.resources import elf_maker
from tritonsmith import live
from tritonsmith.compiler.resources.measure import Measured
from tritonsmith.core.errors import UsageError
from tritonsmith.live import stages
from tritonsmith.live.stages import KernelView

TTGIR = "module {\n  tt.func @add(%x: !tt.ptr<f32>)\n}\n"


class Compiled:
    """What Triton returns, as far as it is looked at."""

    def __init__(self, **more: Any) -> None:
        spilling = elf_maker.cubin(frame=8, code=elf_maker.access(0x387, 5))
        self.asm = {"ttgir": TTGIR, "ptx": "// <ptx>\n", "cubin": spilling, "odd": 3}
        target = SimpleNamespace(backend="cuda", arch=80, warp_size=32)
        table = {"name": "add", "target": target, "shared": 1 << 20, "num_warps": 4, **more}
        self.metadata = SimpleNamespace(_asdict=lambda: table)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))  # no disassembler


def test_texts_and_resources() -> None:
    found = stages.of_compiled(Compiled())
    assert (found.name, found.target) == ("add", "cuda:80:32")
    assert dict(found.texts) == {"ttgir": TTGIR, "ptx": "// <ptx>\n"}
    assert found.text("ttgir") == TTGIR
    with pytest.raises(UsageError, match="add has no stage 'ptxx'") as caught:
        found.text("ptxx")
    assert caught.value.hints[0] == "did you mean 'ptx'?"


def test_resources_are_a_table_and_a_mapping() -> None:
    found = live.resources(Compiled())
    assert found["spill_store_bytes"] == 8
    assert len(found) == len(list(found)) == len(dict(found))
    assert "spill stores B/thread" in repr(found)
    assert "warning: live: cannot launch: shared" in repr(found)
    html = found._repr_html_()
    assert "<td style='text-align:left'>spill stores B/thread</td><td>8</td>" in html
    assert "cannot launch: shared 1048576 &gt;" in html


def test_a_script_prints(capsys: pytest.CaptureFixture[str]) -> None:
    live.show(Compiled())
    said = capsys.readouterr().out
    assert said.startswith("add, cuda:80:32\nttgir 3 lines, ptx 1 lines\n")
    assert "registers per thread" in said
    live.show(Compiled(), "ttgir")
    assert capsys.readouterr().out == TTGIR


def test_a_notebook_displays(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    for name in ("IPython", "IPython.display"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", object, raising=False)
    monkeypatch.setattr(sys.modules["IPython.display"], "display", shown.append, raising=False)
    live.show(Compiled())
    (view,) = shown
    html = view._repr_html_()
    assert "<details open><summary>ttgir, 3 lines</summary>" in html
    assert "<details><summary>ptx, 1 lines</summary>" in html
    assert "// &lt;ptx&gt;" in html


def test_a_kernel_that_did_not_compile_shows_why() -> None:
    (row,) = stages.of_compiled(Compiled()).resources.rows
    assert row.error == ""
    failed = stages.KernelStages("add", "cuda:80:32", {}, Measured((row,)), "at 2:3: <no>")
    assert repr(KernelView(failed)) == "add, cuda:80:32\nat 2:3: <no>"
    assert "at 2:3: &lt;no&gt;" in KernelView(failed)._repr_html_()


@pytest.mark.parametrize("what", [None, 3, lambda: 3])
def test_what_is_no_compiled_kernel(what: Any) -> None:
    with pytest.raises(TypeError, match=r"a compiled kernel is what kernel\[grid\]"):
        live.show(what)
