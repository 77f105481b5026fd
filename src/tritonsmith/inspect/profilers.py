"""The profilers, Proton and the vendors' tools: choose one, call it, and read what it measured."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any

from tritonsmith.core import configs, process, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.facts.gpus import Gpus
from tritonsmith.inspect.show import SourceLine
from tritonsmith.worker.messages import ProfileSession


@dataclass
class ProfiledKernel:
    """All launches of a kernel.

    Attributes:
        name: the symbol's name.
        calls: the number of measured launches.
        nanoseconds: the time of all launches; 0 if it was not measured.
        samples: the number of samples of the program counter.
        lines: each Python line to its samples, if the kernel has line information.
        stalls: each line to the reasons why the warp did not issue, and their samples.
    """

    name: str
    calls: int = 0
    nanoseconds: float = 0.0
    samples: int = 0
    lines: Counter[SourceLine] = field(default_factory=Counter)
    stalls: dict[SourceLine, Counter[str]] = field(default_factory=dict)

    def sampled(self, line: SourceLine, samples: int, stalls: dict[str, int]) -> None:
        """Add the samples of a line."""
        self.lines[line] += samples
        self.samples += samples
        self.stalls.setdefault(line, Counter()).update(stalls)


def by_time(kernels: Iterable[ProfiledKernel]) -> list[ProfiledKernel]:
    """Sort kernels by their time; those without times by their samples."""
    return sorted(kernels, key=lambda kernel: (-kernel.nanoseconds, -kernel.samples, kernel.name))


PROTON = "proton"
_TOOLS = {"nvidia": "ncu", "amd": "rocprofv3"}
# Found, not imported: an import loads Proton's native library.
_FIND_PROTON = (
    "import importlib.util as u; print(bool(u.find_spec('triton') and u.find_spec('triton.profiler')))"
)


@dataclass(frozen=True)
class Profiler:
    """A profiler.

    Attributes:
        name: `proton`, `ncu` or `rocprofv3`.
        vendor: the GPU's vendor: `nvidia` or `amd`.
        program: the vendor's tool; None for Proton, which is in Triton.
    """

    name: str
    vendor: str
    program: Path | None = None

    def sessions(self, *, times: bool) -> Sequence[ProfileSession]:
        """Return the ways to start Proton, to be tried in order; empty for another tool.

        Args:
            times: only the times of kernels, no samples.
        """
        rows = configs.load("profilers")["proton"] if self.name == PROTON else ()
        return [
            ProfileSession(row["backend"], row["mode"])
            for row in rows
            if row["vendor"] == self.vendor and not (times and "pcsampling" in row["backend"] + row["mode"])
        ]


def interpreter_of(argv: Sequence[str], python: Path | None) -> Path | None:
    """Return a program's Python: the given one, the one that the program names, or the one on PATH."""
    named = argv[0] if argv and Path(argv[0]).name.startswith("python") else "python"
    path = process.which(named) or process.which("python3")
    return python or (Path(path) if path else None)


def choose(name: str, python: Path | None, here: Gpus) -> Profiler:
    """Return the requested profiler, or the first available one.

    Args:
        name: its name; empty for any.
        python: the program's interpreter; None if unknown.
        here: this machine's GPUs.

    Raises:
        UsageError: there is no such profiler.
        FactError: there is no GPU, or no profiler.
    """
    if name and name not in (PROTON, *_TOOLS.values()):
        raise UsageError(
            f"--by cannot be {name!r}", hints=[f"one of {', '.join((PROTON, *_TOOLS.values()))}"]
        )
    vendor = next((vendor for vendor in _TOOLS if here.of(vendor)), "")
    if not vendor:
        hints = [f"{command('kernel.lint')} finds what is slow in a kernel's stages, without a GPU"]
        raise FactError("a profile needs a GPU, and this machine has none", hints=hints)
    # Proton first: it comes with Triton, and measures a launch once, where ncu replays it for each
    # group of counters.
    if name in ("", PROTON) and python and process.capture((str(python), "-c", _FIND_PROTON)) == "True":
        return Profiler(PROTON, vendor)
    tool = _TOOLS[vendor]
    if name in ("", tool) and (program := _program(tool)):
        return Profiler(tool, vendor, program)
    missing = configs.load("profilers")["missing"][vendor]
    raise FactError(f"{name} is not installed" if name else "no profiler is installed", hints=missing)


def _program(tool: str) -> Path | None:
    places = configs.load("profilers")[tool]["places"]
    # Neither CUDA's nor ROCm's packages put their tools on PATH. The newest version comes first.
    paths = [process.which(tool), *(path for place in places for path in sorted(glob(place), reverse=True))]  # noqa: PTH207
    return next((Path(path) for path in paths if path and Path(path).is_file()), None)


PROTON_SUFFIX = ".hatchet"
# A line in Proton's tree: FILE:LINE@FUNCTION; before triton#5711 FILE:FUNCTION@LINE.
_LINE = re.compile(r"(?P<file>.+?):(?:(?P<line>\d+)@[^@]*|[^:@]*@(?P<old>\d+))")
_STALL = "stalled_"


def read_proton(files: Sequence[Path]) -> list[ProfiledKernel]:
    """Read the kernels of all processes: Proton writes a JSON tree of scopes, kernels and lines for each.

    Raises:
        FactError: a file was not written by Proton.
    """
    kernels: dict[str, ProfiledKernel] = {}
    for file in files:
        try:
            tree = untrusted.read_json(file)
            for node in _kernels(tree[0]):
                _add(kernels, node)
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise FactError("cannot read what Proton wrote", where=file, why=str(error)) from error
    return list(kernels.values())


def _kernels(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the kernels: nodes with a launch count."""
    # The user's proton.scope regions may surround them. Below a kernel are its lines.
    if int(node["metrics"].get("count", 0)):
        yield node
        return
    for child in node["children"]:
        yield from _kernels(child)


def _add(kernels: dict[str, ProfiledKernel], node: Mapping[str, Any]) -> None:
    name, metrics = node["frame"]["name"], node["metrics"]
    kernel = kernels.setdefault(name, ProfiledKernel(name))
    kernel.calls += int(metrics["count"])
    kernel.nanoseconds += float(metrics.get("time (ns)", 0))
    kernel.samples += int(metrics.get("num_samples", 0))  # of a kernel without lines
    for child in node["children"]:
        match = _LINE.fullmatch(child["frame"]["name"])
        samples = int(child["metrics"].get("num_samples", 0))
        if not match:
            kernel.samples += samples
            continue
        stalls = {
            key.removeprefix(_STALL): int(value)
            for key, value in child["metrics"].items()
            if key.startswith(_STALL)
        }
        kernel.sampled(SourceLine(match["file"], int(match["line"] or match["old"])), samples, stalls)


NSIGHT_SUFFIX = ".ncu-rep"
_SAMPLES = "Warp Stall Sampling (All Samples)"
_NSIGHT_STALL = "stall_"
_TIME = "gpu__time_duration.sum"


def nsight_argv(program: Path, report: Path, kernels: str) -> tuple[str, ...]:
    """Return the words before the measured program.

    Args:
        program: `ncu`.
        report: the file to write, without its suffix.
        kernels: the kernels' names, with commas; empty for all.
    """
    # Clocks as they are: ncu would lock them to the base clock, and times would not be those of the
    # user's runs. The sources are imported because temporary ones are gone when the report is read.
    table = configs.load("profilers")["ncu"]
    names = "|".join(kernels.split(","))
    return (
        str(program),
        *("--clock-control", "none", "--target-processes", "all", "--import-source", "yes"),
        *(("--kernel-name", f"regex:^({names})$") if kernels else ()),
        *("--launch-count", str(table["launches"])),
        *(word for section in table["sections"] for word in ("--section", section)),
        *("--force-overwrite", "--export", str(report)),
    )


def read_nsight(program: Path, report: Path) -> list[ProfiledKernel]:
    """Read the kernels of a report.

    Raises:
        FactError: Nsight Compute cannot print it.
    """
    times = _nsight_page(program, report, "--page", "raw", "--print-units", "base")
    lines = _nsight_page(program, report, "--page", "source", "--print-source", "cuda,sass")
    return parse_nsight(times, lines)


def parse_nsight(times: str, lines: str) -> list[ProfiledKernel]:
    """Parse the kernels of two CSV pages.

    Args:
        times: `raw`, in base units; the second row has the units.
        lines: `source`, by source line and instruction.

    Raises:
        FactError: a column is missing.
    """
    kernels: dict[str, ProfiledKernel] = {}
    rows = [row for row in csv.reader(io.StringIO(times)) if row]
    head = next((row for row in rows if row[0] == "ID"), [])
    if not {"Kernel Name", _TIME} <= set(head):
        raise FactError("Nsight Compute printed no times", why=times[:200])
    name, time = head.index("Kernel Name"), head.index(_TIME)
    for row in rows[rows.index(head) + 2 :]:  # behind the row of units
        kernel = kernels.setdefault(row[name], ProfiledKernel(row[name]))
        kernel.calls += 1
        kernel.nanoseconds += float(row[time].replace(",", ""))
    reasons = {stall["ncu"]: stall["name"] for stall in configs.load("profilers")["stall"]}
    file, current, columns = "", ProfiledKernel(""), dict[str, int]()
    # The source page is not one table: for each kernel and file it has rows with their names, then a
    # head, then lines, each followed by its instructions, whose first cell is no number.
    for row in csv.reader(io.StringIO(lines)):
        if row[:1] == ["File Path"]:
            file = row[1]
        elif row[:1] == ["Function Name"]:
            current = kernels.setdefault(row[1], ProfiledKernel(row[1]))
        elif row[:1] == ["Line No"]:
            columns = {word: number for number, word in enumerate(row) if word}
        elif row and row[0].isdigit() and _SAMPLES in columns:
            stalls = {
                reasons.get(
                    word.removeprefix(_NSIGHT_STALL), word.removeprefix(_NSIGHT_STALL)
                ): _nsight_count(row[number])
                for word, number in columns.items()
                # "stall_wait (Not Issued)" is a part of "stall_wait".
                if word.startswith(_NSIGHT_STALL) and " " not in word
            }
            current.sampled(SourceLine(file, int(row[0])), _nsight_count(row[columns[_SAMPLES]]), stalls)
    return list(kernels.values())


def _nsight_count(text: str) -> int:
    return int(text.replace(",", "")) if text not in ("", "-") else 0


def _nsight_page(program: Path, report: Path, *words: str) -> str:
    answer = process.query((str(program), "--import", str(report), "--csv", *words), timeout=300)
    if answer is None or answer.code:
        why = answer.err or answer.out if answer else "it does not end"
        raise FactError("Nsight Compute cannot print its report", where=report, why=why.strip()[:400])
    return answer.out


ROCPROF_SUFFIX = "_kernel_trace.csv"


def rocprof_argv(program: Path, folder: Path) -> tuple[str, ...]:
    """Return the words before the measured program; `folder` gets one file per process."""
    # Only the trace of kernels: rocprofv3 does not attribute samples to lines.
    return (str(program), "--kernel-trace", "--output-format", "csv", "--output-directory", str(folder), "--")


def read_rocprof(files: Sequence[Path]) -> list[ProfiledKernel]:
    """Read the kernels of all processes.

    Raises:
        FactError: a file was not written by rocprofv3.
    """
    kernels: dict[str, ProfiledKernel] = {}
    for file in files:
        try:
            for row in csv.DictReader(io.StringIO(untrusted.read_text(file))):
                kernel = kernels.setdefault(row["Kernel_Name"], ProfiledKernel(row["Kernel_Name"]))
                kernel.calls += 1
                kernel.nanoseconds += int(row["End_Timestamp"]) - int(row["Start_Timestamp"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FactError("cannot read what rocprofv3 wrote", where=file, why=str(error)) from error
    return list(kernels.values())
