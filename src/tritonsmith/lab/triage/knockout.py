"""`knockout -- python script.py`: a program without each pass in turn, right or wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tritonsmith.core.errors import FactError
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.lab import experiment
from tritonsmith.lab.experiment import Search
from tritonsmith.lab.journal import Journal
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.triage.program import CommandSubject
from tritonsmith.lab.triage.variant import TriageChange
from tritonsmith.lab.triage.verdict import UNCHANGED

_COUNTED = TriageChange("passes counted")
_LONGEST = 60  # characters of what a run said


@dataclass(frozen=True)
class ProgramKnockout:
    """A program without each pass.

    Attributes:
        triton: version.
        baseline: with all passes.
        passes: `NAME#2` to what was seen without it, in their order.
    """

    triton: str
    baseline: Observation
    passes: dict[str, Observation]


def run(
    subject: CommandSubject, journal: Journal, tell: Callable[[str, Observation], None]
) -> ProgramKnockout:
    """Run it as it is, and then without each pass that its kernels are compiled with.

    Args:
        subject: the program.
        journal: of this knockout; a run that was stopped goes on from it.
        tell: gets each new observation, as it comes.

    Raises:
        FactError: it cannot be tested as it is, or compiles no kernel.
    """

    def observed(rows: Sequence[TriageChange]) -> Iterator[Observation]:
        for row in rows:
            if row is _COUNTED:
                yield subject.passes(row)
            else:
                yield subject.baseline() if row is UNCHANGED.change else subject.observe(row)

    return experiment.run(_search(subject), observed, journal, tell)


def _search(subject: CommandSubject) -> Search[TriageChange, ProgramKnockout]:
    (baseline,) = yield [UNCHANGED.change]
    if baseline.verdict is Verdict.SKIP:
        raise FactError("the program cannot be tested as it is", why=f"{baseline.why}: {baseline.figures}")
    (counted,) = yield [_COUNTED]
    names = counted.notes
    if not names:
        hints = ["its kernels have to be compiled in this run, by Triton's own compile"]
        raise FactError("the program compiles no kernel whose passes can be counted", hints=hints)
    observations = yield [TriageChange(f"without {name}", skip=name) for name in names]
    return ProgramKnockout(subject.triton, baseline, dict(zip(names, observations, strict=True)))


def table(result: ProgramKnockout, *, check: bool) -> Grid:
    """A line for each pass.

    Args:
        result: what was seen.
        check: whether values of the program were checked, not its exit code.
    """
    rows = [
        [
            name,
            _word(observation, check=check),
            tables.clipped(observation.figures, _LONGEST),
            f"{observation.seconds:.1f} s",
        ]
        for name, observation in {"all passes": result.baseline, **result.passes}.items()
    ]
    title = f"the program with Triton {result.triton}, without each pass in turn"
    return tables.plain(title, ["pass", "without it", "", "time"], rows, right=["time"])


def as_json(result: ProgramKnockout, *, check: bool) -> dict[str, Any]:
    """All of it."""
    return {
        "schema": 1,
        "triton": result.triton,
        "passes": [
            {
                "pass": name,
                "without": _word(observation, check=check),
                "said": observation.figures,
                "why": observation.why,
                "seconds": observation.seconds,
            }
            for name, observation in {"": result.baseline, **result.passes}.items()
        ],
    }


def _word(observation: Observation, *, check: bool) -> str:
    return {
        Verdict.GOOD: "right" if check else "succeeds",
        Verdict.BAD: "wrong" if check else "fails",
        Verdict.OTHER: "fails",
    }.get(observation.verdict, f"not tested: {observation.why}")
