"""What a farm is expected to take on many cores, simulated from measured compiles.

    python benchmarks/farm_schedule.py [--kernels N] [--specializations N] [--cores N] [--seed N]
    python benchmarks/farm_schedule.py --measure LIST PYTHON AGAIN [--sample N] [--seed N] > FILE.toml

The first form draws that many kernels from `farm_schedule.toml`, and schedules their units in the order of
the tool's pool: cold, and with the results of the base kept. The second form makes that file: it compiles a
sample of LIST for h100 and mi300x as a worker of a cluster does, in a workspace of its own, by PYTHON, which
has Triton, and by AGAIN, which has hard links to the same files in another folder, so that stages are shared.
Both sides of the farm are taken to be as fast, and a100 and b200 to take as long as h100. Times are CPU
seconds: those of a wall clock grow with whatever else a machine does.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
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
from tritonsmith.lab.batch import kept, work_unit
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.run import size_of
from tritonsmith.lab.batch.work_unit import RemoteResult
from tritonsmith.lab.compare import rehearsal, two_sides

MEASURED = Path(__file__).with_suffix(".toml")
TARGETS = ("h100", "mi300x")  # that are measured
SIMULATED = ("h100", "h100", "h100", "mi300x")  # what stands for a100, h100, b200 and mi300x
MINUTE = 60.0
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
    """

    name: str
    same: float
    shared: Mapping[str, Sequence[str]]


CHANGES = (
    Change("two compilers that differ", 0.0, {}),
    # docs/farm.md, "No noise": of eight commits that change code. libtriton makes `hsaco`, a program `cubin`.
    Change("a commit that changes a pass", 76 / 96, {"h100": ("assembly",)}),
    # As docs/farm.md has it for #4692 and #4662: no kernel had another first IR.
    Change(
        "a commit that changes the front end", 24 / 24, dict.fromkeys(TARGETS, ("middle", "back", "assembly"))
    ),
)
GOALS = {"cold": 20.0, "kept": 4.0}  # minutes


@dataclass(frozen=True)
class Savings:
    """What a farm does only once.

    Attributes:
        name: of the column.
        warm: workers keep an interpreter that has imported Triton.
        shared: stages are shared between the sides.
        lazy: binaries that are the same on both sides are not disassembled, and the others many at once.
    """

    name: str
    warm: bool = False
    shared: bool = False
    lazy: bool = False


SAVINGS = (
    Savings("an interpreter for each unit"),
    Savings("warm workers", warm=True),
    Savings("shared stages", warm=True, shared=True),
    Savings("late disassembly, many at once", warm=True, shared=True, lazy=True),
)


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
    print(f"{len(SIMULATED)} targets x 2 sides on {arguments.cores} cores; minutes\n")
    columns = ("change", "base", *(savings.name for savings in SAVINGS), "aim", "cores for it")
    print("|", " | ".join(columns), "|")
    print("|" + "---|" * len(columns))
    for change in CHANGES:
        for base, aim in GOALS.items():
            cells = [change.name, base]
            for savings in SAVINGS:
                units = ordered(measured, drawn, luck, change, savings, kept_base=base == "kept")
                cells.append(f"{scheduled(units, arguments.cores) / MINUTE:.1f}")
            cells += [f"{aim:.0f}", f"{sum(units) / (aim * MINUTE):.0f}"]
            print("|", " | ".join(cells), "|")
    rest = len(SIMULATED) * measured.target + measured.unit
    compiles = statistics.fmean(sum(kernel.compiles()) for kernel in drawn)
    reading = statistics.fmean(kernel.disassemblies() for kernel in drawn)
    at_once = statistics.fmean(kernel.disassemblies(measured.merged) for kernel in drawn)
    print(f"\na unit, CPU seconds: interpreter {measured.start:.2f}, compiles {compiles:.2f}, ", end="")
    print(f"disassembly {reading:.2f}, many at once {at_once:.2f}, the rest {rest:.2f}", end="")
    results = {"cold": 2 * count * measured.client, "kept": count * (measured.client + measured.kept)}
    print(
        "\nthe first process, minutes:", ", ".join(f"{base} {t / MINUTE:.1f}" for base, t in results.items())
    )


def ordered(
    measured: Measured,
    drawn: Sequence[MeasuredKernel],
    luck: Sequence[float],
    change: Change,
    savings: Savings,
    *,
    kept_base: bool,
) -> list[float]:
    """Return the seconds of the units in the order in which they begin."""
    rows = list(zip(drawn, (number < change.same for number in luck), strict=True))
    # What the pool sorts by: the base's seconds where they are kept, and otherwise the size.
    rows.sort(key=lambda row: sum(row[0].compiles()) if kept_base else row[0].size, reverse=True)
    # When everything is compiled, of both sides. A base that was kept may lack it, too.
    late = [kernel.disassemblies(measured.merged) for kernel, same in rows if savings.lazy and not same] * 2
    base = [unit(measured, kernel, change, savings, same=same) for kernel, same in rows]
    head = [unit(measured, kernel, change, savings, same=same, second=True) for kernel, same in rows]
    # Triton by Triton: see `run._in_order`.
    return [*([] if kept_base else base), *head, *late]


def unit(
    measured: Measured,
    kernel: MeasuredKernel,
    change: Change,
    savings: Savings,
    *,
    same: bool,
    second: bool = False,
) -> float:
    """Return the seconds of a unit.

    Args:
        measured: what each unit takes.
        kernel: its kernel.
        change: between the sides.
        savings: what is done once.
        same: both sides make the same binary.
        second: of the side that finds what the other one has made.
    """
    shared = change.shared if savings.shared and second and same else {}
    seconds = measured.unit + len(SIMULATED) * measured.target + (0.0 if savings.warm else measured.start)
    for target in SIMULATED:
        parts = kernel.parts[target]
        seconds += sum(value for name, value in parts.items() if name not in shared.get(target, ()))
    if not savings.lazy:
        seconds += kernel.disassemblies()
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
        disassembly: CPU seconds to disassemble the binary of each target.
    """

    size: float
    parts: Mapping[str, Mapping[str, float]]
    disassembly: Mapping[str, float]

    def disassemblies(self, merged: float | None = None) -> float:
        """Return the seconds to disassemble all simulated binaries.

        Args:
            merged: those for a cubin among many that are merged; None for one by one.
        """
        seconds = self.disassembly if merged is None else {**self.disassembly, TARGETS[0]: merged}
        return sum(seconds[target] for target in SIMULATED)

    def compiles(self) -> list[float]:
        """Return the seconds of each compile."""
        return [sum(self.parts[target].values()) for target in SIMULATED]


@dataclass(frozen=True)
class Measured:
    """What `--measure` prints, in CPU seconds.

    Attributes:
        start: of an interpreter that imports Triton.
        unit: of a unit besides its targets.
        target: of a target besides its compile: a fork, files, measuring.
        client: of the first process, for a unit that is new: it writes files and the database.
        kept: for one that is kept.
        merged: of a cubin that is disassembled with many others.
        kernels: the kernels of the sample.
    """

    start: float
    unit: float
    target: float
    client: float
    kept: float
    merged: float
    kernels: tuple[MeasuredKernel, ...]


def read(file: Path) -> Measured:
    """Read what `--measure` printed."""
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    rows = content["kernel"]
    whole = [measured_row(row) for row in rows if "total" not in row]
    kernels = (*whole, *(scaled(row, whole) for row in rows if "total" in row))
    # Differences of units are noisy, as where the machine does something else.
    units = [row["unit"] for row in rows if "unit" in row]
    start, unit, target, client, found = map(statistics.median, zip(*units, strict=True))
    return Measured(start, unit, target, client, found, content["many"]["merged"], kernels)


def measured_row(row: Mapping[str, Any]) -> MeasuredKernel:
    """Return a kernel of which everything was measured."""
    parts = {name: dict(zip(PARTS, row[name], strict=True)) for name in TARGETS}
    return MeasuredKernel(row["size"][0], parts, dict(zip(TARGETS, row["disassembly"], strict=True)))


def scaled(row: Mapping[str, Any], others: Sequence[MeasuredKernel]) -> MeasuredKernel:
    """Return a kernel that was measured for the first target alone: the rest is as of the others."""
    # The median: one kernel in twenty takes five times as long for AMD.
    wholes = [sum(other.parts[TARGETS[0]].values()) for other in others]
    parts = {
        target: {
            name: row["total"][0]
            * statistics.median(
                other.parts[target][name] / whole for other, whole in zip(others, wholes, strict=True)
            )
            for name in PARTS
        }
        for target in TARGETS
    }
    reading = {name: statistics.median(other.disassembly[name] for other in others) for name in TARGETS}
    return MeasuredKernel(row["size"][0], parts, reading)


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


def compiled(job: CompileJob, *, shares: bool = True) -> tuple[RemoteResult, Costs]:
    """Compile as a worker of a cluster does."""
    packed = work_unit.pack(job.request, job.triton, 600, "", shares=shares)
    with counted() as costs:
        answer = work_unit.compile_there(packed)
    if isinstance(answer, SmithError):
        raise answer
    return answer, costs


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
        print(f"# {file.parent.name}/{file.name}, {', '.join(TARGETS)}; CPU seconds")
        when = f"{datetime.now(UTC):%Y-%m-%d}"
        print(f"# Triton {sides[0].triton}, {when}, {machine.read().cores} cores of {model()}, not idle")
        cubins: list[Path] = []
        named = sorted(zip(entries, pairs, strict=True), key=lambda row: size_of(row[1][0].request))
        warm = False
        for number, (entry, pair) in enumerate(named):
            try:
                if not warm:  # starts both workers
                    for job in pair:
                        compiled(job, shares=False)
                    warm = True
                # What a unit takes besides its compiles is seen better where these are short.
                row, made = measured_kernel(*pair, whole=number < sample / 2)
            except SmithError as error:  # a package that is not installed beside PYTHON
                print(f"\n# {entry.name} is left out: {error.what}")
                continue
            cubins += made
            print(f"\n[[kernel]]\nname = {json.dumps(entry.name)}")
            for name, value in row.items():
                print(f"{name} = {[round(part, 3) for part in value]}")
            sys.stdout.flush()
        print(f"\n[many]\nmerged = {merged(cubins, sides[0]):.3f}  # of {len(cubins)} cubins, each")


def measured_kernel(
    job: CompileJob, again: CompileJob, *, whole: bool
) -> tuple[dict[str, list[float]], list[Path]]:
    """Measure a kernel in all ways, one after the other; return the figures and the cubins.

    Args:
        job: by one Triton.
        again: by the other one, which finds the stages of the first.
        whole: measure also what a unit takes besides its compiles.
    """
    answer, warm = compiled(job)
    _, found = compiled(again)
    first = replace(again.request, targets=again.request.targets[:1])
    _, found_first = compiled(replace(again, request=first))
    parts = {name: parts_of(point) for name, point in zip(TARGETS, answer.manifest.points, strict=True)}
    out = workspace.default().root / "client" / job.out.name
    with counted() as client:
        manifest = work_unit.unpack(answer, out)
        kept.keep(job, replace(kept.merged(job, "", [manifest]), folder=out))
    row = {"size": [size_of(job.request)], **parts, "disassembly": disassembled(manifest, job.triton)}
    points = [point for point in manifest.points if "cubin" in point.stages]
    cubins = [manifest.folder / point.stages["cubin"].path for point in points]
    if not whole:
        return row, cubins
    with mock.patch.object(call, "_DEATHS", 0):  # no worker is asked
        _, cold = compiled(job, shares=False)
    finder = kept.ResultFinder("")
    with counted() as kept_before:
        finder.find(job)
    # The stages are found, so the rest of a unit is its front ends, and what is the same for each target.
    target = found.all() - found_first.all() - parts[TARGETS[1]][0]
    unit = found_first.all() - parts[TARGETS[0]][0] - target
    return row | {"unit": [cold.all() - warm.all(), unit, target, client.all(), kept_before.all()]}, cubins


def merged(cubins: Sequence[Path], triton: Triton) -> float:
    """Return the CPU seconds to disassemble a cubin where they are merged."""
    place = tritons.place_of(triton)
    with tempfile.TemporaryDirectory() as folder, counted() as costs:
        for tool in (tool for tool in place.programs.disassemblers if tool.binary == "cubin"):
            replace(tool, kept=Path(folder)).read_ahead(cubins, [tritons.package(place.python)])
    return costs.all() / len(cubins)


def disassembled(manifest: Manifest, triton: Triton) -> list[float]:
    """Return the CPU seconds to disassemble each binary of a folder, as the worker would."""
    place = tritons.place_of(triton)
    seconds = []
    for point in manifest.points:
        binaries = [manifest.folder / stage.path for stage in point.stages.values()]
        with counted() as costs:
            for tool in place.programs.disassemblers:
                for path in (path for path in binaries if path.suffix == f".{tool.binary}"):
                    read_by_first(tool.programs, tool.flags, path, tritons.package(place.python))
        seconds.append(costs.all())
    return seconds


def read_by_first(programs: Sequence[str], flags: Sequence[str], path: Path, triton: Path) -> None:
    """Run the first of these programs that there is and that can read a file."""
    for program in (name.replace("{triton}", str(triton)) for name in programs):
        argv = [program, *flags, str(path)]
        if (
            os.access(program, os.X_OK)
            and not subprocess.run(argv, capture_output=True, check=False).returncode
        ):
            return
    raise SystemExit(f"nothing disassembles {path}")


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
