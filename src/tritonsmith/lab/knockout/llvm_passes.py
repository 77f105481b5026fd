"""A kernel compiled with more and more of LLVM's passes: `opt-bisect-limit` from 0 to all of them.

LLVM cannot leave out a single run, but it can stop after any: what a run does shows between two limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import run
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import Point
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.request import CompileRequest, Surgery
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.table import ResourceRow
from tritonsmith.compiler.run import PreparedCompile
from tritonsmith.core.errors import FactError
from tritonsmith.lab import experiment
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.journal import Journal
from tritonsmith.lab.knockout import knockout
from tritonsmith.lab.knockout.knockout import Effect, PassCut
from tritonsmith.lab.model import Observation, Verdict

# `BISECT: running pass (31) sroa on function (matmul_kernel)`
_RUN = re.compile(r"^BISECT: running pass \((?P<number>\d+)\) (?P<name>.+?) on (?P<unit>.+)$", re.MULTILINE)
_ALL = -1


@dataclass(frozen=True)
class LlvmPassRun:
    """One run of a pass of LLVM.

    Attributes:
        number: among all of this compile, from 1; 0 is the compile without any.
        name: `sroa`; LLVM before 21 has class names.
        unit: what it ran on: `[module]`, a function.
        effect: of it after those before it; `does not compile` or `timed out` with it as the last one.
        row: the resources with it as the last one.
    """

    number: int
    name: str
    unit: str
    effect: Effect
    row: ResourceRow


@dataclass(frozen=True)
class LlvmKnockout:
    """A kernel for a target.

    Attributes:
        kernel: its name.
        target: what for.
        triton: the version that compiles.
        row: the resources with all passes.
        runs: in LLVM's order, the compile without any first.
        folder: of the compiles.
    """

    kernel: str
    target: str
    triton: str
    row: ResourceRow
    runs: tuple[LlvmPassRun, ...]
    folder: Path


def first(asked: CompileRequest, where: Interpreter, out: Path | None) -> PreparedCompile:
    """The compile with all passes, which says how many there are.

    Raises:
        SmithError: as `run.prepare`.
    """
    return run.prepare(_limited(asked, _ALL), where, knockout.folder_of(asked, where, out) / "llvm")


def execute(
    asked: CompileRequest,
    where: Interpreter,
    out: Path | None = None,
    rules: Rules = Rules(),  # noqa: B008 - frozen
    *,
    silent: bool = False,
) -> tuple[tuple[LlvmKnockout, ...], Journal]:
    """Compile with all passes, and then with the first 0, 1, 2 ... of them: one result for each target.

    The arguments are those of `knockout.execute`.

    Raises:
        SmithError: the kernel does not compile, or LLVM does not number its passes.
    """
    folder = knockout.folder_of(asked, where, out)
    base = knockout.with_all(_limited(asked, _ALL), where, folder / "llvm", silent=silent)
    knockouts = []
    with knockout.notes_of(asked, where, base, folder / knockout.LLVM_JOURNAL, rules, silent=silent) as notes:
        for target, point, row in zip(
            asked.targets, base.points, measure.of_manifest(base).rows, strict=True
        ):
            named = [("no pass", ""), *_runs(point)]
            cuts = [PassCut(f"{point.id} to {number}", _limit(number)) for number in range(len(named))]
            place = folder / folder_name(f"llvm {point.id}")
            for_target = replace(_limited(asked, _ALL), targets=(target,))
            observations = knockout.cut(for_target, where, place, cuts, notes, silent=silent)
            runs = tuple(_judged(named, row, observations))
            kernel = asked.name or base.kernel
            knockouts.append(LlvmKnockout(kernel, str(target), base.triton, row, runs, folder))
        notes.end(f"with a part of LLVM's passes: {notes.count - 1} compiles")
    return tuple(knockouts), notes


def _judged(
    named: list[tuple[str, str]], base: ResourceRow, observations: Sequence[Observation]
) -> Iterator[LlvmPassRun]:
    before: str | None = None  # unknown where the compile with one pass less was not tested
    for number, ((name, unit), observation) in enumerate(zip(named, observations, strict=True)):
        code = observation.code
        row = replace(base, values=observation.metrics, error=observation.why)
        effect: Effect = "no effect" if code == before or not number else "changes the code"
        tested = observation.verdict is not Verdict.SKIP
        if not tested or (before is None and number):
            effect = "not tested"
        if not tested and not experiment.ruled_out(observation):
            effect = "timed out"
        if tested and not code:
            effect = "does not compile"
        yield LlvmPassRun(number, name, unit, effect, row)
        before = code if tested else None


def _runs(point: Point) -> list[tuple[str, str]]:
    """Name and unit of each run, as LLVM numbers them."""
    runs = list(_RUN.finditer(point.log))
    if not runs or [int(run_of_pass["number"]) for run_of_pass in runs] != list(range(1, len(runs) + 1)):
        why = "its log has no list of them" if not runs else "they are not numbered from 1 on"
        raise FactError("LLVM's passes cannot be counted", why=why, hints=["LLVM of Triton 3.0 or later"])
    return [(run_of_pass["name"], run_of_pass["unit"]) for run_of_pass in runs]


def _limit(number: int) -> Surgery:
    return Surgery(llvm=(f"opt-bisect-limit={number}",))


def _limited(asked: CompileRequest, number: int) -> CompileRequest:
    return knockout.counting(asked, _limit(number))
