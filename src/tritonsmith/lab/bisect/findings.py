"""The findings of a bisect, put together for its page."""

from __future__ import annotations

from pathlib import Path

from tritonsmith.compiler import manifest
from tritonsmith.core.errors import SmithError
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect import report
from tritonsmith.lab.bisect.command import BisectAnswer
from tritonsmith.lab.bisect.culprit import PartingPass
from tritonsmith.lab.bisect.page import BisectFindings, BisectTexts, points_of
from tritonsmith.lab.bisect.session import BisectSession

_ASSEMBLIES = ("ptx", "amdgcn")


def of(
    session: BisectSession,
    answer: BisectAnswer,
    parted: PartingPass | None = None,
    compiles: tuple[Path, Path] | None = None,
) -> BisectFindings:
    """Everything that the page shows.

    Args:
        session: with all outcomes.
        answer: the result.
        parted: where the compiles by both sides of the step part; None if nobody asked.
        compiles: folders of the kernel's compiles by both sides, whose assembly is shown; None for a command
            or a test.
    """
    step = answer.step
    by_commit = {one.commit: one for one in answer.commits}
    suspects: tuple[TritonCommit | str, ...] = tuple(by_commit.get(name, name) for name in step.suspects)
    notes = list(answer.notes)
    notes += [f"good again: {name}" for name in step.later_good]
    notes += [parted.said] if parted else []
    by_pass = None
    if parted and parted.name and parted.good and parted.bad:
        by_pass = BisectTexts(parted.name, parted.language, parted.good, parted.bad, parted.file)
    return BisectFindings(
        command=report.repeat(session.question),
        question=report.predicate(session.question),
        points=points_of(session.outcomes, answer.commits, answer.nightlies),
        suspects=suspects,
        fix=step.fix,
        stage=_stage(*compiles) if compiles else None,
        by_pass=by_pass,
        notes=tuple(notes),
    )


def _stage(good: Path, bad: Path) -> BisectTexts | None:
    """The assembly of the first compile by both sides; None where one of them has none."""
    one, other = _assemblies(good), _assemblies(bad)
    name = next((name for name in _ASSEMBLIES if name in one and name in other), "")
    return BisectTexts(name, name, one[name], other[name]) if name else None


def _assemblies(folder: Path) -> dict[str, str]:
    """Texts by stage; none where nothing was kept: a dropped outcome, or a compile that failed."""
    try:
        made = manifest.read(folder)
    except SmithError:
        return {}
    return {
        name: (folder / stage.path).read_text(encoding="utf-8", errors="replace")
        for name, stage in made.points[0].stages.items()
        if name in _ASSEMBLIES
    }
