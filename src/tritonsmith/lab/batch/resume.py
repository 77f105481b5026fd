"""Find results that an output folder already has, so that they are not compiled again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import manifest, source_tree, targets, tritons, values
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.facts import variables

_PROGRAM = "tritonsmith kernel.compile"
_FINAL = ("ok", "failed")  # a crash or a compile that was given up may have been the machine's fault


@dataclass(frozen=True)
class CompileJob:
    """A kernel for one side.

    Attributes:
        asked: what is compiled, before the side's own targets and options: see `tritons.applied`.
        side: by which Triton.
        out: the output folder.
        keyed: the folder's name is a key of all that is asked for but the targets, and of the content of all
            files: what is in it counts, whatever path the file had, and a kernel that the compiler refused
            is refused again.
    """

    asked: CompileRequest
    side: Triton
    out: Path
    keyed: bool = False

    @property
    def title(self) -> str:
        """A few words for the progress bar."""
        return f"{self.asked.kernel or self.asked.file.stem} by {self.side.label}"


def check(jobs: Sequence[CompileJob]) -> None:
    """Check before compiling that each job has its own folder and that the folders can be created.

    Raises:
        UsageError: two jobs have one folder: their files would mix; or a file is where the folder goes.
    """
    seen: set[Path] = set()
    for job in jobs:
        if job.out in seen:
            hints = ['give one of them another name: name = "..."']
            raise UsageError("two kernels of the list would use the same folder", where=job.out, hints=hints)
        seen.add(job.out)
        there = next(path for path in (job.out, *job.out.parents) if path.exists())
        if not there.is_dir():
            raise UsageError("the output folder is a file", where=there)


def command(job: CompileJob, env: str) -> str:
    """The command that recreates the folder.

    Args:
        job: its side's targets and options are among what is asked.
        env: of a side that names no Triton.
    """
    side = job.side
    named = side.version or side.python
    by = {"python": tritons.python_of(side)} if named else {"env": side.env or env}
    ptxas = {"ptxas": side.ptxas} if side.ptxas else {}
    return f"{_PROGRAM} {job.asked.flags(**by, **ptxas, out=job.out.absolute())}"


def kept(job: CompileJob, env: str) -> Manifest | None:
    """The points of a job's folder that are as the job wants them; None if there are none.

    They are, if the file's content, the Triton's version and everything asked for are the same, and the
    files are there. A Triton that somebody builds changes while its version stays, so those of an
    environment or a checkout never are; nor are those that variables had an influence on, then or now.
    """
    table = variables.table()
    steered = any(one.cache == "invalidates" and name in os.environ for name, one in table.items())
    python = job.side.python
    if steered or not job.side.triton or (python and tritons.is_checkout(Path(python))):
        return None
    try:
        old = manifest.read(job.out)
        digest = source_tree.sum_of(job.asked.file)
    except (FactError, OSError):
        return None
    if (old.file_sha256, old.triton) != (digest, job.side.triton) or not _same_request(old, job, env):
        return None
    lacking = {point.target for point in old.points if not _whole(old, point)}
    wanted = {str(target) for target in job.asked.targets} - lacking
    points = tuple(point for point in old.points if point.target in wanted)
    return replace(old, points=points) if points else None


def rest(job: CompileJob, old: Manifest | None) -> CompileJob | None:
    """The part of a job that still has to be compiled; None if nothing."""
    there = {point.target for point in old.points} if old else set()
    missing = tuple(target for target in job.asked.targets if str(target) not in there)
    return replace(job, asked=replace(job.asked, targets=missing)) if missing else None


def merged(job: CompileJob, env: str, parts: Sequence[Manifest]) -> Manifest:
    """One manifest of a folder that was filled in parts: what it had, and what was compiled now."""
    points = [point for part in parts for point in part.points]
    points.sort(key=lambda point: _place(point, job.asked))
    first = next((part for part in parts if part.origin), parts[0])  # one that was refused tells less
    steering = first.command.partition(_PROGRAM)[0]  # variables that had an influence
    return replace(
        first,
        folder=job.out,
        command=f"{steering}{command(job, env)}",
        points=tuple(points),
        stand_ins={name: place for part in parts for name, place in part.stand_ins.items()},
        warnings=tuple(dict.fromkeys(text for part in parts for text in part.warnings)),
    )


def _place(point: Point, asked: CompileRequest) -> tuple[int, ...]:
    """Return the position that a point has where all are compiled at once: parts finish in any order."""
    order = {str(target): number for number, target in enumerate(asked.targets)}
    given = {**point.signature, **point.constexprs, **point.options}
    found = [order[point.target]]
    for sweep in asked.sweeps:
        value = given.get(sweep.name)
        same = (n for n, text in enumerate(sweep.texts) if text == value or values.parse(text) == value)
        found.append(next(same, len(sweep.texts)))
    return tuple(found)


def _same_request(old: Manifest, job: CompileJob, env: str) -> bool:
    if job.keyed:
        return old.command.startswith(_PROGRAM)  # no variables had an influence
    compiled = tuple(dict.fromkeys(targets.parse(point.target) for point in old.points))
    before = replace(job, asked=replace(job.asked, targets=compiled))
    return old.command == command(before, env)


def _whole(old: Manifest, point: Point) -> bool:
    if point.status not in _FINAL:
        return False
    paths = [(old.folder / stage.path, stage.size) for stage in point.stages.values()]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)
