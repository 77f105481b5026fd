"""Plan and run a study: kernels, targets and versions, and the resulting rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import output_folder
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.table import ResourceRow
from tritonsmith.compiler.targets import Target
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import ConfigError, FactError, SmithError, UsageError
from tritonsmith.core.plan import Plan, Write
from tritonsmith.lab.batch import kept, run
from tritonsmith.lab.batch.run import CompileJob
from tritonsmith.lab.study.git_sources import History


@dataclass(frozen=True)
class StudyCell:
    """One kernel by one Triton for one target.

    Attributes:
        triton: the version, or what the side is called.
        row: what came of it; its `error` says why nothing did.
        source: sha256 of the kernel's file.
        seconds: that the compile took.
        compiled: whether a compile was tried; False where the kernel's file could not be had, as in a clone
            that lacks the commit: then `row.error` says nothing about the compiler.
    """

    triton: str
    row: ResourceRow
    source: str = ""
    seconds: float = 0.0
    compiled: bool = True


@dataclass(frozen=True)
class StudyPlan:
    """The compiles of a study.

    Attributes:
        jobs: each with the kernel's name in tables.
        files: steps that write files of a repository, as they were for a version.
        lost: cells of kernels that cannot even be asked for: the file of that version lacks them.
        out: folder of the study.
    """

    jobs: tuple[tuple[str, CompileJob], ...]
    files: tuple[Write, ...]
    lost: tuple[StudyCell, ...]
    out: Path

    def plan(self) -> Plan:
        """All of it, what is there already too."""
        return Plan("study", self.files) + run.plan([job for _, job in self.jobs])


def prepare(
    entries: Sequence[ListedKernel],
    sides: Sequence[Triton],
    wanted: tuple[Target, ...],
    out: Path,
    folder: Path,
    history: History | None = None,
) -> StudyPlan:
    """All jobs, versions outermost.

    Args:
        entries: the kernels.
        sides: the Tritons; each has its own name.
        wanted: targets of kernels that name none.
        out: folder of the study.
        folder: that the kernels' files are relative to, if they are not in a repository.
        history: that repository.

    Raises:
        SmithError: two sides are the same, a side has no version where the repository needs one, no kernel
            can be read, or two would share a folder.
    """
    names = [name_of(side) for side in sides]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"--triton is given twice for {twice[0]}", hints=["omit one of them"])
    jobs: list[tuple[str, CompileJob]] = []
    files: dict[Path, Write] = {}
    lost: list[StudyCell] = []
    for side, name in zip(sides, names, strict=True):
        for entry in entries:
            if not entry.fits(side.triton):
                continue
            try:
                text = history.content(side.triton, entry.file) if history else None
                base = out / "sources" / name if history else folder
                asked = entry.asked(base, wanted, text)
            except SmithError as error:
                if not history and not (folder / entry.file).exists():
                    hints = [
                        *error.hints,
                        "kernels of a repository: --source CLONE",
                    ]
                    raise FactError(error.what, where=error.where, why=error.why, hints=hints) from None
                if not history or isinstance(error, ConfigError):
                    raise
                lost += _lost(entry, name, wanted, error)
                continue
            if text is not None:
                files[asked.file] = Write(asked.file, text, phase="sources")
            jobs.append((entry.name, CompileJob(asked, side, out / name / folder_name(entry.name))))
    if not jobs:
        raise SmithError("no kernel supports these versions", why=lost[0].row.error if lost else None)
    kept.check([job for _, job in jobs])
    return StudyPlan(tuple(jobs), tuple(files.values()), tuple(lost), out)


def execute(
    matrix: StudyPlan,
    scheduler: str = "",
    *,
    count: int | None = None,
    timeout: int | None = None,
    silent: bool = False,
) -> tuple[StudyCell, ...]:
    """Compile what is missing, and read the results; sorted by kernel, target and version.

    Raises:
        LockedError: another study writes to the folder.
        SmithError: as `batch.run.run`.
    """
    space = workspace.default()
    space.claim()
    jobs = [job for _, job in matrix.jobs]
    with output_folder.held(matrix.out, space, "kernel.study"):
        space.run(Plan("sources", matrix.files), "kernel.study", quiet=True)
        made = run.run(jobs, scheduler, count=count, timeout=timeout, resume=True, silent=silent)
        named = zip(matrix.jobs, made, strict=True)
        cells = [cell for (name, job), one in named for cell in _cells(name, job, one)]
    every = [*cells, *matrix.lost]
    kernels = list(dict.fromkeys(cell.row.kernel for cell in every))
    targets = list(dict.fromkeys(cell.row.target for cell in every))
    every.sort(
        key=lambda one: (kernels.index(one.row.kernel), targets.index(one.row.target), order(one.triton))
    )
    return tuple(every)


def order(version: str) -> tuple[int, tuple[int, ...], str]:
    """Releases by their numbers, then everything else by its name."""
    parts = version.split(".")
    if all(part.isdecimal() for part in parts):
        return (0, tuple(map(int, parts)), "")
    return (1, (), version)


def name_of(side: Triton) -> str:
    """The name of a Triton in tables and folders: version, environment, or all words where it has options."""
    known = side.label if side.ptxas or side.options else side.env or side.triton or side.label
    return re.sub(r"[^\w.,=+-]", "_", known)


def _cells(name: str, job: CompileJob, made: Manifest) -> Iterator[StudyCell]:
    for point, row in zip(made.points, measure.of_manifest(made).rows, strict=True):
        renamed = replace(row, kernel=name, options="")
        yield StudyCell(name_of(job.triton), renamed, made.file_sha256, point.seconds)


def _lost(
    entry: ListedKernel, triton: str, wanted: tuple[Target, ...], error: SmithError
) -> Iterator[StudyCell]:
    for target in entry.targets or wanted:
        row = ResourceRow(entry.name, "", str(target), error=f"not compiled: {error.what}")
        yield StudyCell(triton, row, compiled=False)
