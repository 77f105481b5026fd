"""MLIR's own reducer, `triton-reduce` or `mlir-reduce`, which asks a script whether a file is interesting.

The script runs this module, to test whether `triton-opt` fails on FILE in the same way:

    python -m tritonsmith.lab.reduce.mlir_reduce TRITON_OPT PIPELINE KIND TEXT FILE
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tritonsmith.core.plan import MakeDir, Plan, Run, Write, files
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.reduce.oracles import OptOracle, PassRunner


def find(opt: Path | None) -> Path | None:
    """Return the reducer beside a `triton-opt` or `mlir-opt`; None if there is none."""
    # A `triton-opt` on PATH may be a link to where it was built, and the reducer is only there.
    beside = [opt.resolve().with_name(name) for name in ("triton-reduce", "mlir-reduce")] if opt else []
    return next((path for path in beside if path.is_file()), None)


def plan(reducer: Path, way: PassRunner, wanted: Failure, source: str, folder: Path, seconds: float) -> Plan:
    """Plan the steps that write `reduced.mlir` into a folder; the reducer is stopped after some seconds."""
    words = [sys.executable, "-m", "tritonsmith.lab.reduce.mlir_reduce"]
    words += [str(way.opt), way.pipeline, wanted.kind, wanted.text]
    script = f'#!/bin/sh\n# Exit code 1: the file fails in the same way.\nexec {shlex.join(words)} "$@"\n'
    argv = (
        "timeout",  # the reducer has no limit of its own
        f"{seconds:.0f}",
        str(reducer),
        str(folder / "given.mlir"),
        f"-reduction-tree=traversal-mode=0 test={folder / 'interesting.sh'}",
        "-o",
        str(folder / "reduced.mlir"),
    )
    return Plan(
        reducer.name,
        (
            MakeDir(folder, phase=reducer.name),
            Write(folder / "given.mlir", source, phase=reducer.name),
            Write(folder / "interesting.sh", script, phase=reducer.name),
            Run(("chmod", "755", str(folder / "interesting.sh")), cwd=folder, phase=reducer.name),
            Run(argv, cwd=folder, phase=reducer.name),
        ),
    )


def main(opt: str, pipeline: str, kind: str, text: str, file: str) -> int:
    """Return the exit code: 1 if it fails in the same way, 0 if it does not."""
    with files.scratch() as folder:
        answer = OptOracle(Path(opt), pipeline, folder, limit=60).ask(Path(file).read_text(encoding="utf-8"))
    failed = answer.failure
    # Its exit codes are the reverse of a shell's: 1 is interesting, 0 is not (mlir/lib/Reducer/Tester.cpp).
    return int(failed is not None and (failed.kind, failed.text) == (kind, text))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
