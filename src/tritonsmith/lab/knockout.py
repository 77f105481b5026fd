"""Knock out the passes of a kernel's compile, one run at a time, and report what each of them does.

A run of one of Triton's passes is left out, and the compile is compared with that with all passes. LLVM
cannot leave out a single run, but it can stop after any (`opt-bisect-limit`): so the kernel is compiled with
more and more of LLVM's passes, and each compile is compared with the one before it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tritonsmith.compiler import run
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import Manifest, Point, folder_name
from tritonsmith.compiler.request import CompileRequest, Surgery
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import ResourceRow, Value
from tritonsmith.compiler.run import PreparedCompile
from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import digest
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.ir import normalize
from tritonsmith.lab import experiment, journal
from tritonsmith.lab.compare.study import METRICS
from tritonsmith.lab.experiment import Rules, Search
from tritonsmith.lab.journal import Journal, Observation, Verdict

_ASSEMBLY = ("ptx", "amdgcn")
# The stages that are kept: the text is compared, and the binary has the resources.
_STAGES = {"cuda": ("ptx", "cubin"), "hip": ("amdgcn", "hsaco")}
_PORTION = 16  # compiles of one Python, for each that runs at once
_OWN = ("hash", "cache_dir")  # of a compile's metadata: what differs though the code is the same
_LONGEST = 60  # characters of an error
# `BISECT: running pass (31) sroa on function (matmul_kernel)`
_BISECT_LINE = re.compile(
    r"^BISECT: running pass \((?P<number>\d+)\) (?P<name>.+?) on (?P<unit>.+)$", re.MULTILINE
)
_ALL = -1  # opt-bisect-limit: run all passes, and number them in the log

WORDS = {
    Verdict.GOOD: "compiles",
    Verdict.BAD: "does not compile",
    Verdict.OTHER: "another failure",
    Verdict.SKIP: "not tested",
}

Effect = Literal["no effect", "changes the code", "needed", "does not compile", "timed out", "not tested"]


@dataclass(frozen=True)
class KnockedOut:
    """One run of a pass, and the compile that shows its effect: without it, or with it as LLVM's last pass.

    Attributes:
        name: the pass: `canonicalize`; for LLVM `sroa`, or a class name before LLVM 21.
        number: which of the runs of this pass, from 1; for LLVM among all runs, 0 for a compile without any.
        effect: `needed` where nothing compiles without it, `does not compile` where LLVM fails after it.
        row: the resources of that compile, or why there is no code.
        seconds: the duration of that compile.
        binding: the function that adds it: `passes.common.add_canonicalizer`; empty for LLVM.
        stage: the stage that it is part of: `ttgir`; empty for LLVM.
        unit: for LLVM, what it ran on: `[module]`, a function.
    """

    name: str
    number: int
    effect: Effect
    row: ResourceRow
    seconds: float = 0.0
    binding: str = ""
    stage: str = ""
    unit: str = ""

    @property
    def flag(self) -> str:
        """The value of `--skip-pass` that leaves it out."""
        return f"{self.name}#{self.number}"


@dataclass(frozen=True)
class Knockout:
    """The passes of one kernel for one target.

    Attributes:
        kernel: its name.
        target: the target: `cuda:90:32`.
        triton: the version that compiles.
        row: the resources with all passes.
        seconds: the duration of that compile.
        passes: in the order of the pipelines.
        folder: where the compiles are.
        llvm: whether the passes are LLVM's.
    """

    kernel: str
    target: str
    triton: str
    row: ResourceRow
    seconds: float
    passes: tuple[KnockedOut, ...]
    folder: Path
    llvm: bool = False


@dataclass(frozen=True)
class PassCut:
    """A change of the pipelines.

    Attributes:
        name: of the change, in the journal.
        surgery: on the passes.
    """

    name: str
    surgery: Surgery


def first(
    asked: CompileRequest, where: Interpreter, out: Path | None, *, llvm: bool = False
) -> PreparedCompile:
    """Prepare the compile with all passes, which counts them.

    Raises:
        SmithError: as `run.prepare`.
    """
    return run.prepare(_with_all_passes(asked, llvm=llvm), where, _base_folder(asked, where, out, llvm=llvm))


def execute(
    asked: CompileRequest,
    where: Interpreter,
    out: Path | None = None,
    rules: Rules = Rules(),  # noqa: B008 - frozen
    *,
    llvm: bool = False,
    silent: bool = False,
) -> tuple[tuple[Knockout, ...], Journal]:
    """Compile with all passes, and then once for each run of a pass.

    Args:
        asked: the compile.
        where: the interpreter that compiles.
        out: folder of the compiles of all kernels; None for one in the workspace.
        rules: how often each compile is repeated, and which are left out.
        llvm: stop after each of LLVM's passes, instead of leaving out each of Triton's.
        silent: show no progress.

    Returns:
        a knockout for each target, and the journal.

    Raises:
        SmithError: the kernel does not compile with all its passes, or the passes cannot be counted.
    """
    folder = folder_of(asked, where, out)
    whole = _with_all_passes(asked, llvm=llvm)
    base = _compile_base(whole, where, _base_folder(asked, where, out, llvm=llvm), silent=silent)
    knockouts = []
    with _journal_of(asked, where, base, journal_of(folder, llvm=llvm), rules, silent=silent) as notes:
        for target, point, row in zip(
            asked.targets, base.points, measure.of_manifest(base).rows, strict=True
        ):
            runs = list(_llvm_runs(point, row) if llvm else _triton_runs(point, row, where.python))
            cuts = [_cut(point, pass_run, llvm=llvm) for pass_run in runs]
            # Each target has a folder, in which the compiles are numbered from 0.
            place = folder / folder_name(f"llvm {point.id}" if llvm else point.id)
            for_target = replace(whole, targets=(target,))
            tests = _test_cuts(for_target, where, place, cuts, notes, silent=silent)
            effects = _effects_up_to(tests) if llvm else _effects_without(tests, _code_of(base, point))
            passes = tuple(
                replace(
                    pass_run,
                    effect=effect,
                    row=replace(row, values=test.metrics, error=test.why),
                    seconds=test.seconds,
                )
                for pass_run, effect, test in zip(runs, effects, tests, strict=True)
            )
            kernel = asked.name or base.kernel
            knockouts.append(
                Knockout(kernel, str(target), base.triton, row, point.seconds, passes, folder, llvm)
            )
        # The baseline is in the journal, too, and is none of them.
        title = "with a part of LLVM's passes" if llvm else "without each pass"
        notes.end(f"{title}: {notes.count - 1} compiles")
    return tuple(knockouts), notes


def folder_of(asked: CompileRequest, where: Interpreter, out: Path | None) -> Path:
    """Return the folder of a kernel's compiles."""
    name = folder_name(asked.name or f"{asked.file.stem}.{asked.kernel or 'kernel'}")
    return (out or where.space.root / "passes" / "knockout").absolute() / name


def journal_of(folder: Path, *, llvm: bool = False) -> Path:
    """Return the folder of the journal, among those of a kernel's compiles."""
    return folder / ("llvm journal" if llvm else "journal")


def _base_folder(asked: CompileRequest, where: Interpreter, out: Path | None, *, llvm: bool) -> Path:
    return folder_of(asked, where, out) / ("llvm" if llvm else "all")


def _with_all_passes(asked: CompileRequest, *, llvm: bool) -> CompileRequest:
    """Return the compile that counts its passes, and keeps the stages that are compared."""
    # Disassembling takes time, and nothing here reads machine code.
    stages = [stage for target in asked.targets for stage in _STAGES[target.backend]]
    surgery = _llvm_limit(_ALL) if llvm else Surgery()
    return replace(asked, variants=(surgery,), stages=tuple(dict.fromkeys(stages)), disassemble=False)


def _llvm_limit(number: int) -> Surgery:
    return Surgery(llvm=(f"opt-bisect-limit={number}",))


def _cut(point: Point, pass_run: KnockedOut, *, llvm: bool) -> PassCut:
    # The names are in the journal, and `--skip` takes them: so they say for which target.
    if llvm:
        return PassCut(f"{point.id} to {pass_run.number}", _llvm_limit(pass_run.number))
    return PassCut(f"{point.id} without {pass_run.flag}", Surgery(skip=(pass_run.flag,)))


def _compile_base(asked: CompileRequest, where: Interpreter, out: Path, *, silent: bool) -> Manifest:
    """Compile with all passes.

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


def _triton_runs(point: Point, row: ResourceRow, python: Path) -> Iterator[KnockedOut]:
    """Yield the runs of Triton's passes, as the worker counted them."""
    if not point.passes:
        raise FactError("no pass of this Triton could be counted", where=python)
    # No effect is known before the compile without it.
    for counted in point.passes:
        name, number = str(counted["pass"]), int(counted["number"])
        binding, stage = str(counted["binding"]), str(counted["stage"])
        yield KnockedOut(name, number, "not tested", row, binding=binding, stage=stage)


def _llvm_runs(point: Point, row: ResourceRow) -> Iterator[KnockedOut]:
    """Yield the runs of LLVM's passes, as LLVM numbers them, after a compile without any."""
    runs = list(_BISECT_LINE.finditer(point.log))
    # A gap means that lines of the log are lost: a limit would stop after another pass than the list says.
    if not runs or [int(match["number"]) for match in runs] != list(range(1, len(runs) + 1)):
        why = "its log has no list of them" if not runs else "they are not numbered from 1 on"
        raise FactError("LLVM's passes cannot be counted", why=why, hints=["LLVM of Triton 3.0 or later"])
    yield KnockedOut("no pass", 0, "not tested", row)
    for match in runs:
        yield KnockedOut(match["name"], int(match["number"]), "not tested", row, unit=match["unit"])


@contextmanager
def _journal_of(
    asked: CompileRequest, where: Interpreter, base: Manifest, folder: Path, rules: Rules, *, silent: bool
) -> Iterator[Journal]:
    """Yield the journal of the compiles; the compile with all passes is its baseline.

    Args:
        asked: the compile.
        where: the interpreter that compiles.
        base: the compile with all passes, of this run.
        folder: of the journal.
        rules: how often each is tested, and which are not.
        silent: say nothing of a run that was stopped.
    """
    # A compile that succeeds is GOOD whatever it makes, so the code is part of the baseline.
    baseline = Observation(Verdict.GOOD, code=digest([_code_of(base, point) for point in base.points]))
    key, space = journal.compiled(asked, where), where.space
    space.claim()
    with experiment.kept(folder, key, space, "passes.knockout", baseline, rules, silent=silent) as notes:
        yield notes


def _test_cuts(
    asked: CompileRequest,
    where: Interpreter,
    folder: Path,
    cuts: Sequence[PassCut],
    notes: Journal,
    *,
    silent: bool,
) -> Sequence[Observation]:
    """Compile for one target under each cut; the digest of each code is in its observation.

    Args:
        asked: the compile.
        where: the interpreter that compiles.
        folder: of the compiles.
        cuts: in their order.
        notes: the journal; cuts that it has are not compiled again.
        silent: show no progress.
    """
    done = len(cuts) - sum(not notes.observations[change.name] for change in cuts)

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
            code = _code_of(compiled, point)
            yield Observation(Verdict.GOOD, seconds=point.seconds, code=code, metrics=dict(row.values))
        else:  # what took too long may be the machine's fault, so a journal does not keep it
            verdict = Verdict.SKIP if point.status == "timeout" else Verdict.BAD
            yield Observation(verdict, why=row.error, seconds=point.seconds)


def _code_of(manifest: Manifest, point: Point) -> str:
    """Return a digest of the assembly in normal form, and of what a launch takes from the metadata."""
    # Not of the binary, which has line tables: a pass that only moves locations changes no code.
    stage = next(stage for stage in _ASSEMBLY if stage in point.stages)
    text = untrusted.read_text(manifest.folder / point.stages[stage].path, untrusted.OURS)
    # A pass may change the shared memory or the number of warps alone, and the assembly names neither.
    about = {name: value for name, value in point.metadata.items() if name not in _OWN}
    return digest(normalize.text(text, stage), about)


def _effects_without(tests: Sequence[Observation], code: str) -> Iterator[Effect]:
    """Yield the effect of each run that a compile leaves out, in comparison with the code with all passes."""
    for test in tests:
        if test.code:
            yield "no effect" if test.code == code else "changes the code"
        elif experiment.ruled_out(test):
            yield "not tested"
        else:
            yield "timed out" if test.verdict is Verdict.SKIP else "needed"


def _effects_up_to(tests: Sequence[Observation]) -> Iterator[Effect]:
    """Yield the effect of each run that is a compile's last one, in comparison with the compile before it."""
    before: str | None = None  # unknown where the compile with one pass less was not tested
    for number, test in enumerate(tests):
        tested = test.verdict is not Verdict.SKIP
        if not tested:
            yield "not tested" if experiment.ruled_out(test) else "timed out"
        elif not test.code:
            yield "does not compile"
        elif number and before is None:
            yield "not tested"
        else:
            # The first compile has no pass at all, so there is no pass whose effect it could show.
            yield "no effect" if not number or test.code == before else "changes the code"
        before = test.code if tested else None


def tables_of(knockouts: Sequence[Knockout]) -> Iterator[Grid]:
    """Yield a table for each knockout; a number is shown where it differs from the one compared with."""
    for knockout in knockouts:
        yield _llvm_table(knockout) if knockout.llvm else _table(knockout)


def _table(knockout: Knockout) -> Grid:
    """Return a table with a line for each run of a pass."""
    titles = [metric.title for metric in METRICS[knockout.row.backend]]
    whole = _figures(knockout, knockout.row)
    lines = [["all passes", "", "", *whole, f"{knockout.seconds:.2f} s", ""]]
    for pass_run in knockout.passes:
        cells = _differing(_figures(knockout, pass_run.row), whole)
        seconds = f"{pass_run.seconds:.2f} s"
        lines.append(
            [pass_run.flag, pass_run.stage, pass_run.effect, *cells, seconds, _message(pass_run.row)]
        )
    title = f"{knockout.kernel} for {knockout.target} by Triton {knockout.triton}, without each pass"
    heads = ["pass", "stage", "without it", *titles, "time", "error"]
    return tables.plain(title, heads, lines, right=[*titles, "time"], spare=["time", "stage"], keys=1)


def _llvm_table(knockout: Knockout) -> Grid:
    """Return a table with a line for each run that changes the code."""
    titles = [metric.title for metric in METRICS[knockout.row.backend]]
    lines, before = [], [""] * len(titles)
    for pass_run in knockout.passes:
        if pass_run.number and pass_run.effect == "no effect":  # of hundreds of runs, most have none
            continue
        figures = _figures(knockout, pass_run.row)
        cells = _differing(figures, before)
        number = str(pass_run.number or "")
        lines.append([number, pass_run.name, pass_run.unit, *cells, _message(pass_run.row)])
        before = figures
    lines.append(["", "all passes", "", *_figures(knockout, knockout.row), ""])
    about = f"{knockout.kernel} for {knockout.target} by Triton {knockout.triton}"
    title = f"{about}: LLVM's {len(knockout.passes) - 1} passes"
    return tables.plain(title, ["", "pass", "on", *titles, "error"], lines, right=["", *titles], keys=2)


def _figures(knockout: Knockout, row: ResourceRow) -> list[str]:
    """Return the metrics of a compile as cells; empty where there are none."""
    sums = (_sum(row.values, metric.keys) for metric in METRICS[knockout.row.backend])
    return ["" if value is None else str(value) for value in sums]


def _sum(values: Mapping[str, Value], keys: Sequence[str]) -> int | None:
    known = [value for value in map(values.get, keys) if isinstance(value, int)]
    return sum(known) if known else None


def _differing(figures: Sequence[str], others: Sequence[str]) -> list[str]:
    return ["" if figure == other else figure for figure, other in zip(figures, others, strict=True)]


def _message(row: ResourceRow) -> str:
    # A diagnostic begins with a place in the kernel's file, which would take the room of the message.
    return tables.clipped(row.error.rpartition("error: ")[2], _LONGEST)


def summary(knockouts: Sequence[Knockout]) -> Grid:
    """Return a table of passes over all kernels: how many need each, and for how many it does nothing."""
    by_pass: defaultdict[tuple[str, str], defaultdict[str, set[Effect]]]
    by_pass = defaultdict(lambda: defaultdict(set))
    for knockout in knockouts:
        for pass_run in knockout.passes:
            by_pass[knockout.target, pass_run.name][knockout.kernel].add(pass_run.effect)
    lines = []
    for (target, name), kernels in by_pass.items():
        needed = sum("needed" in effects for effects in kernels.values())
        # `canonicalize` runs many times, and most runs do nothing: a pass is idle only if none of them has an
        # effect.
        idle = sum(effects == {"no effect"} for effects in kernels.values())
        # A kernel with an untested run is in none of these columns, unless another run of the pass tells.
        untested = sum(effects <= {"no effect", "not tested"} for effects in kernels.values()) - idle
        changed = len(kernels) - needed - idle - untested
        lines.append([target, name, str(len(kernels)), str(needed), str(changed), str(idle)])
    heads = ["target", "pass", "kernels", "needed by", "changes the code of", "no effect on"]
    return tables.plain("each pass over all kernels", heads, lines, right=heads[2:], keys=2)


def as_json(knockouts: Sequence[Knockout]) -> dict[str, Any]:
    """Return all runs, those without effect, too."""
    return {
        "schema": 1,
        "kernels": [
            {
                "kernel": knockout.kernel,
                "target": knockout.target,
                "triton": knockout.triton,
                **({} if knockout.llvm else {"seconds": knockout.seconds}),
                "values": dict(knockout.row.values),
                "folder": str(knockout.folder),
                "llvm_passes" if knockout.llvm else "passes": [
                    {
                        **(_llvm_keys(pass_run) if knockout.llvm else _keys(pass_run)),
                        "error": pass_run.row.error,
                        "values": dict(pass_run.row.values),
                    }
                    for pass_run in knockout.passes
                ],
            }
            for knockout in knockouts
        ],
    }


def _keys(pass_run: KnockedOut) -> dict[str, Any]:
    return {
        "name": pass_run.name,
        "number": pass_run.number,
        "binding": pass_run.binding,
        "stage": pass_run.stage,
        "verdict": pass_run.effect,
        "seconds": pass_run.seconds,
        "compiles": pass_run.effect in ("no effect", "changes the code"),
    }


def _llvm_keys(pass_run: KnockedOut) -> dict[str, Any]:
    return {
        "number": pass_run.number,
        "name": pass_run.name,
        "unit": pass_run.unit,
        "effect": pass_run.effect,
    }
