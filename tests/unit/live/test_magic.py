"""`%%triton_stages` in a shell that stands for IPython's: what it runs, what it shows, what it refuses."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tritonsmith
from tests.unit.live.test_live import Compiled
from tritonsmith.compiler import run, source
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.live import magic
from tritonsmith.live.stages import KernelView

KERNEL = "@triton.jit\ndef add(x, BLOCK: tl.constexpr):\n    pass\n"


class JITFunction:
    """Triton's, as far as it is patched."""

    __name__ = "add"

    def run(self, compiled: Any) -> Any:
        return compiled


class Shell:
    """IPython's, as far as it is used."""

    def __init__(self) -> None:
        self.magics: dict[str, Any] = {}
        self.success = True
        self.history_manager = SimpleNamespace(input_hist_raw=["", "import triton"])

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        assert kind == "cell"
        self.magics[name] = function

    def run_cell(self, text: str) -> Any:
        exec(text, {"launch": JITFunction().run, "Compiled": Compiled})  # noqa: S102
        return SimpleNamespace(success=self.success)

    def cell(self, line: str, text: str) -> None:
        """Run a cell with the magic above it."""
        self.history_manager.input_hist_raw.append(f"%%triton_stages {line}\n{text}")
        self.magics["triton_stages"](line, text)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell with the extension, and a Triton that only launches."""
    for name in ("triton", "triton.runtime", "triton.runtime.jit"):
        module = ModuleType(name)
        module.__spec__ = SimpleNamespace(name=name)  # type: ignore[assignment]
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys.modules["triton.runtime.jit"], "JITFunction", JITFunction, raising=False)
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    made = Shell()
    tritonsmith.load_ipython_extension(made)
    return made


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[KernelView]:
    """What is displayed."""
    found: list[KernelView] = []
    monkeypatch.setattr(magic, "display", found.append)
    return found


def test_the_last_launch_of_each_kernel_is_shown(shell: Shell, shown: list[KernelView]) -> None:
    before = JITFunction.run
    shell.cell("--stage ttgir", "launch(Compiled(name='first'))\nlaunch(None)\nlaunch(Compiled())")
    (one,) = shown
    assert repr(one).startswith("add, cuda:80:32\nttgir 3 lines\n")
    assert JITFunction.run is before


def test_a_kernel_is_compiled_with_what_earlier_cells_define(
    shell: Shell, shown: list[KernelView], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[CompileRequest] = []

    def prepare(one: CompileRequest, where: Interpreter) -> None:
        assert where.python == Path(sys.executable)
        asked.append(one)

    monkeypatch.setattr(run, "prepare", prepare)
    done = SimpleNamespace(notes=["a note"], manifest=SimpleNamespace(points=()))
    monkeypatch.setattr(run, "execute", lambda *_, **__: done)
    monkeypatch.setattr(shell, "run_cell", lambda _: SimpleNamespace(success=True))
    shell.cell("--signature '*fp32,64' --num-warps 8", KERNEL)
    (one,) = asked
    assert (one.kernel, one.signature, one.options) == ("add", "*fp32,64", {"num_warps": 8})
    assert list(map(str, one.targets)) == ["cuda:90:32"]
    text = source.read(one.file)
    assert "# made from this notebook" in text
    line = "# %%triton_stages --signature '*fp32,64' --num-warps 8"
    assert text.endswith(f"# %% cell 1\nimport triton\n# %% cell 2\n{line}\n{KERNEL}\n")
    assert shown == []


def test_a_cell_that_fails_is_ipythons_matter(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.success = False
    shell.cell("", "pass")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "this cell launches no kernel"),
        ("--stage ptxx", "did you mean 'ptx'?"),
        ("--signatur 3", "No idea what"),
        ("--target h1000", "h100"),
        ("--signature i32", "this file has no kernel"),
    ],
)
def test_what_is_refused(shell: Shell, line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    shell.cell(line, "pass")
    assert words in capsys.readouterr().err
