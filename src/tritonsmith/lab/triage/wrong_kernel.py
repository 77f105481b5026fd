"""A kernel whose result is wrong, under triage without a GPU: the first pass that changes it is the cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonsmith.check.predicate import WRONG
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.errors import InterruptedRunError, SmithError
from tritonsmith.lab.experiment import BASELINE
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.questions.wrong import wrong
from tritonsmith.lab.triage.kernel import KernelSubject
from tritonsmith.lab.triage.variant import TriageChange


@dataclass
class WrongKernelSubject(KernelSubject):
    """A kernel; its symptom is that a pass changes its result, as `passes.check` sees it."""

    _cause: str = field(default="", init=False)  # of the baseline

    @property
    def kind(self) -> str:
        """The kind of the symptom."""
        return WRONG

    @property
    def when(self) -> list[str]:
        """The terms of `--when`."""
        return [WRONG]

    def baseline(self, name: str = BASELINE) -> Observation:
        """Check it as it is."""
        observation = self._checked(self.where, name)
        self._cause = observation.cause
        return observation

    def test(self, change: TriageChange) -> Observation:
        """By another release: no other change tells more than the pass does."""
        try:
            return self._checked(self.place(change), change.name)
        except InterruptedRunError:
            raise
        except SmithError as error:
            return Observation(Verdict.SKIP, why=error.what)

    def check(
        self, asked: CompileRequest, folder: Path, stop: Callable[[], bool] = lambda: False
    ) -> Observation:
        """Another kernel: whether the same pass changes its result in the same way; not if it has to stop."""
        observation = wrong(asked, self.where, folder, silent=self.silent, stop=stop)
        if observation.verdict is Verdict.BAD and observation.cause != self._cause:
            return replace(observation, verdict=Verdict.OTHER)
        return observation

    def _checked(self, where: Interpreter, name: str) -> Observation:
        return wrong(self.asked, where, self._fresh(name), silent=self.silent)
