"""A site: what many Tritons make of many kernels, as a folder with a page and a badge that need no server.

`prepare` and `execute` compile what is not kept and read the manifests into rows; `write` makes the folder of
rows, wherever they come from. The page has all data inside, a block of JSON for each target, of which its
script reads the one that is looked at.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tritonsmith.compiler import tritons
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.resources.measure import CAN_LAUNCH, LAUNCH, Value
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import redact, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import Plan, digest, files
from tritonsmith.core.text import counted
from tritonsmith.core.ui.tables import clipped
from tritonsmith.facts import machine
from tritonsmith.lab import experiment, failure, metrics, product
from tritonsmith.lab import report as pages
from tritonsmith.lab.batch import kept, kept_files, run
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.kept_files import FolderMetrics
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.compare import matching, rehearsal, two_sides
from tritonsmith.lab.compare.matching import Compared, Comparison, Pair, PairMember, SideName, Unpaired
from tritonsmith.lab.compare.rehearsal_report import public
from tritonsmith.lab.compare.thresholds import Threshold, explain
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.product import Cell, CompiledKernels

TASK = "farm.site"
PAGE, BADGE = "index.html", "badge.svg"
# Pages that were written under this name are replaced, too; and a comment of SVG may have no `--` in it.
_MARK = "Written by farm.site of tritonsmith"
_ELSEWHERE = "choose another folder: --out DIR"
_TEMPLATE, _STYLE, _SCRIPT, _BADGE = (
    Path(__file__).with_name(f"site.{name}") for name in ("html", "css", "js", "svg")
)
_METRICS = (
    *("registers", "spills", "code", "occupancy", "shared", "stack", "instructions"),
    *("tensor core", "matrix core"),
)
_NEITHER, _UNKNOWN = "compiles by neither", "not known"
_OF_MESSAGE = 240  # characters of a compiler's message
_SHORT = 12  # digits of a commit in a command
_DIGITS = 3  # behind the point, of a time or of a share
_LETTER, _EDGE = 6.6, 9  # pixels of the badge: of a letter of its font, and beside its texts


@dataclass(frozen=True)
class SiteKernel:
    """A kernel of the list.

    Attributes:
        name: in the list.
        module: the import name of its file; empty if it has none.
        jobs: its compiles by the label of their Triton; it may not be for all of them.
    """

    name: str
    module: str
    jobs: Mapping[str, CompileJob]


@dataclass(frozen=True)
class SitePlan:
    """The compiles of a site.

    Attributes:
        file: the list of kernels.
        tritons: from the oldest to the newest, in the user's order.
        kernels: in the order of the list.
    """

    file: Path
    tritons: tuple[Triton, ...]
    kernels: tuple[SiteKernel, ...]

    @property
    def folder(self) -> Path:
        """The folder of its journal."""
        names = [str(self.file), *(triton.label for triton in self.tritons)]
        return workspace.default().root / "sites" / digest(names)[:16]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The compiles target by target, one Triton after the other."""
        return tuple(
            cell
            for triton in self.tritons
            for kernel in self.kernels
            if triton.label in kernel.jobs
            for cell in product.cells(kernel.name, triton.label, kernel.jobs[triton.label])
        )

    @property
    def key(self) -> str:
        """The key of its journal."""
        return product.key(TASK, self.cells, "")

    def jobs_of(self, triton: Triton) -> tuple[CompileJob, ...]:
        """Return all compiles by one Triton."""
        return tuple(kernel.jobs[triton.label] for kernel in self.kernels if triton.label in kernel.jobs)

    def plan(self) -> Plan:
        """Return the steps of all compiles, those whose results are kept included."""
        # Entries that ask for the same share a folder, and so do commits that compile alike.
        every = {job.out: job for triton in self.tritons for job in self.jobs_of(triton)}
        return run.plan(list(every.values()))


@dataclass(frozen=True)
class SiteState:
    """One outcome of a row; Tritons with the same numbers share it.

    Attributes:
        status: of the compile.
        message: the compiler's, or the reason why the code cannot be launched.
        values: metric to number; empty if it did not compile.
        flaky: compiles of `--confirm` disagree.
        binary: a digest of the code, where a value is not known.
    """

    status: str
    message: str
    values: Mapping[str, Value]
    flaky: bool = False
    binary: str = ""


@dataclass(frozen=True)
class SiteFinding:
    """A change for the worse from one state to another, or a doubt about one.

    Attributes:
        kind: in words.
        what: its numbers, or the compiler's message.
        rank: the worst kind is 0.
        sure: whether it is a finding.
    """

    kind: str
    what: str
    rank: float = 0
    sure: bool = True


@dataclass(frozen=True)
class SiteRow:
    """One kernel for one target, by all Tritons.

    Attributes:
        kernel: its name in the list.
        point: the values of a sweep; empty without one.
        package: the first part of its module; empty if it has none.
        target: the target.
        states: each once.
        at: the state by each Triton; None if that did not compile it.
        cpu: CPU seconds of the compile by each Triton; None if they are not known.
        findings: from one state to another, for each two of them of which the second came later.
    """

    kernel: str
    point: str
    package: str
    target: str
    states: tuple[SiteState, ...]
    at: tuple[int | None, ...]
    cpu: tuple[float | None, ...]
    findings: Mapping[tuple[int, int], tuple[SiteFinding, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class BadgeText:
    """The verdict about the last two Tritons.

    Attributes:
        state: `clear`, `findings` or `unsure`.
        words: the verdict.
        short: a few words of it, for the badge.
    """

    state: str
    words: str
    short: str = "no verdict"


@dataclass(frozen=True)
class SiteContent:
    """All that the pages show.

    Attributes:
        file: name of the list of kernels.
        tritons: from the oldest to the newest.
        rows: kernel by kernel.
        verdict: about the last two Tritons.
        notes: what a person should know.
    """

    file: str
    tritons: tuple[Triton, ...]
    rows: tuple[SiteRow, ...]
    verdict: BadgeText
    notes: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the Tritons, without paths of this machine, each once."""
        names: list[str] = []
        for triton in self.tritons:
            name = redact.printable(redact.hidden(public(triton).label))
            # Two interpreters may be in folders of one name.
            names.append(f"{name} ({names.count(name) + 1})" if name in names else name)
        return tuple(names)

    @property
    def title(self) -> str:
        """The subject of the page."""
        first, *others = self.labels
        return f"Kernels by Triton {first}" + (f" to {others[-1]}" if others else "")

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets, in order."""
        return tuple(dict.fromkeys(row.target for row in self.rows))


def prepare(
    entries: Sequence[ListedKernel], file: Path, flags: CompileRequest, tritons_: Sequence[Triton]
) -> SitePlan:
    """Return the kernels to compile; nothing is compiled.

    Args:
        entries: the kernels.
        file: the list that they are from.
        flags: targets of kernels that name none, and what else flags ask for.
        tritons_: from the oldest to the newest.

    Raises:
        SmithError: a kernel cannot be compiled as listed, none is for these Tritons, or two of one name are.
    """
    labels = [triton.label for triton in tritons_]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise UsageError(f"--triton is given twice for {twice[0]}", hints=["omit one of them"])
    listed = two_sides.listed_kernels(entries, file, flags)
    kernels: dict[str, SiteKernel] = {}
    kept_jobs = kept.KeyedJobs()
    versions = {triton.label: triton.triton for triton in tritons_}  # read from files
    for entry, kernel in zip(entries, listed, strict=True):
        fitting = [triton for triton in tritons_ if entry.fits(versions[triton.label])]
        jobs = {triton.label: kept_jobs.job(kernel.asked, triton, entry.module) for triton in fitting}
        # A list may have a name once for each range of versions: together, these are one line over time.
        before = kernels.get(entry.name, SiteKernel(entry.name, entry.module, {}))
        if both := before.jobs.keys() & jobs.keys():
            hints = ['give one of them another name: name = "..."', "or check versions = ... in the list"]
            what = f"the list has {entry.name} twice for {min(both)}"
            raise UsageError(what, where=file, hints=hints)
        kernels[entry.name] = SiteKernel(entry.name, before.module, {**before.jobs, **jobs})
    if not any(kernel.jobs for kernel in kernels.values()):
        hints = ["check versions = ... in the list"]
        raise UsageError("no kernel in the list is for these Tritons", where=file, hints=hints)
    return SitePlan(file, tuple(tritons_), tuple(kernels.values()))


def execute(
    plan: SitePlan, limits: Sequence[Threshold], options: BatchOptions, rules: Rules
) -> tuple[SiteContent, Journal]:
    """Compile what is not kept, and read the results.

    Args:
        plan: the compiles.
        limits: the thresholds by which a change is a finding.
        options: of the pool, with `resume`.
        rules: how often each cell is tested, and which are not.

    Raises:
        LockedError: another run makes the same pages.
        SmithError: as `batch.run.compiled`.
    """
    subject = CompiledKernels(_compiles, options)
    with product.recorded(plan.folder, TASK, plan.cells, "", rules) as (journal, earlier):
        observations = product.execute(plan.cells, subject, journal, earlier)
        content = _SiteReader(plan, subject.manifests, observations, limits).content()
        journal.end(content.verdict.words)
    return content, journal


def _compiles(cell: Cell, manifests: Mapping[Path, Manifest]) -> Observation:
    """Report a cell as BAD where a compile fails: the numbers are read when all is compiled."""
    if cell.job is None:
        return Observation(Verdict.SKIP, why=cell.why)
    points = [point for point in manifests[cell.job.out].points if point.target == cell.target]
    fails = any(point.status != "ok" for point in points)
    return product.observation(points, Verdict.BAD if fails else Verdict.GOOD)


class _SiteReader:
    """Reads manifests into rows, kernel by kernel: the metrics of all at once would fill the memory."""

    def __init__(
        self,
        plan: SitePlan,
        manifests: Mapping[Path, Manifest],
        observations: Mapping[str, Observation],
        limits: Sequence[Threshold],
    ) -> None:
        self._plan = plan
        self._manifests = manifests
        self._limits = limits
        self._notes = dict.fromkeys(product.doubts(observations))
        rows = {(cell.kernel, cell.triton, cell.target): observations[cell.name] for cell in plan.cells}
        self._flaky = {place for place, row in rows.items() if product.unsure(row)}
        self._skipped = {place for place, row in rows.items() if row == experiment.BY_HAND}
        self._last: list[Compared] = []
        self._alone: list[Unpaired] = []

    def content(self) -> SiteContent:
        """Return everything for the pages."""
        rows = tuple(row for kernel in self._plan.kernels for row in self._rows(kernel))
        plan = self._plan
        return SiteContent(plan.file.name, plan.tritons, rows, self._verdict(), tuple(self._notes))

    def _rows(self, kernel: SiteKernel) -> Iterator[SiteRow]:
        measured: dict[Path, FolderMetrics] = {}
        by_place: dict[tuple[str, str], dict[str, PairMember]] = {}
        for label, job in kernel.jobs.items():
            if (manifest := self._manifests.get(job.out)) is None:  # skipped by hand
                continue
            if manifest.folder not in measured:
                measured[manifest.folder] = kept_files.metrics_of(manifest)
                texts = measured[manifest.folder].notes
                self._notes.update(dict.fromkeys(f"{kernel.name}, {label}: {text}" for text in texts))
            # Of a folder that several entries share, only the targets of this one.
            targets = {cell.target for cell in product.cells(kernel.name, label, job)}
            for point in manifest.points:
                if point.target in targets and (kernel.name, label, point.target) not in self._skipped:
                    by_place.setdefault((point.target, point.id), {})[label] = PairMember(manifest, point)
        for (target, name), members in by_place.items():
            bare = target.replace(":", "-")
            others = [point for of, point in by_place if of == target and point != name]
            refused = all(member.point.status != "ok" for member in members.values())
            # A kernel that was refused is one point, whatever was swept: see `matching.pair`.
            if name == bare and others and refused:
                continue
            shared = by_place.get((target, bare), {})
            every = {label: row for label, row in shared.items() if row.point.status != "ok"} | members
            rest = name.removeprefix(bare).removeprefix(",")
            yield self._row(kernel, target, rest, every, measured)

    def _row(
        self,
        kernel: SiteKernel,
        target: str,
        rest: str,
        members: Mapping[str, PairMember],
        measured: Mapping[Path, FolderMetrics],
    ) -> SiteRow:
        states: list[SiteState] = []
        examples: list[PairMember] = []
        at: list[int | None] = []
        labels = [triton.label for triton in self._plan.tritons]
        for label in labels:
            member = members.get(label)
            if member is None:
                at.append(None)
                continue
            values = measured[member.manifest.folder].points.get(member.point.id, {})
            state = state_of(member, values, flaky=(kernel.name, label, target) in self._flaky)
            if state not in states:
                states.append(state)
                examples.append(member)
            at.append(states.index(state))
        self._compare_last(kernel, target, members, measured)
        findings = {}
        # Whatever two Tritons a reader picks: a few states have fewer pairs than many Tritons.
        for a, b in dict.fromkeys((a, b) for a, b in combinations(at, 2) if a is not None and b is not None):
            pair = matching.with_metrics(
                Pair(kernel.name, rest or target, examples[a], examples[b]), measured
            )
            flaky = {(kernel.name, target)} if states[a].flaky or states[b].flaky else set()
            if worse := judge(pair, self._limits, flaky):
                findings[a, b] = worse
        seconds = [members[label].point.cpu_seconds if label in members else {} for label in labels]
        cpu = tuple(sum(row.values()) if row else None for row in seconds)
        package = kernel.module.partition(".")[0]
        return SiteRow(kernel.name, rest, package, target, tuple(states), tuple(at), cpu, findings)

    def _compare_last(
        self,
        kernel: SiteKernel,
        target: str,
        members: Mapping[str, PairMember],
        measured: Mapping[Path, FolderMetrics],
    ) -> None:
        """Note what the verdict needs: the pair by the last two Tritons, or the compile that is alone."""
        labels = [triton.label for triton in self._plan.tritons[-2:]]
        if len(labels) == 1:
            return
        a, b = (members.get(label) for label in labels)
        if a and b:
            pair = Pair(kernel.name, b.point.id, a, b)
            self._last.append(matching.with_metrics(pair, measured))
        # Not where the kernel is not for both, or one was skipped by hand: both are named elsewhere.
        elif (member := a or b) and all(
            label in kernel.jobs and (kernel.name, label, target) not in self._skipped for label in labels
        ):
            side: SideName = "A" if a else "B"
            why = f"{labels[bool(a)]} has no such point"
            self._alone.append(Unpaired(side, kernel.name, member, why))

    def _verdict(self) -> BadgeText:
        """Judge the last two Tritons, as `compare --from A --to B` would."""
        if len(self._plan.tritons) == 1:
            return BadgeText("unsure", "one Triton: nothing to compare it with")
        a, b = (triton.label for triton in self._plan.tritons[-2:])
        flaky = {(kernel, target) for kernel, label, target in self._flaky if label in (a, b)}
        try:
            pairs = Comparison(a, b, tuple(self._last), tuple(self._alone))
            answer = rehearsal.check(pairs, self._limits, flaky)
        except FactError as error:  # nothing compiles by both
            return BadgeText("unsure", error.what)
        skipped = sum(label in (a, b) for _, label, _ in self._skipped)
        if answer.findings:
            number = counted(len(answer.findings), "finding")
            doubts = f"; not sure: {answer.doubts}" if answer.doubts else ""
            return BadgeText("findings", f"{answer.headline}{doubts}", number)
        # What was not compiled is not known to be no worse.
        if answer.doubts or skipped:
            left = f"{counted(skipped, 'compile')} skipped by hand" if skipped else ""
            return BadgeText("unsure", f"not sure: {', '.join(filter(None, (answer.doubts, left)))}")
        return BadgeText("clear", answer.headline, "no finding")


def state_of(member: PairMember, measured: Mapping[str, Value], *, flaky: bool = False) -> SiteState:
    """Return what a compile came to."""
    point = member.point
    if point.status != "ok":
        return SiteState(point.status, ": ".join(filter(None, (point.status, point.gist))), {}, flaky)
    known = ((name, *metrics.value_of(name, measured, point.backend)) for name in _METRICS)
    values = {name: _rounded(value) for name, has, value in known if has}
    launch = measured.get(LAUNCH)
    stuck = "" if launch in (CAN_LAUNCH, None) else f"cannot be launched: {str(launch).removeprefix('no: ')}"
    # One binary has one value, whatever it is; two binaries may have two.
    binary = product.observation([point], Verdict.GOOD).code if None in values.values() else ""
    return SiteState(point.status, stuck, values, flaky, binary)


def judge(
    pair: Compared, limits: Sequence[Threshold], flaky: Iterable[tuple[str, str]] = ()
) -> tuple[SiteFinding, ...]:
    """Return the findings of a pair, the worst first, and what is not known about it.

    Raises:
        FactError: a stage cannot be read.
    """
    try:
        answer = rehearsal.check(Comparison("", "", (pair,)), limits, frozenset(flaky))
    except FactError:
        return (SiteFinding(_NEITHER, pair.pair.b.point.gist, math.inf, sure=False),)
    findings = [SiteFinding(row.kind, explain(row), row.rank) for row in answer.findings]
    unknown = ", ".join(metric for _, _, metric in answer.unknown)
    last = SiteFinding(_UNKNOWN, unknown, math.inf, sure=False)
    return (*findings, last) if unknown else tuple(findings)


def _rounded(value: Value) -> Value:
    return round(value, _DIGITS) if isinstance(value, float) else value


def check(folder: Path) -> None:
    """Check that a site may be written there, before anything is compiled.

    Raises:
        UsageError: it is a file, cannot be written, or has a page or a badge of somebody else's.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError("--out is a file, not a folder", where=folder, hints=[_ELSEWHERE])
    if why := machine.why_not_writable(folder):
        raise UsageError("--out cannot be written", where=folder, why=why, hints=[_ELSEWHERE])
    for path in (folder / PAGE, folder / BADGE):
        # A folder such as docs/ may have an index.html that somebody wrote by hand.
        if path.exists() and _MARK not in untrusted.text_if_any(path):
            what = "this folder has a file that `invoke farm --site` did not write"
            raise UsageError(what, where=path, hints=[_ELSEWHERE])


def write(content: SiteContent, folder: Path) -> Path:
    """Write the folder; return the page's path.

    Raises:
        SmithError: it cannot be written, or there are no rows.
    """
    if not content.rows:
        raise SmithError("there is nothing to show: no kernel was compiled", where=folder)
    targets = content.targets
    names = content.labels
    # Where the page shows what the verdict is about: its script writes the same words into the address.
    since = {"from": names[-2], "show": "findings"} if len(names) > 1 else {}
    kernels = len({row.kernel for row in content.rows})
    page = pages.render(
        _TEMPLATE,
        content.title,
        script=_SCRIPT,
        styles=[_STYLE],
        mark=_MARK,
        verdict=content.verdict,
        kernels=f"{kernels:,} kernel{'' if kernels == 1 else 's'}",
        since=f"#{urlencode(since)}",
        targets=targets,
        last=" to ".join(names[-2:]),
        index=_json(index_of(content)),
        blocks=[_json(data_of([row for row in content.rows if row.target == name])) for name in targets],
    )
    try:
        files.write_atomically(folder / BADGE, badge(content))
        files.write_atomically(folder / PAGE, page)
    except OSError as error:
        raise SmithError("cannot write the site", where=folder, why=error.strerror) from error
    return folder / PAGE


def badge(content: SiteContent) -> str:
    """Return an SVG with the verdict about the last two Tritons; green only where that is sure."""
    left = f"Triton {' → '.join(content.labels[-2:])}"
    right = content.verdict.short
    widths = [round(len(text) * _LETTER + 2 * _EDGE) for text in (left, right)]
    return pages.render(
        _BADGE,
        f"{left}: {right}",
        mark=_MARK,
        left=left,
        right=right,
        widths=widths,
        edge=_EDGE,
        state=content.verdict.state,
    )


def index_of(content: SiteContent) -> dict[str, Any]:
    """Return what all targets have in common, as the page's script reads it."""
    return {
        "schema": 1,
        "file": content.file,
        "targets": content.targets,
        # A commit's label is for people; commands take its hash, and `farm` instead of `compare`.
        "tritons": [
            {
                "label": label,
                "word": triton.commit[:_SHORT] or public(triton).label,
                "built": bool(triton.source),
            }
            for triton, label in zip(content.tritons, content.labels, strict=True)
        ],
    }


def data_of(rows: Sequence[SiteRow]) -> dict[str, Any]:
    """Return the rows of one target as columns, with each text once.

    The script reads `states` as lists: the number of a text (0 for none), then a value for each metric;
    those of a compile that failed end behind the text.
    """
    texts: dict[str, int] = {"": 0}

    def number(text: str) -> int:
        shown = redact.printable(redact.hidden(failure.anonymous(text)))
        return texts.setdefault(clipped(" ".join(shown.split()), _OF_MESSAGE), len(texts))

    backend = rows[0].target.partition(":")[0]
    names = [name for name in _METRICS if metrics.keys_of(name, backend)]
    kinds = {
        (row.rank, row.kind, row.sure) for line in rows for every in line.findings.values() for row in every
    }
    order = {kind: place for place, (_, kind, _) in enumerate(sorted(kinds))}
    return {
        "metrics": [_described(name, backend) for name in names],
        "kinds": [[kind, int(sure)] for _, kind, sure in sorted(kinds)],
        "kernel": [row.kernel for row in rows],
        "point": [number(row.point) for row in rows],
        "package": [number(row.package) for row in rows],
        "states": [
            [
                [number(state.message), *((state.values.get(name) for name in names) if state.values else ())]
                for state in row.states
            ]
            for row in rows
        ],
        "at": [[-1 if place is None else place for place in row.at] for row in rows],
        "cpu": [[None if value is None else round(value, _DIGITS) for value in row.cpu] for row in rows],
        "found": [
            [
                [a, b, order[finding.kind], number(finding.what)]
                for (a, b), every in row.findings.items()
                for finding in every
            ]
            for row in rows
        ],
        "texts": list(texts),
    }


def _described(name: str, backend: str) -> list[str]:
    known = name in metrics.short_names()
    metric = metrics.metric_of(name) if known else metrics.metric(metrics.keys_of(name, backend)[0])
    return [name, metric.title if known else f"{name}, instructions", metric.better]


def _json(data: object) -> str:
    # Even inside a text of JSON, `</script>` would end the element, and `<!--` begin a comment in it.
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def as_json(content: SiteContent, page: Path) -> dict[str, Any]:
    """Return what the page has, Triton by Triton, and where it is."""
    labels = content.labels
    return {
        "schema": 1,
        "page": str(page),
        "badge": str(page.with_name(BADGE)),
        "tritons": labels,
        "verdict": content.verdict.words,
        "state": content.verdict.state,
        "rows": [
            {
                "kernel": row.kernel,
                "point": row.point,
                "target": row.target,
                "by": {
                    label: {"message": row.states[at].message, "cpu_seconds": cpu, **row.states[at].values}
                    for label, at, cpu in zip(labels, row.at, row.cpu, strict=True)
                    if at is not None
                },
                "findings": [
                    {"from": a, "to": b, "finding": finding.kind, "what": finding.what, "sure": finding.sure}
                    for (a, i), (b, j) in pairwise(zip(labels, row.at, strict=True))
                    for finding in row.findings.get((-1 if i is None else i, -1 if j is None else j), ())
                ],
            }
            for row in content.rows
        ],
        "notes": list(content.notes),
    }


def parse_tritons(words: Iterable[str]) -> list[str]:
    """Return the names of the Tritons, each with its options.

    Raises:
        UsageError: there is none.
    """
    if not (names := tritons.joined(words)):
        raise UsageError("no Triton is given", hints=["--triton 3.6.0,3.7.1,3.9.0"])
    return names
