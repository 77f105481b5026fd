"""LLVM's closure on many cores, with precompiled headers and without, simulated from a finished build.

`python benchmarks/llvm_schedule.py --closure PATH --probe PATH --ratio R [--compile S] [--cores N ...]`: the
folders are those of llvm_closure.py, and R is the CPU of a compile with a header over that without, by
llvm_levers.py. With `--compile`, each source takes S seconds instead of the log's, which has none of a step
that did not run, and too many of what ran beside other work.

A step takes as long as Ninja's log says, and begins when what it needs is there and a core is free; of those
that wait, the one with the longest way to the end comes first. Without headers, the steps that make them take
no time and those that use them 1 / R as long. A header is on the way to all of its users, so the more cores,
the less it saves.
"""

from __future__ import annotations

import argparse
import heapq
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from llvm_closure import NINJA, ninja

from tritonsmith.core.plan import BuildUsed

NODE = re.compile(r'^"(\w+)" \[label="(.*?)"(, shape=ellipse)?')
ARROW = re.compile(r'^"(\w+)" -> "(\w+)"')
HEADER = re.compile(r"cmake_pch[.]hxx[.]pch$")


@dataclass
class Graph:
    """Steps and files.

    Attributes:
        seconds: of each; those of a step count once, whatever it writes.
        waits: what each needs.
        headers: the steps that precompile them.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    waits: dict[str, set[str]] = field(default_factory=dict)
    headers: set[str] = field(default_factory=set)


def logged(build: Path) -> dict[str, float]:
    """Seconds of the last run of each step, by output."""
    rows = (line.split("\t") for line in (build / ".ninja_log").read_text().splitlines()[1:])
    return {row[3]: (int(row[1]) - int(row[0])) / 1000 for row in rows}


def read(build: Path, targets: list[str], each: float | None = None) -> Graph:
    """What Ninja runs for some targets. What the log lacks takes no time."""
    names: dict[str, str] = {}
    steps: set[str] = set()
    waits: dict[str, set[str]] = defaultdict(set)
    for line in ninja(build, "-t", "graph", *targets).splitlines():
        if found := NODE.match(line):
            names[found[1]] = found[2]
            steps |= {found[1]} if found[3] else set()
        elif arrow := ARROW.match(line):
            waits[arrow[2]].add(arrow[1])
    times = logged(build)
    made = Graph(dict.fromkeys(names, 0.0), {node: waits[node] for node in names})
    for node, name in names.items():
        step = next(iter(waits[node] & steps), node)
        seconds = each if each is not None and name.endswith(".cpp.o") else times.get(name, 0.0)
        made.seconds[step] = max(made.seconds[step], seconds)
        made.headers |= {step} if HEADER.search(name) else set()
    return made


def without_headers(graph: Graph, ratio: float) -> Graph:
    """The same build with nothing precompiled: a compile that used a header takes 1 / `ratio` as long."""
    made = {output for output in graph.waits if graph.waits[output] & graph.headers} | graph.headers
    seconds = dict(graph.seconds)
    for node, needed in graph.waits.items():
        if node in graph.headers:
            seconds[node] = 0.0
        elif needed & made:
            seconds[node] /= ratio
    return Graph(seconds, graph.waits)


def makespan(graph: Graph, cores: int) -> float:
    """Seconds from the first step to the last on some cores."""
    users: dict[str, list[str]] = defaultdict(list)
    for node, needed in graph.waits.items():
        for one in needed:
            users[one].append(node)
    missing = {node: len(needed) for node, needed in graph.waits.items()}
    order = [node for node, count in missing.items() if not count]
    for node in order:  # grows
        for user in users[node]:
            missing[user] -= 1
            order += [] if missing[user] else [user]
    way: dict[str, float] = {}
    for node in reversed(order):
        way[node] = graph.seconds[node] + max((way[user] for user in users[node]), default=0.0)
    missing = {node: len(needed) for node, needed in graph.waits.items()}
    ready = [(-way[node], node) for node, count in missing.items() if not count]
    heapq.heapify(ready)
    running: list[tuple[float, str]] = []
    now, busy = 0.0, 0
    while ready or running:
        while ready and (busy < cores or not graph.seconds[ready[0][1]]):
            _, node = heapq.heappop(ready)
            busy += bool(graph.seconds[node])
            heapq.heappush(running, (now + graph.seconds[node], node))
        now, node = heapq.heappop(running)
        busy -= bool(graph.seconds[node])
        for user in users[node]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (-way[user], user))
    return now


def main() -> int:
    """Command line; prints a line for each number of cores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--closure", type=Path, required=True, help="LLVM's finished build folder")
    parser.add_argument("--probe", type=Path, required=True, help="Triton's, configured against it")
    parser.add_argument("--ratio", type=float, required=True, help="compile with a header / without")
    parser.add_argument("--compile", type=float, help="seconds of each source (default: the log's)")
    parser.add_argument("--cores", type=int, action="append", help="default: 1, 2, 16, 64, 128")
    options = parser.parse_args()
    built = options.closure.resolve()
    used = BuildUsed(NINJA, built, 1, options.probe.resolve(), (), ("FileCheck",), phase="closure")
    with_headers = read(built, list(used.targets()), options.compile)
    bare = without_headers(with_headers, options.ratio)
    print("cores  with headers  without  ratio   (seconds, simulated)")
    for cores in options.cores or (1, 2, 16, 64, 128):
        ours, theirs = makespan(with_headers, cores), makespan(bare, cores)
        print(f"{cores:5}  {ours:12.0f}  {theirs:7.0f}  {ours / theirs:5.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
