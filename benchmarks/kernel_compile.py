"""One kernel for 12 targets: against 12 processes with one target each, and against one warm loop.

    python benchmarks/kernel_compile.py PYTHON [--other WORKER] [--rounds N] [--points N]

PYTHON has Triton. Prints seconds and ratios of one run; all three make the same stages with Triton's own
`triton.compile`, and none of them disassembles. Best of N rounds. WORKER is that of another commit: its start
and its whole run are measured in the same rounds.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

Took = tuple[float, float]  # seconds: wall, CPU
HERE = Path(__file__).resolve().parent
WORKER = HERE.parent / "src" / "tritonsmith" / "worker"
KERNEL = HERE.parent / "src" / "tritonsmith" / "compiler" / "examples" / "tiled_matmul.py"
TARGETS = [("cuda", arch) for arch in (75, 80, 86, 87, 89, 90)] * 2  # each with two options: 12 points
SIGNATURE = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,64,64,32"

# What upstream's tools/compile.py does, less the C files: import, load, compile one.
ONE = """
import importlib.util, inspect, sys, time
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
def load(path):
    spec = importlib.util.spec_from_file_location("kernel", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    spec.loader.exec_module(module)
    return module.tiled_matmul
def source(kernel):
    texts = sys.argv[2].split(",")
    kinds = dict(zip(kernel.arg_names, (text.split(":")[0] for text in texts)))
    hinted = [name for name, text in zip(kernel.arg_names, texts) if text.endswith(":16")]
    values = {name: int(text) for name, text in kinds.items() if text.isdigit()}
    if "constexprs" not in inspect.signature(ASTSource.__init__).parameters:
        sys.exit("Triton 3.3 or later, please: this loop speaks its interface")
    kinds.update(dict.fromkeys(values, "constexpr"))
    attrs = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in hinted}
    return ASTSource(fn=kernel, signature=kinds, constexprs=values, attrs=attrs)
kernel = load(sys.argv[1])
def compile_(backend, arch, warps):
    return triton.compile(source(kernel), target=GPUTarget(backend, arch, 32), options={"num_warps": warps})
"""
SINGLE = ONE + "compile_(sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))"
LOOP = (
    ONE
    + """
import os, tempfile
points = [line.split() for line in sys.stdin]
for round_ in range(2):  # the second is warm
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(dir=os.environ["TMPDIR"])
    began, before = time.monotonic(), sum(os.times()[:4])
    for backend, arch, warps in points:
        compile_(backend, int(arch), int(warps))
    print(time.monotonic() - began, sum(os.times()[:4]) - before)
"""
)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", type=Path, metavar="PYTHON", help="an interpreter that has Triton")
    parser.add_argument("--other", type=Path, metavar="WORKER", help="the worker of another commit")
    parser.add_argument("--rounds", type=int, default=2, metavar="N", help="best of so many (2)")
    parser.add_argument("--points", type=int, default=12, metavar="N", help="targets with options (12, all)")
    arguments = parser.parse_args()
    python, other = arguments.python, arguments.other
    points = [(*target, warps) for target, warps in zip(TARGETS, [4] * 6 + [8] * 6, strict=True)]
    points = points[: arguments.points]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows: dict[str, Callable[[], Took]] = {
            f"{len(points)} processes, one after the other": lambda: single(python, points, place),
            "one process, its second loop": lambda: loop(python, points, place),
            "kernel.compile's worker": lambda: worker(python, points, place)[0],
            "the same, without its start": lambda: worker(python, points, place)[1],
            "import triton": lambda: run([str(python), "-c", "import triton"], place),
            "worker until the first point": lambda: first_point(python, points, place),
        }
        if other:
            rows["the other worker"] = lambda: worker(python, points, place, other)[0]
            rows["the other until the first point"] = lambda: first_point(python, points, place, other)
        best: dict[str, Took] = dict.fromkeys(rows, (float("inf"), float("inf")))
        for _ in range(arguments.rounds):  # in turn: what else the machine does hits all of them
            for name, measure in rows.items():
                best[name] = min(best[name], measure())
    for name, (took, spent) in best.items():
        print(f"{name:<36} {took:7.2f} s  {spent:7.2f} s of CPU time")
    singles, warm, all_, inner, start, first, *others = best.values()
    print(f"{len(points)} processes / worker", end="                ")
    print(f"{singles[0] / all_[0]:7.2f}    CPU {singles[1] / all_[1]:.2f}")
    print(f"warm loop / worker without its start {warm[0] / inner[0]:7.2f}")
    print(f"the same in CPU time                 {warm[1] / inner[1]:7.2f}")
    print(f"start of the worker, less `import triton` {first[0] - start[0]:.2f} s")
    for name, ours, its in zip(("all of it", "its start"), (all_, first), others, strict=False):
        print(f"worker / the other, {name:<16} {ours[0] / its[0]:7.2f}    CPU {ours[1] / its[1]:.2f}")
    return 0


def cpu() -> float:
    """Seconds of CPU time of children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(argv: list[str], place: Path) -> Took:
    """A command, in an environment without caches."""
    cache = tempfile.mkdtemp(dir=place)
    environ = {**os.environ, "TRITON_CACHE_DIR": cache, "TMPDIR": cache}
    began, before = time.monotonic(), cpu()
    subprocess.run(argv, check=True, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began, cpu() - before


def single(python: Path, points: list[tuple[Any, ...]], place: Path) -> Took:
    """One process for each point."""
    argv = [str(python), "-c", SINGLE, str(KERNEL), SIGNATURE]
    took = [run([*argv, *map(str, point)], place) for point in points]
    return sum(one[0] for one in took), sum(one[1] for one in took)


def loop(python: Path, points: list[tuple[Any, ...]], place: Path) -> Took:
    """One process, all points, for the second time."""
    environ = {**os.environ, "TMPDIR": str(place)}
    done = subprocess.run(
        [str(python), "-c", LOOP, str(KERNEL), SIGNATURE],
        input="".join(f"{' '.join(map(str, point))}\n" for point in points),
        text=True,
        check=True,
        capture_output=True,
        env=environ,
    )
    wall, spent = done.stdout.splitlines()[-1].split()
    return float(wall), float(spent)


def request(python: Path, points: list[tuple[Any, ...]], place: Path) -> Path:
    """What the worker is asked for."""
    from tritonsmith.compiler import run as compile_run  # noqa: PLC0415
    from tritonsmith.compiler.interpreter import Interpreter  # noqa: PLC0415
    from tritonsmith.compiler.request import (  # noqa: PLC0415
        CompilePoint,
        CompileRequest,
        expand_points,
    )
    from tritonsmith.compiler.source import find  # noqa: PLC0415
    from tritonsmith.compiler.targets import Target  # noqa: PLC0415
    from tritonsmith.core.envs.workspace import Workspace  # noqa: PLC0415 - the tool's, not the interpreter's
    from tritonsmith.worker.border import text_of  # noqa: PLC0415

    work = Path(tempfile.mkdtemp(dir=place))
    kernel = find(KERNEL.read_text(encoding="utf-8"), "tiled_matmul", KERNEL)
    wanted = []
    for backend, arch, warps in points:
        target = Target(backend, arch, 32)
        asked = CompileRequest(KERNEL, "tiled_matmul", SIGNATURE, (target,), {"num_warps": warps})
        one = expand_points(asked, kernel)[0]
        wanted.append(CompilePoint(f"{one.id}-{warps}", target, one.bound, one.options))
    where = Interpreter(python, Workspace(place), place, len(os.sched_getaffinity(0)), 600)
    content = compile_run.worker_request(asked, "tiled_matmul", wanted, where, work / "out", work)
    path = work / "request.json"
    path.write_text(text_of(replace(content, disassemblers={})), encoding="utf-8")
    return path


def worker(
    python: Path, points: list[tuple[Any, ...]], place: Path, path: Path = WORKER
) -> tuple[Took, Took]:
    """The worker: all of it, and from its first child on, as the warm loop is measured.

    The CPU time of the second is less that of `import triton`, which the first has.
    """
    before = cpu()
    file = request(python, points, place)
    argv = [str(python), str(path), "compile", str(file)]
    began = time.monotonic()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None  # noqa: S101 - for the type checker
        head = file.with_name("results.jsonl")
        while not head.exists() or not head.stat().st_size:  # its first line: it forks now
            time.sleep(0.002)
        started = time.monotonic()
        process.stdout.read()
    ended, spent = time.monotonic(), cpu() - before
    start = run([str(python), "-c", "import triton"], place)[1]
    return (ended - began, spent), (ended - started, spent - start)


def first_point(python: Path, points: list[tuple[Any, ...]], place: Path, path: Path = WORKER) -> Took:
    """Until the worker has imported Triton, loaded the kernel and forks."""
    whole, inner = worker(python, points[:1], place, path)
    return whole[0] - inner[0], whole[1] - inner[1]


if __name__ == "__main__":
    sys.exit(main())
