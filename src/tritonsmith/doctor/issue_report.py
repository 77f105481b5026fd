"""`doctor --report`: one Markdown block for an issue, with everything upstream's issue template requires.

It has every field of PyTorch's `torch/utils/collect_env.py` (for the processor only those relevant to a
compiler), and is collected without importing torch.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Iterator

from tritonsmith import __version__
from tritonsmith.core.plan.process import capture
from tritonsmith.core.ui import redact as ui_redact
from tritonsmith.doctor import hardware, redact, report
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding
from tritonsmith.doctor.redact import Redactor
from tritonsmith.facts import gpu_runtimes, tools, torch_install

# The packages that collect_env.py lists, and those that Triton is built and used with.
_PACKAGES = re.compile(
    r"torch|triton|numpy|optree|jax|onnx|mypy|flake8|pybind11|nanobind|^(lit|cmake|ninja)$"
    r"|nvidia|cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|nccl|nvjitlink|nvtx|magma|soumith"
    r"|rocm|^hip|miopen|intel|mkl|dpcpp|^tbb|^impi-|oneccl|^umf$|^tcmlib"
)
_VARIABLES = re.compile(
    r"^(TRITON|MLIR|LLVM|AMDGCN|NVPTX|CUDA|HIP|ROCR|ROCM|PYTORCH|TORCH|DISABLE_|PTXAS|LD_LIBRARY_PATH|CC$|CXX$|MAX_JOBS)"
)

# Runs in the interpreter under test, and only with --deep: the only part that imports torch.
_ASK = """
import json, torch, torch.backends.cudnn, torch.backends.xnnpack
b = torch.backends
print(json.dumps({
    "CUDA available": torch.cuda.is_available(),
    "XPU available": hasattr(torch, "xpu") and torch.xpu.is_available(),
    "cuDNN": b.cudnn.version() if b.cudnn.is_available() else None,
    "XNNPACK available": b.xnnpack.enabled,
    "MIOpen": b.cudnn.version() if torch.version.hip and b.cudnn.is_available() else None,
}))
"""


def render(subject: DoctorContext, findings: tuple[Finding, ...], *, deep: bool = False) -> str:
    """Render the Markdown block; `deep` also queries the interpreter's torch, which imports it."""
    folders = {subject.space.root: "$TRITONSMITH_HOME"}
    folders |= {subject.checkout.root: "$TRITON"} if subject.checkout else {}
    hide = redact.redactor(folders)
    rows = [f"| {name} | {_cell(value)} |" for name, value in _rows(subject, hide, deep=deep) if value]
    wrong = [line for finding in findings for line in _finding(finding, hide)]
    lines = [
        f"<details><summary>{report.counts(findings)} (tritonsmith {__version__})</summary>",
        "",
        "| what | |",
        "|---|---|",
        *rows,
        "",
        *(wrong or ["No check found a problem."]),
        "",
        "</details>",
    ]
    return hide("\n".join(lines))


def _finding(finding: Finding, hide: Redactor) -> Iterator[str]:
    if finding.status in ("ok", "not applicable"):
        return
    where = f" (`{hide.path(finding.where)}`)" if finding.where else ""
    yield f"- **{finding.status}** `{finding.check}`: {finding.seen}{where}"
    if finding.affects:
        yield f"  affects: {finding.affects}"


def _rows(subject: DoctorContext, hide: Redactor, *, deep: bool) -> Iterator[tuple[str, str]]:
    yield from hardware.rows(subject)
    yield from _compilers(subject)
    yield from _triton(subject)
    yield from _torch(subject, deep=deep)
    shown = [
        f"`{name}={hide.path(ui_redact.variable(name, value))}`"
        for name, value in sorted(subject.environ.items())
        if _VARIABLES.match(name)
    ]
    yield "Variables", ", ".join(shown) or "none set"
    python = subject.packages
    yield "Packages", _picked(python.dists if python else ())
    yield "Conda packages", _picked(gpu_runtimes.conda(python.prefix) if python else ())


def _picked(packages: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {version}" for name, version in packages if _PACKAGES.search(name))


def _compilers(subject: DoctorContext) -> Iterator[tuple[str, str]]:
    gcc = tools.find("g++")
    programs = [*subject.programs.values(), gcc, tools.find("nvcc"), tools.find("hipcc")]
    yield "Tools", ", ".join(f"{tool.name} {tool.version or '?'}" for tool in programs if tool)


def _triton(subject: DoctorContext) -> Iterator[tuple[str, str]]:
    python = subject.packages
    if python:
        kind = platform.architecture()[0]
        yield "Python", f"{python.version} ({kind}), {python.platform}, `{python.executable}`"
        versions = dict(python.dists)
        yield (
            "Triton installed",
            ", ".join(f"{name} {versions[name]}" for name in python.triton_owners) or "none",
        )
    tree = subject.checkout
    if tree:
        pins = ", ".join(f"{pin.role} {pin.commit[:12]}" for pin in tree.pins)
        changed = ", changed" if tree.dirty else ""
        yield "Triton checkout", f"{tree.version} at {tree.commit or 'no commit'}{changed}; LLVM pins: {pins}"
    if subject.llvm:
        llvm = subject.llvm
        assertions = "on" if llvm.assertions else "off"
        description = f"{llvm.version} {llvm.commit}, {llvm.build_type}, assertions {assertions}"
        yield "LLVM in use", f"{description}, `{llvm.prefix}`"


def _torch(subject: DoctorContext, *, deep: bool) -> Iterator[tuple[str, str]]:
    python = subject.packages
    torch = torch_install.read(python) if python else None
    if python is None or torch is None:
        yield "PyTorch", "not installed"
        return
    yield "PyTorch", f"{torch.version}, git {torch.git_version or '?'}, debug {torch.debug or '?'}"
    built = {"cuda": torch.cuda, "hip": torch.hip, "xpu": torch.xpu}
    yield "PyTorch built for", ", ".join(f"{name} {version or 'none'}" for name, version in built.items())
    if not deep:
        yield "PyTorch says", "not queried (`--deep` imports it)"
        return
    answer = capture((str(python.executable), "-I", "-c", _ASK), timeout=120)
    answers = json.loads(answer.splitlines()[-1]) if answer else {}
    text = ", ".join(f"{name}: {value}" for name, value in answers.items())
    yield "PyTorch says", text or "torch cannot be imported (see python.import)"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
