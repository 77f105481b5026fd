"""`passes.check` on dumps: CPU seconds and memory of each, and how many mutants it finds.

    python benchmarks/passes_check.py DUMP... [--mutants 500] [--seed 0] [--out FILE]

A mutant is the IR after a pass that changed it, with one operation that does something else (ir_mutants.py).
It is found if the check of the texts before and after that pass says "differs". What survives is printed: it
is equivalent, or a gap. Each mutant is a line of FILE as well, and one that is there is not tested again.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ir_mutants import IrMutant, mutants

from tritonsmith.envs import workspace
from tritonsmith.errors import FactError
from tritonsmith.passes.check import check
from tritonsmith.passes.check.check import CheckAnswer, PassCheck, inputs_of
from tritonsmith.passes.dump import index, select
from tritonsmith.passes.dump.index import Dump, DumpedKernel, DumpIndex

SEEDS = 3


class CheckedDump:
    """A dump, with the generic form of its texts up to LLVM's dialect."""

    def __init__(self, folder: Path) -> None:
        self.index: DumpIndex = index.read(folder)
        self.kernel: DumpedKernel = select.kernel(self.index, "")
        self.name = "/".join(folder.parts[-3:])
        self._dumps = check._of_modules(self.index, self.kernel)  # noqa: SLF001 - as the command has them
        python, space = Path(self.index.python), workspace.default()
        made = check._generic(self.index, self._dumps, python, space, silent=True)  # noqa: SLF001
        self._texts = dict(made)

    def run(self, dumps: list[Dump] | None = None, more: dict[str, str] | None = None) -> CheckAnswer:
        """Check all texts, or some."""
        chosen, texts = dumps or self._dumps, {**self._texts, **(more or {})}
        return PassCheck(self.index, self.kernel, chosen, texts, SEEDS, inputs_of(SEEDS)).run()

    def steps(self) -> list[tuple[Dump, Dump]]:
        """Neighbours whose texts differ, both of Triton's dialects."""
        pairs = zip(self._dumps, self._dumps[1:], strict=False)
        return [
            (one, other)
            for one, other in pairs
            if one.sha256 != other.sha256 and "tt.func" in self._texts.get(other.sha256, "")
        ]

    def text(self, dump: Dump) -> str:
        """The generic form."""
        return self._texts[dump.sha256]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dumps", metavar="DUMP", nargs="+", type=Path, help="folder of passes.dump")
    parser.add_argument(
        "--mutants", type=int, default=0, help="how many, over all dumps; none: time the checks"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a line of JSON for each mutant")
    given = parser.parse_args()
    if given.mutants:
        return _kill(given.dumps, given.mutants, given.seed, given.out)
    for folder in given.dumps:
        made = CheckedDump(folder)
        began = time.process_time()
        answer = made.run()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        seen = Counter(one.status for one in answer.passes)
        print(f"{made.name}: {time.process_time() - began:.1f} CPU s, {memory:.0f} MiB so far, {dict(seen)}")
    return 0


def _kill(folders: list[Path], many: int, seed: int, out: Path | None) -> int:
    rows: list[dict[str, Any]] = []
    if out and out.is_file():
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    share = -(-many // len(folders))
    for number, folder in enumerate(folders):
        known = [row for row in rows if row["dump"] == "/".join(folder.parts[-3:])]
        left = min(share, many - number * share) - len(known)
        if left > 0:
            rows += _of_dump(CheckedDump(folder), left, random.Random(f"{seed} {folder} {len(known)}"), out)  # noqa: S311
    for kind in sorted({row["kind"] for row in rows}):
        seen = Counter(row["result"] for row in rows if row["kind"] == kind)
        print(f"{kind}: {dict(seen)}")
    print("all:", dict(Counter(row["result"] for row in rows)))
    for row in rows:
        if row["result"] != "found":
            print(f"{row['result']}: {row['dump']} after {row['pass']}: {row['kind']}, line {row['line']}")
            print(f"  {row['before']}\n  {row['after']}")
    return 0


def _of_dump(
    made: CheckedDump, many: int, chance: random.Random, out: Path | None
) -> Iterator[dict[str, Any]]:
    steps = made.steps()
    for _ in range(many):
        before, after = chance.choice(steps)
        mutant = next(mutants(made.text(after), chance))
        began = time.process_time()
        row = {
            "dump": made.name,
            "pass": before.label,
            "kind": mutant.kind,
            "line": mutant.line,
            "before": mutant.before,
            "after": mutant.after,
            "result": _result(made, before, after, mutant),
        }
        row["seconds"] = round(time.process_time() - began, 2)
        if out:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        yield row


def _result(made: CheckedDump, before: Dump, after: Dump, mutant: IrMutant) -> str:
    name = sha256(mutant.text.encode()).hexdigest()
    try:
        answer = made.run([before, replace(after, sha256=name)], {name: mutant.text})
    except FactError as error:
        return f"refused: {error.why or error.what}"[:100]
    if answer.culprit:
        return "found" if answer.culprit.suspects == (before.label,) else "found at another pass"
    return "not checked: " + answer.passes[-1].why[:60] if answer.open else "survived"


if __name__ == "__main__":
    sys.exit(main())
