"""What a farm is expected to take on many cores, simulated from measured compiles.

    python benchmarks/farm_schedule.py [--kernels N] [--specializations N] [--cores N] [--seed N]
    python benchmarks/farm_schedule.py --measure LIST PYTHON [--sample N] [--seed N] > FILE.toml

The first form draws that many kernels from `farm_schedule.toml`, and schedules their units in the order of
the tool's pool: cold, and with the results of the base kept. The second form makes that file: it compiles a
sample of LIST for four targets by PYTHON, which has Triton, with one job, in a workspace of its own. Both
sides of the farm are taken to be as fast. Times are CPU seconds: those of a wall clock grow with whatever
else a machine does.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import resource
import statistics
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tritonsmith.compiler import targets
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.facts import machine
from tritonsmith.lab.batch import kept, run
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.run import BatchOptions, size_of
from tritonsmith.lab.compare import rehearsal, two_sides

MEASURED = Path(__file__).with_suffix(".toml")
TARGETS = ("a100", "h100", "b200", "mi300x")
MINUTE = 60.0


def main() -> int:
    """Measure, or simulate and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", nargs=2, type=Path, metavar=("LIST", "PYTHON"))
    parser.add_argument("--sample", type=int, default=40, metavar="N", help="kernels that are measured (40)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of what is drawn (1)")
    parser.add_argument("--kernels", type=int, default=3000, metavar="N", help="that are drawn (3000)")
    parser.add_argument("--specializations", type=int, default=3, metavar="N", help="of each kernel (3)")
    parser.add_argument("--cores", type=int, default=64, metavar="N", help="that compile (64)")
    parser.add_argument(
        "--unit", type=float, metavar="SECONDS", help="of a unit besides its compiles, to try"
    )
    arguments = parser.parse_args()
    if arguments.measure:
        file, python = arguments.measure
        measure(file, python, arguments.sample, arguments.seed)
        return 0
    measured = read(MEASURED)
    if arguments.unit is not None:
        measured = replace(measured, unit=arguments.unit)
    simulate(measured, arguments)
    return 0


def simulate(measured: Measured, arguments: argparse.Namespace) -> None:
    """Schedule all units, and print minutes."""
    # A specialization of a kernel is drawn by itself: those of one kernel differ by the sizes of their tiles.
    count = arguments.kernels * arguments.specializations
    drawn = random.Random(arguments.seed).choices(measured.kernels, k=count)  # noqa: S311 - no secret
    print(f"{arguments.kernels:,} kernels x {arguments.specializations} specializations x ", end="")
    print(f"{len(TARGETS)} targets x 2 sides on {arguments.cores} cores; minutes\n")
    print("| base | units | cores | first process | order of the list | longest first |")
    print("|---|---|---|---|---|---|")
    # One target may stand for all: kernels that were measured for four took about as long for each.
    listed = [measured.unit + len(TARGETS) * statistics.fmean(kernel.seconds) for kernel in drawn]
    for base, sides in (("cold", 2), ("kept", 1)):
        # What the pool sorts by: the base's seconds where they are kept, and otherwise the size.
        guesses = [kernel.size if base == "cold" else statistics.fmean(kernel.seconds) for kernel in drawn]
        first = [length for _, length in sorted(zip(guesses, listed, strict=True), reverse=True)]
        # Triton by Triton: see `run._in_order`.
        lengths, order = listed * sides, first * sides
        numbers = (
            sum(lengths) / arguments.cores,
            len(lengths) * measured.client + count * (2 - sides) * measured.kept,
            scheduled(lengths, arguments.cores),
            scheduled(order, arguments.cores),
        )
        cells = (base, f"{len(lengths):,}", *(f"{value / MINUTE:.1f}" for value in numbers))
        print("|", " | ".join(cells), "|")


def scheduled(lengths: list[float], cores: int) -> float:
    """Seconds until the last unit ends, where each core takes the next one as soon as it is idle."""
    ends = [0.0] * cores
    for length in lengths:
        heapq.heapreplace(ends, ends[0] + length)
    return max(ends)


@dataclass(frozen=True)
class MeasuredKernel:
    """A kernel.

    Attributes:
        size: as the pool guesses how long it takes, before it was ever compiled.
        seconds: CPU seconds of the compile for each target.
    """

    size: float
    seconds: Sequence[float]


@dataclass(frozen=True)
class Measured:
    """What `--measure` prints.

    Attributes:
        unit: CPU seconds of a unit besides its compiles, such as the start of an interpreter.
        client: CPU seconds of the first process for a result that is new: it writes files, measures the code.
        kept: for one that is kept.
        kernels: the kernels of the sample.
    """

    unit: float
    client: float
    kept: float
    kernels: tuple[MeasuredKernel, ...]


def read(file: Path) -> Measured:
    """Read what `--measure` printed."""
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    kernels = tuple(MeasuredKernel(row["size"], row["seconds"]) for row in content["kernel"])
    return Measured(content["unit"], content["client"], content["kept"], kernels)


def measure(file: Path, python: Path, sample: int, seed: int) -> None:
    """Compile a sample of a list, and print the file that `read` reads."""
    entries = random.Random(seed).sample(kernel_list.read(file), sample)  # noqa: S311 - no secret
    every = targets.parse_all(TARGETS)
    side = rehearsal.parse_side(str(python.absolute()), "PYTHON")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITONSMITH_HOME"] = folder
        listed = two_sides.listed_kernels(entries, file, CompileRequest(Path(), "", "", every))
        makes = kept.KeyedJobs()
        jobs = [
            makes.job(replace(kernel.asked, targets=every), side, entry.module)
            for entry, kernel in zip(entries, listed, strict=True)
        ]
        manifests, client, children = timed(jobs)
        _, again, _ = timed(jobs)
    seconds = [[round(of_point(point), 2) for point in manifest.points] for manifest in manifests]
    own = sum(map(sum, seconds))
    print(f"# {sample} of {file.parent.name}/{file.name}, {', '.join(TARGETS)}; CPU seconds")
    when = f"{datetime.now(UTC):%Y-%m-%d}"
    print(f"# Triton {side.triton}, {when}, {machine.read().cores} cores of {model()}, not idle")
    print(f"unit = {(children - own) / sample:.2f}  # of a unit besides its compiles")
    print(f"client = {client / sample:.4f}  # of the first process, for a result that is new")
    print(f"kept = {again / sample:.4f}  # for one that is kept")
    for entry, job, row in zip(entries, jobs, seconds, strict=True):
        print(f"\n[[kernel]]\nname = {json.dumps(entry.name)}")
        print(f"size = {size_of(job.request):.0f}\nseconds = {row}")


def of_point(point: Point) -> float:
    """Seconds of a compile; of one that failed only the wall clock is known."""
    return sum(point.cpu_seconds.values()) or point.seconds


def timed(jobs: Sequence[CompileJob]) -> tuple[list[Manifest], float, float]:
    """The results of jobs, which are measured, too; the CPU seconds of this process and of its children."""
    before = [cpu(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    options = BatchOptions(count=1, env="", resume=True, silent=True, strict=False)
    manifests = {job.out: manifest for job, manifest, _ in run.compiled(jobs, options)}
    for manifest in manifests.values():
        kept.metrics_of(manifest)
    after = [cpu(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return [manifests[job.out] for job in jobs], after[0] - before[0], after[1] - before[1]


def cpu(who: int) -> float:
    """CPU seconds so far."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def model() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )


if __name__ == "__main__":
    sys.exit(main())
