"""`--when wrong`: bad where a pass of this Triton changes what a kernel computes; no GPU."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import tritons
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import InterruptedRunError, SmithError
from tritonsmith.lab.bisect.predicate.protocol import Outcomes, one_by_one
from tritonsmith.lab.compare.inputs import ComparedKernel
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.questions.wrong import wrong


@dataclass(frozen=True)
class WrongResultPredicate:
    """Bad where any kernel is changed by a pass; a kernel that cannot be checked to the end is a skip.

    Attributes:
        kernels: what is checked, each for all of its targets.
        out: folder of the dumps.
        timeout: seconds for one compile; None for the usual.
        silent: show no progress.
    """

    kernels: tuple[ComparedKernel, ...]
    out: Path
    timeout: int | None = None
    silent: bool = False

    def outcomes(self, tritons: Sequence[Triton]) -> Outcomes:
        """One after another."""
        return one_by_one(self.test)(tritons)

    def test(self, triton: Triton) -> Observation:
        """Dump, and run the IR after each pass."""
        began, why = time.monotonic(), "" if self.kernels else "no kernel"
        for kernel, target in ((one, target) for one in self.kernels for target in one.asked.targets):
            folder = self.out / folder_name(triton.label) / folder_name(f"{kernel.name}-{target}")
            try:
                where = tritons.place_of(triton, 1, self.timeout)
                asked = replace(tritons.applied(kernel.asked, triton), targets=(target,))
            except InterruptedRunError:
                raise
            except SmithError as error:
                why = ": ".join(filter(None, (error.what, (error.why or "").partition("\n")[0])))
                continue
            observation = wrong(asked, where, folder, silent=self.silent)
            if observation.verdict is Verdict.BAD:
                return replace(observation, seconds=time.monotonic() - began, notes=(), cause="")
            why = observation.why or why
        seconds = time.monotonic() - began
        if why:
            return Observation(Verdict.SKIP, why=why, seconds=seconds)
        return Observation(Verdict.GOOD, "no pass changes the result", seconds=seconds)
