"""Run Nsight Compute, and read the CSV that it prints of a report."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import process
from tritonsmith.inspect.profile.measured import ProfiledKernel
from tritonsmith.inspect.show.source_lines import SourceLine

SUFFIX = ".ncu-rep"
_SAMPLES = "Warp Stall Sampling (All Samples)"
_STALL = "stall_"
_TIME = "gpu__time_duration.sum"


def argv(program: Path, report: Path, kernels: str) -> tuple[str, ...]:
    """Return the words before the measured program.

    Args:
        program: `ncu`.
        report: the file to write, without its suffix.
        kernels: their names, with commas; empty for all.
    """
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


def read(program: Path, report: Path) -> list[ProfiledKernel]:
    """Read the kernels of a report.

    Raises:
        FactError: Nsight Compute cannot print it.
    """
    times = _page(program, report, "--page", "raw", "--print-units", "base")
    lines = _page(program, report, "--page", "source", "--print-source", "cuda,sass")
    return parse(times, lines)


def parse(times: str, lines: str) -> list[ProfiledKernel]:
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
    for row in rows[rows.index(head) + 2 :]:
        kernel = kernels.setdefault(row[name], ProfiledKernel(row[name]))
        kernel.calls += 1
        kernel.nanoseconds += float(row[time].replace(",", ""))
    reasons = {stall["ncu"]: stall["name"] for stall in configs.load("profilers")["stall"]}
    file, current, columns = "", ProfiledKernel(""), dict[str, int]()
    for row in csv.reader(io.StringIO(lines)):
        if row[:1] == ["File Path"]:
            file = row[1]
        elif row[:1] == ["Function Name"]:
            current = kernels.setdefault(row[1], ProfiledKernel(row[1]))
        elif row[:1] == ["Line No"]:
            columns = {word: number for number, word in enumerate(row) if word}
        elif row and row[0].isdigit() and _SAMPLES in columns:
            stalls = {
                reasons.get(word.removeprefix(_STALL), word.removeprefix(_STALL)): _count(row[number])
                for word, number in columns.items()
                if word.startswith(_STALL) and " " not in word
            }
            current.sampled(SourceLine(file, int(row[0])), _count(row[columns[_SAMPLES]]), stalls)
    return list(kernels.values())


def _count(text: str) -> int:
    return int(text.replace(",", "")) if text not in ("", "-") else 0


def _page(program: Path, report: Path, *words: str) -> str:
    answer = process.query((str(program), "--import", str(report), "--csv", *words), timeout=300)
    if answer is None or answer.code:
        why = answer.err or answer.out if answer else "it does not end"
        raise FactError("Nsight Compute cannot print its report", where=report, why=why.strip()[:400])
    return answer.out
