"""What was seen under one variant, and what can be put under variants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from tritonsmith.core.errors import SmithError
from tritonsmith.lab.reduce.failure import Failure
from tritonsmith.lab.triage.variant import TriageVariant


class Seen(StrEnum):
    """Whether the symptom is there."""

    SHOWS = "shows"
    GONE = "gone"
    OTHER = "another failure"
    UNTESTED = "not tested"


@dataclass(frozen=True)
class Observation:
    """One test.

    Attributes:
        seen: whether the symptom is there.
        figures: what was seen, as it is shown: `spills 4472`, `exit code 1: ...`.
        why: the reason why it was not tested.
        seconds: that it took.
        failure: how it failed; None if it did not.
        code: digest of the machine code that came of it; empty if none did.
        swapped: versions of ptxas: its own, and the one in its place.
        cause: what is to blame, where the test itself says so.
        notes: what else the compiler said: the pass in which it failed, where the time goes; each a sentence.
        failed_in: class of the pass in which it failed, as MLIR names it; empty if that is unknown.
    """

    seen: Seen
    figures: str = ""
    why: str = ""
    seconds: float = 0.0
    failure: Failure | None = None
    code: str = ""
    notes: tuple[str, ...] = ()
    cause: str = ""
    swapped: tuple[str, ...] = ()
    failed_in: str = ""


def refused(error: SmithError) -> Observation:
    """Why something was not tested, and what to do."""
    why = ": ".join(filter(None, (error.what, (error.why or "").partition("\n")[0])))
    return Observation(Seen.UNTESTED, why="; ".join((why, *error.hints)))


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
        """Whether it is a command, which runs; a kernel is compiled only."""

    @property
    def has_check(self) -> bool:
        """Whether the symptom is that values of a script are wrong."""

    def baseline(self) -> Observation:
        """As it is, with caches of its own; SHOWS or GONE. It decides what the symptom is."""

    def test(self, variant: TriageVariant) -> Observation:
        """Under a variant."""

    def lines(self, line: Mapping[str, str]) -> tuple[str, ...]:
        """FILE:LINE of the operations that a variant is about, in what the baseline compiled."""

    def bisect(self, other: str, /) -> str:
        """The command that bisects between this Triton and another release; empty if there is none."""

    @property
    def kind(self) -> str:
        """Of the symptom: `failure`, `hang`, `limit` or `slow`; known after the baseline."""
