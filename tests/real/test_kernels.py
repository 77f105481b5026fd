"""The kernels of upstream's tutorials, with released wheels, without torch and without a GPU.

Needs TRITONSMITH_TRITON_SOURCE (a clone of Triton) and TRITONSMITH_TRITON_WHEELS: a folder with one virtual
environment for each version, named by it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.real import tutorials
from tests.support import REAL_SOURCE
from tritonsmith.compiler import run, source, targets
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.errors import SmithError

WHEELS = "TRITONSMITH_TRITON_WHEELS"
COMMITS = {  # what each release was cut from, or main shortly before: docs/pins.md
    "3.0.0": "513f38c47",
    "3.2.0": "152ef2deb",
    "3.4.0": "5389ed797",
    "3.6.0": "004d7f5f5",
    "3.9.0": "63068fcc27",
}
# Kernels that came with a later version.
SINCE = {
    ("09", "matmul_kernel"): "3.2.0",
    ("09", "matmul_kernel_persistent"): "3.2.0",
    ("09", "matmul_kernel_tma"): "3.4.0",
    ("09", "matmul_kernel_descriptor_persistent"): "3.4.0",
}


def python(version: str) -> Path:
    """The interpreter that has a version."""
    folder = os.environ.get(WHEELS)
    if not folder:
        pytest.skip(f"{WHEELS} names no folder of environments")
    found = Path(folder) / version / "bin" / "python"
    if not found.exists():
        pytest.skip(f"{WHEELS} has no {version}")
    return found


def tutorial(version: str, number: str, folder: Path) -> Path:
    """A tutorial as it was then."""
    clone = os.environ.get(REAL_SOURCE)
    if not clone:
        pytest.skip(f"{REAL_SOURCE} names no checkout of Triton")
    git = ("git", "-C", clone)
    listing = (*git, "ls-tree", "--name-only", COMMITS[version], "python/tutorials/")
    names = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split()
    (name,) = [name for name in names if name.startswith(f"python/tutorials/{number}-")]
    content = subprocess.run(
        (*git, "show", f"{COMMITS[version]}:{name}"), check=True, capture_output=True
    ).stdout
    file = folder / Path(name).name
    file.write_bytes(content)
    return file


@pytest.mark.parametrize(("number", "name"), tutorials.KERNELS)
@pytest.mark.parametrize("version", COMMITS)
def test_a_tutorials_kernel(
    version: str, number: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version < SINCE.get((number, name), "3.0.0"):
        return
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "space"))
    where = choose_interpreter("wheel", str(python(version)))
    file = tutorial(version, number, tmp_path)
    kernel = source.find(source.read(file), name, file)
    assert kernel is not None
    wanted = targets.parse_all(["a100", "h100", "mi300x"])
    asked = CompileRequest(file, name, tutorials.signature(number, kernel), wanted)
    made = run.compile_all(asked, where, tmp_path / "out", silent=True)
    assert made.triton == version
    for point in made.points:
        assert point.status == "ok", point.error
        binary = "hsaco" if point.backend == "hip" else "cubin"
        path = made.path(point, binary)
        assert path is not None
        assert path.read_bytes().startswith(b"\x7fELF")


@pytest.mark.parametrize("version", COMMITS)
def test_a_kernel_that_does_not_compile_shows_its_line(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "space"))
    where = choose_interpreter("wheel", str(python(version)))
    file = tmp_path / "k.py"
    file.write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(p, N: tl.constexpr):\n"
        "    x = tl.arange(0, N)\n    tl.store(p + x, x)\n"
    )
    made = run.compile_all(
        CompileRequest(file, "k", "*i32,63", targets.parse_all(["a100"])),
        where,
        tmp_path / "out",
        silent=True,
    )
    (point,) = made.points
    assert point.status == "failed"
    assert f"{file}:6" in point.error
    assert "power of 2" in point.error
    strange = CompileRequest(file, "k", "*i32,64", targets.parse_all(["a100"]), {"maxnregg": 3})
    with pytest.raises(SmithError, match="maxnregg"):
        run.compile_all(strange, where, silent=True)
