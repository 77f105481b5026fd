"""Run ROCm's rocprofv3, and read its CSV of kernels. It does not sample lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.inspect.profile.measured import ProfiledKernel

SUFFIX = "_kernel_trace.csv"


def argv(program: Path, folder: Path) -> tuple[str, ...]:
    """Return the words before the measured program; `folder` gets one file per process."""
    return (str(program), "--kernel-trace", "--output-format", "csv", "--output-directory", str(folder), "--")


def read(files: Sequence[Path]) -> list[ProfiledKernel]:
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
