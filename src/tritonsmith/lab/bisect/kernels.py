"""Tests of Tritons by the kernels that they compile, and a question about these compiles."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from tritonsmith.compiler import tritons
from tritonsmith.compiler.manifest import Manifest, folder_name
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import Plan, Remove
from tritonsmith.lab import questions
from tritonsmith.lab.batch import run
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.bisect.candidates import Observations, one_by_one
from tritonsmith.lab.compare.two_sides import ComparedKernel
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.lab.terms import Term

Manifests = tuple[Manifest, ...]
_TIMES = 5  # compiles of a kernel whose time counts
_LONG = 30.0  # seconds after which there are no more of them


def kernel_folder(out: Path, triton: Triton, kernel: ComparedKernel) -> Path:
    """Return the folder with one Triton's compiles of one kernel."""
    return out / folder_name(triton.label) / kernel.name


class UntestableError(FactError):
    """This Triton cannot compile these kernels at all; another one may."""


class CompilesOf(Protocol):
    """Compiles of the same kernels by many compilers: `KernelCompiles`, `LlcCompiles`."""

    def prepare(self, tritons: Sequence[Triton]) -> None:
        """Do at once what can be done at once for several Tritons."""

    def of(self, triton: Triton) -> Manifests:
        """Return the compiles by one of them.

        Raises:
            UntestableError: it cannot be had, or refuses the kernels' files.
        """


@dataclass(frozen=True)
class KernelCompiles:
    """Compiles of the same kernels by many Tritons.

    Attributes:
        kernels: the kernels.
        out: folder of all of them.
        scheduler: address of a Dask scheduler; empty for processes of this machine.
        count: of those processes; None for as many as cores and memory allow.
        timeout: seconds for one point; None for the usual.
        silent: show no progress.
        again: compile anew at each request, for what differs from run to run.
        disassemble: the question is about machine code.
        timed: the question is about the time of a compile, which is the least of several.
    """

    kernels: tuple[ComparedKernel, ...]
    out: Path
    scheduler: str = ""
    count: int | None = None
    timeout: int | None = None
    silent: bool = False
    again: bool = False
    disassemble: bool = True
    timed: bool = False
    _known: dict[str, Manifests] = field(default_factory=dict, compare=False)

    def prepare(self, tritons: Sequence[Triton]) -> None:
        """Compile by several Tritons in one pool; `of` raises the errors."""
        jobs = {triton.label: self._jobs(triton) for triton in tritons}
        needed = {label: compiles for label, compiles in jobs.items() if compiles}
        try:
            every = iter(self._run([job for compiles in needed.values() for job in compiles]))
        except (FactError, UsageError):
            # One Triton that refuses the kernels fails the whole pool. Each is then compiled alone, by `of`,
            # and only that one is a skip.
            return
        self._known.update(
            {label: tuple(next(every) for _ in compiles) for label, compiles in needed.items()}
        )

    def of(self, triton: Triton) -> Manifests:
        """Return the compiles by one Triton.

        Raises:
            UntestableError: this Triton cannot be had for this Python, or refuses the kernels' files.
            SmithError: something else is in the way.
        """
        if triton.label not in self._known:
            jobs = self._jobs(triton)
            if not jobs:
                raise UntestableError(f"no kernel of the list is for Triton {triton.triton}")
            try:
                self._known[triton.label] = tuple(self._run(jobs))
            except (FactError, UsageError) as error:
                why = error.why.splitlines()[-1] if error.why else ""  # of a traceback, its message
                raise UntestableError(": ".join(filter(None, (error.what, why)))) from error
        # With `again` each result serves once, so that the next test of `--confirm` is a compile of its own.
        return self._known.pop(triton.label) if self.again else self._known[triton.label]

    def _jobs(self, triton: Triton) -> tuple[CompileJob, ...]:
        return tuple(
            CompileJob(
                replace(kernel.asked, disassemble=self.disassemble),
                triton,
                kernel_folder(self.out, triton, kernel),
            )
            for kernel in self.kernels
            # Builds of main are prereleases, which a specifier leaves out by default (PEP 440).
            if not triton.triton or kernel.versions.contains(triton.triton, prereleases=True)
        )

    def _run(self, jobs: Sequence[CompileJob]) -> list[Manifest]:
        if not self.timed:
            return self._compiled(jobs)
        # What else runs makes a compile slower, and never quicker.
        runs, until = [self._compiled(jobs)], time.monotonic() + _LONG
        while len(runs) < _TIMES and time.monotonic() < until:
            runs.append(self._compiled(jobs))
        return [_quickest(each) for each in zip(*runs, strict=True)]

    def _compiled(self, jobs: Sequence[CompileJob]) -> list[Manifest]:
        if self.again or self.timed:  # a result that is there would be found again by its folder
            space = workspace.default()
            step = Remove(tuple(job.out for job in jobs), space.root, phase="compile again")
            space.run(Plan("compile again", (step,)), "bisect", quiet=True)
        return run.compile_all(
            jobs,
            self.scheduler,
            count=self.count,
            timeout=self.timeout,
            resume=True,  # a bisect that goes on takes up what the run before it has compiled
            silent=self.silent,
            only_kernels=True,  # or a refusal would be a failure beside another Triton, and an error alone
        )


def _quickest(runs: Sequence[Manifest]) -> Manifest:
    """Return the last of several compiles of one kernel, with the least time of each point that succeeds."""
    seconds = [
        min(point.seconds for point in each) for each in zip(*(run.points for run in runs), strict=True)
    ]
    points = [
        replace(point, seconds=least) if point.status == "ok" else point
        for point, least in zip(runs[-1].points, seconds, strict=True)
    ]
    return replace(runs[-1], points=tuple(points))


@dataclass(frozen=True)
class KernelTests:
    """Tests of Tritons by a question about their compiles.

    Attributes:
        compiles: of the kernels.
        question: of `lab.questions.compiles`; it gets the compiles by the end, then those of the Triton.
        end: names the Triton that others are compared with, which may have to be built: the good one for
            signed terms, the bad one for a failure; None for a question about single compiles.
    """

    compiles: CompilesOf
    question: Callable[[Manifests, Manifests], Observation]
    end: Callable[[], Triton] | None = None

    def outcomes(self, tritons: Sequence[Triton]) -> Observations:
        """Compile by all of them in one pool, then look at each."""
        # A single Triton needs no preparation, and `of` names its error.
        if len(tritons) > 1:
            self.compiles.prepare(tritons)
        return one_by_one(self.test)(tritons)

    def test(self, triton: Triton) -> Observation:
        """Compile by a Triton, and ask the question."""
        try:
            compiles = self.compiles.of(triton)
            # The end last: it may have to be built, which takes an hour, and a Triton that is untestable does
            # not need it.
            return self.question(self.compiles.of(self.end()) if self.end else compiles, compiles)
        except UntestableError as error:
            return Observation(Verdict.SKIP, why=error.what)


def broken_limit(compiles: CompilesOf, terms: tuple[Term, ...], good: Callable[[], Triton]) -> KernelTests:
    """Return tests that are bad where any compile breaks any term; signed terms are about the good end."""
    signed = any(term.change for term in terms)
    return KernelTests(compiles, partial(questions.limit, terms), good if signed else None)


def same_failure(compiles: CompilesOf, bad: Callable[[], Triton]) -> KernelTests:
    """Return tests that are bad where a kernel fails as it does at the bad end."""
    return KernelTests(compiles, questions.same_failure, bad)


@dataclass(frozen=True)
class WrongResultTests:
    """Tests that are bad where a pass changes the result of a kernel.

    Attributes:
        kernels: the kernels to check, each for all of its targets.
        out: folder of the dumps.
        timeout: seconds for one compile; None for the usual.
        silent: show no progress.
    """

    kernels: tuple[ComparedKernel, ...]
    out: Path
    timeout: int | None = None
    silent: bool = False

    def outcomes(self, tritons: Sequence[Triton]) -> Observations:
        """Test one Triton after another."""
        return one_by_one(self.test)(tritons)

    def test(self, triton: Triton) -> Observation:
        """Dump the passes of each kernel, and run the IR after each pass."""
        from tritonsmith.lab.questions import wrong  # noqa: PLC0415 - xDSL, of an extra that may be missing

        began, why = time.monotonic(), "" if self.kernels else "no kernel"
        for kernel, target in ((row, target) for row in self.kernels for target in row.asked.targets):
            folder = self.out / folder_name(triton.label) / folder_name(f"{kernel.name}-{target}")
            try:
                where = tritons.place_of(triton, 1, self.timeout)
                request = replace(tritons.applied(kernel.asked, triton), targets=(target,))
            except InterruptedRunError:
                raise
            except SmithError as error:
                why = error.line
                continue
            observation, _ = wrong(request, where, folder, silent=self.silent)
            if observation.verdict is Verdict.BAD:
                return replace(observation, seconds=time.monotonic() - began, notes=(), cause="")
            why = observation.why or why
        seconds = time.monotonic() - began
        # Good only where every kernel was checked to its end: the culprit may be in one that was not.
        if why:
            return Observation(Verdict.SKIP, why=why, seconds=seconds)
        return Observation(Verdict.GOOD, "no pass changes the result", seconds=seconds)
