"""List the GPUs that Triton's ptxas supports, and keep its remarks about a kernel."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import subprocess
import sys
from typing import Any

from .border import RequestRefusedError

LONGEST_TAIL = 400000  # bytes
ASSEMBLED: list[str] = []  # what it wrote, run by run
REMARK = re.compile(r"^ptxas\b[^:]*\b(?:info *: *(?=\(C\d+\))|warning *: *)(.+)$", re.MULTILINE)


def listen() -> None:
    """Keep the output of ptxas: Triton deletes the file on success, which an audit hook notices."""

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.remove" and str(arguments[0]).endswith(".log"):
            ASSEMBLED.append(read_tail(arguments[0]))

    sys.addaudithook(heard)


def remarks() -> list[str] | None:
    """Return the warnings and advisories of ptxas, such as lost performance; None if it printed nothing."""
    lines = (text.strip() for printed in ASSEMBLED for text in REMARK.findall(printed))
    return list(dict.fromkeys(lines)) if any("ptxas" in printed for printed in ASSEMBLED) else None


def ptxas_for(arch: int) -> str:
    """Return the ptxas that this Triton runs for a GPU; empty if there is none, or if the lookup fails."""
    try:
        from triton.backends.nvidia import compiler

        if not hasattr(compiler, "get_ptxas"):  # 3.0 to 3.2
            return str(compiler._path_to_binary("ptxas")[0])  # noqa: SLF001
        takes = inspect.signature(compiler.get_ptxas).parameters  # none in 3.4 and 3.5
        ptxas = compiler.get_ptxas(arch) if takes else compiler.get_ptxas()
        return str(ptxas[0] if isinstance(ptxas, tuple) else ptxas.path)  # a pair in 3.3
    except Exception:  # noqa: BLE001 - then the compile itself tells what is wrong
        return ""


@functools.lru_cache(maxsize=None)
def gpus_of(ptxas: str) -> list[int]:
    """Return the GPUs that a ptxas supports: 80, 90; empty if ptxas does not list them."""
    argv = [ptxas, "--help"]
    with contextlib.suppress(OSError):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        text = done.stdout.decode(errors="replace")
        return sorted({int(number) for number in re.findall(r"'sm_(\d+)[a-z]?'", text)})
    return []


def check_gpu(arch: int) -> None:
    """Refuse GPUs that this Triton does not support: LLVM may abort before ptxas can report the error."""
    import triton

    ptxas = ptxas_for(arch)
    programs = {ptxas, *map(ptxas_for, gpus_of(ptxas))}  # newer GPUs have one of their own
    known = sorted(number for one in programs for number in gpus_of(one) if ptxas_for(number) == one)
    if known and arch not in known:
        near = min(known, key=lambda number: abs(number - arch))
        names = ", ".join(f"sm_{number}" for number in known)
        what = f"Triton {triton.__version__} does not support sm_{arch}"
        why = f"its ptxas supports {names}; the nearest is sm_{near}"
        raise RequestRefusedError("target", what, why=why)


def read_tail(path: str, most: int = LONGEST_TAIL) -> str:
    """Return the last bytes of a file, from the start of a line; empty if the file cannot be read."""
    # A log with a dump of each pass may have a gigabyte.
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - most, 0))
            raw = file.read()
    except OSError:
        return ""
    text = raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return text if size <= most else text.partition("\n")[2] or text
