"""What `ptxas -v` says, and which of its runs is believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.compiler.resources import elf_maker
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import PtxasReport
from tritonsmith.core.errors import FactError
from tritonsmith.ir import gpu_binary

SAID = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'kern' for 'sm_90a'
ptxas info    : Function properties for kern
    64 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 64 bytes cumulative stack size, 408 bytes cmem[0]
"""
PTX = ".target sm_90a\n.visible .entry kern()\n{\n\t.local .align 4 .b8 \t__local_depot0[28];\n}\n"


def test_parse() -> None:
    assert measure.parse_report(SAID) == PtxasReport(registers=40, frame=64, stores=24, loads=32)
    with pytest.raises(FactError, match="has no kernel"):
        measure.parse_report("ptxas fatal   : no such file")


def test_arrays() -> None:
    assert measure.has_arrays(PTX)
    assert not measure.has_arrays("ld.local.b32 %r1, [%rd1];\n// .local\n")


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A Triton whose ptxas says what it is asked with, and spills less without -lineinfo."""
    programs = tmp_path / "triton" / "backends" / "nvidia" / "bin"
    programs.mkdir(parents=True)
    script = f"""#!/bin/sh
echo "$@" >> {tmp_path}/calls
frame=64
case "$*" in *regAllocOptLevel*) frame=72;; esac
cat >&2 <<END
{SAID.replace("64 bytes stack frame", "$frame bytes stack frame")}END
"""
    (programs / "ptxas").write_text(script, encoding="utf-8")
    (programs / "ptxas").chmod(0o755)
    (tmp_path / "kern.ptx").write_text(PTX, encoding="utf-8")
    return tmp_path / "triton"


def ask(tmp_path: Path, origin: Path, frame: int, **metadata: object) -> tuple[PtxasReport | None, list[str]]:
    kernel = gpu_binary.read_cubin(gpu_binary.parse(elf_maker.cubin(registers=40, frame=frame)))
    said = measure.assemble_again(tmp_path / "kern.ptx", kernel, origin, metadata)
    calls = tmp_path / "calls"
    return said, calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []


def test_the_run_that_makes_the_same_kernel_is_believed(tmp_path: Path, origin: Path) -> None:
    said, calls = ask(tmp_path, origin, 72, enable_fp_fusion=False, ptx_options="--opt-level 1")
    assert said == PtxasReport(40, 72, 24, 32)
    rest = f"--fmad=false --opt-level 1 --gpu-name=sm_90a {tmp_path / 'kern.ptx'} -o /dev/null"
    assert calls == [f"-v -lineinfo {rest}", f"-v -lineinfo --regAllocOptLevel=2 {rest}"]


@pytest.mark.parametrize(
    "options",
    [
        "-o /tmp/x",
        "--output-file=x",
        "--output x",
        "-optf x",
        "--options-file x",
        "-ox",
        "../x",
        "/etc/passwd",
        "a\x1bb",
    ],
)
def test_an_option_of_a_stranger_names_no_file(tmp_path: Path, origin: Path, options: str) -> None:
    assert ask(tmp_path, origin, 72, ptx_options=options) == (None, [])


def test_without_a_triton_of_ours_no_program_runs(tmp_path: Path, origin: Path) -> None:
    kernel = gpu_binary.read_cubin(gpu_binary.parse(elf_maker.cubin(registers=40, frame=64)))
    assert origin.is_dir()
    assert measure.assemble_again(tmp_path / "kern.ptx", kernel, None, {}) is None
    assert not (tmp_path / "calls").exists()


def test_none_is_believed_that_makes_another(tmp_path: Path, origin: Path) -> None:
    said, calls = ask(tmp_path, origin, 80)
    assert said is None
    assert len(calls) == 3


def test_without_a_ptxas_nothing_is_said(
    tmp_path: Path, origin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (origin / "backends" / "nvidia" / "bin" / "ptxas").unlink()
    assert ask(tmp_path, origin, 64) == (None, [])
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(tmp_path / "not there"))
    assert ask(tmp_path, origin, 64) == (None, [])


def test_a_ptx_without_a_target_is_not_assembled(tmp_path: Path, origin: Path) -> None:
    (tmp_path / "kern.ptx").write_text("", encoding="utf-8")
    assert ask(tmp_path, origin, 64) == (None, [])
