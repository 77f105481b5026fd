"""Compile a kernel once for each run of a pass in its pipelines, without that one.

A kernel compiled with more and more of LLVM's passes: `opt-bisect-limit` from 0 to all of them.

LLVM cannot leave out a single run, but it can stop after any: what a run does shows between two limits.

Knockouts as a table for each kernel and target, one over all kernels, and as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tritonsmith.compiler import run
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import Manifest, Point, folder_name
from tritonsmith.compiler.request import CompileRequest, Surgery
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import ResourceRow
from tritonsmith.compiler.run import PreparedCompile
from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import digest
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.ir import normalize
from tritonsmith.lab import experiment, journal
from tritonsmith.lab.experiment import Rules, Search
from tritonsmith.lab.journal import Journal
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.study.report import METRICS

_LAST = ("ptx", "amdgcn")  # the last stage of text
_KEPT = {"cuda": ("ptx", "cubin"), "hip": ("amdgcn", "hsaco")}
_PORTION = 16  # compiles of one Python, for each that runs at once
_OWN = ("hash", "cache_dir")  # of a compile's metadata: what differs though the code is the same

JOURNAL = "journal"  # folder of it, among those of the compiles
LLVM_JOURNAL = "llvm journal"
WORDS = {
    Verdict.GOOD: "compiles",
    Verdict.BAD: "does not compile",
    Verdict.OTHER: "another failure",
    Verdict.SKIP: "not tested",
}

Effect = Literal[
    "no effect", "changes the code", "needed", "does not compile", "timed out", "not tested"
]  # of a pass


@dataclass(frozen=True)
class PassCut:
    """A change of the pipelines.

    Attributes:
        name: of the change, in the journal.
        surgery: on the passes.
    """

    name: str
    surgery: Surgery


@dataclass(frozen=True)
class KnockedOut:
    """One run of a pass, and what the compile is without it.

    Attributes:
        name: of the pass: `canonicalize`.
        number: which of its runs, from 1.
        binding: that adds it: `passes.common.add_canonicalizer`.
        stage: that it is part of: `ttgir`.
        verdict: `needed` where nothing compiles without it.
        row: the resources, or why there is no code.
        seconds: of the compile.
    """

    name: str
    number: int
    binding: str
    stage: str
    verdict: Effect
    row: ResourceRow
    seconds: float

    @property
    def named(self) -> str:
        """As `--skip-pass` takes it."""
        return f"{self.name}#{self.number}"


@dataclass(frozen=True)
class Knockout:
    """A kernel for a target.

    Attributes:
        kernel: its name.
        target: what for.
        triton: the version that compiles.
        row: the resources with all passes.
        seconds: of that compile.
        passes: in the order of the pipelines.
        folder: of the compiles.
    """

    kernel: str
    target: str
    triton: str
    row: ResourceRow
    seconds: float
    passes: tuple[KnockedOut, ...]
    folder: Path


def first(asked: CompileRequest, where: Interpreter, out: Path | None) -> PreparedCompile:
    """The compile with all passes, which says what the others are.

    Raises:
        SmithError: as `run.prepare`.
    """
    return run.prepare(counting(asked), where, folder_of(asked, where, out) / "all")


def execute(
    asked: CompileRequest,
    where: Interpreter,
    out: Path | None = None,
    rules: Rules = Rules(),  # noqa: B008 - frozen
    *,
    silent: bool = False,
) -> tuple[tuple[Knockout, ...], Journal]:
    """Compile with all passes, and then without each: one result for each target, and the journal.

    Args:
        asked: the compile.
        where: who compiles.
        out: folder of the compiles of all kernels; None for one in the workspace.
        rules: how often it is compiled without a pass, and without which it is not.
        silent: show no progress.

    Raises:
        SmithError: the kernel does not compile with all its passes.
    """
    folder = folder_of(asked, where, out)
    base = with_all(counting(asked), where, folder / "all", silent=silent)
    knockouts = []
    with notes_of(asked, where, base, folder / JOURNAL, rules, silent=silent) as notes:
        for target, point, row in zip(
            asked.targets, base.points, measure.of_manifest(base).rows, strict=True
        ):
            names = [f"{pass_run['pass']}#{pass_run['number']}" for pass_run in point.passes or ()]
            if not names:
                raise FactError("no pass of this Triton could be counted", where=where.python)
            cuts = [PassCut(f"{point.id} without {name}", Surgery(skip=(name,))) for name in names]
            for_target = replace(counting(asked), targets=(target,))
            observations = cut(for_target, where, folder / folder_name(point.id), cuts, notes, silent=silent)
            passes = tuple(_results(point, row, code_of(base, point), observations))
            kernel = asked.name or base.kernel
            knockouts.append(Knockout(kernel, str(target), base.triton, row, point.seconds, passes, folder))
        notes.end(f"without each pass: {notes.count - 1} compiles")
    return tuple(knockouts), notes


@contextmanager
def notes_of(
    asked: CompileRequest, where: Interpreter, base: Manifest, folder: Path, rules: Rules, *, silent: bool
) -> Iterator[Journal]:
    """Yield the journal of compiles without a pass; the compile with all passes is its baseline.

    Args:
        asked: the compile.
        where: who compiles.
        base: the compile with all passes, of this run.
        folder: of the journal.
        rules: how often each is tested, and which are not.
        silent: say nothing of a run that was stopped.
    """
    code = digest([code_of(base, point) for point in base.points])
    baseline = Observation(Verdict.GOOD, code=code)
    key, space = journal.compiled(asked, where), where.space
    space.claim()
    with experiment.kept(folder, key, space, "passes.knockout", baseline, rules, silent=silent) as notes:
        yield notes


def cut(
    asked: CompileRequest,
    where: Interpreter,
    folder: Path,
    cuts: Sequence[PassCut],
    notes: Journal,
    *,
    silent: bool,
) -> Sequence[Observation]:
    """Compile for one target under each cut; the code of each, as `code_of` has it, is in its observation.

    Args:
        asked: the compile.
        where: who compiles.
        folder: of the compiles.
        cuts: in their order.
        notes: the journal; cuts that it has are not compiled again.
        silent: show no progress.
    """
    done = len(cuts) - sum(not notes.seen[change.name] for change in cuts)

    def compiled(changes: Sequence[PassCut]) -> Iterator[Observation]:
        nonlocal done
        # One Python compiles many points, and a kill loses the points of one Python.
        several = _PORTION * where.jobs
        for begin in range(0, len(changes), several):
            portion = changes[begin : begin + several]
            request = replace(asked, variants=tuple(change.surgery for change in portion))
            # By the place among all, so that a run that goes on leaves what the one before has made.
            place = folder / str(cuts.index(portion[0]))
            compiles = run.compile_all(request, where, place, silent=True)
            if len(compiles.points) != len(portion):
                raise SmithError("the compiler gave no result for some of the passes", where=compiles.folder)
            yield from _observations(compiles)
            done += len(portion)
            if not silent:
                console.note(f"{done} of {len(cuts)} compiles for {asked.targets[0]}")

    def search() -> Search[PassCut, Sequence[Observation]]:
        return (yield cuts)

    tests = experiment.steady(compiled, notes, lambda test: test.code)
    return experiment.run(search(), tests, notes, lambda _name, _observation: None)


def _observations(compiled: Manifest) -> Iterator[Observation]:
    for point, row in zip(compiled.points, measure.of_manifest(compiled).rows, strict=True):
        if point.status == "ok":
            code = digest(code_of(compiled, point))
            yield Observation(Verdict.GOOD, seconds=point.seconds, code=code, metrics=dict(row.values))
        else:  # what took too long may be the machine's fault, so a journal does not keep it
            verdict = Verdict.SKIP if point.status == "timeout" else Verdict.BAD
            yield Observation(verdict, why=row.error, seconds=point.seconds)


def with_all(asked: CompileRequest, where: Interpreter, out: Path, *, silent: bool) -> Manifest:
    """The compile with which the others are compared.

    Raises:
        SmithError: it fails.
    """
    base = run.compile_all(asked, where, out, silent=silent)
    # Without this compile there is no list of the passes, and nothing to compare with.
    if bad := [point for point in base.points if point.status != "ok"]:
        raise SmithError(
            f"{base.kernel} does not compile with all its passes",
            where=base.folder,
            why="\n".join(f"{point.id}: {point.gist}" for point in bad),
            hints=["choose targets for which it does: --target"],
        )
    return base


def _results(
    whole: Point, base: ResourceRow, code: object, observations: Sequence[Observation]
) -> Iterator[KnockedOut]:
    for pass_run, observation in zip(whole.passes or (), observations, strict=True):
        effect: Effect = "timed out" if observation.verdict is Verdict.SKIP else "needed"
        if experiment.ruled_out(observation):
            effect = "not tested"
        if observation.code:
            effect = "no effect" if observation.code == digest(code) else "changes the code"
        row = replace(base, values=observation.metrics, error=observation.why)
        names = (str(pass_run["pass"]), int(pass_run["number"]))
        about = (*names, str(pass_run["binding"]), str(pass_run["stage"]))
        yield KnockedOut(*about, effect, row, observation.seconds)


def code_of(manifest: Manifest, point: Point) -> tuple[str, dict[str, object]]:
    """The assembly in normal form, and what a launch takes from the metadata: shared memory, warps ..."""
    stage = next(stage for stage in _LAST if stage in point.stages)
    path = manifest.folder / point.stages[stage].path
    about = {name: value for name, value in point.metadata.items() if name not in _OWN}
    return normalize.text(untrusted.read_text(path, untrusted.OURS), stage), about


def counting(asked: CompileRequest, surgery: Surgery = Surgery()) -> CompileRequest:  # noqa: B008 - frozen
    """The compile that counts its passes, and keeps what is compared."""
    stages = [stage for target in asked.targets for stage in _KEPT[target.backend]]
    return replace(asked, variants=(surgery,), stages=tuple(dict.fromkeys(stages)), disassemble=False)


def folder_of(asked: CompileRequest, where: Interpreter, out: Path | None) -> Path:
    """The folder of a kernel's compiles."""
    name = folder_name(asked.name or f"{asked.file.stem}.{asked.kernel or 'kernel'}")
    return (out or where.space.root / "passes" / "knockout").absolute() / name


def removable(knockouts: Sequence[Knockout]) -> dict[tuple[str, str], dict[str, list[Effect]]]:
    """Collect the effects of each pass on several kernels: target and pass to effects, by kernel."""
    table: dict[tuple[str, str], dict[str, list[Effect]]] = {}
    for knockout in knockouts:
        for knocked in knockout.passes:
            kernels = table.setdefault((knockout.target, knocked.name), {})
            kernels.setdefault(knockout.kernel, []).append(knocked.verdict)
    return table


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


def first_of_llvm(asked: CompileRequest, where: Interpreter, out: Path | None) -> PreparedCompile:
    """The compile with all passes, which says how many there are.

    Raises:
        SmithError: as `run.prepare`.
    """
    return run.prepare(_limited(asked, _ALL), where, folder_of(asked, where, out) / "llvm")


def execute_llvm(
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
    folder = folder_of(asked, where, out)
    base = with_all(_limited(asked, _ALL), where, folder / "llvm", silent=silent)
    knockouts = []
    with notes_of(asked, where, base, folder / LLVM_JOURNAL, rules, silent=silent) as notes:
        for target, point, row in zip(
            asked.targets, base.points, measure.of_manifest(base).rows, strict=True
        ):
            named = [("no pass", ""), *_runs(point)]
            cuts = [PassCut(f"{point.id} to {number}", _limit(number)) for number in range(len(named))]
            place = folder / folder_name(f"llvm {point.id}")
            for_target = replace(_limited(asked, _ALL), targets=(target,))
            observations = cut(for_target, where, place, cuts, notes, silent=silent)
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
    return counting(asked, _limit(number))


_LONGEST = 60  # characters of an error


def tables_of(knockouts: Sequence[Knockout]) -> Iterator[Grid]:
    """A line for each run of a pass; numbers stand where they differ from those with all passes."""
    for knockout in knockouts:
        metrics = METRICS[knockout.row.backend]
        whole = [_number(knockout, keys) for keys in (metric.keys for metric in metrics)]
        heads = ["pass", "stage", "without it", *(metric.title for metric in metrics), "time", "error"]
        lines = [["all passes", "", "", *map(_spelled, whole), f"{knockout.seconds:.2f} s", ""]]
        for knocked in knockout.passes:
            values = [_sum(knocked.row.values, metric.keys) for metric in metrics]
            cells = [
                "" if value == base else _spelled(value) for value, base in zip(values, whole, strict=True)
            ]
            message = tables.clipped(knocked.row.error.rpartition("error: ")[2], _LONGEST)
            line = [
                knocked.named,
                knocked.stage,
                knocked.verdict,
                *cells,
                f"{knocked.seconds:.2f} s",
                message,
            ]
            lines.append(line)
        title = f"{knockout.kernel} for {knockout.target} by Triton {knockout.triton}, without each pass"
        right = [*(metric.title for metric in metrics), "time"]
        yield tables.plain(title, heads, lines, right=right, spare=["time", "stage"], keys=1)


def summary(knockouts: Sequence[Knockout]) -> Grid:
    """A line for each pass and target: for how many kernels it is needed, or does anything."""
    lines = []
    for (target, name), kernels in removable(knockouts).items():
        needed = sum("needed" in verdicts for verdicts in kernels.values())
        idle = sum(set(verdicts) == {"no effect"} for verdicts in kernels.values())
        untested = sum(set(verdicts) <= {"no effect", "not tested"} for verdicts in kernels.values()) - idle
        changed = len(kernels) - needed - idle - untested
        lines.append([target, name, str(len(kernels)), str(needed), str(changed), str(idle)])
    heads = ["target", "pass", "kernels", "needed by", "changes the code of", "no effect on"]
    return tables.plain("each pass over all kernels", heads, lines, right=heads[2:], keys=2)


def tables_of_llvm(knockouts: Sequence[LlvmKnockout]) -> Iterator[Grid]:
    """A line for each run that changes the code; numbers stand where they differ from those before it."""
    for knockout in knockouts:
        metrics = METRICS[knockout.row.backend]
        heads = ["", "pass", "on", *(metric.title for metric in metrics), "error"]
        lines, last = [], [""] * len(metrics)
        for step in knockout.runs:
            if step.number and step.effect == "no effect":
                continue
            figures = [_spelled(_sum(step.row.values, metric.keys)) for metric in metrics]
            cells = ["" if figure == before else figure for figure, before in zip(figures, last, strict=True)]
            message = tables.clipped(step.row.error.rpartition("error: ")[2], _LONGEST)
            lines.append([str(step.number or ""), step.name, step.unit, *cells, message])
            last = figures
        whole = [_spelled(_sum(knockout.row.values, metric.keys)) for metric in metrics]
        lines.append(["", "all passes", "", *whole, ""])
        about = f"{knockout.kernel} for {knockout.target} by Triton {knockout.triton}"
        title = f"{about}: LLVM's {len(knockout.runs) - 1} passes"
        yield tables.plain(title, heads, lines, right=["", *heads[3:-1]], keys=2)


def llvm_as_json(knockouts: Sequence[LlvmKnockout]) -> dict[str, Any]:
    """All runs, those without effect, too."""
    return {
        "schema": 1,
        "kernels": [
            {
                "kernel": knockout.kernel,
                "target": knockout.target,
                "triton": knockout.triton,
                "values": dict(knockout.row.values),
                "folder": str(knockout.folder),
                "llvm_passes": [
                    {
                        **{name: value for name, value in asdict(run).items() if name != "row"},
                        "error": run.row.error,
                        "values": dict(run.row.values),
                    }
                    for run in knockout.runs
                ],
            }
            for knockout in knockouts
        ],
    }


def as_json(knockouts: Sequence[Knockout]) -> dict[str, Any]:
    """All of it as JSON data."""
    return {
        "schema": 1,
        "kernels": [
            {
                "kernel": knockout.kernel,
                "target": knockout.target,
                "triton": knockout.triton,
                "seconds": knockout.seconds,
                "values": dict(knockout.row.values),
                "folder": str(knockout.folder),
                "passes": [
                    {
                        **{name: value for name, value in asdict(knocked).items() if name != "row"},
                        "compiles": knocked.verdict in ("no effect", "changes the code"),
                        "error": knocked.row.error,
                        "values": dict(knocked.row.values),
                    }
                    for knocked in knockout.passes
                ],
            }
            for knockout in knockouts
        ],
    }


def _number(knockout: Knockout, keys: Sequence[str]) -> int | None:
    return _sum(knockout.row.values, keys)


def _sum(values: Any, keys: Sequence[str]) -> int | None:
    known = [value for value in map(values.get, keys) if isinstance(value, int)]
    return sum(known) if known else None


def _spelled(value: int | None) -> str:
    return "" if value is None else str(value)
