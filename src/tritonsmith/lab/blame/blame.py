"""`blame`: which component changed a kernel between two Tritons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import output_folder, targets, tritons
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, digest
from tritonsmith.core.versions import version_key
from tritonsmith.facts import machine
from tritonsmith.lab.batch import run
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.blame import axes, components, llc, ptxas_run, verdict
from tritonsmith.lab.blame.axes import AxisRow
from tritonsmith.lab.blame.components import Side
from tritonsmith.lab.blame.llc import Llc
from tritonsmith.lab.blame.pipeline import PHASE, BlameSide, MixedPipeline
from tritonsmith.lab.blame.verdict import BlameVerdict, Figures, Flip
from tritonsmith.lab.compare import inputs, matching
from tritonsmith.lab.compare.inputs import ComparedKernel
from tritonsmith.lab.compare.matching import Pair
from tritonsmith.wheels import ptxas as registry


@dataclass(frozen=True)
class BlameRequest:
    """The request of a blame.

    Attributes:
        kernel: what both compile.
        a: the first Triton.
        b: the second.
        metrics: of `registers`, `spills` and `code`; all if empty.
        ptxas_versions: in full; None for those between the two that the Tritons have.
        llcs: of LLVMs.
        out: folder of what is made.
    """

    kernel: ComparedKernel
    a: Triton
    b: Triton
    metrics: tuple[str, ...]
    ptxas_versions: tuple[str, ...] | None
    llcs: tuple[Llc, ...]
    out: Path

    @property
    def jobs(self) -> tuple[CompileJob, CompileJob]:
        """The compiles of both, as they are."""
        first, second = (
            CompileJob(self.kernel.asked, side, self.out / name)
            for side, name in ((self.a, "a"), (self.b, "b"))
        )
        return first, second


@dataclass(frozen=True)
class Blamed:
    """The answer for one target.

    Attributes:
        point: name of the compile.
        target: `cuda:90:32`.
        ends: figures by A and by B.
        replayed: the same, made step by step with one version of PTX.
        flips: figures of mixtures.
        verdicts: one for each metric that changed.
        rows: of the axes.
        notes: what a person should know.
    """

    point: str
    target: str
    ends: tuple[Figures, Figures]
    replayed: tuple[Figures, Figures]
    flips: tuple[Flip, ...]
    verdicts: tuple[BlameVerdict, ...]
    rows: tuple[AxisRow, ...]
    notes: tuple[str, ...]


def prepare(
    asked: CompileRequest,
    a: Triton,
    b: Triton,
    *,
    metrics: tuple[str, ...] = (),
    ptxas_versions: Sequence[str] = (),
    more_llcs: Sequence[Path] = (),
) -> BlameRequest:
    """Check the request and choose the metrics, the versions of ptxas and the programs.

    Raises:
        SmithError: the kernel, a version or an llc is wrong.
    """
    if a == b:
        raise UsageError("--from and --to are the same Triton", hints=["--from 3.6.0 --to 3.9.0"])
    [kernel] = inputs.one(asked)
    space = workspace.default()
    own = registry.pip_python(Path(a.python))
    versions = tuple(registry.resolve(one, own) for one in ptxas_versions) or None
    out = space.root / "blame" / digest(a.label, b.label, kernel.asked.flags())
    llcs = llc.at_hand(more_llcs, llc.trees([side.env for side in (a, b) if side.env]))
    return BlameRequest(kernel, a, b, metrics, versions, llcs, out)


def plan(request: BlameRequest) -> Plan:
    """The compiles of both, and every ptxas that was named; the steps between follow from what comes out."""
    whole = run.plan(request.jobs)
    python = registry.pip_python(tritons.python_of(request.a))
    for version in request.ptxas_versions or ():
        whole += registry.prepare(version, workspace.default(), machine.read(), python).plan
    return whole


def execute(
    request: BlameRequest, *, count: int | None = None, timeout: int | None = None, silent: bool = False
) -> tuple[Blamed, ...]:
    """Compile by both, and mix.

    Raises:
        LockedError: somebody else does the same.
        FactError: it compiles by one of them only, or by none.
        SmithError: as `batch.run.run`.
    """
    space = workspace.default()
    space.claim()
    with output_folder.held(request.out, space, PHASE):
        steps = (Remove((request.out,), space.root, phase=PHASE), MakeDir(request.out, phase=PHASE))
        space.run(Plan(PHASE, steps), PHASE, quiet=True)
        made = run.run(request.jobs, count=count, timeout=timeout, silent=silent)
        pairs = matching.pair([made[0]], [made[1]]).pairs
        for pair in pairs:
            for label, member in ((request.a.label, pair.a), (request.b.label, pair.b)):
                if member.point.status != "ok":
                    what = f"{pair.point} does not compile with {label}: there are no figures to explain"
                    raise FactError(what, where=made[0].folder.parent, why=member.point.gist)
        if not pairs:
            raise FactError("no compile of A has a counterpart in B", where=request.out)
        return tuple(_blamed(request, pair, count, timeout, silent=silent) for pair in pairs)


def _blamed(
    request: BlameRequest, pair: Pair, count: int | None, timeout: int | None, *, silent: bool
) -> Blamed:
    ends = _figures(pair.a.manifest, pair.a.point.id), _figures(pair.b.manifest, pair.b.point.id)
    sides, options, notes = _one_ptx(request, pair, count, timeout, silent=silent)
    work = request.out / "steps" / pair.a.point.id
    space = workspace.default()
    space.run(Plan(PHASE, (MakeDir(work, phase=PHASE),)), PHASE, quiet=True)
    there = set(sides[0].point.stages) & set(sides[1].point.stages)
    every = components.of(pair.a.point.backend, there)
    pipeline = MixedPipeline({"A": sides[0], "B": sides[1]}, every, options, work, space, silent)
    replayed = pipeline.figures(pipeline.pure("A")), pipeline.figures(pipeline.pure("B"))
    flips = tuple(_flips(pipeline))
    wanted = request.metrics or tuple(ends[0])
    found = (verdict.decide(metric, ends, replayed, flips) for metric in wanted)
    rows = [*axes.tritons(pipeline), *axes.llvms(pipeline, request.llcs)]
    if pipeline.backend == "cuda":
        rows += axes.assemblers(pipeline, _programs(request, pipeline, silent=silent))
    return Blamed(
        pair.point,
        pair.a.point.target,
        ends,
        replayed,
        flips,
        tuple(one for one in found if one),
        tuple(rows),
        (*notes, *_differences(pipeline), *pipeline.notes),
    )


def _flips(pipeline: MixedPipeline) -> Iterator[Flip]:
    ends: tuple[tuple[Side, Side], ...] = (("A", "B"), ("B", "A"))
    for group in components.groups(pipeline.components):
        there, back = (
            pipeline.try_figures({**pipeline.pure(base), **dict.fromkeys(group.names, other)})
            for base, other in ends
        )
        yield Flip(group, there, back)


def _one_ptx(
    request: BlameRequest, pair: Pair, count: int | None, timeout: int | None, *, silent: bool
) -> tuple[tuple[BlameSide, BlameSide], dict[str, object], list[str]]:
    """Both sides with one version of PTX, which both ptxas take: the older of the two."""
    specs = (request.a, request.b)
    members = [pair.a, pair.b]
    options = dict(request.kernel.asked.options)
    notes = []
    if pair.a.point.backend == "cuda":
        texts = [member.manifest.path(member.point, "ptx") for member in members]
        versions = [llc.ptx_target(untrusted.read_text(one, untrusted.OURS))[1] for one in texts if one]
        oldest = min(versions, key=version_key)
        options["ptx_version"] = int(oldest.replace(".", ""))
        for at, version in enumerate(versions):
            if version != oldest:
                notes.append(f"{specs[at].label} produces PTX {version}; the mixtures use PTX {oldest}")
                asked = replace(request.kernel.asked, options=options, targets=_target(pair))
                out = request.out / f"{'ab'[at]}-ptx-{oldest}-{pair.a.point.id}"
                [made] = run.run(
                    [CompileJob(asked, specs[at], out)], count=count, timeout=timeout, silent=silent
                )
                point = made.points[0]
                if point.status != "ok":
                    what = f"{specs[at].label} does not compile it with PTX {oldest}"
                    raise FactError(what, where=out, why=point.gist)
                members[at] = matching.PairMember(made, point)
    places = [tritons.place_of(one) for one in specs]
    first, second = (
        BlameSide(one.label, place.python, member.manifest, member.point, place.variables)
        for one, place, member in zip(specs, places, members, strict=True)
    )
    return (first, second), options, notes


def _target(pair: Pair) -> tuple[targets.Target, ...]:
    return targets.parse_all([pair.a.point.target])


def _figures(made: Manifest, point: str) -> Figures:
    row = next(row for row in measure.of_manifest(made).rows if row.point == point)
    return ptxas_run.summary(row.values, row.backend)


def _programs(request: BlameRequest, pipeline: MixedPipeline, *, silent: bool) -> list[tuple[str, Path]]:
    """The ptxas of both Tritons and those that were named, or else the last of each CUDA in between."""
    sides: tuple[Side, Side] = ("A", "B")
    own = {registry.version_of(program): program for program, _ in map(pipeline.assembler, sides)}
    low, high = min(own, key=version_key), max(own, key=version_key)
    wanted = request.ptxas_versions
    if wanted is None:
        last = {version_key(one)[:2]: one for one in registry.known()}
        ends = version_key(low)[:2], version_key(high)[:2]
        wanted = tuple(one for cuda, one in last.items() if ends[0] < cuda < ends[1])
    space, here = workspace.default(), machine.read()
    python = registry.pip_python(pipeline.sides["A"].python)
    for version in wanted:
        if version not in own:
            one = registry.prepare(version, space, here, python)
            registry.install(one, space, silent=silent)
            own[version] = one.path
    return list(own.items())


def _differences(pipeline: MixedPipeline) -> Iterator[str]:
    """Describe the differences of both ptxas and of their flags."""
    if pipeline.backend != "cuda":
        return
    (first, flags_a), (second, flags_b) = pipeline.assembler("A"), pipeline.assembler("B")
    yield f"ptxas {registry.version_of(first)} -> {registry.version_of(second)}"
    gone, new = (" ".join(sorted(set(x) - set(y))) for x, y in ((flags_a, flags_b), (flags_b, flags_a)))
    if gone or new:
        yield f"flags of ptxas: {gone or 'nothing'} -> {new or 'nothing'}"
