"""One run of ptxas on a PTX, and the figures of what it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tritonsmith.compiler.resources import measure, ptxas
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError
from tritonsmith.core.process import query
from tritonsmith.lab import metrics
from tritonsmith.lab.blame.verdict import Figures

_LINES = 3  # of a message


def figures(
    ptx: Path, program: Path, flags: Sequence[str], out: Path, arch: str, metadata: Mapping[str, Any]
) -> Figures:
    """The figures of a PTX by a ptxas.

    Args:
        ptx: the file.
        program: ptxas.
        flags: of its command line; one of them is `-v`.
        out: the cubin.
        arch: `90`.
        metadata: what Triton says of the kernel.

    Raises:
        FactError: ptxas refuses it.
    """
    timeout = configs.load("kernel-resources")["ptxas"]["timeout"]
    answer = query((str(program), *flags, str(ptx), "-o", str(out)), timeout=timeout)
    if answer is None or answer.code:
        lines = [line for line in (answer.err if answer else "").splitlines() if line.strip()]
        said = "\n".join(line.replace(f"{ptx}, ", "") for line in lines[:_LINES])
        raise FactError(
            "ptxas rejects this PTX", where=program, why=said or "it does not run, or did not finish in time"
        )
    found = measure.values(out, arch, metadata, ptx)
    if found["spill_store_bytes"] is None:
        said_of_it = ptxas.parse(answer.err + answer.out)
        found |= {"spill_store_bytes": said_of_it.stores, "spill_load_bytes": said_of_it.loads}
    return summary(found, "cuda")


def summary(values: Figures, backend: str) -> Figures:
    """Registers, spills and code, of the resources of a kernel."""
    return {name: metrics.value_of(name, values, backend)[1] for name in metrics.summary()}
