"""What the test of one Triton gave."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """Whether a Triton shows what is searched for, or cannot be tested."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"
