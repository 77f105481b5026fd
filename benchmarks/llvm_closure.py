"""LLVM in Debug for a Triton: the closure as `setup-mlir` builds it, against the common recipe, in one run.

`python benchmarks/llvm_closure.py --closure PATH --probe PATH --folder PATH [--sample N] [--seed N]`, where
PATHs are the finished build folder of `setup-mlir --env debug`, `envs/debug/llvm-closure` in the workspace,
and a scratch folder.

The recipe is that of "Triton compiler development tips" (lei.chat): `llvm;mlir`, four code generators,
Debug, nothing else. Building it whole takes most of a day on two cores, so both sides are sampled in the
same way: each is configured, its steps are sorted into kinds, and of every kind a random sample is run, a
step of the one side after one of the other, so that both see the same machine. CPU is user and system time
of the step's processes; disk is the size of what the step wrote. Sums are the kind's mean times its number.

The recipe's archives and programs can be made only where all their objects are there: those of its own table
generators, which are small programs that take little of what they link. CPU and size for each byte that went
in are taken from these, and applied to the rest, whose objects count with the mean of the sampled compiles.
Headers that the recipe's compiles need are made beforehand by the closure's quick table generators; the steps
that make them are sampled with the recipe's own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tritonsmith.core.plan import BuildUsed

BIN = Path(sys.executable).parent
NINJA = BIN / "ninja"
RECIPE = (
    *("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"),
    *("-DLLVM_ENABLE_PROJECTS=llvm;mlir", "-DLLVM_TARGETS_TO_BUILD=AMDGPU;NVPTX;X86;AArch64"),
)
GENERATOR = re.compile(r"bin/((?:llvm|llvm-min|mlir)-tblgen|mlir-linalg-ods-yaml-gen|mlir-pdll) ")
ARCHIVER = re.compile(r"ar(-\d+)? D?qc")
KINDS = ("compile", "generate", "archive", "link")


@dataclass(frozen=True)
class Step:
    """One step of Ninja's.

    Attributes:
        build: folder that it runs in.
        output: its first output, relative to that.
        command: for the shell.
    """

    build: Path
    output: str
    command: str

    def inputs(self) -> list[str]:
        """Objects and archives of a link or an archive, relative to the folder."""
        words = (word for word in self.command.split() if word != self.output)
        return list(dict.fromkeys(word for word in words if word.endswith((".o", ".a"))))

    def able(self) -> bool:
        """Whether all of them are there."""
        return all((self.build / name).is_file() for name in self.inputs())


@dataclass
class Side:
    """One way to build LLVM.

    Attributes:
        name: for the table.
        build: configured build folder.
        steps: of each kind.
        cpu: CPU seconds of the sampled steps of each kind.
        disk: bytes that these wrote.
        scale: how many times a kind's sample the whole is; its number of steps over that of the sample.
    """

    name: str
    build: Path
    steps: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    disk: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    scale: dict[str, float] = field(default_factory=dict)

    def total(self, measured: dict[str, list[float]] | dict[str, list[int]]) -> float:
        """The sum over all kinds: that of the sample, scaled."""
        return sum(sum(of) * self.scale[kind] for kind, of in measured.items() if of)

    def weight(self, step: Step) -> float:
        """Bytes of the objects that go into a link or an archive, those of its archives included."""
        archives = {archive.output: archive for archive in self.steps["archive"]}
        names = [name for name in step.inputs() if name.endswith(".o")]
        names += [name for one in step.inputs() if one in archives for name in archives[one].inputs()]
        usual = statistics.mean(self.disk["compile"])
        paths = [step.build / name for name in dict.fromkeys(names)]
        return sum(path.stat().st_size if path.is_file() else usual for path in paths)


def ninja(build: Path, *argv: str) -> str:
    """Ninja's answer in a build folder."""
    return subprocess.run((NINJA, "-C", build, *argv), capture_output=True, text=True, check=True).stdout


def kind_of(command: str) -> str:
    """What a step does, by its command."""
    if command.startswith(": && "):
        return "archive" if ARCHIVER.search(command) else "link"
    if " -c " in command or "-emit-pch" in command:
        return "compile"
    return "generate" if GENERATOR.search(command) else "other"


def read(side: Side, build: Path, targets: list[str]) -> Side:
    """Add the steps that build targets."""
    for row in json.loads(ninja(build, "-t", "compdb-targets", *targets)):
        if (kind := kind_of(row["command"])) in KINDS:
            side.steps[kind].append(Step(build, row["output"], row["command"]))
    return side


def run(step: Step) -> tuple[float, int]:
    """CPU seconds of one step, none of it from a cache, and bytes that it wrote."""
    target = step.build / step.output
    written = (target, target.with_suffix(".dwo"))
    for path in written:
        path.unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = {**os.environ, "CCACHE_DISABLE": "1"}
    subprocess.run(("sh", "-c", step.command), cwd=step.build, env=environ, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    size = sum(path.stat().st_size for path in written if path.is_file())
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, size


def generate(side: Side, quick: Path) -> None:
    """Make the headers that compiles need, with the optimised generators in `quick` as far as it has them."""
    slow = []
    for step in side.steps["generate"]:
        target = step.build / step.output
        program = GENERATOR.search(step.command)
        if target.exists():
            continue
        if not program or not (quick / "bin" / program[1]).is_file():
            slow.append(step.output)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        command = step.command.replace(f"{side.build}/bin/", f"{quick}/bin/")
        subprocess.run(("sh", "-c", command), cwd=step.build, check=True, capture_output=True)
    ninja(side.build, "llvm-tblgen", "mlir-tblgen", "mlir-linalg-ods-yaml-gen", "mlir-pdll", *slow)


def configure_recipe(closure: Path, build: Path) -> None:
    """The recipe's configure, to the letter, with the closure's sources and compilers."""
    if not (build / "build.ninja").is_file():
        source = Path(cached(closure, "CMAKE_HOME_DIRECTORY")).parent
        argv = (BIN / "cmake", "-GNinja", "-S", source / "llvm", "-B", build)
        names = ("CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER")
        compilers = [f"-D{name}={cached(closure, name)}" for name in names]
        program = f"-DCMAKE_MAKE_PROGRAM={NINJA}"
        subprocess.run((*argv, *RECIPE, *compilers, program), check=True, stdout=subprocess.DEVNULL)


def cached(build: Path, name: str) -> str:
    """A variable of CMake's cache."""
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    line = next(line for line in cache.splitlines() if line.startswith(f"{name}:"))
    return line.partition("=")[2]


def _one(_step: Step) -> float:
    return 1.0


def sample(recipe: Side, closure: Side, count: int, seed: int) -> None:
    """Run a random sample of each kind, the sides by turns."""
    chance = random.Random(seed)  # noqa: S311 - a sample that can be drawn again
    for kind in KINDS:
        queues = []
        for side in (recipe, closure):
            joined = kind in ("archive", "link")
            able = [step for step in side.steps[kind] if not joined or step.able()]
            chosen = chance.sample(able, min(len(able), count if kind == "compile" else count // 4))
            weigh = side.weight if joined else _one
            side.scale[kind] = sum(map(weigh, side.steps[kind])) / max(1.0, sum(map(weigh, chosen)))
            queues.append([(side, step) for step in chosen])
        turns = [one for pair in itertools.zip_longest(*queues) for one in pair if one]
        for number, (side, step) in enumerate(turns, 1):
            seconds, size = run(step)
            side.cpu[kind].append(seconds)
            side.disk[kind].append(size)
            print(f"\r{kind} {number}/{len(turns)} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def report(recipe: Side, closure: Side) -> None:
    """Steps, sampled steps, mean and sum by kind, then the ratios."""
    print("side      kind      steps  sample    CPU s      sum       MB   sum GB")
    for side in (recipe, closure):
        for kind in KINDS:
            cpu, steps = side.cpu[kind], len(side.steps[kind])
            line = f"{side.name:9} {kind:9} {steps:5} {len(cpu):7}"
            if cpu:
                size, scale = statistics.mean(side.disk[kind]) / 1e6, side.scale[kind]
                line += f" {statistics.mean(cpu):8.2f} {sum(cpu) * scale:8.0f}"
                line += f" {size:8.2f} {sum(side.disk[kind]) * scale / 1e9:8.2f}"
            print(line)
    print(f"CPU  {closure.total(closure.cpu) / recipe.total(recipe.cpu):.2f} of the recipe")
    print(f"disk {closure.total(closure.disk) / recipe.total(recipe.disk):.2f} of the recipe")


def main() -> int:
    """Command line; prints the table and the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--closure", type=Path, required=True, help="LLVM's finished build folder")
    parser.add_argument("--probe", type=Path, required=True, help="Triton's, configured against it")
    parser.add_argument("--folder", type=Path, required=True, help="for the recipe's build folder")
    parser.add_argument(
        "--sample", type=int, default=200, help="compiles of each side; of other kinds a quarter"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    built, recipe_dir = options.closure.resolve(), (options.folder / "recipe").resolve()
    configure_recipe(built, recipe_dir)
    used = BuildUsed(NINJA, built, 1, options.probe.resolve(), (), ("FileCheck",), phase="closure")
    recipe = read(Side("recipe", recipe_dir), recipe_dir, ["all"])
    closure = read(Side("closure", built), built, list(used.targets()))
    generate(recipe, built)
    sample(recipe, closure, options.sample, options.seed)
    report(recipe, closure)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
