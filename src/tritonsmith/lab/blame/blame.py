"""`blame`: which component changed a kernel between two Tritons, from the request to screen and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.text import Text

from tritonsmith.compiler import manifest, targets, tritons
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import Value
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Write, digest
from tritonsmith.core.text import version_key
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import machine
from tritonsmith.lab import experiment, journal, metrics
from tritonsmith.lab.batch import run
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.blame import llc as programs
from tritonsmith.lab.blame import mixtures, pipeline
from tritonsmith.lab.blame.llc import Llc
from tritonsmith.lab.blame.mixtures import AxisRow, BlameFinding, Flip, MixtureTests
from tritonsmith.lab.blame.pipeline import PHASE, BlameSide, Figures, MixedPipeline
from tritonsmith.lab.compare import matching, two_sides
from tritonsmith.lab.compare.matching import Pair
from tritonsmith.lab.compare.two_sides import ComparedKernel
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.wheels import ptxas as registry

ANSWER = "blame.json"  # what `--json` prints of a blame, in its folder
_STEPS = "steps"  # folder of the mixtures' files
_BINARIES = ("cubin", "hsaco")
NOTHING = "no change in registers, spills and code: nothing to blame"
_OF_MESSAGE = 160  # characters of a compiler's message


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
        out: the folder of everything that the blame writes.
    """

    kernel: ComparedKernel
    a: Triton
    b: Triton
    metrics: tuple[str, ...]
    ptxas_versions: tuple[str, ...] | None
    llcs: tuple[Llc, ...]
    out: Path

    @property
    def journal(self) -> Path:
        """The folder of the journal, which nothing else is in."""
        return self.out / "journal"

    @property
    def jobs(self) -> tuple[CompileJob, CompileJob]:
        """The compiles by both Tritons, with nothing mixed."""
        first, second = (
            CompileJob(self.kernel.asked, side, self.out / name)
            for side, name in ((self.a, "a"), (self.b, "b"))
        )
        return first, second


@dataclass(frozen=True)
class BlameResult:
    """The result for one target.

    Attributes:
        point: name of the compile.
        target: `cuda:90:32`.
        ends: figures by A and by B.
        replayed: the same, made step by step with one version of PTX.
        flips: figures of mixtures.
        findings: one for each metric that changed.
        rows: of the axes.
        notes: what a person should know.
    """

    point: str
    target: str
    ends: tuple[Figures, Figures]
    replayed: tuple[Figures, Figures]
    flips: tuple[Flip, ...]
    findings: tuple[BlameFinding, ...]
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
    [kernel] = two_sides.single_kernel(asked)
    space = workspace.default()
    own = registry.pip_python(Path(a.python))
    versions = tuple(registry.resolve(version, own) for version in ptxas_versions) or None
    out = space.root / "blame" / digest(a.label, b.label, kernel.asked.flags())
    llcs = programs.at_hand(more_llcs, programs.trees([side.env for side in (a, b) if side.env]))
    return BlameRequest(kernel, a, b, metrics, versions, llcs, out)


def plan(request: BlameRequest) -> Plan:
    """Plan the compiles of both, and every ptxas that was named; the steps between follow from these."""
    whole = run.plan(request.jobs)
    python = registry.pip_python(tritons.python_of(request.a))
    for version in request.ptxas_versions or ():
        whole += registry.prepare(version, workspace.default(), machine.read(), python).plan
    return whole


def execute(
    request: BlameRequest,
    rules: Rules,
    *,
    count: int | None = None,
    timeout: int | None = None,
    silent: bool = False,
) -> tuple[tuple[BlameResult, ...], Journal]:
    """Compile with both Tritons, then test mixtures of the two; go on with a run that was stopped.

    Args:
        request: the request.
        rules: how often each mixture is tested, and which are not.
        count: compiles at once; None for as many as cores and memory allow.
        timeout: seconds for one compile; None for the usual.
        silent: show no progress.

    Returns:
        The answer for each target, and the journal of all mixtures.

    Raises:
        LockedError: another blame writes to the folder.
        FactError: one of them does not compile it, or neither does.
        SmithError: as `batch.run.run`.
    """
    space = workspace.default()
    space.claim()
    with manifest.hold_output(request.out, space, PHASE):
        # Both are compiled anew in each run: their code says whether a journal still holds.
        ends = tuple(job.out for job in request.jobs)
        # The compiles with an older PTX, too: `_one_ptx` makes them again.
        steps = (Remove((*ends, *request.out.glob("*-ptx-*")), space.root, phase=PHASE),)
        space.run(Plan(PHASE, (*steps, MakeDir(request.out, phase=PHASE))), PHASE, quiet=True)
        compiles = run.compile_all(request.jobs, count=count, timeout=timeout, silent=silent)
        pairs = _paired(request, compiles)
        # A checkout may be rebuilt between two runs, while its version stays: so the journal holds only where
        # both compile to the same binaries as before.
        with experiment.kept(
            request.journal, _key(request), space, PHASE, _baseline(pairs), rules, silent=silent
        ) as notes:
            # The baseline is all that this journal has, so the files of mixtures there are of an older one.
            if notes.count == 1:  # it begins anew
                space.run(
                    Plan(PHASE, (Remove((request.out / _STEPS,), space.root, phase=PHASE),)),
                    PHASE,
                    quiet=True,
                )
            answers = tuple(_blamed(request, pair, notes, count, timeout, silent=silent) for pair in pairs)
            notes.end("; ".join(finding.words for answer in answers for finding in answer.findings))
        content = json.dumps(as_json(request, answers), indent=2)
        space.run(Plan(PHASE, (Write(request.out / ANSWER, f"{content}\n", phase=PHASE),)), PHASE, quiet=True)
    return answers, notes


def _paired(request: BlameRequest, compiles: Sequence[Manifest]) -> tuple[Pair, ...]:
    """Pair the compiles of both.

    Raises:
        FactError: one of them fails, or none has a counterpart.
    """
    pairs = matching.pair([compiles[0]], [compiles[1]]).pairs
    for pair in pairs:
        # A compile that fails has no registers to explain: which component lets it fail is the question of
        # other commands.
        for label, member in ((request.a.label, pair.a), (request.b.label, pair.b)):
            if member.point.status != "ok":
                what = f"{pair.point} does not compile with {label}: there are no figures to explain"
                raise FactError(what, where=compiles[0].folder.parent, why=member.point.gist)
    if not pairs:
        raise FactError("no compile of A has a counterpart in B", where=request.out)
    return pairs


def _key(request: BlameRequest) -> object:
    """Return everything that the tests depend on, except the mixture."""
    sides = [
        journal.compiled(request.kernel.asked, tritons.place_of(side)) for side in (request.a, request.b)
    ]
    llcs = [
        (llc.label, journal.file(llc.program), journal.file(programs.opt_of(llc))) for llc in request.llcs
    ]
    # The table counts, too: it has the flags and spellings by which mixtures are made.
    return (sides, request.a.label, request.b.label, request.ptxas_versions, llcs, configs.load("blame"))


def _baseline(pairs: Sequence[Pair]) -> Observation:
    """Return the compiles of both, by the digests of their binaries."""
    binaries = [
        [stage.sha256 for name, stage in member.point.stages.items() if name in _BINARIES]
        for pair in pairs
        for member in (pair.a, pair.b)
    ]
    return Observation(Verdict.GOOD, f"{len(pairs)} compiles by each", code=digest(binaries))


def _blamed(
    request: BlameRequest,
    pair: Pair,
    notes: Journal,
    count: int | None,
    timeout: int | None,
    *,
    silent: bool,
) -> BlameResult:
    ends = _figures(pair.a.manifest, pair.a.point.id), _figures(pair.b.manifest, pair.b.point.id)
    sides, options, remarks = _one_ptx(request, pair, count, timeout, silent=silent)
    work, space = request.out / _STEPS / pair.a.point.id, workspace.default()
    space.run(Plan(PHASE, (MakeDir(work, phase=PHASE),)), PHASE, quiet=True)
    parts = pipeline.components_of(
        pair.a.point.backend, set(sides[0].point.stages) & set(sides[1].point.stages)
    )
    mixed = MixedPipeline({"A": sides[0], "B": sides[1]}, parts, options, work, space, silent)
    assemblers = _programs(request, mixed, silent=silent) if mixed.backend == "cuda" else []
    figures = experiment.run(
        mixtures.search(pair.a.point.id, mixed, request.llcs, assemblers),
        # A mixture that compiles is GOOD whatever it makes, so tests of it can only disagree in their
        # figures.
        experiment.steady(MixtureTests(mixed, notes, space), notes, lambda test: test.metrics),
        notes,
        lambda _name, _observation: None,
    )
    decisions = (
        mixtures.decide(metric, ends, figures.replayed, figures.flips)
        for metric in request.metrics or tuple(ends[0])
    )
    return BlameResult(
        pair.point,
        pair.a.point.target,
        ends,
        figures.replayed,
        figures.flips,
        tuple(decision for decision in decisions if decision),
        figures.rows,
        (*remarks, *_differences(mixed), *figures.notes),
    )


def _one_ptx(
    request: BlameRequest, pair: Pair, count: int | None, timeout: int | None, *, silent: bool
) -> tuple[tuple[BlameSide, BlameSide], dict[str, object], list[str]]:
    """Return both sides with one version of PTX, which both ptxas take: the older of the two."""
    specs = (request.a, request.b)
    members = [pair.a, pair.b]
    options = dict(request.kernel.asked.options)
    notes = []
    if pair.a.point.backend == "cuda":
        texts = [member.manifest.path(member.point, "ptx") for member in members]
        versions = [
            programs.ptx_target(untrusted.read_text(text, untrusted.OURS))[1] for text in texts if text
        ]
        # A ptxas refuses PTX that is newer than itself, and any mixture may meet either of the two.
        oldest = min(versions, key=version_key)
        # Triton's option spells PTX 8.6 as 86 (third_party/nvidia/backend/compiler.py).
        options["ptx_version"] = int(oldest.replace(".", ""))
        for at, version in enumerate(versions):
            if version != oldest:
                notes.append(f"{specs[at].label} produces PTX {version}; the mixtures use PTX {oldest}")
                # Only this target is compiled again, as the others may need no older PTX.
                request_with_ptx = replace(
                    request.kernel.asked, options=options, targets=targets.parse_all([pair.a.point.target])
                )
                out = request.out / f"{'ab'[at]}-ptx-{oldest}-{pair.a.point.id}"
                [compiled] = run.compile_all(
                    [CompileJob(request_with_ptx, specs[at], out)],
                    count=count,
                    timeout=timeout,
                    silent=silent,
                )
                point = compiled.points[0]
                if point.status != "ok":
                    what = f"{specs[at].label} does not compile it with PTX {oldest}"
                    raise FactError(what, where=out, why=point.gist)
                members[at] = matching.PairMember(compiled, point)
    places = [tritons.place_of(triton) for triton in specs]
    first, second = (
        BlameSide(triton.label, place.python, member.manifest, member.point, place.variables)
        for triton, place, member in zip(specs, places, members, strict=True)
    )
    return (first, second), options, notes


def _figures(compiled: Manifest, point: str) -> Figures:
    row = next(row for row in measure.of_manifest(compiled).rows if row.point == point)
    return pipeline.summary(row.values, row.backend)


def _programs(request: BlameRequest, mixed: MixedPipeline, *, silent: bool) -> list[tuple[str, Path]]:
    """Return version and program of both Tritons' ptxas, then of those that were named.

    Without any named, they are the last of each CUDA between the two.
    """
    # Two Tritons with the same ptxas have one row.
    own = {registry.version_of(program): program for program, _ in map(mixed.assembler, mixtures.SIDES)}
    versions = request.ptxas_versions
    if versions is None:
        # The last release of each CUDA is enough: `known` is sorted, and the last entry of a key stays.
        low, high = (version_key(end(own, key=version_key))[:2] for end in (min, max))
        last = {version_key(version)[:2]: version for version in registry.known()}
        versions = tuple(version for cuda, version in last.items() if low < cuda < high)
    space, here = workspace.default(), machine.read()
    python = registry.pip_python(mixed.sides["A"].python)
    for version in versions:
        if version not in own:
            prepared = registry.prepare(version, space, here, python)
            registry.install(prepared, space, silent=silent)
            own[version] = prepared.path
    return list(own.items())


def _differences(mixed: MixedPipeline) -> Iterator[str]:
    """Describe the differences of both ptxas and of their flags."""
    if mixed.backend != "cuda":
        return
    (first, flags_a), (second, flags_b) = map(mixed.assembler, mixtures.SIDES)
    yield f"ptxas {registry.version_of(first)} -> {registry.version_of(second)}"
    gone, new = (" ".join(sorted(set(x) - set(y))) for x, y in ((flags_a, flags_b), (flags_b, flags_a)))
    if gone or new:
        yield f"flags of ptxas: {gone or 'nothing'} -> {new or 'nothing'}"


def blocks(request: BlameRequest, answer: BlameResult) -> Iterator[Text | Grid]:
    """Yield the tables of one target, and a sentence for each metric."""
    names = metrics.summary()
    a, b = request.a.label, request.b.label
    yield Text(f"{request.kernel.name} {answer.point}: {a} -> {b}")
    rows = [[flip.group.title, *_cells(flip.in_a, names), *_cells(flip.in_b, names)] for flip in answer.flips]
    ends = ["(nothing)", *_cells(answer.replayed[0], names), *_cells(answer.replayed[1], names)]
    heads = ["changed alone", *(f"{name}\nin {a}" for name in names), *(f"{name}\nin {b}" for name in names)]
    yield tables.plain("each component alone, in both directions", heads, [ends, *rows])
    for axis in dict.fromkeys(row.axis for row in answer.rows):
        own = [row for row in answer.rows if row.axis == axis]
        yield tables.plain(
            f"axis {axis}",
            ["text", "by", *names],
            [[row.text, row.by, *_cells(row.figures, names)] for row in own],
        )
    if not answer.findings:
        yield Text(NOTHING)
    for finding in answer.findings:
        yield Text(sentence(answer, finding))


def sentence(answer: BlameResult, finding: BlameFinding) -> str:
    """Return the finding for a metric: `spills 980 -> 4472: ptxas 12.9.86 -> 13.0.88`."""
    words = finding.words
    # "ptxas" alone says little: the versions between which A's PTX changes are the answer.
    if [group.names for group in finding.culprits] == [("ptxas",)]:
        words = _step(answer.rows, finding) or next(
            (note for note in answer.notes if note.startswith("ptxas ")), words
        )
    return f"{finding.metric} {finding.a} -> {finding.b}: {words}"


def failures(answer: BlameResult) -> Iterator[str]:
    """Yield a line for everything that could not be read or run."""
    for flip in answer.flips:
        yield from (_line(text) for text in (flip.in_a, flip.in_b) if isinstance(text, str))
    for row in answer.rows:
        if isinstance(row.figures, str):
            yield _line(row.figures)
        if row.note:
            yield f"{row.by}: {row.note}"


def as_json(request: BlameRequest, answers: Sequence[BlameResult]) -> dict[str, Any]:
    """Return everything but the texts."""
    return {
        "schema": 1,
        "kernel": request.kernel.name,
        "from": request.a.label,
        "to": request.b.label,
        "folder": str(request.out),
        "points": [_point(answer) for answer in answers],
    }


def _point(answer: BlameResult) -> dict[str, Any]:
    return {
        "point": answer.point,
        "target": answer.target,
        "ends": [dict(figures) for figures in answer.ends],
        "replayed": [dict(figures) for figures in answer.replayed],
        "changed": [_flip(flip) for flip in answer.flips],
        "axes": [
            {"axis": row.axis, "text": row.text, "by": row.by, "note": row.note, **_figures_json(row.figures)}
            for row in answer.rows
        ],
        "verdicts": [
            {
                "metric": finding.metric,
                "a": finding.a,
                "b": finding.b,
                "decided": finding.decided,
                "culprits": [list(group.names) for group in finding.culprits],
                "words": sentence(answer, finding),
                "shares": [
                    {"components": list(share.group.names), "from_a": share.from_a, "from_b": share.from_b}
                    for share in finding.shares
                ],
            }
            for finding in answer.findings
        ],
        "notes": list(answer.notes),
    }


def _flip(flip: Flip) -> dict[str, Any]:
    return {
        "components": list(flip.group.names),
        "in_a": _figures_json(flip.in_a),
        "in_b": _figures_json(flip.in_b),
    }


def _figures_json(figures: Figures | str) -> dict[str, Any]:
    return {"error": figures} if isinstance(figures, str) else {"figures": dict(figures)}


def _line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _OF_MESSAGE else f"{line[:_OF_MESSAGE]}..."


def _cells(figures: Figures | str, names: Sequence[str]) -> list[str]:
    if isinstance(figures, str):
        return ["-" for _ in names]
    return [_spelled(figures.get(name)) for name in names]


def _spelled(value: Value) -> str:
    return "?" if value is None else str(value)


def _step(rows: Sequence[AxisRow], finding: BlameFinding) -> str:
    """Return the two neighbouring ptxas between which A's PTX changes its value; empty if there are none."""
    own = [
        row for row in rows if row.axis == "ptxas" and row.side == "A" and not isinstance(row.figures, str)
    ]
    values = [(row.by, row.figures.get(finding.metric)) for row in own if not isinstance(row.figures, str)]
    known = [(by, value) for by, value in values if isinstance(value, (int, float))]
    if not isinstance(finding.a, (int, float)) or not isinstance(finding.b, (int, float)):
        return ""
    change = finding.b - finding.a
    low = configs.load("blame")["share"]["low"]
    for (first, before), (second, after) in pairwise(known):
        # Neighbours differ by a register or two: only the step that makes most of the change, in its
        # direction, counts.
        if abs(after - before) / abs(change) >= low and (after - before) * change > 0:
            return f"{first} -> {second.removeprefix('ptxas ')}"
    return ""
