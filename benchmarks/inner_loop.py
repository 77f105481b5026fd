"""The inner loop of Triton: an edit, a build, a run; plain CMake and Ninja against `build-triton`, in turns.

`python benchmarks/inner_loop.py PLAIN OURS [--whole] [--edit NAME] [--runs N]`: two environments that are
built, each from a worktree of its own at one commit, by `build-triton --debug --precompiled-headers off`
and `... on`, without a compiler cache (`launcher = "none"` under `[cache]`) and else alike. What the plain
side builds is what bare `ninja` builds; ours is what `--for opt` and `--for tests` build. The smallest of
all runs counts: a busy machine only ever adds. The worktrees are changed and put back.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build import explain
from tritonsmith.build.triton import recipe
from tritonsmith.core.envs import receipts, workspace
from tritonsmith.core.envs.settings import Purpose, TritonSettings

NINJA = str(Path(sys.executable).with_name("ninja"))
SOURCE = "lib/Dialect/TritonGPU/Transforms/Coalesce.cpp"
HEADER = "include/triton/Dialect/TritonGPU/IR/Dialect.h"
TABLE = "include/triton/Dialect/TritonGPU/IR/TritonGPUOps.td"
TEST = "TritonGPU/coalesce.mlir"
COMPILE = "Building CXX object "
OP = 'def TTG_InnerLoopOp{} : TTG_Op<"inner_loop_{}"> {{ let summary = "of a benchmark"; }}\n\n#endif'


@dataclass(frozen=True)
class Side:
    """One environment.

    Attributes:
        build: its build folder.
        source: its worktree.
        llvm: prefix of its LLVM.
        ours: it builds what is asked for, not all.
    """

    build: Path
    source: Path
    llvm: Path
    ours: bool

    @property
    def opt(self) -> Path:
        """The program that an edit of a pass is tried with."""
        return self.build / "bin" / "triton-opt"

    def targets(self, purpose: Purpose) -> tuple[str, ...]:
        """What it builds; none for all."""
        return recipe.resolve_targets(TritonSettings(for_=purpose), self.source) if self.ours else ()

    def ninja(self, purpose: Purpose) -> None:
        """Build."""
        run(NINJA, "-C", str(self.build), *self.targets(purpose))

    def lit(self) -> None:
        """Run one lit test, which must pass."""
        path = f"{self.llvm / 'bin'}{os.pathsep}{os.environ['PATH']}"  # for FileCheck
        lit = str(self.build.parent / "venv" / "bin" / "lit")
        run("env", f"PATH={path}", lit, str(self.build / "test" / TEST))


def run(*argv: str) -> None:
    """Run a command that must succeed."""
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def side(name: str, *, ours: bool) -> Side:
    """The environment of this name, as its last build left it."""
    env = workspace.default().env(name)
    last = receipts.read(env.receipt("build-triton"))
    if last is None:
        raise SystemExit(f"environment {name!r} is not built")
    return Side(env.build, Path(last["source"]), Path(last["llvm"]), ours)


@contextmanager
def changed(path: Path, change: Callable[[str], str]) -> Iterator[None]:
    """A file changed for the body; then it has its text again, and the build is out of date once more."""
    text = path.read_text(encoding="utf-8")
    path.write_text(change(text), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def whole(one: Side, _: int) -> None:
    """Everything, from nothing: both build all."""
    run(NINJA, "-C", str(one.build), "-t", "clean")
    run(NINJA, "-C", str(one.build))


def one_cpp(one: Side, number: int) -> None:
    """One .cpp of a pass, to a triton-opt that runs."""
    with changed(one.source / SOURCE, lambda text: f"{text}// {number}\n"):
        one.ninja("opt")
        run(str(one.opt), "--version")


def central_header(one: Side, _: int) -> None:
    """A touched central header: both build all."""
    (one.source / HEADER).touch()
    one.ninja("all")


def one_td(one: Side, number: int) -> None:
    """One more operation in a dialect's .td, to a lit test that passes."""
    with changed(one.source / TABLE, lambda text: more(text, number)):
        one.ninja("tests")
        one.lit()


def more(text: str, number: int) -> str:
    """A dialect's .td with one more operation."""
    head, _, tail = text.rpartition("#endif")
    return head + OP.format(number, number) + tail


SCENARIOS = (one_cpp, central_header, one_td)


def sampled(
    one: Side, count: int, change: Callable[[Side], AbstractContextManager[None]]
) -> tuple[float, float, int]:
    """CPU seconds of all compiles after a change, by a random sample; of the rest; and how many compiles.

    Precompiled headers are made and counted whole. The rest are tables, links and the lit test, all of them
    run: links with objects that are as old as the sample left them.
    """
    with change(one):
        targets = one.targets("tests")
        steps = explain.dry_run(Path(NINJA), one.build, targets).steps
        made = sorted(step.removeprefix(COMPILE) for step in steps if step.startswith(COMPILE))
        objects = [name for name in made if "tritonsmith_pch" not in name]
        chosen = random.Random(1).sample(objects, count)  # noqa: S311 - the same on both sides
        headers = [name for name in made if name.endswith(".pch")]
        linked = [step.split()[-1] for step in steps if step.startswith("Linking ")]
        tables = cpu(one, ["TritonTableGen"])
        cost = [cpu(one, names) if names else 0.0 for names in (headers, chosen)]
        links = measured(lambda *_: link(one, linked), one, 0)[1]
        lit = measured(lambda *_: one.lit(), one, 0)[1]
    return cost[0] + cost[1] * len(objects) / count, tables + links + lit, len(objects)


def link(one: Side, outputs: list[str]) -> None:
    """Link these, whatever Ninja thinks of their objects."""
    argv = (NINJA, "-C", str(one.build), "-t", "commands", "-s", *outputs)
    commands = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    for command in commands.splitlines():
        if command.startswith(": && "):
            run("sh", "-c", f"cd {shlex.quote(str(one.build))} && {command}")


def cpu(one: Side, outputs: list[str]) -> float:
    """CPU seconds of building these."""
    return measured(lambda *_: run(NINJA, "-C", str(one.build), *outputs), one, 0)[1]


@contextmanager
def touched_header(one: Side) -> Iterator[None]:
    """The central header, touched."""
    (one.source / HEADER).touch()
    yield


def changed_td(one: Side) -> AbstractContextManager[None]:
    """One more operation in a dialect."""
    return changed(one.source / TABLE, lambda text: more(text, 0))


SAMPLED = {central_header.__name__: touched_header, one_td.__name__: changed_td}


def measured(work: Callable[[Side, int], None], one: Side, number: int) -> tuple[float, float]:
    """Wall and CPU seconds of some work, children included."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work(one, number)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a line per scenario: both sides, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plain")
    parser.add_argument("ours")
    parser.add_argument("--whole", action="store_true", help="also build everything from nothing, once")
    names = [work.__name__ for work in SCENARIOS]
    parser.add_argument("--edit", action="append", choices=names, help="only these (default: all)")
    parser.add_argument("--runs", type=int, default=3, help="of the quickest scenario; the others have one")
    parser.add_argument(
        "--sample", type=int, default=0, help="instead: so many compiles of each edit that costs many"
    )
    given = parser.parse_args()
    sides = side(given.plain, ours=False), side(given.ours, ours=True)
    if given.sample:
        for name, change in SAMPLED.items():
            if name not in (given.edit or names):
                continue
            found = [sampled(one, given.sample, change) for one in sides]
            for words, (compiles, rest, number) in zip(("plain", "ours"), found, strict=True):
                said = f"{name}, {words}: {number} compiles, {given.sample} sampled"
                print(f"{said}: {compiles:.0f} CPU s; the rest {rest:.1f}", flush=True)
            plain, ours = (compiles + rest for compiles, rest, _ in found)
            print(f"{ours / plain:.2f}", flush=True)
        return
    print(f"{'':<18}{'plain: wall':>12}{'CPU':>9}{'ours: wall':>12}{'CPU':>9}{'wall':>7}{'CPU':>7}")
    edits = (work for work in SCENARIOS if work.__name__ in (given.edit or names))
    for work in (*((whole,) if given.whole else ()), *edits):
        runs = given.runs if work is one_cpp else 1
        for one in sides:
            run(NINJA, "-C", str(one.build))  # what the scenario before left to do
        rows = [[measured(work, one, number) for one in sides] for number in range(runs)]
        (wall, cpu), (our_wall, our_cpu) = (
            tuple(min(row[at][kind] for row in rows) for kind in (0, 1)) for at in (0, 1)
        )
        print(
            f"{work.__name__:<18}{wall:>10.1f} s{cpu:>7.1f} s{our_wall:>10.1f} s{our_cpu:>7.1f} s"
            f"{our_wall / wall:>7.2f}{our_cpu / cpu:>7.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
