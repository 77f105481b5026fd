"""The memory of all experiments that compile many kernels: a result that is there is not compiled again.

A result is an output folder with its manifest. A folder that a user named (`compare --triton A,B --out DIR`)
counts where its manifest names the same command and the same content of the kernel's file and its imports.
A keyed folder of the workspace (`kernels/releases/3.6.0/KEY`) counts whatever path the file has: KEY is a
digest of the content of all files and of everything else that is asked for, except the targets. Commits have
such folders, too (`kernels/commits/CONTENT/KEY`), which all commits that compile alike share.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import call, interpreter, signature, source_tree, targets, tritons
from tritonsmith.compiler import manifest as manifests
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.source_tree import KernelSources
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import Plan, Remove, digest, files, locks
from tritonsmith.facts import variables
from tritonsmith.lab import metrics
from tritonsmith.lab.metrics import Measured

RELEASES, COMMITS, OTHERS = "releases", "commits", "rehearsed"
METRICS = "metrics.json"

_PROGRAM = "tritonsmith kernel.compile"
_FINAL = ("ok", "failed")  # a crash or a compile that was given up may have been the machine's fault
_FOREIGN = re.compile(r"[^\w.+-]")
_SCHEMA = 1  # of METRICS: a change of what is measured, and how, changes it
_TABLES = ("gpu-limits", "kernel-metrics", "kernel-resources")


# The files of kernels, by kernel; None if they cannot be read. Many Tritons compile the same ones, and those
# of a large package take a tenth of a second to read. For one step of a run only: files are edited meanwhile.
SourceTrees = dict[tuple[Path, str], KernelSources | None]


@dataclass(frozen=True)
class CompileJob:
    """A kernel for one Triton.

    Attributes:
        request: what is compiled, before the Triton's own targets and options: see `tritons.applied`.
        triton: the Triton that compiles.
        out: the output folder.
        keyed: the folder's name is a key of the content: what is in it counts, whatever path the file had,
            and a kernel that the compiler refused is refused again.
    """

    request: CompileRequest
    triton: Triton
    out: Path
    keyed: bool = False

    @property
    def title(self) -> str:
        """A few words for the progress bar."""
        return f"{self.request.kernel or self.request.file.stem} by {self.triton.label}"


def keyed(request: CompileRequest, triton: Triton, module: str = "") -> CompileJob:
    """Return the job whose result the workspace keeps for every experiment.

    Args:
        request: of one kernel.
        triton: a release, a commit, an environment or an interpreter.
        module: the import name of the kernel's file; empty if it is no module of a package.

    Raises:
        SmithError: the kernel's file cannot be read.
    """
    tree = source_tree.of(request.file, request.kernel, module)
    # The name and the entry of the list are for tables; the targets are points of one folder.
    content = replace(request, file=Path(tree.main), targets=(), name="", listed=None)
    programs = [entry.programs for entry in interpreter.locate_programs(workspace.default()).disassemblers]
    worker = digest(call.source_text(), configs.load("kernels"))  # another worker may write other files
    return CompileJob(
        request, triton, folder_of(triton) / digest(tree.key, content, worker, programs), keyed=True
    )


def folder_of(triton: Triton) -> Path:
    """Return the folder with all keyed results of a Triton.

    A release has one, and so have all commits of one content. An environment or an interpreter has one, too,
    but its compiles are repeated each time.
    """
    root = workspace.default().root / "kernels"
    other = f"-ptxas-{triton.ptxas}" if triton.ptxas else ""
    # Not by the commit: one that changes tests or documents finds all results of its parent.
    if triton.source:
        return root / COMMITS / f"{triton.source.content}{other}"
    if triton.version:
        return root / RELEASES / f"{triton.version}{other}"
    name = _FOREIGN.sub("_", Path(triton.env or triton.python).name)
    # Most interpreters are called `python`: the digest tells their folders apart.
    return root / OTHERS / f"{name}-{digest(triton.env, triton.python, triton.ptxas)[:8]}"


def check(jobs: Sequence[CompileJob]) -> None:
    """Check that each job has its own folder, and that the folders can be created.

    Raises:
        UsageError: two jobs have one folder: their files would mix; or a file is where the folder goes.
    """
    # Without this, mkdir would fail after hours of compiles, when the files of that one kernel are copied.
    taken: set[Path] = set()
    for job in jobs:
        if job.out in taken:
            hints = ['give one of them another name: name = "..."']
            raise UsageError("two kernels of the list would use the same folder", where=job.out, hints=hints)
        taken.add(job.out)
        nearest = next(path for path in (job.out, *job.out.parents) if path.exists())
        if not nearest.is_dir():
            raise UsageError("the output folder is a file", where=nearest)


def command(job: CompileJob, env: str) -> str:
    """Return the command that recreates the folder.

    Args:
        job: its Triton's targets and options are in the request.
        env: of a Triton that names none.
    """
    triton = job.triton
    named = triton.version or triton.python
    by = {"python": tritons.python_of(triton)} if named else {"env": triton.env or env}
    ptxas = {"ptxas": triton.ptxas} if triton.ptxas else {}
    return f"{_PROGRAM} {job.request.flags(**by, **ptxas, out=job.out.absolute())}"


def sources(job: CompileJob, trees: SourceTrees) -> str:
    """Return a digest of the kernel's file and its own imports; empty if it is not needed or not known."""
    # A keyed job needs none, as its folder's name is such a digest.
    tree = None if job.keyed else _tree(job, trees)
    return tree.key if tree else ""


def _tree(job: CompileJob, trees: SourceTrees) -> KernelSources | None:
    place = (job.request.file.absolute(), job.request.kernel)
    if place not in trees:
        trees[place] = None
        with suppress(SmithError):
            trees[place] = source_tree.of(*place)
    return trees[place]


def find(job: CompileJob, env: str, trees: SourceTrees) -> Manifest | None:
    """Return the points of a job's folder that are as the job wants them; None if there are none.

    They match if the content of the file and of its imports, the version of the Triton and the whole request
    are the same, and the files still exist.

    Args:
        job: its Triton's targets and options are in the request.
        env: of a Triton that names none.
        trees: the files of kernels that were read already.
    """
    table = variables.table()
    # A variable that had an influence, then or now, is no part of the key.
    steered = any(row.cache == "invalidates" and name in os.environ for name, row in table.items())
    if steered or not _trusted(job):
        return None
    try:
        old = manifests.read(job.out)
        content = source_tree.sum_of(job.request.file)
    except (FactError, OSError):
        return None
    # A commit's results may be those of another one, whose version may be spelled otherwise: its key decides.
    triton = old.triton if job.triton.source else job.triton.triton
    if (old.file_sha256, old.triton) != (content, triton) or not _same_request(old, job, env):
        return None
    if not _same_sources(old, job, trees):
        return None
    # A manifest is written last and whole, so a killed run leaves no half result. But files may be deleted.
    lacking = {point.target for point in old.points if not _whole(old, point)}
    usable = {str(target) for target in job.request.targets} - lacking
    points = tuple(point for point in old.points if point.target in usable)
    return replace(old, points=points) if points else None


def _trusted(job: CompileJob) -> bool:
    """Report whether the Triton of a job compiles today what it compiled before."""
    # A commit's package is a checkout, but its content is in the name of the folder.
    if job.triton.source:
        return job.keyed
    # A Triton that somebody builds changes while its version stays: so neither an environment (whose version
    # `triton` does not tell) nor a checkout is trusted.
    python = job.triton.python
    return bool(job.triton.triton) and not (python and tritons.is_checkout(Path(python)))


def are_complete(jobs: Iterable[CompileJob], env: str = "") -> bool:
    """Report whether the results of all jobs are there, so that their Tritons are not needed.

    Args:
        jobs: as `batch.run.compiled` takes them.
        env: of a Triton that names none.
    """
    trees: SourceTrees = {}
    every = (replace(job, request=tritons.applied(job.request, job.triton)) for job in jobs)
    return all(rest(job, find(job, env, trees)) is None for job in every)


def rest(job: CompileJob, old: Manifest | None) -> CompileJob | None:
    """Return the part of a job that still has to be compiled; None if nothing."""
    known = {point.target for point in old.points} if old else set()
    missing = tuple(target for target in job.request.targets if str(target) not in known)
    return replace(job, request=replace(job.request, targets=missing)) if missing else None


def merged(job: CompileJob, env: str, parts: Sequence[Manifest]) -> Manifest:
    """Return one manifest of a folder that was filled in parts, earlier and now."""
    points = [point for part in parts for point in part.points]
    points.sort(key=lambda point: _place(point, job.request))
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


def _place(point: Point, request: CompileRequest) -> tuple[int, ...]:
    """Return the position that a point has where all are compiled at once: parts finish in any order."""
    order = {str(target): number for number, target in enumerate(request.targets)}
    by_name = {**point.signature, **point.constexprs, **point.options}
    position = [order[point.target]]
    for sweep in request.sweeps:
        value = by_name.get(sweep.name)
        # A signature's types are texts, as a sweep's are; constants and options are values by now.
        same = (
            n for n, text in enumerate(sweep.texts) if text == value or signature.parse_value(text) == value
        )
        position.append(next(same, len(sweep.texts)))
    return tuple(position)


def _same_request(old: Manifest, job: CompileJob, env: str) -> bool:
    if job.keyed:
        return old.command.startswith(_PROGRAM)  # no variables had an influence
    # The targets are compared one by one: a folder may have more of them, or fewer.
    compiled = tuple(dict.fromkeys(targets.parse(point.target) for point in old.points))
    before = replace(job, request=replace(job.request, targets=compiled))
    return old.command == command(before, env)


def _same_sources(old: Manifest, job: CompileJob, trees: SourceTrees) -> bool:
    """Report whether the imports of the kernel's file are those that a folder was compiled with."""
    if job.keyed:
        return True
    if (tree := _tree(job, trees)) is None:
        return False
    # A manifest of `kernel.compile`, or of an older version of this tool, tells nothing about the imports: it
    # counts only for a file that has none.
    return old.sources == tree.key if old.sources else len(tree.sums) == 1


def _whole(old: Manifest, point: Point) -> bool:
    if point.status not in _FINAL:
        return False
    paths = [(old.folder / stage.path, stage.size) for stage in point.stages.values()]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


@dataclass(frozen=True)
class FolderMetrics:
    """Metrics of all points of an output folder.

    Attributes:
        points: by the point's id; empty for one that did not compile.
        notes: what a person should know.
    """

    points: Mapping[str, Measured]
    notes: tuple[str, ...]


def metrics_of(manifest: Manifest) -> FolderMetrics:
    """Return the metrics of a folder: those kept with its manifest, or else new ones, which are kept there.

    Raises:
        FactError: a file of a compile cannot be read.
    """
    # To read the binaries again would take longer than all the rest of an experiment that compiles nothing.
    path = manifest.folder / METRICS
    key = digest(_SCHEMA, manifest.render(), [configs.load(name) for name in _TABLES])
    with suppress(OSError, ValueError, KeyError, TypeError):  # there are none yet, or not ours
        content = untrusted.read_json(path, untrusted.OURS)
        if content["key"] == key:
            return FolderMetrics(content["points"], tuple(content["notes"]))
    measured = measured_now(manifest)
    text = json.dumps({"key": key, "points": measured.points, "notes": measured.notes}, indent=1)
    files.write_atomically(path, f"{text}\n")
    return measured


def measured_now(manifest: Manifest) -> FolderMetrics:
    """Measure all points of a folder, and write nothing to it.

    Raises:
        FactError: a file of a compile cannot be read.
    """
    table = measure.of_manifest(manifest)
    points = {
        point.id: metrics.measure(manifest, point, row) if point.status == "ok" else {}
        for point, row in zip(manifest.points, table.rows, strict=True)
    }
    notes = (*manifest.warnings, *table.warnings, *table.notes, *measure.without_disassembly(manifest))
    return FolderMetrics(points, tuple(dict.fromkeys(notes)))


@dataclass(frozen=True)
class KeptResults:
    """The keyed results of one Triton.

    Attributes:
        folder: of all of them.
        kernels: the number of results.
        bytes: of all files.
    """

    folder: Path
    kernels: int
    bytes: int


def results(space: Workspace) -> tuple[KeptResults, ...]:
    """List the keyed results of a workspace, Triton by Triton."""
    parents = (space.root / "kernels" / name for name in (RELEASES, COMMITS, OTHERS))
    folders = [folder for parent in parents for folder in sorted(parent.glob("*")) if folder.is_dir()]
    return tuple(_survey(folder) for folder in folders)


def _survey(folder: Path) -> KeptResults:
    sizes = [path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()]
    return KeptResults(folder, sum(1 for path in folder.iterdir() if path.is_dir()), sum(sizes))


def removal(rows: Iterable[KeptResults], space: Workspace) -> Plan:
    """Plan the removal of keyed results."""
    paths = tuple(row.folder for row in rows)
    return Plan("clear what rehearse keeps", (Remove(paths, space.root, phase="clear"),) if paths else ())


@contextmanager
def held(folders: Sequence[Path], space: Workspace, purpose: str) -> Iterator[None]:
    """Lock the keyed results of Tritons for the body of a `with`.

    Raises:
        LockedError: another experiment uses them.
    """
    space.claim()
    with ExitStack() as stack:
        # Sorted: two commands that take the same locks in another order would wait for each other.
        for folder in sorted(set(folders)):
            place = manifests.scratch_folder(folder, space)
            files.make_folder(place)
            busy, hints = f"in the results of {folder.name}", ["wait for it to end"]
            stack.enter_context(locks.hold(place / "lock", purpose=purpose, busy=busy, hints=hints))
        yield
