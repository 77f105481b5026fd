"""A subject that changes are tried on, and the words for what becomes of its symptom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from tritonsmith.core.errors import SmithError
from tritonsmith.lab.experiment import BASELINE
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.triage.variant import TriageChange

SYMPTOM = {  # in tables, triage.json and configs/triage.toml
    Verdict.BAD: "shows",
    Verdict.GOOD: "gone",
    Verdict.OTHER: "another failure",
    Verdict.SKIP: "not tested",
}


def not_tested(error: SmithError) -> Observation:
    """Return a skip that says why something was not tested, and what to do."""
    why = ": ".join(filter(None, (error.what, (error.why or "").partition("\n")[0])))
    return Observation(Verdict.SKIP, why="; ".join((why, *error.hints)))


class Subject(Protocol):
    """A kernel or a command."""

    @property
    def triton(self) -> str:
        """The version of its Triton; empty if nobody knows."""

    @property
    def backends(self) -> frozenset[str]:
        """`cuda`, `hip`, or both where nobody knows."""

    @property
    def is_command(self) -> bool:
        """Report whether it is a command, which runs; a kernel is only compiled."""

    @property
    def has_check(self) -> bool:
        """Report whether the symptom is a wrong value of a script."""

    @property
    def key(self) -> object:
        """Everything that a test depends on, but for the change; to digest."""

    def baseline(self, name: str = BASELINE) -> Observation:
        """Test it as it is, with caches of its own; BAD or GOOD.

        The test of the name `BASELINE` decides what the symptom is.
        """

    def resume(self, known: Iterable[Observation]) -> None:
        """Take up the observations of a run that was stopped; the baseline was tested once more before."""

    def test(self, change: TriageChange) -> Observation:
        """Test it with a change."""

    def lines(self, line: Mapping[str, str]) -> tuple[str, ...]:
        """Return FILE:LINE of the operations that a change is about, in what the baseline compiled."""

    def bisect(self, other: str, /) -> str:
        """Return the command that bisects between this Triton and another release; empty if there is none."""

    @property
    def kind(self) -> str:
        """The kind of the symptom: `failure`, `hang`, `limit` or `slow`; known after the baseline."""
