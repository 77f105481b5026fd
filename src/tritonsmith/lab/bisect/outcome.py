"""What the test of one Triton gave."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Whether a Triton shows what is searched for, or cannot be tested."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


@dataclass(frozen=True)
class BisectOutcome:
    """The verdict on one Triton.

    Attributes:
        verdict: good, bad, or not to be tested.
        figures: what was seen, as it is shown: `spills 4472`.
        why: the reason of a skip.
        seconds: that the test took.
    """

    verdict: Verdict
    figures: str = ""
    why: str = ""
    seconds: float = 0.0
