"""C sources beside upstream's own, for each release: names, C types and suffixes changed between them.

Needs TRITONSMITH_TRITON_WHEELS: a folder with one virtual environment for each version, named by it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.aot import comparing
from tests.integration.aot.comparing import GRIDS, KERNELS, SIGNATURES, STAGES, WARPS, Upstream
from tests.real.test_kernels import COMMITS, python
from tests.support import require
from tritonsmith.compiler import run, targets
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.inspect import export_c as emit

OWN_TYPES = ("3.0.0", "3.2.0", "3.4.0", "3.6.0")  # link.py writes CUresult, and ours TT_ResultTy, since 3.7


def made(version: str, kernel: str, target: str, out: Path) -> Path:
    """Our sources."""
    where = choose_interpreter("wheel", str(python(version)), jobs=1)
    options = {"num_warps": int(WARPS), "num_stages": int(STAGES)}
    asked = [
        CompileRequest(KERNELS, kernel, text, targets.parse_all([target]), options)
        for text in SIGNATURES[kernel]
    ]
    found = [run.execute(one, where, silent=True).manifest for one in emit.prepare_compiles(asked, where)]
    emit.execute(emit.prepare(found, GRIDS[kernel], out, check=True))
    return out


@pytest.mark.parametrize("kernel", GRIDS)
@pytest.mark.parametrize("version", COMMITS)
def test_nvidia(version: str, kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("cc")
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "space"))
    with comparing.tools(python(version), tmp_path / "work") as tools:
        _compare_nvidia(Upstream(tools, "cuda:80:32"), version, kernel, tmp_path)


def _compare_nvidia(upstream: Upstream, version: str, kernel: str, tmp_path: Path) -> None:
    headers = upstream.compile(kernel, tmp_path / "theirs")
    mine = made(version, kernel, "cuda:80:32", tmp_path / "ours")
    for path in headers:
        assert comparing.declarations(mine / path.name) == comparing.declarations(path)
        source = path.with_suffix(".c")
        assert comparing.content(mine / source.name) == comparing.content(source)
    upstream.link(headers, tmp_path / "theirs" / kernel)
    upstream.link([mine / path.name for path in headers], tmp_path / "linked" / kernel)
    for suffix in ("c", "h"):
        linked = tmp_path / "linked" / f"{kernel}.{suffix}"
        assert linked.read_bytes() == (tmp_path / "theirs" / f"{kernel}.{suffix}").read_bytes()
    ours = comparing.declarations(mine / f"{kernel}.h")
    if version in OWN_TYPES:
        ours = ours.replace("TT_ResultTy", "CUresult").replace("TT_StreamTy", "CUstream")
    theirs = comparing.declarations(tmp_path / "theirs" / f"{kernel}.h")
    counted = f"int {kernel}_get_num_algos(void);"
    assert ours.split(counted) == theirs.split(counted)


@pytest.mark.parametrize("kernel", GRIDS)
def test_amd_before_its_sources_were_c(kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """3.6: C++ sources, and nothing for the linker."""
    require("cc")
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "space"))
    with comparing.tools(python("3.6.0"), tmp_path / "work") as tools:
        headers = Upstream(tools, "hip:gfx942:64").compile(kernel, tmp_path / "theirs")
    mine = made("3.6.0", kernel, "gfx942", tmp_path / "ours")
    for path in headers:
        lines = comparing.declarations(mine / path.name).splitlines()
        plain = [line for line in lines if "tt-linker" not in line]
        assert plain == comparing.declarations(path).splitlines()
        source = mine / path.with_suffix(".c").name
        assert comparing.content(source) == comparing.content(path.with_suffix(".cpp"))
