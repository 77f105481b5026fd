"""The kernels of a bisect, compiled by one Triton or by several at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tritonsmith.compiler.folder_name import folder_name
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan, Remove
from tritonsmith.lab.batch import run
from tritonsmith.lab.batch.run import CompileJob
from tritonsmith.lab.compare.inputs import ComparedKernel

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
