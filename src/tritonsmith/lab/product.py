"""Every kernel by every Triton for every target: the search and the subject of compare, study and rehearse.

An experiment of this kind is a declaration: the cells, a question about each (does it compile? is it worse
than its baseline?), and a report of the manifests. Nothing is compiled twice: lab/batch/kept.py finds a
result again by its content. So the journal only adds what a folder cannot tell: the tests of `--confirm`,
and the cells that a person has ruled out.
"""

from __future__ import annotations

import uuid
from collections import ChainMap, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import tritons
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.targets import Target
from tritonsmith.core.envs import workspace
from tritonsmith.core.plan import Plan, Remove, digest
from tritonsmith.lab import experiment
from tritonsmith.lab.batch import kept, run
from tritonsmith.lab.batch.kept import CompileJob, ResultFinder
from tritonsmith.lab.batch.run import BatchOptions, UnreadResult
from tritonsmith.lab.experiment import Rules, Search
from tritonsmith.lab.journal import Journal, Observation, Verdict

UNTESTED = "its baseline was not tested"
_CODE = ("cubin", "hsaco")  # the stage that runs


@dataclass(frozen=True)
class Cell:
    """One kernel by one Triton for one target.

    Attributes:
        kernel: its name in tables.
        triton: the name of the Triton in tables.
        target: the target: `cuda:90:32`.
        job: the compile, for all targets of the kernel; None if there can be none.
        baseline: the compile by another Triton that this one is compared with; None if there is none.
        why: the reason why there is no job.
    """

    kernel: str
    triton: str
    target: str
    job: CompileJob | None
    baseline: CompileJob | None = None
    why: str = ""

    @property
    def name(self) -> str:
        """Its name, in tables and journals."""
        return f"{self.kernel} {self.triton} {self.target}"


# The folders and targets whose code has to be disassembled before a cell can be judged by these manifests.
Unread = Callable[[Cell, Mapping[Path, Manifest]], Collection[tuple[Path, str]]]
# Judges a cell by the manifests of the folders that are complete so far: its own, and that of its baseline
# if it has one and nobody skipped that.
Question = Callable[[Cell, Mapping[Path, Manifest]], Observation]


def cells(kernel: str, triton: str, job: CompileJob, baseline: CompileJob | None = None) -> Iterator[Cell]:
    """Yield a cell for each target of a job."""
    for target in tritons.applied(job.request, job.triton).targets:
        yield Cell(kernel, triton, str(target), job, baseline)


def search(table: Sequence[Cell]) -> Search[Cell, Mapping[str, Observation]]:
    """Ask for all cells at once; the answer is the observation of each, by its name."""
    observations = yield table
    return {cell.name: observation for cell, observation in zip(table, observations, strict=True)}


class CompiledKernels:
    """The subject: many kernels compiled by many Tritons in one pool.

    Attributes:
        manifests: of the folders that are complete, by folder.
        compiled: the number of folders into which something was compiled.
        kept: the number of folders in which nothing was missing.
        stages: the number of stages of what was compiled.
        shared: how many of these did not run, as another compile had made them.

    Args:
        question: about each cell.
        options: of the pool.
        unread: tells what a cell needs that was compiled without a disassembly; by default nothing.
    """

    def __init__(
        self, question: Question, options: BatchOptions, unread: Unread = lambda _cell, _manifests: ()
    ) -> None:
        self._question = question
        self._options = options
        self._unread = unread
        self._tested: set[str] = set()
        self.manifests: dict[Path, Manifest] = {}
        self.compiled = self.kept = self.stages = self.shared = 0

    def test(self, table: Sequence[Cell]) -> Iterator[tuple[int, Observation]]:
        """Compile what is missing, and yield the place of each cell with its observation, as they come."""
        # A cell that comes again, as `--confirm` wants it, is compiled again in a folder of its own.
        new = [place for place, cell in enumerate(table) if cell.job and cell.name not in self._tested]
        again = [place for place, cell in enumerate(table) if cell.job and cell.name in self._tested]
        for place, cell in enumerate(table):
            if not cell.job:
                yield place, Observation(Verdict.SKIP, why=cell.why)
        jobs = {
            folder: job
            for folder, job in _jobs([table[place] for place in new]).items()
            if folder not in self.manifests
        }
        # A cell waits for its own folder and for that of its baseline, whichever comes last.
        waiting = {place: _folders(table[place]) & jobs.keys() for place in new}
        later: dict[int, frozenset[Path]] = {}
        work: defaultdict[Path, set[str]] = defaultdict(set)
        for place in self._arrived(waiting, self._compiled(list(jobs.values()))):
            if unread := self._unread(table[place], self.manifests):
                later[place] = frozenset(folder for folder, _ in unread)
                for folder, target in unread:
                    work[folder].add(target)
            else:
                yield place, self._observed(table[place], self.manifests)
        # All at once and not as they come: by then, everything is known that they are compared with.
        by = {job.out: job.triton for cell in table for job in (cell.job, cell.baseline) if job}
        parts = {
            folder: UnreadResult(self.manifests[folder], tuple(sorted(names)), by[folder])
            for folder, names in work.items()
        }
        for place in self._arrived(later, run.disassembled(parts, self._options)):
            yield place, self._observed(table[place], self.manifests)
        if again:
            yield from self._again(table, again)

    def _compiled(self, jobs: Sequence[CompileJob]) -> Iterator[Manifest]:
        # Results that were taken up from a run that was stopped are jobs, too, and none of them was refused.
        options = replace(self._options, strict=self._options.strict and not self.manifests)
        for _, manifest, is_new in run.compiled(jobs, options):
            self.compiled, self.kept = self.compiled + is_new, self.kept + (not is_new)
            for point in manifest.points if is_new else ():
                self.stages += len(point.stages)
                self.shared += len(point.shared)
            yield manifest

    def _arrived(self, waiting: Mapping[int, frozenset[Path]], arriving: Iterable[Manifest]) -> Iterator[int]:
        """Take the manifests as they come, and yield each place when the last of its folders is there."""
        left = dict(waiting)
        by_folder: defaultdict[Path, list[int]] = defaultdict(list)
        for place, folders in waiting.items():
            for folder in folders:
                by_folder[folder].append(place)
            if not folders:
                yield place
        for manifest in arriving:
            self.manifests[manifest.folder] = manifest
            for place in by_folder[manifest.folder]:
                left[place] -= {manifest.folder}
                if not left[place]:
                    yield place

    def recall(self, table: Sequence[Cell], earlier: Journal, journal: Journal) -> None:
        """Take up the observations of a run that was stopped, of all cells whose results are still there.

        Args:
            table: all cells.
            earlier: the journal of that run.
            journal: of this run, which gets them.
        """
        # What this run skips is left out of its results, even if it was compiled before.
        table = [cell for cell in table if cell.name not in journal.skipped]
        there: dict[Path, Manifest | None] = {}
        finder = ResultFinder(self._options.env)
        for folder, job in _jobs(table).items():
            whole = replace(job, request=tritons.applied(job.request, job.triton))
            old = finder.find(whole)
            complete = old is not None and kept.rest(whole, old) is None
            there[folder] = kept.merged(whole, self._options.env, [old]) if old and complete else None
        for cell in table:
            folders = _folders(cell)
            manifests = {folder: there.get(folder) for folder in folders}
            if not (earlier.observations.get(cell.name) and folders and all(manifests.values())):
                continue
            # What it needs is read before the question, and not by whoever reports the answer.
            if self._unread(cell, {folder: row for folder, row in manifests.items() if row}):
                continue
            # All of its tests: a later one may disagree, and `--confirm` has to see both.
            for observation in earlier.observations[cell.name]:
                journal.recall(cell.name, observation)
            self._tested.add(cell.name)
            for folder, manifest in manifests.items():
                if manifest and folder not in self.manifests:
                    self.manifests[folder] = manifest
                    self.kept += 1

    def manifest(self, job: CompileJob, targets: Sequence[str]) -> Manifest | None:
        """Return the manifest of a job with the points of these targets; None if it was not compiled."""
        # Kernels that ask for the same compile share a folder, and each sees its own targets only.
        manifest = self.manifests.get(job.out)
        if manifest is None:
            return None
        return replace(manifest, points=tuple(row for row in manifest.points if row.target in targets))

    def _observed(self, cell: Cell, manifests: Mapping[Path, Manifest]) -> Observation:
        self._tested.add(cell.name)
        return self._question(cell, manifests)

    def _again(self, table: Sequence[Cell], places: Sequence[int]) -> Iterator[tuple[int, Observation]]:
        """Compile cells once more, and throw the results away."""
        space = workspace.default()
        # Not in the folder of the first compile, whose result is the one that is kept.
        scratch = space.root / "kernels" / "confirm" / uuid.uuid4().hex
        by_folder = {scratch / str(place): place for place in places}
        jobs = [
            replace(job, out=out, keyed=False)
            for out, place in by_folder.items()
            for job in _jobs([table[place]]).values()
        ]
        options = replace(self._options, resume=False, strict=False)
        try:
            for job, manifest, _ in run.compiled(jobs, options):
                place = by_folder[job.out]
                # The request stays that for all targets: by these it is known which are compared.
                cell = table[place]
                cell = replace(cell, job=cell.job and replace(cell.job, out=job.out))
                yield place, self._observed(cell, ChainMap({job.out: manifest}, self.manifests))
        finally:
            step = Remove((scratch,), space.root, phase="confirm")
            space.run(Plan("confirm", (step,)), "kernel.unit", quiet=True)


def observation(points: Sequence[Point], verdict: Verdict, figures: str = "", why: str = "") -> Observation:
    """Return the observation of a cell, with the times, the code and the messages of its compiles.

    Args:
        points: the compiles of the cell.
        verdict: the answer to the question.
        figures: the evidence; the message of the first compile that failed, if empty.
        why: the reason why there is no answer.
    """
    failed = next((point for point in points if point.status != "ok"), None)
    message = ": ".join(filter(None, (failed.status, failed.gist))) if failed else ""
    stages = [point.stages[name].sha256 for point in points for name in _CODE if name in point.stages]
    return Observation(
        verdict,
        figures or message,
        why,
        seconds=sum(point.seconds for point in points),
        code=digest(stages) if stages else "",
        cpu_seconds=sum(sum(point.cpu_seconds.values()) for point in points),
    )


@contextmanager
def recorded(
    folder: Path,
    task: str,
    table: Sequence[Cell],
    question: object,
    rules: Rules,
    clear: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Journal, Journal | None]]:
    """Yield the journal of such an experiment, and that of the same one if its run was stopped.

    Args:
        folder: of the journal, which is locked.
        task: name of the command.
        table: the cells; a kernel's name in `rules.skip` stands for all of its cells.
        question: everything that the answers depend on besides the compiles.
        rules: how often each cell is tested, and which are not.
        clear: removes the files of an earlier run, where there is nothing to go on with.
    """
    skipped = [cell.name for cell in table if {cell.name, cell.kernel} & set(rules.skip)]
    # All cells are known before the first is compiled, so a misspelt name need not wait for the end.
    experiment.check_names(rules.skip, {name for cell in table for name in (cell.kernel, cell.name)})
    named = replace(rules, skip=tuple(skipped))
    with experiment.recorded(folder, _inputs(table, question), task, named, clear) as journals:
        yield journals


def key(task: str, table: Sequence[Cell], question: object) -> str:
    """Return the key of the journal that `recorded` writes for the same arguments."""
    return experiment.key_of(task, _inputs(table, question))


def execute(
    table: Sequence[Cell], subject: CompiledKernels, journal: Journal, earlier: Journal | None = None
) -> Mapping[str, Observation]:
    """Test all cells; return the observation of each, by its name.

    Raises:
        SmithError: as `run.compiled`.
        InterruptedRunError: ^C; what is complete is kept.
    """
    if earlier:
        subject.recall(table, earlier, journal)
    return experiment.run(search(table), subject.test, journal, lambda *_: None)


def doubts(observations: Mapping[str, Observation]) -> Iterator[str]:
    """Yield the cells whose tests disagree, as `--confirm` finds out, and those that were skipped by hand."""
    for name, row in observations.items():
        if row.why.startswith(experiment.FLAKY) or row == experiment.BY_HAND:
            yield f"{name}: {row.why}"


def unsure(row: Observation) -> bool:
    """Report whether the tests of a cell give no answer, though it was not skipped by hand."""
    return row.verdict is Verdict.SKIP and row != experiment.BY_HAND and row.why != UNTESTED


def _inputs(table: Sequence[Cell], question: object) -> object:
    """Return everything that the observations of cells depend on."""
    jobs = {job.out: job for cell in table for job in (cell.job, cell.baseline) if job}
    # The folder's name is what tells two contents of a keyed job's file apart.
    finder = ResultFinder("")
    by_folder = {out: (str(out), job.request.flags(), finder.sources(job)) for out, job in jobs.items()}
    cells = [
        (cell.name, cell.why, *(by_folder[job.out] if job else () for job in (cell.job, cell.baseline)))
        for cell in table
    ]
    return cells, question


def _folders(cell: Cell) -> frozenset[Path]:
    return frozenset(job.out for job in (cell.job, cell.baseline) if job)


def targets_of(jobs: Iterable[CompileJob | None]) -> dict[Path, tuple[str, ...]]:
    """Return the targets that jobs ask for, by their folders, of which some may not be compiled."""
    return {job.out: tuple(map(str, tritons.applied(job.request, job.triton).targets)) for job in jobs if job}


def _jobs(table: Sequence[Cell]) -> dict[Path, CompileJob]:
    """Return the compiles of cells, by folder, each for the targets of all cells that share the folder."""
    jobs: dict[Path, CompileJob] = {}
    targets: defaultdict[Path, dict[str, Target]] = defaultdict(dict)
    for cell in table:
        if cell.job:
            jobs.setdefault(cell.job.out, cell.job)
            every = tritons.applied(cell.job.request, cell.job.triton).targets
            targets[cell.job.out] |= {str(row): row for row in every if str(row) == cell.target}
    narrowed = {}
    for folder, job in jobs.items():
        left = tuple(targets[folder].values())
        # The targets of a side win over those of the request: see `tritons.applied`.
        triton = replace(job.triton, targets=left) if job.triton.targets else job.triton
        narrowed[folder] = replace(job, request=replace(job.request, targets=left), triton=triton)
    return narrowed
