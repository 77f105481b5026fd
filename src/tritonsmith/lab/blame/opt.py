"""LLVM's O3, which Triton runs on the llir, by the opt of an LLVM.

Triton's own pass in it, which breaks up PHI nodes of structs, no opt has.
"""

from __future__ import annotations

import re
from pathlib import Path

from tritonsmith.compiler.manifest import Point
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import files
from tritonsmith.core.process import query
from tritonsmith.facts.variables import covers
from tritonsmith.lab.blame.llc import Llc, refusal

_TRIPLE = re.compile(r"^target triple = .*\n", re.MULTILINE)


def program(llc: Llc) -> Path:
    """The opt beside an llc: `/usr/lib/llvm-19/bin/opt`, `opt-19`."""
    return llc.program.with_name(llc.program.name.replace("llc", "opt", 1))


def optimized(llc: Llc, llir: Path, out: Path, point: Point, triton: str) -> Path:
    """Write what the O3 of an LLVM makes of an llir, as Triton runs it.

    Args:
        llc: of the LLVM; its opt lies beside it.
        llir: the file, which LLVM has not optimised.
        out: the file to write.
        point: the compile.
        triton: version, whose flags are taken.

    Returns:
        The file that was written.

    Raises:
        FactError: there is no opt, or it does not take the file.
    """
    table = configs.load("blame")["opt"]
    argv = [str(program(llc)), "-S", *table["arguments"]]
    text = untrusted.read_text(llir, untrusted.OURS)
    machine = table["machine"].get(point.backend)
    if machine and covers(triton, machine):
        triple = configs.load("blame")["llc"]["triples"][point.backend]
        argv += [f"-mtriple={triple}", f"-mcpu={point.arch}", str(llir)]
    else:  # opt makes a target machine for the triple that a text names
        files.write(out, _TRIPLE.sub("", text))
        argv += [*table["no-machine"], str(out)]
    for row in table["flags"]:
        if row["arch"] in {point.backend, point.arch} and covers(triton, row["since"], row.get("until", "")):
            argv += row["flags"]
    answer = query([*argv, "-o", str(out)], timeout=table["timeout"])
    if answer is None or answer.code:
        what = f"the opt of {llc.label} does not accept this llir"
        raise FactError(what, where=program(llc), why=refusal(answer, Path(argv[-1])))
    return out
