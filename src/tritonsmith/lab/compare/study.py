"""A study: kernels, targets and many Tritons, the question whether each compiles, and the resulting rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import manifest, tritons
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Manifest, folder_name
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import ResourceRow
from tritonsmith.compiler.targets import Target
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import ConfigError, FactError, SmithError, UsageError
from tritonsmith.core.plan import Plan, Write
from tritonsmith.facts import checkout, git_history
from tritonsmith.lab import product
from tritonsmith.lab.batch import kept, run
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.experiment import BY_HAND, Rules
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.product import Cell, CompiledKernels

TASK = "kernel.study"
WORDS = {
    Verdict.GOOD: "compiles",
    Verdict.BAD: "does not compile",
    Verdict.OTHER: "does not compile",
    Verdict.SKIP: "not compiled",
}
SKIPPED = f"not compiled: {BY_HAND.why}"


class History:
    """A clone, and the commit of each version in it.

    Args:
        text: `CLONE` for the commit of each version (`configs/triton-eras.toml`), `CLONE@REF` for one commit.

    Raises:
        UsageError: there is no repository.
    """

    def __init__(self, text: str) -> None:
        path, _, self._ref = text.partition("@")
        self._path = Path(path).expanduser().absolute()
        try:
            # It is opened at once, so that a wrong path is reported before the first kernel is read.
            with git_history.opened(self._path):
                pass
        except FactError as error:
            hints = ["give a clone of Triton with its history"]
            raise UsageError("--source is not a git repository", where=self._path, hints=hints) from error

    def content(self, version: str, name: str) -> str:
        """Return a file as it was when a version was released.

        Raises:
            UsageError: the commit of that version is unknown.
            FactError: the clone lacks that commit, or the commit that file.
        """
        if not version and not self._ref:
            hints = ["--source CLONE@REF uses one commit for all versions"]
            raise UsageError("--source needs the Triton version, which is unknown", hints=hints)
        ref = self._ref or checkout.triton_release(version).commit
        with git_history.opened(self._path) as repository:
            commit = git_history.resolve(repository, ref)
            content = git_history.text_at(repository, commit, name) if commit else None
        if not commit:
            hints = [
                "fetch more of its history: git fetch --unshallow",
                "or use one commit for all versions: --source CLONE@REF",
            ]
            raise FactError(f"this clone has no commit {ref}", where=self._path, hints=hints)
        if content is None:
            raise FactError(f"no file {name} at {ref}, for Triton {version}", where=self._path)
        return content


@dataclass(frozen=True)
class StudyCell:
    """The result of one kernel by one Triton for one target.

    Attributes:
        triton: the version, or what the Triton is called.
        row: the resources; its `error` says why there are none.
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
        cells: in the order of the kernels; those of kernels that cannot even be asked for, as the file of
            that version lacks them, have no job.
        files: steps that write files of a repository, as they were for a version.
        out: folder of the study.
    """

    cells: tuple[Cell, ...]
    files: tuple[Write, ...]
    out: Path

    @property
    def jobs(self) -> tuple[tuple[str, CompileJob], ...]:
        """The compiles, each with the kernel's name in tables."""
        # The targets of a kernel are cells of one job.
        jobs = {cell.job.out: (cell.kernel, cell.job) for cell in self.cells if cell.job}
        return tuple(jobs.values())

    @property
    def question(self) -> object:
        """All that the answers depend on besides the compiles: the files of a repository."""
        return [(str(step.path), step.text) for step in self.files]

    @property
    def key(self) -> str:
        """The key of its journal."""
        return product.key(TASK, self.cells, self.question)

    def plan(self) -> Plan:
        """Return the steps of all compiles, those whose results are kept included."""
        return Plan("study", self.files) + run.plan([job for _, job in self.jobs])


def parse_tritons(words: Iterable[str]) -> list[Triton]:
    """Return the Tritons of a study, which compares nothing else: its targets have a flag of their own.

    Raises:
        UsageError: there is none, or a word is not a Triton.
    """
    sides = [tritons.parse(word) for word in tritons.joined(words)]
    if not sides:
        raise UsageError("no Triton is given", hints=["--triton 3.2.0,3.6.0"])
    for side in sides:
        if not (side.env or side.version or side.python):
            hints = ["a version, an environment or an interpreter: --triton 3.2.0,debug"]
            raise UsageError(f"--triton cannot be {side.label!r}", hints=hints)
    return sides


def prepare(
    entries: Sequence[ListedKernel],
    tritons: Sequence[Triton],
    targets: tuple[Target, ...],
    out: Path,
    folder: Path,
    history: History | None = None,
    *,
    autotune: bool = False,
) -> StudyPlan:
    """Return all compiles, versions outermost.

    Args:
        entries: the kernels.
        tritons: the Tritons; each has its own name.
        targets: of kernels that name none.
        out: folder of the study.
        folder: that the kernels' files are relative to, if they are not in a repository.
        history: that repository.
        autotune: compile the configs of autotuners.

    Raises:
        SmithError: two Tritons are the same, one has no version where the repository needs one, no kernel
            can be read, or two would share a folder.
    """
    names = [name_of(triton) for triton in tritons]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"--triton is given twice for {twice[0]}", hints=["omit one of them"])
    cells: list[Cell] = []
    jobs: list[CompileJob] = []
    files: dict[Path, Write] = {}
    for triton, name in zip(tritons, names, strict=True):
        for entry in (entry for entry in entries if entry.fits(triton.triton)):
            try:
                text = history.content(triton.triton, entry.file) if history else None
                # A folder for each Triton, as the file has another content in each.
                base = out / "sources" / name if history else folder
                request = entry.request(base, targets, text, autotune=autotune)
            except SmithError as error:
                # A list that was captured in a clone names files by their paths there: without --source none
                # of them exists.
                if not history and not (folder / entry.file).exists():
                    hints = [*error.hints, "kernels of a repository: --source CLONE"]
                    raise FactError(error.what, where=error.where, why=error.why, hints=hints) from None
                # A wrong list is wrong for every version; a file of one version may just lack the kernel.
                if not history or isinstance(error, ConfigError):
                    raise
                why = f"not compiled: {error.what}"
                cells += [
                    Cell(entry.name, name, str(target), None, why=why) for target in entry.targets or targets
                ]
                continue
            if text is not None:
                # Several kernels may be in one file, which is written once.
                files[request.file] = Write(request.file, text, phase="sources")
            job = CompileJob(request, triton, out / name / folder_name(entry.name))
            jobs.append(job)
            cells += product.cells(entry.name, name, job)
    if not jobs:
        raise SmithError("no kernel supports these versions", why=cells[0].why if cells else None)
    kept.check(jobs)
    return StudyPlan(tuple(cells), tuple(files.values()), out)


class _Rows:
    """The question of a study, whether a kernel compiles; the rows of resources are its evidence."""

    def __init__(self) -> None:
        self._by_folder: dict[Path, tuple[ResourceRow, ...]] = {}

    def __call__(self, cell: Cell, manifests: Mapping[Path, Manifest]) -> Observation:
        """Report a cell as BAD where a compile fails, or its binary cannot be read."""
        if cell.job is None:  # the subject asks about compiles only
            return Observation(Verdict.SKIP, why=cell.why)
        manifest = manifests[cell.job.out]
        points = [point for point in manifest.points if point.target == cell.target]
        rows = [row for row in self.of(manifest) if row.target == cell.target]
        error = next((row.error for row in rows if row.error), "")
        observation = product.observation(points, Verdict.BAD if error else Verdict.GOOD, error)
        # A sweep has no single value; its rows are in the folder.
        return replace(observation, metrics=dict(rows[0].values)) if len(rows) == 1 else observation

    def of(self, manifest: Manifest) -> tuple[ResourceRow, ...]:
        """Return the resources of all points of a folder, which is read once."""
        if manifest.folder not in self._by_folder:
            self._by_folder[manifest.folder] = measure.of_manifest(manifest).rows
        return self._by_folder[manifest.folder]


def execute(
    plan: StudyPlan, options: BatchOptions, rules: Rules
) -> tuple[tuple[StudyCell, ...], Journal, tuple[str, ...]]:
    """Compile what is missing, and read the results.

    Args:
        plan: the study.
        options: of the pool, with `resume`.
        rules: how often each cell is tested, and which are not.

    Returns:
        The results, sorted by kernel, target and version; the journal; and what is doubtful about them.

    Raises:
        LockedError: another study writes to the folder.
        SmithError: as `batch.run.compiled`.
    """
    space = workspace.default()
    space.claim()
    rows = _Rows()
    subject = CompiledKernels(rows, options)
    with manifest.hold_output(plan.out, space, TASK):
        # Before the journal, whose key has the content of these files.
        space.run(Plan("sources", plan.files), TASK, quiet=True)
        with product.recorded(plan.out, TASK, plan.cells, plan.question, rules) as (journal, earlier):
            observations = product.execute(plan.cells, subject, journal, earlier)
            results = [result for cell in plan.cells for result in _results(cell, subject, rows)]
            journal.end(outcome(results))
    kernels = list(dict.fromkeys(result.row.kernel for result in results))
    targets = list(dict.fromkeys(result.row.target for result in results))
    # Lines of the tables keep the order of the list of kernels; versions go from left to right.
    results.sort(
        key=lambda result: (
            kernels.index(result.row.kernel),
            targets.index(result.row.target),
            order(result.triton),
        )
    )
    return tuple(results), journal, tuple(product.doubts(observations))


def outcome(results: Sequence[StudyCell]) -> str:
    """Return the answer in a line; a cell that was skipped by hand is no failure."""
    errors = [result.row.error for result in results if result.row.error != SKIPPED]
    return f"{sum(map(bool, errors))} of {len(errors)} points did not compile"


def order(version: str) -> tuple[int, tuple[int, ...], str]:
    """Return a key that sorts releases by their numbers, then everything else by its name."""
    parts = version.split(".")
    if all(part.isdecimal() for part in parts):
        return (0, tuple(map(int, parts)), "")
    return (1, (), version)


def name_of(triton: Triton) -> str:
    """Return the name of a Triton in tables and folders.

    Its version or environment, or all words where it has options.
    """
    # Two Tritons of one version differ in their options, and share no column and no folder.
    known = triton.label if triton.ptxas or triton.options else triton.env or triton.triton or triton.label
    return re.sub(r"[^\w.,=+-]", "_", known)


def _results(cell: Cell, subject: CompiledKernels, rows: _Rows) -> Iterator[StudyCell]:
    """Yield a result for each point of a cell, or one with the reason why nothing was compiled."""
    manifest = subject.manifests.get(cell.job.out) if cell.job else None
    points = zip(manifest.points, rows.of(manifest), strict=True) if manifest else ()
    own = [(point, row) for point, row in points if point.target == cell.target]
    for point, row in own:
        renamed = replace(row, kernel=cell.kernel, options="")
        source = manifest.file_sha256 if manifest else ""
        yield StudyCell(cell.triton, renamed, source, point.seconds)
    if not own:
        row = ResourceRow(cell.kernel, "", cell.target, error=cell.why or SKIPPED)
        yield StudyCell(cell.triton, row, compiled=False)
