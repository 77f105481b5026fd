"""The words of every experiment: what a test observed, and whether that shows what is searched for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tritonsmith.lab.failure import Failure


class Verdict(StrEnum):
    """The answer of a test, in the words of `git bisect`: `BAD` shows what is searched for, `GOOD` does not.

    `OTHER` is a failure that is not the one searched for, which a triage tells apart; a bisect has `SKIP` for
    it, as for what could not be tested.
    """

    # A journal has these texts, so a change of one makes older journals unreadable.
    GOOD = "good"
    BAD = "bad"
    OTHER = "another failure"
    SKIP = "skip"


@dataclass(frozen=True)
class Observation:
    """The result of one test.

    Attributes:
        verdict: whether it shows the symptom.
        figures: the evidence, as it is shown: `spills 4472`, `exit code 1: ...`.
        why: the reason why it could not be tested.
        seconds: wall time of the test.
        failure: how it failed; None if it did not.
        code: digest of the machine code; empty if there is none.
        notes: sentences about the compile: the pass in which it failed, where the time goes.
        cause: the culprit, where the test itself names it.
        swapped: versions of ptxas: Triton's own, and the one in its place.
        failed_in: class of the pass in which it failed, as MLIR names it; empty if that is unknown.
        cpu_seconds: CPU time of its compiles; what makes the same code is no quicker.
        metrics: resources of the code, by the columns of `kernel.compile --resources`.
    """

    # A journal keeps these fields as JSON, and a reader refuses a line with other ones.
    verdict: Verdict
    figures: str = ""
    why: str = ""
    seconds: float = 0.0
    failure: Failure | None = None
    code: str = ""
    notes: tuple[str, ...] = ()
    cause: str = ""
    swapped: tuple[str, ...] = ()
    failed_in: str = ""
    cpu_seconds: float = 0.0
    metrics: Mapping[str, int | float | str | None] = field(default_factory=dict)

    @property
    def evidence(self) -> str:
        """The figures, and why it could not be tested."""
        return ", ".join(filter(None, (self.figures, self.why)))


# Sent to a search in the place of a test that its request did without; it is in no journal.
UNNEEDED = Observation(Verdict.SKIP, why="another change answered before")
