"""`doctor --report`: one Markdown block for an issue, with everything that upstream's template asks for.

A superset of what `torch/utils/collect_env.py` of PyTorch prints, read without importing torch.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator
from pathlib import Path

from tritonsmith import __version__
from tritonsmith.doctor import redact, report
from tritonsmith.doctor.finding import Finding
from tritonsmith.doctor.subject import Subject
from tritonsmith.facts import tools
from tritonsmith.plan.process import capture

_PACKAGES = re.compile(
    r"(triton|torch|nvidia|cuda|intel|mkl|numpy|jax|pybind11|nanobind|lit|cmake|ninja|flake8|mypy|onnx|optree)"
)
_VARIABLES = re.compile(
    r"^(TRITON|MLIR|LLVM|AMDGCN|NVPTX|CUDA|HIP|ROCR|ROCM|PYTORCH|TORCH|DISABLE_|PTXAS|LD_LIBRARY_PATH|CC$|CXX$|MAX_JOBS)"
)

# Runs in the interpreter that is looked at, and only with --deep: the one part that imports torch.
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


def render(subject: Subject, findings: tuple[Finding, ...], *, deep: bool = False) -> str:
    """The block.

    Args:
        subject: what was looked at.
        findings: what was found.
        deep: ask the interpreter's torch too, which imports it.
    """
    rows = [f"| {name} | {_cell(value)} |" for name, value in _rows(subject, deep=deep) if value]
    wrong = [line for finding in findings for line in _finding(finding)]
    lines = [
        f"<details><summary>{report.counts(findings)} (tritonsmith {__version__})</summary>",
        "",
        "| what | |",
        "|---|---|",
        *rows,
        "",
        *(wrong or ["No check found anything wrong."]),
        "",
        "</details>",
    ]
    folders = {subject.space.root: "$TRITONSMITH_HOME"}
    folders |= {subject.checkout.root: "$TRITON"} if subject.checkout else {}
    return redact.redactor(folders)("\n".join(lines))


def _finding(finding: Finding) -> Iterator[str]:
    if finding.status in ("ok", "not applicable"):
        return
    where = f" (`{finding.where}`)" if finding.where else ""
    yield f"- **{finding.status}** `{finding.check}`: {finding.seen}{where}"
    if finding.affects:
        yield f"  affects: {finding.affects}"


def _rows(subject: Subject, *, deep: bool) -> Iterator[tuple[str, str]]:
    yield from _machine(subject)
    yield from _compilers(subject)
    yield from _triton(subject)
    yield from _torch(subject, deep=deep)
    shown = {name: value for name, value in sorted(subject.environ.items()) if _VARIABLES.match(name)}
    yield "Variables", ", ".join(f"`{name}={value}`" for name, value in shown.items()) or "none set"
    dists = subject.packages.dists if subject.packages else ()
    yield "Packages", ", ".join(f"{name} {version}" for name, version in dists if _PACKAGES.match(name))


def _machine(subject: Subject) -> Iterator[tuple[str, str]]:
    host = subject.host
    name = ""
    if host.system == "Linux":
        try:
            name = platform.freedesktop_os_release().get("PRETTY_NAME", "")
        except OSError:
            name = host.os_id
    yield "OS", f"{name or platform.platform()}, kernel {platform.release()}, {host.arch}"
    yield "Libc", f"glibc {host.glibc or 'none'}, GLIBCXX_{host.glibcxx or 'none'}"
    yield "CPU", f"{_cpu()}, {host.cores} cores usable, {host.memory_gib:.1f} GiB"
    gpus = [f"{gpu.name} ({gpu.arch}, {gpu.memory_gib:.0f} GiB)" for gpu in subject.gpus.all]
    yield "GPU", "; ".join(gpus) or "none"
    for vendor, driver in (("NVIDIA", subject.gpus.nvidia), ("AMD", subject.gpus.amd)):
        if driver:
            cuda = f", CUDA {driver.cuda}" if driver.cuda else ""
            yield f"{vendor} driver", f"{driver.version or '?'}{cuda} {driver.problem}".rstrip()


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    match = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return match[1] if match else platform.machine()


def _compilers(subject: Subject) -> Iterator[tuple[str, str]]:
    gcc = tools.find("g++")
    found = [*subject.programs.values(), gcc, tools.find("nvcc"), tools.find("hipcc")]
    yield "Tools", ", ".join(f"{tool.name} {tool.version or '?'}" for tool in found if tool)


def _triton(subject: Subject) -> Iterator[tuple[str, str]]:
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
        told = f"{llvm.version} {llvm.commit}, {llvm.build_type}, assertions {assertions}"
        yield "LLVM in use", f"{told}, `{llvm.prefix}`"


def _torch(subject: Subject, *, deep: bool) -> Iterator[tuple[str, str]]:
    python = subject.packages
    version = dict(python.dists).get("torch") if python else None
    if python is None or version is None:
        yield "PyTorch", "not installed"
        return
    text = _read(python.purelib / "torch" / "version.py")
    built = dict(re.findall(r"^(\w+)(?:: [^=]+)? = ['\"]?([^'\"\n]+)['\"]?$", text, re.MULTILINE))
    yield "PyTorch", f"{version}, git {built.get('git_version', '?')}, debug {built.get('debug', '?')}"
    yield "PyTorch built for", ", ".join(f"{name} {built.get(name)}" for name in ("cuda", "hip", "xpu"))
    if not deep:
        yield "PyTorch says", "not asked (`--deep` imports it)"
        return
    answer = capture((str(python.executable), "-I", "-c", _ASK), timeout=120)
    said = json.loads(answer.splitlines()[-1]) if answer else {}
    told = ", ".join(f"{name}: {value}" for name, value in said.items())
    yield "PyTorch says", told or "it does not import (see python.import)"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
