"""A kernel under triage, without a GPU: compiled under each change, or its IR run after each pass."""

from __future__ import annotations

import math
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tritonsmith.check import when_wrong
from tritonsmith.check.when_wrong import WRONG
from tritonsmith.compiler import manifest, run, tritons
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import Manifest, Point, folder_name
from tritonsmith.compiler.request import CompileRequest, Surgery
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import CAN_LAUNCH, LAUNCH
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import digest
from tritonsmith.core.text import version_key
from tritonsmith.inspect import show as show_stage
from tritonsmith.lab import experiment, failure, journal, metrics, questions, terms
from tritonsmith.lab.experiment import BASELINE
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.lab.questions import wrong
from tritonsmith.lab.terms import Limit, Term
from tritonsmith.lab.triage import other_tools, variant
from tritonsmith.lab.triage.other_tools import OwnPtxas
from tritonsmith.lab.triage.variant import TriageChange, variant_rows
from tritonsmith.lab.triage.verdict import not_tested

if TYPE_CHECKING:
    from tritonsmith.check.limited import WarmChecks

# `  3.7846 (  6.9%)  ConvertTritonGPUToLLVM`; LLVM has up to four such pairs before the name, wall time last.
_ROW = re.compile(r"^(?: +-?\d+\.\d+ \( *-?[\d.]+%\))* +(?P<seconds>\d+\.\d+) \( *[\d.]+%\) +(?P<name>\S.*)$")
# Rows that sum up others, or are part of another one: MLIR marks an analysis, which a pass runs, by `(A)`.
_SUMS = re.compile(r"Total|Rest|.* Pipeline|\(A\) .*")
_TITLES = {"cubin": "cubin (ptxas)"}  # of stages whose name says little
_BINARIES = ("cubin", "hsaco")
_NO_LAUNCH: Final = "cannot launch"
_AMOUNT = re.compile(r" \d")  # in `shared 196608 > 166912 B`
_PTXAS = "ptxas"  # in what a compile says that fails there
_TIMED = {"MLIR_ENABLE_TIMING": "1", "LLVM_ENABLE_TIMING": "1"}  # each pass with its time, in the log


@dataclass
class KernelSubject:
    """A kernel; its symptom is a compile that fails, code that cannot be launched, or a limit that is broken.

    Attributes:
        request: the compile.
        where: its Triton.
        terms: of `--when`; none for a failure.
        out: folder of the compiles.
        silent: show no progress.
    """

    request: CompileRequest
    where: Interpreter
    terms: tuple[Term, ...]
    out: Path
    silent: bool = False
    # A compile is the same each time; only a program may be flaky.
    is_command: bool = field(default=False, init=False)
    has_check: bool = field(default=False, init=False)
    _baseline: Manifest | None = field(default=None, init=False)
    _least: float = field(default=math.inf, init=False)  # CPU seconds of compiles to the baseline's code
    _folders: dict[str, Path] = field(default_factory=dict, init=False)  # of the last test of each change

    def __post_init__(self) -> None:
        if signed := next((term for term in self.terms if term.change), None):
            hints = ["give a limit without a sign: spills>0", "bisect compares with a good Triton"]
            raise UsageError(f"--when {signed}: triage has nothing to compare with", hints=hints)

    @property
    def triton(self) -> str:
        """The version of its Triton."""
        return self._baseline.triton if self._baseline else tritons.installed(self.where.python)

    @property
    def backends(self) -> frozenset[str]:
        """The backends of its targets."""
        return frozenset(target.backend for target in self.request.targets)

    @property
    def _timed(self) -> bool:
        """Report whether the symptom is a slow compile."""
        return any(isinstance(term, Limit) and term.metric == metrics.TIME for term in self.terms)

    @property
    def kind(self) -> str:
        """The kind of the symptom."""
        if self.terms:
            return "slow" if self._timed else "limit"
        points = self._baseline.points if self._baseline else ()
        # What compiles and cannot be launched asks for too much of something, as a limit says.
        if self._baseline and all(point.status == "ok" for point in points):
            return "limit" if _refused_launches(self._baseline) else "failure"
        return "hang" if any(point.status == "timeout" for point in points) else "failure"

    @property
    def when(self) -> list[str]:
        """The terms of `--when`."""
        return [term.text for term in self.terms]

    @property
    def constants(self) -> Mapping[str, Any]:
        """The constants of the kernel after the baseline, including those that heuristics compute."""
        return self._baseline.points[0].constexprs if self._baseline else {}

    @property
    def key(self) -> object:
        """The kernel's sources, the compile, the symptom, the Triton and the programs that it runs."""
        return (journal.compiled(self.request, self.where), self.when, variant_rows())

    def resume(self, known: Iterable[Observation]) -> None:
        """Take up the times of compiles to the same machine code, and of no other run."""
        # The machine may have other load now: a time of other code says nothing of what is quicker.
        code = _code(self._baseline) if self._baseline else ""
        times = [test.cpu_seconds for test in known if code and test.code == code]
        self._least = min(times, default=self._least)

    def baseline(self, name: str = BASELINE) -> Observation:
        """Compile the kernel unchanged."""
        began = time.monotonic()
        variables = self.where.variables
        # The log then has the time of each pass, which the sentences below name.
        where = replace(self.where, variables={**variables, **_TIMED}) if self._timed else self.where
        self._baseline = run.compile_all(self.request, where, self._fresh(name), silent=True)
        observation = replace(self.look(self._baseline), cpu_seconds=total_cpu_seconds(self._baseline))
        self._least = (
            # The first baseline begins anew: what an earlier run has measured comes in by `resume`, if it is
            # of the same code.
            observation.cpu_seconds if name == BASELINE else min(self._least, observation.cpu_seconds)
        )
        if observation.verdict is Verdict.BAD:
            # What is known of these versions comes first. It is no verdict: that needs a test.
            slow = slow_parts(self._baseline.points) if self._timed else ()
            notes = (*observation.notes, *slow, *known_issues(self._baseline))
            observation = replace(observation, notes=notes)
        return replace(observation, seconds=time.monotonic() - began)

    def test(self, change: TriageChange) -> Observation:
        """Compile the kernel with a change's options and variables, or by its release."""
        if change.assembler:
            return self._assembled(change)
        if change.build:
            return self._told(change)
        return self._observed(change)

    def _told(self, change: TriageChange) -> Observation:
        """Test with a build that reports more of a fault."""
        began, space = time.monotonic(), self.where.space
        try:
            build = other_tools.find_build(change.build, self.where.python, self.triton, space)
            observation = other_tools.test_by_build(change, build, space, self._observed, self._log)
        except InterruptedRunError:
            raise
        except SmithError as error:
            return not_tested(error)
        return replace(observation, seconds=time.monotonic() - began)

    def _assembled(self, change: TriageChange) -> Observation:
        """Test by another ptxas, where its own is reached at all."""
        began, points = time.monotonic(), self._baseline.points if self._baseline else ()
        if self.kind == "failure" and not any(_PTXAS in f"{point.log}{point.error}" for point in points):
            return Observation(Verdict.SKIP, why="it fails before ptxas")
        arches = {target.arch for target in self.request.targets if target.backend == change.backend}
        capabilities = frozenset(f"{int(arch) // 10}.{int(arch) % 10}" for arch in arches)
        package = Path(self._baseline.origin if self._baseline else "")
        # An option of the request, which all of its points share.
        level = next(
            (
                point.options[other_tools.PTX_VERSION]
                for point in points
                if other_tools.PTX_VERSION in point.options
            ),
            None,
        )
        own = OwnPtxas(self.where.python, package, capabilities, level, self.out)
        observation = other_tools.test_by_ptxas(change, self.triton, own, self._observed, self._log)
        return replace(observation, seconds=time.monotonic() - began)

    def _fresh(self, name: str) -> Path:
        """Return a folder for a test of a change, which `_log` reads afterwards."""
        self._folders[name] = experiment.fresh(self.out / folder_name(name))
        return self._folders[name]

    def _log(self, name: str) -> str:
        """Return the output of a change's compiles."""
        folder = self._folders.get(name)
        points = manifest.read(folder).points if folder and (folder / manifest.FILE).is_file() else ()
        return "\n".join(f"{point.log}\n{point.error}" for point in points)

    def _observed(self, change: TriageChange, python: Path | None = None) -> Observation:
        began = time.monotonic()
        request = replace(self.request, options={**self.request.options, **change.options})
        # The user may have asked for a surgery, too, which stays part of the subject.
        if change.skip or change.ptxas:
            known = request.surgery or Surgery()
            skip, ptxas = filter(None, (change.skip,)), filter(None, (change.ptxas,))
            surgery = replace(known, skip=(*known.skip, *skip), ptxas=(*known.ptxas, *ptxas))
            request = replace(request, surgery=surgery)
        try:
            where = self.place(change)
            where = replace(where, python=python) if python else where
            compiled = run.compile_all(request, where, self._fresh(change.name), silent=True)
        except InterruptedRunError:
            raise
        except SmithError as error:
            return Observation(Verdict.SKIP, why=error.line, seconds=time.monotonic() - began)
        observation = replace(self.look(compiled), cpu_seconds=total_cpu_seconds(compiled))
        # The same code in less time is the noise of this machine, and raises the bar for "quicker".
        same = (
            bool(observation.code)
            and self._baseline is not None
            and observation.code == _code(self._baseline)
        )
        self._least = min(self._least, observation.cpu_seconds) if same else self._least
        figures = f"{observation.figures}, the same machine code" if same else observation.figures
        return replace(observation, figures=figures, seconds=time.monotonic() - began)

    def lines(self, line: Mapping[str, str]) -> tuple[str, ...]:
        """Return FILE:LINE in a stage of the baseline."""
        places: list[str] = []
        for point in self._baseline.points if self._baseline else ():
            if self._baseline and line["stage"] in point.stages:
                places += lines_of(show_stage.stage_text(self._baseline, point, line["stage"]), line)
        return tuple(dict.fromkeys(places))

    def bisect(self, other: str) -> str:
        """Return the command that bisects between two releases; empty where this Triton is none."""
        here = self.triton
        # A local version, `3.6.0+git0a1b2c3d`, is that of a build, and no release stands for it.
        if not other or "+" in here:
            return ""
        good, bad = sorted((other, here), key=version_key)
        words = self.request.flags(good=good, bad=bad, when=self.when)
        return command("bisect", "--kernel", *shlex.split(words))

    def place(self, change: TriageChange) -> Interpreter:
        """Return the interpreter of a change."""
        where = self.where
        if change.release:
            side = Triton(change.name, version=change.version(self.triton))
            where = tritons.place_of(side, where.jobs, where.timeout)
        return replace(where, variables={**where.variables, **change.variables})

    def look(self, compiled: Manifest) -> Observation:
        """Report whether a compile shows the symptom of the baseline."""
        code = _code(compiled)
        if self.terms:
            if self._timed:
                compiled = with_cpu_seconds(compiled)
            observation = questions.limit(self.terms, (compiled,), (compiled,))
            changed = self._baseline is not None and self._baseline.folder != compiled.folder
            # Times differ from run to run: it has to be quicker than all compiles to the same code.
            near = self._timed and changed and too_slow(self._least, compiled)
            if near and observation.verdict is Verdict.GOOD:
                why = "below the limit, but close to the unchanged compile"
                return Observation(Verdict.SKIP, observation.figures, why)
            return replace(observation, code=code)
        # A change of options may leave out configurations: that would be another question.
        if self._baseline and len(compiled.points) != len(self._baseline.points):
            why = f"{len(compiled.points)} compiles, not {len(self._baseline.points)}"
            return Observation(Verdict.SKIP, why=why)
        before, now = _failed(self._baseline), _failed(compiled)
        every = [(target, failed) for target, mine in now.items() if target in before for failed in mine]
        if not every:
            return Observation(Verdict.GOOD, "it compiles", code=code)
        same = [failed for target, failed in every if failed in before[target]]
        shown = (same or [failed for _, failed in every])[0]
        symptom = Verdict.BAD if same else Verdict.OTHER
        refused = _refused_launches(compiled).values()
        figures = next((text for kind, text in refused if kind == shown), str(shown))
        failing, notes = _failed_in(compiled), _place(compiled)
        if shown.kind == _NO_LAUNCH:
            notes = ("it compiles, and this GPU cannot launch it: see `invoke kernel.compile --resources`",)
        return Observation(symptom, figures, failure=shown, code=code, notes=notes, failed_in=failing)


def known_issues(compiled: Manifest) -> list[str]:
    """Return a sentence for each known issue that a compile has."""
    matches = (
        match
        for point in compiled.points
        if point.status == "ok"
        for match in show_stage.known_issues(compiled, point)
    )
    return list(dict.fromkeys(match.issue.about_kernel for match in matches))


def lines_of(text: str, line: Mapping[str, str]) -> list[str]:
    """Return FILE:LINE of each line of a stage that contains a text, without duplicates."""
    origins = show_stage.origins(text, line["stage"])
    places = [
        f"{Path(origin.file).name}:{origin.number}"
        for content, origin in zip(text.splitlines(), origins, strict=True)
        if origin and line["text"] in content
    ]
    return list(dict.fromkeys(places))


def _failed(compiled: Manifest | None) -> dict[str, list[Failure]]:
    """Return the failures of each target's points, whose names depend on what was changed."""
    targets = {point.id: point.target for point in compiled.points} if compiled else {}
    by_target: dict[str, list[Failure]] = {}
    for (_, point), failed in questions.failures((compiled,) if compiled else ()):
        by_target.setdefault(targets[point], []).append(failed)
    for point, (refusal, _) in (_refused_launches(compiled) if compiled else {}).items():
        by_target.setdefault(targets[point], []).append(refusal)
    return by_target


def _refused_launches(compiled: Manifest) -> dict[str, tuple[Failure, str]]:
    """Map each point that compiles and cannot be launched to its failure, without and with its figures."""
    refused = {}
    for row in measure.of_manifest(compiled).rows:
        launch = str(row.values.get(LAUNCH) or CAN_LAUNCH)
        if launch != CAN_LAUNCH:
            why = launch.removeprefix("no: ")
            # The resource alone: 196608 B of shared memory and 180000 B, both too much, are one failure.
            resource = _AMOUNT.split(why)[0]
            refused[row.point] = (Failure(_NO_LAUNCH, resource), f"{_NO_LAUNCH}: {why}")
    return refused


def _failed_in(compiled: Manifest) -> str:
    """Name the pass in which the compiles failed, if all failed in one; empty otherwise."""
    failed = [point for point in compiled.points if point.status != "ok"]
    names = {failure.pass_of(f"{point.log}\n{point.error}") for point in failed}
    return names.pop() if len(names) == 1 else ""


def _place(compiled: Manifest) -> tuple[str, ...]:
    """Return a sentence that names the pass in which all compiles failed; none if they do not agree."""
    name = _failed_in(compiled)
    return (f"it fails in the pass {name}",) if name else ()


def _code(compiled: Manifest) -> str:
    """Return a digest of all machine code; empty if one compile has none."""
    # Part of the code alone could be the same while the rest is not there to differ.
    files = [
        compiled.folder / point.stages[name].path
        for point in compiled.points
        for name in _BINARIES
        if name in point.stages
    ]
    if not files or len(files) < len(compiled.points):
        return ""
    return digest(*(untrusted.read_bytes(path, untrusted.OURS).hex() for path in files))


@dataclass
class WrongKernelSubject(KernelSubject):
    """A kernel; its symptom is that a pass changes its result, as `passes.check` sees it."""

    _cause: str = field(default="", init=False)  # of the baseline
    _culprit: str = field(default="", init=False)  # the pass that it names

    @property
    def kind(self) -> str:
        """The kind of the symptom."""
        return WRONG

    @property
    def when(self) -> list[str]:
        """The terms of `--when`."""
        return [WRONG]

    def baseline(self, name: str = BASELINE) -> Observation:
        """Check the kernel unchanged."""
        observation, self._culprit = self._checked(self.where, name)
        self._cause = observation.cause
        if observation.verdict is not Verdict.BAD:
            return observation
        # A check keeps the texts of passes, and no stages: these need a compile of their own.
        folder = self._fresh(f"{name}-stages")
        try:
            issues = known_issues(run.compile_all(self.request, self.where, folder, silent=True))
        except InterruptedRunError:
            raise
        except SmithError:
            return observation
        return replace(observation, notes=(*observation.notes, *issues))

    def test(self, change: TriageChange) -> Observation:
        """Check the kernel by another release."""
        # The check itself names the pass, so leaving that one out would tell nothing more.
        try:
            return self._checked(self.place(change), change.name)[0]
        except InterruptedRunError:
            raise
        except SmithError as error:
            return Observation(Verdict.SKIP, why=error.what)

    def check(
        self,
        asked: CompileRequest,
        folder: Path,
        stop: Callable[[], bool] = lambda: False,
        warm: WarmChecks | None = None,
    ) -> Observation:
        """Check another kernel: BAD where the same pass changes its result in the same way."""
        # What comes after that pass cannot be the first to change the result. New processes check it all,
        # as their answer is the one that a user gets.
        until, where = self._culprit if warm else "", self.where
        observation, _ = wrong(asked, where, folder, silent=self.silent, stop=stop, warm=warm, until=until)
        if observation.verdict is Verdict.BAD and observation.cause != self._cause:
            return replace(observation, verdict=Verdict.OTHER)
        return observation

    def _checked(self, where: Interpreter, name: str) -> tuple[Observation, str]:
        return wrong(self.request, where, self._fresh(name), silent=self.silent)


def with_cpu_seconds(compiled: Manifest) -> Manifest:
    """Return a manifest with CPU seconds in the place of wall time, which other load changes."""
    points = [replace(point, seconds=cpu_seconds(point)) for point in compiled.points]
    return replace(compiled, points=tuple(points))


def cpu_seconds(point: Point) -> float:
    """Return the CPU seconds of a compile; its wall time if they were not counted, as when it failed."""
    return sum(point.cpu_seconds.values()) or point.seconds


def total_cpu_seconds(compiled: Manifest) -> float:
    """Return the CPU seconds of all compiles."""
    return sum(map(cpu_seconds, compiled.points))


def too_slow(least: float, compiled: Manifest) -> bool:
    """Report whether compiles take too much of the time of others to be called quicker."""
    return total_cpu_seconds(compiled) > variant.times("quicker") * least


def slow_parts(points: Sequence[Point]) -> Iterator[str]:
    """Yield sentences that name the stages and the passes with most of the time."""
    least = variant.times("share")
    for point in points:
        whole = cpu_seconds(point)
        stages = sorted(point.cpu_seconds.items(), key=lambda row: -row[1])
        slow_stages = [
            f"{_TITLES.get(name, name)} {took:.1f}" for name, took in stages if took >= least * whole
        ]
        if slow_stages:
            yield f"of {whole:.1f} CPU s: {', '.join(slow_stages)}"
        # Passes have wall time only, so their share is of the wall time.
        slow = [(took, name) for took, name in pass_times(point.log) if took >= least * point.seconds]
        if slow:
            rows = ", ".join(f"{name} {took:.1f} s" for took, name in sorted(slow, reverse=True))
            yield f"passes, by the compiler's clock, of {point.seconds:.1f} s: {rows}"


def pass_times(log: str) -> Iterator[tuple[float, str]]:
    """Yield wall time and name of each pass, as MLIR and LLVM report them."""
    for line in log.splitlines():
        if (match := _ROW.match(line)) and not _SUMS.fullmatch(match["name"]):
            yield float(match["seconds"]), match["name"]


def parse_when(when: Sequence[str]) -> tuple[Term, ...] | None:
    """Return the terms of `--when`; None for `wrong`, a symptom that no term can say.

    Raises:
        UsageError: a term makes no sense, or `wrong` is combined with limits.
        FactError: a package that `wrong` needs is missing.
    """
    return None if when_wrong.is_requested(when) else terms.parse(when, "--when")


def folder_of(request: CompileRequest, when: Sequence[str], where: Interpreter, out: Path | None) -> Path:
    """Return the folder of a triage: the user's, or one in the workspace that only this question has."""
    name = folder_name(f"{request.file.stem}.{request.name or request.kernel or 'kernel'}")
    texts = when if (limits := parse_when(when)) is None else [limit.text for limit in limits]
    # The time limit is part of the question, as it decides whether a compile hangs.
    question = digest(request, texts, where.python, where.timeout)[:8]
    return (out or workspace.default().root / "triage" / f"{name}-{question}").absolute()


def subject_of(
    request: CompileRequest,
    symptom: tuple[Term, ...] | None,
    where: Interpreter,
    folder: Path,
    *,
    silent: bool = False,
) -> KernelSubject:
    """Return the kernel under test, with the symptom that `parse_when` returned.

    Raises:
        UsageError: a limit is relative, or the kernel is to be wrong, and has several targets or variants.
    """
    if symptom is None:
        return WrongKernelSubject(when_wrong.require_single(request), where, (), folder, silent=silent)
    return KernelSubject(request, where, symptom, folder, silent=silent)
