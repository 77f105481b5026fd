"""What `interesting.sh` runs for MLIR's own reducer: does `triton-opt` fail on this file in the same way?

    python -m tritonsmith.lab.reduce.interesting_script TRITON_OPT PIPELINE KIND TEXT FILE

Exit code 1: it does; 0: it does not.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tritonsmith.core.plan import files
from tritonsmith.lab.reduce.interestingness import OptOracle


def main(opt: str, pipeline: str, kind: str, text: str, file: str) -> int:
    """The exit code."""
    with files.scratch() as folder:
        answer = OptOracle(Path(opt), pipeline, folder, limit=60).ask(Path(file).read_text(encoding="utf-8"))
    found = answer.failure
    return int(found is not None and (found.kind, found.text) == (kind, text))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
