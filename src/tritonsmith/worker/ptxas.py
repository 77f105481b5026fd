"""What Triton's ptxas knows of GPUs, and what it says of a kernel."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import subprocess
import sys
from typing import Any

from .refusal import RequestRefusedError
from .row import text_of

ASSEMBLED: list[str] = []  # what it wrote, run by run
REMARK = re.compile(r"^ptxas\b[^:]*\b(?:info *: *(?=\(C\d+\))|warning *: *)(.+)$", re.MULTILINE)


def listen() -> None:
    """Keep what ptxas writes: Triton deletes the file if all went well, and an audit hook sees it go."""

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.remove" and str(arguments[0]).endswith(".log"):
            ASSEMBLED.append(text_of(arguments[0]))

    sys.addaudithook(heard)


def remarks() -> list[str] | None:
    """Its warnings, and what it says with a code: of lost performance, say; None if nothing was heard."""
    found = (text.strip() for said in ASSEMBLED for text in REMARK.findall(said))
    return list(dict.fromkeys(found)) if any("ptxas" in said for said in ASSEMBLED) else None


def ptxas_for(arch: int) -> str:
    """The ptxas that this Triton runs for a GPU; empty if it has none, or names it in a way of its own."""
    try:
        from triton.backends.nvidia import compiler

        if not hasattr(compiler, "get_ptxas"):  # 3.0 to 3.2
            return str(compiler._path_to_binary("ptxas")[0])  # noqa: SLF001
        takes = inspect.signature(compiler.get_ptxas).parameters  # none in 3.4 and 3.5
        found = compiler.get_ptxas(arch) if takes else compiler.get_ptxas()
        return str(found[0] if isinstance(found, tuple) else found.path)  # a pair in 3.3
    except Exception:  # noqa: BLE001 - then the compile itself tells what is wrong
        return ""


@functools.lru_cache(maxsize=None)
def gpus_of(ptxas: str) -> list[int]:
    """The GPUs that a ptxas makes code for: 80, 90; empty if it does not tell."""
    argv = [ptxas, "--help"]
    with contextlib.suppress(OSError):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        text = done.stdout.decode(errors="replace")
        return sorted({int(number) for number in re.findall(r"'sm_(\d+)[a-z]?'", text)})
    return []


def check_gpu(arch: int) -> None:
    """Refuse what is no GPU, or none of this Triton's: LLVM may abort before ptxas gets to say so."""
    import triton

    ptxas = ptxas_for(arch)
    programs = {ptxas, *map(ptxas_for, gpus_of(ptxas))}  # newer GPUs have one of their own
    known = sorted(number for one in programs for number in gpus_of(one) if ptxas_for(number) == one)
    if known and arch not in known:
        near = min(known, key=lambda number: abs(number - arch))
        names = ", ".join(f"sm_{number}" for number in known)
        what = f"sm_{arch} is no GPU of Triton {triton.__version__}"
        why = f"its ptxas knows {names}; the nearest is sm_{near}"
        raise RequestRefusedError("target", what, why=why)
