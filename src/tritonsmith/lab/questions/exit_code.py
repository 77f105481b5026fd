"""The question of a command, as `git bisect run` and `git bisect` have it: its exit code says what it saw."""

from __future__ import annotations

from tritonsmith.lab.model import Observation, Verdict

SKIP = 125
ABORT = 128  # and above: a shell's code for a signal, or for what it cannot run


def succeeds(code: int, figures: str, seconds: float, why: str = "") -> Observation:
    """Report a command that fails as BAD, and one that ends with 125 as a skip.

    Args:
        code: its exit code; negative where a signal ended it.
        figures: what it said, as it is shown.
        seconds: wall time.
        why: the reason of a skip, if it is not the exit code alone.
    """
    if code == SKIP:
        return Observation(Verdict.SKIP, figures, why or f"exit code {SKIP}", seconds)
    return Observation(Verdict.BAD if code else Verdict.GOOD, figures, seconds=seconds)
