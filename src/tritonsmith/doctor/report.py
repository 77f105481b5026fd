"""Output of the doctor: on a terminal, and `--report`, one Markdown block for an issue."""

from __future__ import annotations

import json
import platform
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from tritonsmith import __version__
from tritonsmith.core import command_line, redact
from tritonsmith.core.process import capture
from tritonsmith.core.redact import Redactor
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.doctor.check import Check, DoctorContext, Finding, Status
from tritonsmith.facts import gpus, machine, pytorch_pins, tools

_MARKS: dict[Status, str] = {
    "ok": "✓",
    "not applicable": "·",
    "note": "i",
    "warning": "!",
    "error": "✗",
    "crashed": "✗",
}
# All lines of a finding but the first begin where its text does: after the mark, and the name in 18 columns.
_INDENT = 22
_NOUNS = ("note", "warning", "error")


def summary(findings: tuple[Finding, ...]) -> RenderableType:
    """Return one line of counts, and one per finding that is wrong."""
    lines = [_Hanging(Text(counts(findings)))]
    for problem in filter(lambda finding: finding.wrong, findings):
        advice = console.typed("; ".join(filter(None, (problem.remedy, *problem.commands))))
        text = redact.hidden(f"  {problem.status}: {problem.check}: {problem.seen}. {advice}".rstrip())
        lines.append(_Hanging(Text(text), 4))
    return Group(*lines)


def counts(findings: tuple[Finding, ...]) -> str:
    """Return the number of findings of each status."""
    counted = Counter(finding.status for finding in findings)
    parts = [
        f"{number} {status}{'s' if number > 1 and status in _NOUNS else ''}"
        for status in _MARKS
        if (number := counted[status])
    ]
    return f"doctor: {', '.join(parts) or 'nothing was checked'}"


def screen(findings: tuple[Finding, ...], *, whole: bool = True) -> RenderableType:
    """Return the findings, group by group: one line for what is fine, and the fix for what is not.

    A check that does not apply shows its reason if the output is `whole`; else it is only listed.
    """
    blocks: list[RenderableType] = []
    for group, members in groupby(findings, key=lambda finding: finding.group):
        blocks.append(Text(f"\n{group}", style="bold"))
        group_findings = tuple(members)
        for finding in group_findings:
            if whole or finding.status != "not applicable":
                blocks += _lines(finding)
        idle = [finding.name for finding in group_findings if finding.status == "not applicable"]
        if idle and not whole:
            blocks.append(_Hanging(Text(f"  · not applicable: {', '.join(idle)}", style="dim"), 4))
    return Group(*blocks)


def _lines(finding: Finding) -> Iterator[RenderableType]:
    style = tables.STATUS_STYLES[finding.status]
    head = Text.assemble((f"  {_MARKS[finding.status]} {finding.name:<18}", style), _said(finding.seen))
    place = Text(f"  {redact.hidden(finding.where)}", style="dim") if finding.where else Text()
    yield _Hanging(head, _INDENT, place)
    for text in (redact.hidden(finding.affects), finding.remedy and f"fix: {_said(finding.remedy)}"):
        if text:
            yield _Hanging(_indented(text), _INDENT)
    for command in finding.commands:
        yield _Command(_said(command))
    if finding.wrong:
        yield _Hanging(_indented(f"more: {console.typed(finding.docs)}", "dim"), _INDENT)


def _indented(text: str, style: str = "") -> Text:
    return Text(" " * _INDENT + text, style=style)


@dataclass(frozen=True)
class _Hanging:
    """Text that wraps between words; later lines are indented.

    Attributes:
        text: text, of one line or several.
        indent: indentation of all lines after the first.
        tail: a path, for example: moved to its own line if it does not fit, and never broken.
    """

    text: Text
    indent: int = 0
    tail: Text = field(default_factory=Text)

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = tables.width_of(options)
        # Not by rich, which also breaks a word that is wider than the screen: a broken path can be neither
        # copied nor clicked.
        lines = [part for line in self.text.split("\n") for part in tables.wrapped(line, width, self.indent)]
        if width is None or lines[-1].cell_len + self.tail.cell_len <= width:
            lines[-1] += self.tail
        else:
            lines.append(Text(" " * (self.indent - 2)) + self.tail)
        yield from map(tables.unwrapped, lines)


@dataclass(frozen=True)
class _Command:
    """A shell command; a long one continues on the next line, as a shell reads it."""

    command: str

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = tables.width_of(options)
        room = None if width is None else width - _INDENT - 2
        mark = "$ "
        for line in command_line.continued(self.command, room):
            yield tables.unwrapped(_indented(f"{mark}{line}", "cyan"))
            mark = "    "


def _said(text: str) -> str:
    return console.typed(redact.hidden(text))


def listing(checks: Iterable[Check]) -> Grid:
    """Return the list of all checks."""
    rows = [[check.id, "--deep" if check.deep else "", check.title] for check in checks]
    return tables.plain("checks", ["check", "", "looks at"], rows)


# `doctor --report`: one Markdown block for an issue, with everything upstream's issue template requires.
#
# It has every field of PyTorch's `torch/utils/collect_env.py` (for the processor only those relevant to a
# compiler), and is collected without importing torch.

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


def for_issue(subject: DoctorContext, findings: tuple[Finding, ...], *, deep: bool = False) -> str:
    """Render the Markdown block; `deep` also queries the interpreter's torch, which imports it."""
    folders = {subject.space.root: "$TRITONSMITH_HOME"}
    folders |= {subject.checkout.root: "$TRITON"} if subject.checkout else {}
    hide = redact.redactor(folders)
    rows = [f"| {name} | {_cell(value)} |" for name, value in _rows(subject, hide, deep=deep) if value]
    wrong = [line for finding in findings for line in _finding(finding, hide)]
    lines = [
        f"<details><summary>{counts(findings)} (tritonsmith {__version__})</summary>",
        "",
        "| what | |",
        "|---|---|",
        *rows,
        "",
        *(wrong or ["No check found a problem."]),
        "",
        "</details>",
    ]
    # The whole block at once and last: whatever a row says, a path or a name in it is found.
    return hide("\n".join(lines))


def _finding(finding: Finding, hide: Redactor) -> Iterator[str]:
    if finding.status in ("ok", "not applicable"):
        return
    where = f" (`{hide.path(finding.where)}`)" if finding.where else ""
    yield f"- **{finding.status}** `{finding.check}`: {finding.seen}{where}"
    if finding.affects:
        yield f"  affects: {finding.affects}"


def _rows(subject: DoctorContext, hide: Redactor, *, deep: bool) -> Iterator[tuple[str, str]]:
    yield from _hardware_rows(subject)
    yield from _compilers(subject)
    yield from _triton(subject)
    yield from _torch(subject, deep=deep)
    shown = [
        f"`{name}={hide.path(redact.variable(name, value))}`"
        for name, value in sorted(subject.environ.items())
        if _VARIABLES.match(name)
    ]
    yield "Variables", ", ".join(shown) or "none set"
    python = subject.packages
    yield "Packages", _picked(python.dists if python else ())
    yield "Conda packages", _picked(gpus.conda_runtimes(python.prefix) if python else ())


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
    torch = pytorch_pins.read_torch(python) if python else None
    if python is None or torch is None:
        yield "PyTorch", "not installed"
        return
    yield "PyTorch", f"{torch.version}, git {torch.git_version or '?'}, debug {torch.debug or '?'}"
    built = {"cuda": torch.cuda, "hip": torch.hip, "xpu": torch.xpu}
    yield "PyTorch built for", ", ".join(f"{name} {version or 'none'}" for name, version in built.items())
    if not deep:
        # Importing torch takes seconds, and may crash: a report must also come from a broken environment.
        yield "PyTorch says", "not queried (`--deep` imports it)"
        return
    # -I: a `torch.py` in the current folder, or in PYTHONPATH, must not answer. The last line is ours:
    # torch and what it imports may print before it.
    answer = capture((str(python.executable), "-I", "-c", _ASK), timeout=120)
    answers = json.loads(answer.splitlines()[-1]) if answer else {}
    text = ", ".join(f"{name}: {value}" for name, value in answers.items())
    yield "PyTorch says", text or "torch cannot be imported (see python.import)"


def _cell(text: str) -> str:
    # A `|` would end the cell even inside backticks, and a line break the table.
    return text.replace("|", "\\|").replace("\n", " ")


# The machine part of `doctor --report`: system, processor, GPUs and their libraries.

_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")


def _hardware_rows(subject: DoctorContext) -> Iterator[tuple[str, str]]:
    """Yield names and values, one row each."""
    yield from _system(subject)
    yield from _gpus(subject)
    yield from _libraries(subject)


def _system(subject: DoctorContext) -> Iterator[tuple[str, str]]:
    host = subject.host
    name = ""
    if host.system == "Linux":
        try:
            name = platform.freedesktop_os_release().get("PRETTY_NAME", "")
        except OSError:
            name = host.os_id
    yield "OS", f"{name or platform.platform()}, kernel {platform.release()}, {host.arch}"
    yield "Libc", f"glibc {host.glibc or 'none'}, GLIBCXX_{host.glibcxx or 'none'}"
    chip = machine.read_cpu()
    yield "CPU", f"{chip.model}, {host.cores} cores usable, {host.memory_gib:.1f} GiB"
    if chip.sockets:
        shape = f"sockets: {chip.sockets}, cores per socket: {chip.cores}, threads per core: {chip.threads}"
        caches = f"L2 {chip.l2 or '?'}, L3 {chip.l3 or '?'}"
        yield "CPU topology", f"{shape}, caches: {caches}, NUMA nodes: {chip.numa_nodes or '?'}"
    yield "CPU vectors", " ".join(chip.vectors)


def _gpus(subject: DoctorContext) -> Iterator[tuple[str, str]]:
    descriptions = [f"{gpu.name} ({gpu.arch}, {gpu.memory_gib:.0f} GiB)" for gpu in subject.gpus.all]
    yield "GPU", "; ".join(descriptions) or "none"
    for vendor, driver in (("NVIDIA", subject.gpus.nvidia), ("AMD", subject.gpus.amd)):
        if driver:
            cuda = f", CUDA {driver.cuda}" if driver.cuda else ""
            yield f"{vendor} driver", f"{driver.version or '?'}{cuda} {driver.problem}".rstrip()


def _libraries(subject: DoctorContext) -> Iterator[tuple[str, str]]:
    dists = subject.packages.dists if subject.packages else ()
    nvcc = tools.find("nvcc")
    toolkit = f"nvcc {nvcc.version or '?'}" if nvcc else ""
    runtimes = (gpus.runtime_wheels(dists, "cuda-runtime"), toolkit)
    yield "CUDA runtime", ", ".join(filter(None, runtimes)) or "none found"
    yield "cuDNN", gpus.runtime_wheels(dists, "cudnn") or "not from a wheel (`--deep` queries torch)"
    rocm = gpus.rocm(Path(subject.environ.get("ROCM_PATH") or "/opt/rocm"))
    yield "HIP runtime", f"{rocm.hip or 'none found'}{f', ROCm {rocm.version}' if rocm.version else ''}"
    yield "MIOpen", rocm.miopen or "none found"
    loading = subject.environ.get("CUDA_MODULE_LOADING")
    yield "CUDA_MODULE_LOADING", loading or "not set (LAZY is the default)"
    allocator = [f"{name}={subject.environ[name]}" for name in _ALLOCATOR if subject.environ.get(name)]
    yield "Caching allocator", ", ".join(allocator) or "not set"
