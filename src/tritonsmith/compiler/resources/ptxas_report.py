"""Run `ptxas -v`, which distinguishes spills from arrays in local memory; the machine code does not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.core.process import query
from tritonsmith.ir.gpu_binary import Cubin

_ARRAY = re.compile(r"^\s*\.local\s", re.MULTILINE)
_TARGET = re.compile(r"^\.target\s+(sm_\w+)", re.MULTILINE)
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_VALUE = re.compile(r"\w[\w,.]*", re.ASCII)  # of an option that stands before it


@dataclass(frozen=True)
class Said:
    """The report of ptxas about a kernel.

    Attributes:
        registers: per thread.
        frame: bytes of stack.
        stores: bytes of spill stores.
        loads: bytes of spill loads.
    """

    registers: int
    frame: int
    stores: int
    loads: int


def parse(text: str) -> Said:
    """Parse the output of `ptxas -v` for one kernel.

    Raises:
        FactError: it contains no report.
    """
    frame, registers = _FRAME.search(text), _REGISTERS.search(text)
    if frame is None or registers is None:
        raise FactError("the output of ptxas -v has no kernel", why=text.strip()[-500:] or None)
    return Said(int(registers[1]), *map(int, frame.groups()))


def has_arrays(ptx: str) -> bool:
    """Report whether the PTX itself uses local memory, as libdevice's sin and cos do."""
    return bool(_ARRAY.search(ptx))


def again(ptx: Path, cubin: Cubin, origin: Path | None, metadata: Mapping[str, Any]) -> Said | None:
    """Assemble the PTX as Triton did, and parse the report.

    Args:
        ptx: the file.
        cubin: the result of Triton's ptxas.
        origin: Triton's package; None if its programs may not be run.
        metadata: Triton's metadata of the kernel; it may be foreign.

    Returns:
        The report; None if no ptxas reproduces the cubin, or if an option in the metadata is not allowed.
    """
    table = configs.load("kernel-resources")["ptxas"]
    target = _TARGET.search(untrusted.read_text(ptx, untrusted.OURS))
    if target is None:
        return None
    options = [] if metadata.get("enable_fp_fusion", True) else [table["no-fusion"]]
    options += str(metadata.get(table["options"]) or "").split()
    if any(word.partition("=")[0] not in table["allowed"] and not _VALUE.fullmatch(word) for word in options):
        return None
    for program in _programs(origin, table):
        for flags in table["flags"]:
            files = (f"--gpu-name={target[1]}", str(ptx), "-o", os.devnull)
            argv = (str(program), "-v", *flags, *options, *files)
            answer = query(argv, timeout=table["timeout"])
            if answer is None or answer.code:
                break  # other flags do not help it
            report = parse(answer.err + answer.out)
            if (report.registers, report.frame) == (cubin.registers, cubin.frame):
                return report
    return None


def _programs(origin: Path | None, table: Mapping[str, Any]) -> Iterator[Path]:
    if named := os.environ.get(table["variable"]):
        yield Path(named)
    if origin:
        yield from (origin / name for name in table["programs"] if (origin / name).is_file())
