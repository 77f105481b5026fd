"""The output folders of both sides: existing ones, or those compiled for the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.specifiers import SpecifierSet

from tritonsmith.compiler import manifest, output_folder, source, targets, tritons
from tritonsmith.compiler.kernels import kernels_file
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan, Remove, digest
from tritonsmith.lab.batch import kept, run
from tritonsmith.lab.batch.run import CompileJob

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


@dataclass(frozen=True)
class ComparisonInputs:
    """The output folders of two sides, and the compiles that make them.

    Attributes:
        a: the first side.
        b: the second.
        jobs_a: what is compiled for the first; nothing if it is a folder.
        jobs_b: for the second.
        out: the folder of the comparison.
        own: it is the workspace's: what an earlier comparison left there goes.
    """

    a: Triton
    b: Triton
    jobs_a: tuple[CompileJob, ...]
    jobs_b: tuple[CompileJob, ...]
    out: Path
    own: bool

    @property
    def jobs(self) -> tuple[CompileJob, ...]:
        """All that is compiled."""
        return (*self.jobs_a, *self.jobs_b)


def one(asked: CompileRequest) -> tuple[ComparedKernel, ...]:
    """A single kernel.

    Raises:
        SmithError: there is no such file, or it has several kernels and none is named.
    """
    name = source.choose(source.read(asked.file), asked.kernel, asked.file)
    return (ComparedKernel(folder_name(name), replace(asked, kernel=name)),)


def listed(entries: Sequence[ListedKernel], path: Path, flags: CompileRequest) -> tuple[ComparedKernel, ...]:
    """The kernels of a kernels file; targets of flags are for entries that name none.

    Raises:
        SmithError: a kernel cannot be asked for, or a flag is not for many kernels.
    """
    default = flags.targets or targets.default()
    asked = kernels_file.requests(entries, path, replace(flags, targets=()), default)
    return tuple(
        ComparedKernel(folder_name(entry.name), one, entry.versions)
        for entry, one in zip(entries, asked, strict=True)
    )


def prepare(a: Triton, b: Triton, kernels: Sequence[ComparedKernel], out: Path | None) -> ComparisonInputs:
    """Return the compiles of both sides.

    Args:
        a: the first side.
        b: the second.
        kernels: none where both sides are folders.
        out: the folder of the comparison; one of the workspace's if None.

    Raises:
        UsageError: kernels where both sides are folders, none where one is not; none that is for the Triton
            of a side; two that would share a folder; or that folder cannot be.
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
    own = workspace.default().root / "kernels" / "compare"
    place = out or own / digest(a.label, b.label, [kernel.asked.flags() for kernel in kernels])
    jobs = [tuple(_jobs(side, kernels, place / name)) for side, name in ((a, "a"), (b, "b"))]
    for side, wanted in zip((a, b), jobs, strict=True):
        if not (side.folder or wanted):
            raise UsageError(
                f"no kernel in the list is for Triton {side.triton}",
                hints=["check versions = ... in the list"],
            )
        kept.check(wanted)
    return ComparisonInputs(a, b, jobs[0], jobs[1], place, own=out is None)


def plan(gathering: ComparisonInputs, env: str) -> Plan:
    """Return the steps of the compiles, one after the other.

    Raises:
        SmithError: a kernel, a signature or a side is wrong.
    """
    return _stale(gathering) + run.plan(gathering.jobs, env)


def held(gathering: ComparisonInputs) -> AbstractContextManager[None]:
    """Lock the comparison's folder while it is written to.

    Raises:
        LockedError: another comparison writes to it.
    """
    if gathering.own and not gathering.jobs:
        return nullcontext()
    space = workspace.default()
    space.claim()
    return output_folder.held(gathering.out, space, "kernel.compare")


def compile_missing(
    gathering: ComparisonInputs,
    scheduler: str,
    *,
    jobs: int | None,
    timeout: int | None,
    env: str,
    silent: bool,
) -> tuple[Manifests, Manifests]:
    """Compile what is missing, and read the rest; the folder is `held`.

    Args:
        gathering: of both sides.
        scheduler: address of a Dask scheduler; empty for processes of this machine.
        jobs: compiles at once; None for as many as cores and memory allow.
        timeout: seconds for one point; None for the usual.
        env: of a side that names no Triton.
        silent: show no progress.

    Raises:
        SmithError: a folder cannot be read, or nothing could be compiled.
    """
    there = [read(side.folder) if side.folder else () for side in (gathering.a, gathering.b)]
    made: Manifests = ()
    if gathering.jobs:
        tritons.check([side.version for side in (gathering.a, gathering.b)])
        workspace.default().run(_stale(gathering), "kernel.compare", quiet=True)
        made = tuple(run.run(gathering.jobs, scheduler, count=jobs, timeout=timeout, env=env, silent=silent))
    middle = len(gathering.jobs_a)
    return there[0] or made[:middle], there[1] or made[middle:]


def read(folder: Path) -> Manifests:
    """An output folder, or all output folders below a folder.

    Raises:
        FactError: there is none, or one cannot be read.
    """
    own = folder / manifest.FILE
    found = [folder] if own.is_file() else sorted(path.parent for path in folder.rglob(manifest.FILE))
    if not found:
        hints = ["invoke kernel.compile --out DIR creates such folders"]
        raise FactError("this folder has no compiled kernel", where=folder, hints=hints)
    return tuple(manifest.read(one) for one in found)


def _jobs(side: Triton, kernels: Sequence[ComparedKernel], place: Path) -> Iterator[CompileJob]:
    if side.folder:
        return
    for kernel in kernels:
        if not side.triton or kernel.versions.contains(side.triton, prereleases=True):
            yield CompileJob(kernel.asked, side, place / kernel.name)


def _stale(gathering: ComparisonInputs) -> Plan:
    root = workspace.default().root
    steps = (Remove((gathering.out,), root, phase="remove an earlier comparison"),) if gathering.own else ()
    return Plan("compare kernels", steps)
