"""Compile a kernel once for each run of a pass in its pipelines, without that one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tritonsmith.compiler import run
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.request import CompileRequest, Surgery
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.table import ResourceRow
from tritonsmith.compiler.run import PreparedCompile
from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import digest
from tritonsmith.core.ui import console
from tritonsmith.ir import normalize
from tritonsmith.lab import experiment, inputs
from tritonsmith.lab.experiment import Rules, Search
from tritonsmith.lab.journal import Journal
from tritonsmith.lab.model import Observation, Verdict

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
    key, space = inputs.compiled(asked, where), where.space
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
