"""The kernels of a bisect, compiled by one Triton or by several at once, and the questions about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan, Remove
from tritonsmith.lab.batch import run
from tritonsmith.lab.batch.run import CompileJob
from tritonsmith.lab.bisect.predicate.protocol import Outcomes, one_by_one
from tritonsmith.lab.compare.inputs import ComparedKernel
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.questions import compiles as questions
from tritonsmith.lab.terms import Term

Manifests = tuple[Manifest, ...]


def folder(out: Path, triton: Triton, kernel: ComparedKernel) -> Path:
    """Return the folder with one Triton's compiles of one kernel."""
    return out / folder_name(triton.label) / kernel.name


class UntestableError(FactError):
    """This Triton cannot compile these kernels at all; another one may."""


class CompilesOf(Protocol):
    """Compiles of the same kernels by many compilers: `KernelCompiles`, `llc_compiles.LlcCompiles`."""

    def prepare(self, tritons: Sequence[Triton]) -> None:
        """Do at once what can be done at once for several Tritons."""

    def of(self, triton: Triton) -> Manifests:
        """The compiles by one of them.

        Raises:
            UntestableError: it cannot be had, or refuses the kernels' files.
        """


@dataclass(frozen=True)
class KernelCompiles:
    """Compiles of the same kernels by many Tritons.

    Attributes:
        kernels: what is compiled.
        out: folder of all of them.
        scheduler: address of a Dask scheduler; empty for processes of this machine.
        count: of those processes; None for as many as cores and memory allow.
        timeout: seconds for one point; None for the usual.
        silent: show no progress.
        again: compile anew at each request, for what differs from run to run.
    """

    kernels: tuple[ComparedKernel, ...]
    out: Path
    scheduler: str = ""
    count: int | None = None
    timeout: int | None = None
    silent: bool = False
    again: bool = False
    _known: dict[str, Manifests] = field(default_factory=dict, compare=False)

    def prepare(self, tritons: Sequence[Triton]) -> None:
        """Compile by several Tritons in one pool; what goes wrong is told when one of them is asked for."""
        jobs = {triton.label: self._jobs(triton) for triton in tritons}
        wanted = {label: made for label, made in jobs.items() if made}
        try:
            every = iter(self._run([job for made in wanted.values() for job in made]))
        except (FactError, UsageError):
            return
        self._known.update({label: tuple(next(every) for _ in made) for label, made in wanted.items()})

    def of(self, triton: Triton) -> Manifests:
        """The compiles by one Triton.

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
                why = error.why.splitlines()[-1] if error.why else ""
                raise UntestableError(": ".join(filter(None, (error.what, why)))) from error
        return self._known.pop(triton.label) if self.again else self._known[triton.label]

    def _jobs(self, triton: Triton) -> tuple[CompileJob, ...]:
        return tuple(
            CompileJob(kernel.asked, triton, folder(self.out, triton, kernel))
            for kernel in self.kernels
            if not triton.triton or kernel.versions.contains(triton.triton, prereleases=True)
        )

    def _run(self, jobs: Sequence[CompileJob]) -> list[Manifest]:
        if self.again:
            space = workspace.default()
            step = Remove(tuple(job.out for job in jobs), space.root, phase="compile again")
            space.run(Plan("compile again", (step,)), "bisect", quiet=True)
        return run.run(
            jobs, self.scheduler, count=self.count, timeout=self.timeout, resume=True, silent=self.silent
        )


@dataclass(frozen=True)
class LimitPredicate:
    """Bad where any compile breaks any term.

    Attributes:
        compiles: of the kernels.
        terms: what makes a Triton bad.
        good: the Triton that signed terms are about; it may have to be built.
    """

    compiles: CompilesOf
    terms: tuple[Term, ...]
    good: Callable[[], Triton]

    def outcomes(self, tritons: Sequence[Triton]) -> Outcomes:
        """Compile by all of them in one pool, then look at each."""
        if len(tritons) > 1:
            self.compiles.prepare(tritons)
        return one_by_one(self.test)(tritons)

    def test(self, triton: Triton) -> Observation:
        """Compile, measure, and look at each term."""
        try:
            mine = self.compiles.of(triton)
        except UntestableError as error:
            return Observation(Verdict.SKIP, why=error.what)
        signed = any(term.change for term in self.terms)
        base = self.compiles.of(self.good()) if signed else mine
        return questions.limit(self.terms, base, mine)


@dataclass(frozen=True)
class FailurePredicate:
    """Bad where a kernel that does not compile at the bad end fails in the same way.

    Attributes:
        compiles: of the kernels.
        bad: the Triton whose failures are searched for; it may have to be built.
    """

    compiles: CompilesOf
    bad: Callable[[], Triton]

    def outcomes(self, tritons: Sequence[Triton]) -> Outcomes:
        """Compile by all of them in one pool, then look at each."""
        if len(tritons) > 1:
            self.compiles.prepare(tritons)
        return one_by_one(self.test)(tritons)

    def test(self, triton: Triton) -> Observation:
        """Compile, and compare the failures with those of the bad end."""
        try:
            return questions.same_failure(self.compiles.of(self.bad()), self.compiles.of(triton))
        except UntestableError as error:
            return Observation(Verdict.SKIP, why=error.what)
