"""What gdb and lldb are told of a build folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.compiler import debugger_init
from tritonsmith.core.plan import Write

BUILD = Path('/ws/en vs/de"v/triton')


@pytest.fixture
def llvm(tmp_path: Path) -> Path:
    """Sources of an LLVM that has every printer but lldb's of MLIR, which came later."""
    source = tmp_path / "llvm project"
    for name in (
        "llvm/utils/gdb-scripts/prettyprinters.py",
        "mlir/utils/gdb-scripts/prettyprinters.py",
        "llvm/utils/lldbDataFormatters.py",
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).touch()
    return source


def written(*, relative: bool, llvm: Path | None) -> dict[str, list[str]]:
    """Name of each file to its lines, comments left out."""
    steps = debugger_init.steps(BUILD, relative=relative, llvm=llvm, phase="x")
    files = {step.path: step.text.splitlines() for step in steps if isinstance(step, Write)}
    assert {path.parent for path in files} <= {BUILD}
    return {path.name: [line for line in lines if not line.startswith("#")] for path, lines in files.items()}


def test_nothing_to_tell() -> None:
    assert debugger_init.steps(BUILD, relative=False, llvm=None, phase="x") == ()
    assert debugger_init.steps(BUILD, relative=False, llvm=Path("/gone"), phase="x") == ()


def test_relative_debug_info() -> None:
    told = written(relative=True, llvm=None)
    assert told["gdbinit"][0] == 'directory "/ws/en vs/de\\"v/triton"'
    assert "set debug-file-directory" in told["gdbinit"][1]
    assert told["lldbinit"][0] == 'settings append target.source-map . "/ws/en vs/de\\"v/triton"'


def test_the_printers_that_this_llvm_has(llvm: Path) -> None:
    told = written(relative=False, llvm=llvm)
    assert told["gdbinit"] == [
        f"source {llvm}/llvm/utils/gdb-scripts/prettyprinters.py",
        f"source {llvm}/mlir/utils/gdb-scripts/prettyprinters.py",
    ]
    assert told["lldbinit"] == [f'command script import "{llvm}/llvm/utils/lldbDataFormatters.py"']


def test_folders_come_before_printers(llvm: Path) -> None:
    told = written(relative=True, llvm=llvm)
    assert [len(lines) for lines in told.values()] == [4, 3]
    assert told["gdbinit"][-1].endswith("prettyprinters.py")
