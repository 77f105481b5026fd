"""What a farm is expected to take on many cores, simulated from measured compiles.

    python benchmarks/farm_schedule.py [--kernels N] [--specializations N] [--cores N] [--seed N]
    python benchmarks/farm_schedule.py --measure LIST PYTHON AGAIN [--sample N] [--seed N] > FILE.toml

The first form draws that many kernels from `farm_schedule.toml`, and schedules their units in the order of
the tool's pool: cold, and with the results of the base kept. The second form makes that file: it compiles a
sample of LIST as a worker of a cluster does, in a workspace of its own, by PYTHON, which has Triton, and by
AGAIN, which has hard links to the same files in another folder, so that stages are shared. Both sides of the
farm are taken to be as fast. Times are CPU seconds: those of a wall clock grow with whatever else a machine
does. All are means: what a farm takes is a sum.
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
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import psutil

from tritonsmith.compiler import call, targets, tritons
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.facts import machine
from tritonsmith.inspect.show import BINARY
from tritonsmith.lab.batch import kept, kept_files, work_unit
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.run import size_of
from tritonsmith.lab.batch.work_unit import PackedResult
from tritonsmith.lab.compare import rehearsal, two_sides

MEASURED = Path(__file__).with_suffix(".toml")
TARGETS = ("a100", "h100", "b200", "mi300x")
MINUTE = 60.0
STARTS = 5  # of an interpreter, of which the mean counts
PARTS = {  # of a compile, by the stages of the backends
    "front": ("rest", "ttir"),
    "middle": ("ttgir", "llir"),
    "back": ("ptx", "amdgcn"),
    "assembly": ("cubin", "hsaco"),
}


@dataclass(frozen=True)
class Change:
    """What differs between the two sides.

    Attributes:
        name: of the change.
        same: share of the kernels that both sides make the same binary of.
        shared: parts of the compile of such a kernel that the second side need not run, by target.
        front: the whole unit was measured so: with nothing but the front ends.
    """

    name: str
    same: float
    shared: Mapping[str, Sequence[str]]
    front: bool = False


CHANGES = (
    Change("two compilers that differ", 0.0, {}),
    # docs/farm.md, "No noise": of eight commits that change code. libtriton makes `hsaco`, a program `cubin`.
    Change("a commit that changes a pass", 76 / 96, dict.fromkeys(TARGETS[:3], ("assembly",))),
    # As docs/farm.md has it for #4692 and #4662: no kernel had another first IR.
    Change("a commit that changes the front end", 24 / 24, {}, front=True),
)
GOALS = {"cold": 20.0, "kept": 4.0}  # minutes


def main() -> int:
    """Measure, or simulate and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", nargs=3, type=Path, metavar=("LIST", "PYTHON", "AGAIN"))
    parser.add_argument("--sample", type=int, default=30, metavar="N", help="kernels that are measured (30)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of what is drawn (1)")
    parser.add_argument("--kernels", type=int, default=3000, metavar="N", help="that are drawn (3000)")
    parser.add_argument("--specializations", type=int, default=3, metavar="N", help="of each kernel (3)")
    parser.add_argument("--cores", type=int, default=64, metavar="N", help="that compile (64)")
    arguments = parser.parse_args()
    if arguments.measure:
        file, python, again = arguments.measure
        measure(file, (python, again), arguments.sample, arguments.seed)
        return 0
    simulate(read(MEASURED), arguments)
    return 0


def simulate(measured: Measured, arguments: argparse.Namespace) -> None:
    """Schedule all units, and print minutes."""
    # A specialization of a kernel is drawn by itself: those of one kernel differ by the sizes of their tiles.
    count = arguments.kernels * arguments.specializations
    chance = random.Random(arguments.seed)  # noqa: S311 - no secret
    drawn = chance.choices(measured.kernels, k=count)
    luck = [chance.random() for _ in drawn]
    print(f"{arguments.kernels:,} kernels x {arguments.specializations} specializations x ", end="")
    print(f"{len(TARGETS)} targets x 2 sides on {arguments.cores} cores; minutes\n")
    columns = ("change", "base", "aim", "each stage runs", "shared stages", "cores for the aim")
    print("|", " | ".join(columns), "|")
    print("|" + "---|" * len(columns))
    for change in CHANGES:
        for base, aim in GOALS.items():
            cells = [change.name, base, f"{aim:.0f}"]
            for shares in (False, True):
                units = ordered(measured, drawn, luck, change, shares=shares, kept_base=base == "kept")
                cells.append(f"{scheduled(units, arguments.cores) / MINUTE:.1f}")
            cells.append(f"{sum(units) / (aim * MINUTE):.0f}")
            print("|", " | ".join(cells), "|")
    print("\na unit of four compiles, CPU seconds")
    for name in PARTS:
        mean = statistics.fmean(kernel.part(name) for kernel in drawn)
        print(f"  {name}: {mean:.2f}")
    print(f"  the rest: {statistics.fmean(kernel.rest for kernel in drawn):.2f}")
    print(f"  disassembly: {statistics.fmean(measured.disassemblies() for _ in drawn):.2f}")
    print(f"  all of it where only the front end runs: {statistics.fmean(each.found for each in drawn):.2f}")
    print(f"an interpreter that imports Triton, once for each core and side: {measured.start:.2f}")
    results = {"cold": 2 * count * measured.client, "kept": count * (measured.client + measured.kept)}
    print("the first process, minutes:", ", ".join(f"{base} {t / MINUTE:.1f}" for base, t in results.items()))


def ordered(
    measured: Measured,
    drawn: Sequence[MeasuredKernel],
    luck: Sequence[float],
    change: Change,
    *,
    shares: bool,
    kept_base: bool,
) -> list[float]:
    """Return the seconds of the units in the order in which they begin."""
    rows = list(zip(drawn, (number < change.same for number in luck), strict=True))
    # What the pool sorts by: the base's seconds where they are kept, and otherwise the size.
    rows.sort(key=lambda row: row[0].compiles() if kept_base else row[0].size, reverse=True)
    # When everything is compiled, of both sides. A base that was kept may lack it, too.
    late = [measured.disassemblies() for _, same in rows if not same] * 2
    whole = [kernel.compiles() + kernel.rest for kernel, _ in rows]
    head = [
        unit(kernel, change) if same and shares else seconds
        for (kernel, same), seconds in zip(rows, whole, strict=True)
    ]
    # Triton by Triton: see `run._in_order`.
    return [*([] if kept_base else whole), *head, *late]


def unit(kernel: MeasuredKernel, change: Change) -> float:
    """Return the seconds of a unit of the side that finds what the other one has made of the same code."""
    if change.front:
        return kernel.found
    seconds = kernel.rest
    for target, parts in kernel.parts.items():
        seconds += sum(value for name, value in parts.items() if name not in change.shared.get(target, ()))
    return seconds


def scheduled(lengths: Sequence[float], cores: int) -> float:
    """Return the seconds until the last unit ends: each core takes the next one when it is idle."""
    ends = [0.0] * cores
    for length in lengths:
        heapq.heapreplace(ends, ends[0] + length)
    return max(ends)


@dataclass(frozen=True)
class MeasuredKernel:
    """A kernel.

    Attributes:
        size: as the pool guesses how long it takes, before it was ever compiled.
        parts: CPU seconds of each of `PARTS`, by target.
        rest: of its unit besides the compiles: forks, the load of its file, files.
        found: of its unit where all stages after the first IR are found.
    """

    size: float
    parts: Mapping[str, Mapping[str, float]]
    rest: float
    found: float

    def compiles(self) -> float:
        """Return the seconds of all compiles."""
        return sum(map(self.part, PARTS))

    def part(self, name: str) -> float:
        """Return the seconds of a part for all targets."""
        return sum(parts[name] for parts in self.parts.values())


@dataclass(frozen=True)
class Measured:
    """What `--measure` prints, in CPU seconds.

    Attributes:
        start: of an interpreter that imports Triton.
        client: of the first process, for a unit that is new: it sends it, and writes the database.
        kept: for one that is kept.
        binary: of the disassembly of a binary with many others, by target.
        kernels: the kernels of the sample.
    """

    start: float
    client: float
    kept: float
    binary: Mapping[str, float]
    kernels: tuple[MeasuredKernel, ...]

    def disassemblies(self) -> float:
        """Return the seconds to disassemble the binaries of a unit."""
        return sum(self.binary[name] for name in TARGETS)


def read(file: Path) -> Measured:
    """Read what `--measure` printed."""
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    rows = content["kernel"]
    client, found = (statistics.fmean(row["client"][place] for row in rows) for place in range(2))
    kernels = tuple(
        MeasuredKernel(
            row["size"][0],
            {name: dict(zip(PARTS, row[name], strict=True)) for name in TARGETS},
            *row["unit"],
        )
        for row in rows
    )
    return Measured(content["start"]["seconds"], client, found, content["binary"], kernels)


@dataclass
class Costs:
    """CPU seconds of one unit.

    Attributes:
        own: of the process that would be the worker.
        children: of what it has started.
    """

    own: float = 0.0
    children: float = 0.0

    def all(self) -> float:
        """Return the sum."""
        return self.own + self.children


@contextmanager
def counted() -> Iterator[Costs]:
    """Measure the body."""
    costs, before = Costs(), (time.process_time(), of_children())
    yield costs
    costs.own, costs.children = time.process_time() - before[0], of_children() - before[1]


def of_children() -> float:
    """Return the CPU seconds so far of processes that have ended, and of those that stay."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = ended.ru_utime + ended.ru_stime
    for process in psutil.Process().children():
        times = process.cpu_times()
        seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def compiled(job: CompileJob, *, shares: bool = True) -> tuple[PackedResult, Costs, float]:
    """Compile as a worker of a cluster does; the last value is what it took to send the unit."""
    began = time.process_time()
    packed = work_unit.pack(job.request, job.triton, 600, "", shares=shares, packs=True)
    sent = time.process_time() - began
    with counted() as costs:
        answer = work_unit.compile_there(packed)
    if not isinstance(answer, PackedResult):
        raise answer if isinstance(answer, SmithError) else TypeError(answer)
    return answer, costs, sent


def measure(file: Path, pythons: Sequence[Path], sample: int, seed: int) -> None:
    """Compile a sample of a list, and print the file that `read` reads."""
    entries = random.Random(seed).sample(kernel_list.read(file), sample)  # noqa: S311 - no secret
    every = targets.parse_all(TARGETS)
    sides = [rehearsal.parse_side(str(each.absolute()), "PYTHON") for each in pythons]
    # On a busy machine, a compile may take so long that the other interpreter would end meanwhile.
    never_unused = mock.patch.object(call, "_UNUSED", 1e6)
    with tempfile.TemporaryDirectory() as folder, never_unused:
        os.environ["TRITONSMITH_HOME"] = folder
        workspace.default().claim()
        listed = two_sides.listed_kernels(entries, file, CompileRequest(Path(), "", "", every))
        requests = [replace(kernel.asked, targets=every, disassemble=False) for kernel in listed]
        makes = kept.KeyedJobs()
        pairs = [
            [makes.job(asked, side, entry.module) for side in sides]
            for entry, asked in zip(entries, requests, strict=True)
        ]
        print(f"# CPU seconds; {file.parent.name}/{file.name}; Triton {sides[0].triton}")
        print(f"# {datetime.now(UTC):%Y-%m-%d}, {machine.read().cores} cores of {model()}")
        starts: list[float] = []
        binaries: dict[str, list[Path]] = {name: [] for name in TARGETS}
        print("kernel = [")
        for entry, pair in zip(entries, pairs, strict=True):
            try:
                if not starts:  # starts both workers
                    for job in pair:
                        compiled(job, shares=False)
                if len(starts) < STARTS:
                    starts.append(start_of(pair[0]))
                row, manifest = measured_kernel(*pair)
            except SmithError as error:  # a package that is not installed beside PYTHON
                print(f"    # {entry.name} is left out: {error.what}")
                continue
            for name, point in zip(TARGETS, manifest.points, strict=True):
                binaries[name] += [
                    manifest.folder / stage.path for kind, stage in point.stages.items() if kind in BINARY
                ]
            values = (f"{name} = {[round(part, 4) for part in value]}" for name, value in row.items())
            print(f"    {{ {', '.join((f'name = {json.dumps(entry.name)}', *values))} }},", flush=True)
        print(f"]\n\n[start]\nseconds = {statistics.fmean(starts):.3f}\n\n[binary]")
        for name, paths in binaries.items():
            print(f"{name} = {disassembled(paths, sides[0]):.3f}  # of {len(paths)}, each")


def start_of(job: CompileJob) -> float:
    """Return the CPU seconds of an interpreter that imports Triton."""
    with mock.patch.object(call, "_DEATHS", 0):  # no worker is asked
        _, cold, _ = compiled(job, shares=False)
    _, warm, _ = compiled(job, shares=False)
    return cold.all() - warm.all()


def measured_kernel(job: CompileJob, again: CompileJob) -> tuple[dict[str, list[float]], Manifest]:
    """Measure a kernel in all ways, one after the other; return the figures and the manifest.

    Args:
        job: by one Triton.
        again: by the other one, which finds the stages of the first.
    """
    answer, whole, sent = compiled(job)
    _, found, _ = compiled(again)
    parts = {name: parts_of(point) for name, point in zip(TARGETS, answer.manifest.points, strict=True)}
    began = time.process_time()
    own = kept.merged(job, "", [replace(answer.manifest, folder=job.out)])
    kept.keep(job, own, answer.parts)
    client = sent + time.process_time() - began
    finder = kept.ResultFinder("")
    began = time.process_time()
    finder.find(job)
    asked = time.process_time() - began
    kept_files.write_packed(job.out, answer.parts)
    compiles = sum(map(sum, parts.values()))
    unit = [whole.all() - compiles, found.all()]
    return {"size": [size_of(job.request)], **parts, "unit": unit, "client": [client, asked]}, own


def disassembled(binaries: Sequence[Path], triton: Triton) -> float:
    """Return the CPU seconds to disassemble a binary, where many are read at once."""
    place = tritons.place_of(triton)
    packages = [tritons.package(place.python)]
    with tempfile.TemporaryDirectory() as folder, counted() as costs:
        for tool in (replace(tool, kept=Path(folder)) for tool in place.programs.disassemblers):
            own = [path for path in binaries if path.suffix == f".{tool.binary}"]
            tool.read_ahead(own, packages)
            for path in own:
                tool.as_compiled(path, packages)
    return costs.all() / max(1, len(binaries))


def parts_of(point: Point) -> list[float]:
    """Return the CPU seconds of each of `PARTS`."""
    if point.status != "ok":
        return [point.seconds, *[0.0] * (len(PARTS) - 1)]
    return [sum(point.cpu_seconds.get(name, 0.0) for name in names) for names in PARTS.values()]


def model() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )


if __name__ == "__main__":
    sys.exit(main())
