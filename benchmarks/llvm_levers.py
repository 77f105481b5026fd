"""What each lever does to a compile of LLVM at `-O0 -g`: the same random steps under each, in one run.

`python benchmarks/llvm_levers.py --closure PATH --probe PATH [--sample N] [--seed N]`, as for
llvm_closure.py; without `--probe`, PATH is any finished build folder that the tool configured, as Triton's.
The steps are taken as the tool wrote them (precompiled header, split DWARF); a lever is turned by a change
of the command alone. CPU seconds and megabytes of object and .dwo, sums over the sample, and the ratio to
the first row.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable
from pathlib import Path

from llvm_closure import NINJA, Side, Step, read, run

from tritonsmith.core.plan import BuildUsed

PCH = re.compile(r" -Winvalid-pch -Xclang -include-pch -Xclang \S+ -Xclang -include -Xclang \S+")
SPLIT = " -gsplit-dwarf"
VARIANTS: dict[str, Callable[[str], str]] = {
    "plain -g": lambda command: PCH.sub("", command).replace(SPLIT, ""),
    "split DWARF": lambda command: PCH.sub("", command),
    "-g1": lambda command: PCH.sub("", command).replace(SPLIT, " -g1"),
    "precompiled header": lambda command: command.replace(SPLIT, ""),
    "precompiled header, split DWARF": lambda command: command,
}


def main() -> int:
    """Command line; prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--closure", type=Path, required=True, help="finished build folder")
    parser.add_argument("--probe", type=Path, help="Triton's, configured against it; else all is sampled")
    parser.add_argument("--lever", action="append", choices=list(VARIANTS), help="only these (default: all)")
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    built = options.closure.resolve()
    targets = ["all"]
    if options.probe:
        used = BuildUsed(NINJA, built, 1, options.probe.resolve(), (), ("FileCheck",), phase="closure")
        targets = list(used.targets())
    compiles = read(Side("closure", built), built, targets).steps["compile"]
    able = [step for step in compiles if PCH.search(step.command)]
    print(f"{len(able)} of {len(compiles)} compiles use a precompiled header")
    chosen = random.Random(options.seed).sample(able, options.sample)  # noqa: S311
    variants = {name: change for name, change in VARIANTS.items() if name in (options.lever or VARIANTS)}
    sums = {name: [0.0, 0.0] for name in variants}
    for step in chosen:
        for name, change in variants.items():  # the last one leaves the tree as it was
            seconds, size = run(Step(step.build, step.output, change(step.command)))
            sums[name][0] += seconds
            sums[name][1] += size / 1e6
    first = next(iter(sums.values()))
    for name, (cpu, disk) in sums.items():
        print(f"{name:32} {cpu:8.1f} s {cpu / first[0]:5.2f} {disk:8.1f} MB {disk / first[1]:5.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
