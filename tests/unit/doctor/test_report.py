from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from tests.unit.doctor.test_check import ALL
from tests.unit.facts import fakes
from tests.unit.facts.installs import install, put, site_of
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.doctor import report, run
from tritonsmith.doctor.check import Check, DoctorContext, Finding, ok
from tritonsmith.facts.gpus import Driver, Gpu, Gpus


def lines(what: RenderableType, width: int = 200) -> list[str]:
    """What is seen of it, without the blanks at the ends of lines."""
    file = io.StringIO()
    Console(file=file, width=width, emoji=False, highlight=False, soft_wrap=True).print(what)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_counts_have_an_order_of_their_own() -> None:
    assert report.counts(tuple(reversed(ALL))) == (
        "doctor: 1 ok, 1 not applicable, 1 note, 1 warning, 1 error, 1 crashed"
    )
    assert report.counts(ALL[1:2] * 3) == "doctor: 3 ok"
    assert report.counts(()) == "doctor: nothing was checked"


def test_the_summary_lists_what_is_wrong() -> None:
    assert lines(report.summary(ALL))[1:] == [
        "  warning: machine.memory: 2 GiB. or [x]",
        "  error: builds.llvm: a link to nowhere. link it; do this; then that",
        "  crashed: builds.triton: KeyError: 'x'.",
    ]


def test_the_screen_says_what_is_well_in_one_line_and_what_is_not_with_what_to_do() -> None:
    assert lines(report.screen(ALL)) == [
        "",
        "builds",
        "  · cmake-paths       nothing to look at",
        "",
        "tools",
        "  ✓ cmake             3.31  /usr/bin/cmake",
        "  i ccache            not installed",
        "                      slow",
        "                      fix: install it",
        "",
        "machine",
        "  ! memory            2 GiB",
        "                      killed",
        "                      fix: or [x]",
        "                      more: invoke doctor --explain machine.memory",
        "",
        "builds",
        "  ✗ llvm              a link to nowhere  /src",
        "                      no build",
        "                      fix: link it",
        "                      $ do this",
        "                      $ then that",
        "                      more: invoke doctor --explain builds.llvm",
        "  ✗ triton            KeyError: 'x'",
        "                      more: invoke doctor --explain builds.triton",
    ]


def test_a_long_path_is_not_broken_in_a_narrow_window() -> None:
    path = "/home/me/a folder/" + "x" * 200
    shown = lines(report.screen((Finding("ok", "seen", path, check="tools.cmake"),)), width=40)
    assert shown[-1] == " " * 20 + "  " + path


def test_long_lines_wrap_below_the_finding() -> None:
    command = (
        "invoke setup-mlir --env debug --llvm-dir '/opt/a folder/llvm-19' --any-commit --provider system"
    )
    found = Finding("error", "a wheel " * 12, "/src", "words " * 20, commands=(command,), check="tools.cmake")
    shown = lines(report.screen((found,)), width=80)
    assert all(len(line) <= 80 for line in shown)
    assert all(line.startswith(" " * 22) for line in shown[3:])
    begin = next(number for number, line in enumerate(shown) if "$ " in line)
    typed = "\n".join(shown[begin:-1]).strip().removeprefix("$ ").replace("\\\n", "")
    assert shlex.split(typed) == shlex.split(command)


def test_the_screen_of_nothing() -> None:
    assert lines(report.screen(())) == []


def test_the_listing_has_every_check() -> None:
    deep = Check("python.import", "whether it loads", lambda _: (), deep=True)
    shown = [line.split("  ") for line in lines(report.listing((*run.ALL, deep)))]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in shown]
    assert all([check.id, check.title] in cells for check in run.ALL if not check.deep)
    assert ["python.import", "--deep", "whether it loads"] in cells


def test_what_had_nothing_to_look_at_may_be_named_in_one_line() -> None:
    idle = Finding("not applicable", "no checkout", check="sources.pins")
    both = (Finding("ok", "fine", check="sources.llvm"), idle, replace(idle, check="sources.branches"))
    assert lines(report.screen(both, whole=False)) == [
        "",
        "sources",
        "  ✓ llvm              fine",
        "  · not applicable: pins, branches",
    ]
    assert "  · pins              no checkout" in lines(report.screen(both))


# Every field of env_info_fmt in PyTorch's torch/utils/collect_env.py, and where this report says it.
COLLECT_ENV = {
    "PyTorch version": "| PyTorch | 2.13.0+cpu, git cf30153c",
    "Is debug build": "debug False",
    "CUDA used to build PyTorch": "cuda none",
    "ROCM used to build PyTorch": "hip none",
    "OS": "| OS |",
    "GCC version": "g++ 12.2.0",
    "Clang version": "clang++ 19.1.7",
    "CMake version": "cmake 3",
    "Libc version": "| Libc | glibc",
    "Python version": "| Python | 3.",
    "Python platform": "linux-",
    "Is CUDA available": "| PyTorch says |",
    "CUDA runtime version": "| CUDA runtime | nvidia-cuda-runtime-cu12 12.8.90",
    "CUDA_MODULE_LOADING set to": "| CUDA_MODULE_LOADING | LAZY |",
    "GPU models and configuration": "NVIDIA H200 (9.0, 140 GiB)",
    "Nvidia driver version": "| NVIDIA driver | 580.1, CUDA 13.0",
    "cuDNN version": "| cuDNN | nvidia-cudnn-cu12 9.10.2.21 |",
    "Is XPU available": "| PyTorch says |",
    "HIP runtime version": "| HIP runtime | 6.4.43482, ROCm 6.4.0 |",
    "MIOpen runtime version": "| MIOpen | 3.4.0 |",
    "Is XNNPACK available": "| PyTorch says |",
    "Caching allocator config": "| Caching allocator | PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True |",
    "CPU": "| CPU |",
    "CPU topology": "| CPU topology | sockets: ",
    "CPU flags": "| CPU vectors |",
    "pip_packages": "numpy 2.0.0",
    "conda_packages": "| Conda packages | cudatoolkit 11.8.0, mkl 2023.1.0 |",
}
TORCH = """from typing import Optional
__version__ = '2.13.0+cpu'
debug = False
cuda: Optional[str] = None
git_version = 'cf30153c4c131c8164ee7798e5022d810682e2cb'
hip: Optional[str] = None
"""


ROCM = {
    ".info/version": "6.4.0\n",
    "include/hip/hip_version.h": (
        "#define HIP_VERSION_MAJOR 6\n#define HIP_VERSION_MINOR 4\n#define HIP_VERSION_PATCH 43482\n"
    ),
    "include/miopen/version.h": (
        "#define MIOPEN_VERSION_MAJOR 3\n#define MIOPEN_VERSION_MINOR 4\n#define MIOPEN_VERSION_PATCH 0\n"
    ),
}


@pytest.fixture
def subject(home: Path, monkeypatch: pytest.MonkeyPatch) -> DoctorContext:
    """A checkout, two compilers, and a real Python environment with a torch of two files, below home."""
    for name, version in (("g++", "g++ (Debian 12.2.0-14) 12.2.0"), ("clang++", "clang version 19.1.7")):
        put(home / "bin", {name: f"#!/bin/sh\necho '{version}'\n"})
        (home / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join((str(home / "bin"), os.environ["PATH"])))
    venv = home / "venv"
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", venv), check=True)
    site = site_of(venv)
    install(site, "torch", "2.13.0+cpu", {"torch/__init__.py": "", "torch/version.py": TORCH})
    install(site, "numpy", "2.0.0", {"numpy/__init__.py": ""})
    install(site, "secretlib", "1.0", {"secretlib/__init__.py": ""})
    install(site, "nvidia_cudnn_cu12", "9.10.2.21")
    install(site, "nvidia_cuda_runtime_cu12", "12.8.90")
    put(venv, {f"conda-meta/{name}-0.json": "" for name in ("cudatoolkit-11.8.0", "mkl-2023.1.0", "xz-5")})
    put(home / "rocm", ROCM)
    checkout = fakes.checkout(home / "src" / "triton", "3.5")
    environ = {
        "TRITON_CACHE_DIR": f"{home}/cache",
        "MLIR_ENABLE_DUMP": "1",
        "CUDA_MODULE_LOADING": "LAZY",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "ROCM_PATH": f"{home}/rocm",
        "TRITON_DUMP_DIR": "/data/my secret dir/x",
        "MY_TOKEN": "hunter2",
    }
    looked = DoctorContext(
        Settings("dev"), Workspace(home / "workspace"), environ, python=venv / "bin" / "python", cwd=checkout
    )
    gpu = Gpu("nvidia", "NVIDIA H200", "9.0", 140 << 30)
    looked.gpus = Gpus((gpu,), Driver("580.1", "13.0"))
    return looked


def test_a_superset_of_what_pytorch_asks_for(subject: DoctorContext) -> None:
    text = report.for_issue(subject, ())
    missing = {what for what, words in COLLECT_ENV.items() if words not in text}
    assert missing == set()


def test_what_triton_is_asked_for_too(subject: DoctorContext) -> None:
    text = report.for_issue(subject, ())
    assert f"| Triton checkout | 3.5.0 at no commit; LLVM pins: core {fakes.HASH[:12]} |" in text
    assert "| Triton installed | none |" in text
    assert "`MLIR_ENABLE_DUMP=1`" in text
    assert "`CUDA_MODULE_LOADING=LAZY`" in text


def test_nobody_is_named(subject: DoctorContext, home: Path) -> None:
    found = Finding(
        "warning", f"seen in {home}/private", f"{home}/src/triton/x", affects="a", check="tools.x"
    )
    text = report.for_issue(subject, (found,))
    assert str(home) not in text
    assert "hunter2" not in text
    assert "secretlib" not in text
    assert "`TRITON_CACHE_DIR=~/cache`" in text
    assert "(`$TRITON/x`)" in text


def test_a_path_with_a_space_shows_its_last_part(subject: DoctorContext) -> None:
    found = Finding("warning", "seen", "/data/my secret dir/y", affects="a", check="tools.x")
    text = report.for_issue(subject, (found,))
    assert "`TRITON_DUMP_DIR=…/x`" in text
    assert "(`…/y`)" in text
    assert "secret dir" not in text


def test_what_is_not_set(subject: DoctorContext) -> None:
    subject.environ = {"ROCM_PATH": "/no/such/rocm"}
    text = report.for_issue(subject, ())
    assert "| CUDA_MODULE_LOADING | not set (LAZY is the default) |" in text
    assert "| Caching allocator | not set |" in text
    assert "| HIP runtime | none found |" in text


def test_findings_follow_and_what_is_well_is_counted(subject: DoctorContext) -> None:
    wrong = Finding("error", "broken", affects="all", check="builds.triton")
    text = report.for_issue(subject, (ok("fine"), wrong))
    assert text.startswith("<details><summary>doctor: 1 ok, 1 error (tritonsmith ")
    assert "- **error** `builds.triton`: broken\n  affects: all" in text
    assert "fine" not in text
    assert text.endswith("</details>")
    assert "No check found a problem." in report.for_issue(subject, (ok("fine"),))


def test_a_pipe_does_not_end_a_cell(subject: DoctorContext) -> None:
    subject.environ = {"TRITON_X": "a|b\nc"}
    assert r"`TRITON_X=a\|b c`" in report.for_issue(subject, ())


def test_deep_asks_torch_itself(subject: DoctorContext, home: Path) -> None:
    """The modules are laid out as torch's are; that a real one answers is seen by hand (200 MB)."""
    torch = site_of(home / "venv") / "torch"
    silent = "class _No:\n    hip = None\n    is_available = staticmethod(lambda: False)\n"
    (torch / "__init__.py").write_text(f"{silent}cuda = version = _No()\n")
    (torch / "backends").mkdir()
    (torch / "backends" / "__init__.py").touch()
    (torch / "backends" / "cudnn.py").write_text("def is_available(): return False\n")
    (torch / "backends" / "xnnpack.py").write_text("enabled = True\n")
    assert "not queried" in report.for_issue(subject, ())
    text = report.for_issue(subject, (), deep=True)
    assert "CUDA available: False, XPU available: False, cuDNN: None, XNNPACK available: True" in text


def test_a_torch_that_does_not_answer(subject: DoctorContext, home: Path) -> None:
    (site_of(home / "venv") / "torch" / "__init__.py").write_text("raise ImportError('libcudart')")
    assert "| PyTorch says | torch cannot be imported" in report.for_issue(subject, (), deep=True)
