"""`compare A B`: two sides, each a Triton or compiled kernels, and the question whether B is worse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.specifiers import SpecifierSet

from tritonsmith.compiler import manifest, source, targets, tritons
from tritonsmith.compiler.kernels import kernels_file
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Manifest, folder_name
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan, Remove, digest
from tritonsmith.lab import product
from tritonsmith.lab.batch import kept, kept_files, run
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.compare import matching
from tritonsmith.lab.compare.matching import Comparison
from tritonsmith.lab.compare.thresholds import Threshold, WorseThanBaseline
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.journal import Journal
from tritonsmith.lab.product import Cell, CompiledKernels

TASK = "kernel.compare"

Manifests = tuple[Manifest, ...]


@dataclass(frozen=True)
class ComparedKernel:
    """A kernel that both sides compile.

    Attributes:
        name: of its folder, on both sides.
        asked: with the function's own name.
        versions: of Triton that it is for.
    """

    name: str
    asked: CompileRequest
    versions: SpecifierSet = field(default_factory=SpecifierSet)


def single_kernel(asked: CompileRequest) -> tuple[ComparedKernel, ...]:
    """Return the kernel of a file as the only one that is compared.

    Raises:
        SmithError: there is no such file, or it has several kernels and none is named.
    """
    name = source.choose(source.read(asked.file), asked.kernel, asked.file)
    return (ComparedKernel(folder_name(name), replace(asked, kernel=name)),)


def listed_kernels(
    entries: Sequence[ListedKernel], path: Path, flags: CompileRequest
) -> tuple[ComparedKernel, ...]:
    """Return the kernels of a kernels file; targets of flags are for entries that name none.

    Raises:
        SmithError: a kernel cannot be compiled as listed, or a flag is not for many kernels.
    """
    # These targets are only the default, since those of the request would override each entry's.
    default = flags.targets or targets.default()
    requests = kernels_file.requests(entries, path, replace(flags, targets=()), default)
    return tuple(
        ComparedKernel(folder_name(entry.name), request, entry.versions)
        for entry, request in zip(entries, requests, strict=True)
    )


def read_folders(folder: Path) -> Manifests:
    """Read an output folder, or all output folders below a folder.

    Raises:
        FactError: there is none, or one cannot be read.
    """
    own = folder / manifest.FILE
    folders = [folder] if own.is_file() else sorted(path.parent for path in folder.rglob(manifest.FILE))
    if not folders:
        hints = ["invoke kernel.compile --out DIR creates such folders"]
        raise FactError("this folder has no compiled kernel", where=folder, hints=hints)
    return tuple(map(manifest.read, folders))


@dataclass(frozen=True)
class ComparisonInputs:
    """The output folders of two sides, and the compiles that make them.

    Attributes:
        a: the first side.
        b: the second.
        jobs_a: what is compiled for the first; nothing if it is a folder.
        jobs_b: for the second.
        out: the folder of the comparison.
        own: whether it is the workspace's, where an earlier comparison is removed.
    """

    a: Triton
    b: Triton
    jobs_a: tuple[CompileJob, ...]
    jobs_b: tuple[CompileJob, ...]
    out: Path
    own: bool

    @property
    def jobs(self) -> tuple[CompileJob, ...]:
        """The compiles of both sides."""
        return (*self.jobs_a, *self.jobs_b)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The compiles target by target; those of B have the same kernel of A as their baseline."""
        a, b = self.a.label, self.b.label
        # Cells of a journal need names of their own.
        names = (a, b) if a != b else (f"{a} (A)", f"{b} (B)")  # a Triton may be compared with itself
        # Both sides name the folder after the kernel.
        baselines = {job.out.name: job for job in self.jobs_a}
        return (
            *(cell for job in self.jobs_a for cell in product.cells(job.out.name, names[0], job)),
            *(
                cell
                for job in self.jobs_b
                for cell in product.cells(job.out.name, names[1], job, baselines.get(job.out.name))
            ),
        )


def prepare(a: Triton, b: Triton, kernels: Sequence[ComparedKernel], out: Path | None) -> ComparisonInputs:
    """Return the compiles of both sides.

    Args:
        a: the first side.
        b: the second.
        kernels: none where both sides are folders.
        out: the folder of the comparison; one of the workspace's if None.

    Raises:
        UsageError: there are kernels although both sides are folders, or none although one is not; none is
            for the Triton of a side; two would share a folder; or a folder cannot be created.
    """
    if kernels and a.folder and b.folder:
        raise UsageError(
            "both sides are already compiled, so a kernel cannot be given", hints=["omit the file"]
        )
    if not kernels and not (a.folder and b.folder):
        labels = " and ".join(repr(side.label) for side in (a, b) if not side.folder)
        raise UsageError(
            f"no kernel is given for {labels}",
            hints=[
                "give a file: invoke compare A B matmul.py:matmul --signature ...",
                "or give two output folders",
            ],
        )
    # The folder's name has the question, so that no other comparison removes these results.
    own = workspace.default().root / "kernels" / "compare"
    place = out or own / digest(a.label, b.label, [kernel.asked.flags() for kernel in kernels])
    jobs = [tuple(_jobs(side, kernels, place / name)) for side, name in ((a, "a"), (b, "b"))]
    for side, own_jobs in zip((a, b), jobs, strict=True):
        if not (side.folder or own_jobs):
            raise UsageError(
                f"no kernel in the list is for Triton {side.triton}",
                hints=["check versions = ... in the list"],
            )
        kept.check(own_jobs)
    return ComparisonInputs(a, b, jobs[0], jobs[1], place, own=out is None)


def plan(sides: ComparisonInputs, env: str) -> Plan:
    """Return the steps of the compiles, one after the other.

    Raises:
        SmithError: a kernel, a signature or a side is wrong.
    """
    return _stale(sides) + run.plan(sides.jobs, env)


def key(sides: ComparisonInputs, limits: Sequence[Threshold]) -> str:
    """Return the key of the journal of a comparison.

    Raises:
        FactError: a side is a folder that cannot be read.
    """
    return product.key(TASK, sides.cells, _question(limits, _folders(sides)))


def _folders(sides: ComparisonInputs) -> list[Manifests]:
    """Read the output folders of both sides; nothing for a side that is compiled."""
    return [read_folders(side.folder) if side.folder else () for side in (sides.a, sides.b)]


def _question(limits: Sequence[Threshold], folders: Sequence[Manifests]) -> object:
    """Return all that the answers depend on besides the compiles."""
    # The whole manifest counts: a folder that was compiled again is another baseline.
    return [limit.term.text for limit in limits], [[row.render() for row in side] for side in folders]


def held(sides: ComparisonInputs) -> AbstractContextManager[None]:
    """Lock the comparison's folder while it is written to.

    Raises:
        LockedError: another comparison writes to it.
    """
    # Two folders that are only read need no folder of the comparison's own.
    if sides.own and not sides.jobs:
        return nullcontext()
    space = workspace.default()
    space.claim()
    return manifest.hold_output(sides.out, space, TASK)


def execute(
    sides: ComparisonInputs, limits: Sequence[Threshold], options: BatchOptions, rules: Rules
) -> tuple[Comparison, Journal]:
    """Compile what is missing, read the rest, and compare; the folder is `held`.

    Args:
        sides: both of them.
        limits: the thresholds of `--fail-on`.
        options: of the pool.
        rules: how often each cell is tested, and which are not.

    Raises:
        SmithError: a folder cannot be read, nothing could be compiled, or no compile has a counterpart.
    """
    space = workspace.default()
    folders = _folders(sides)
    # Nothing is written beside the manifests: a side may be a folder of the user's.
    question = WorseThanBaseline(limits, kept_files.measured_now, folders[0])
    names = (sides.a.label, sides.b.label)
    if not sides.jobs:
        return matching.compare(*folders, names=names, metrics_of=question.metrics_of), Journal()
    tritons.check([side.version for side in (sides.a, sides.b)])

    # Compiled anew, so that compile times are of one day; only a run that was stopped keeps its results.
    def clear() -> None:
        space.run(_stale(sides), TASK, quiet=True)

    about = _question(limits, folders)
    with product.recorded(sides.out, TASK, sides.cells, about, rules, clear) as (journal, earlier):
        subject = CompiledKernels(question, replace(options, resume=earlier is not None))
        observations = product.execute(sides.cells, subject, journal, earlier)
        manifests = [
            folder or tuple(subject.manifests[job.out] for job in jobs if job.out in subject.manifests)
            for folder, jobs in zip(folders, (sides.jobs_a, sides.jobs_b), strict=True)
        ]
        requested = product.targets_of(sides.jobs)
        comparison = matching.compare(
            *manifests, names=names, metrics_of=question.metrics_of, requested=requested
        )
        changed = sum(not pair.unchanged for pair in comparison.compared)
        journal.end(f"{changed} of {len(comparison.compared)} pairs differ")
    notes = (*product.doubts(observations), *comparison.notes)
    flaky = frozenset(
        (cell.job.out, cell.target)
        for cell in sides.cells
        if cell.job in sides.jobs_b and product.unsure(observations[cell.name])
    )
    return replace(comparison, notes=notes, flaky=flaky), journal


def _jobs(side: Triton, kernels: Sequence[ComparedKernel], place: Path) -> Iterator[CompileJob]:
    if side.folder:
        return
    for kernel in kernels:
        # Whether a Triton without a known version can compile it, the compile tells. Builds of main are
        # prereleases, which a specifier leaves out by default (PEP 440).
        if not side.triton or kernel.versions.contains(side.triton, prereleases=True):
            yield CompileJob(kernel.asked, side, place / kernel.name)


def _stale(sides: ComparisonInputs) -> Plan:
    root = workspace.default().root
    # A folder that the user named is never removed.
    steps = (Remove((sides.out,), root, phase="remove an earlier comparison"),) if sides.own else ()
    return Plan("compare kernels", steps)
