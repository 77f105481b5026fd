"""Pair the compiles of two sides, and find the metrics and stages in which those of a pair differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

from tritonsmith.compiler import signature
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.resources.measure import CAN_LAUNCH, LAUNCH, ResourceRow, Value
from tritonsmith.core.errors import FactError
from tritonsmith.core.text import counted
from tritonsmith.facts import known_issues
from tritonsmith.facts.known_issues import KnownIssue
from tritonsmith.inspect import show as show_stage
from tritonsmith.inspect.lint.finding import CompiledPoint
from tritonsmith.inspect.lint.rules import bytes_spilled_in_loops
from tritonsmith.ir.normalize import diff as normalize_diff
from tritonsmith.ir.normalize.diff import Diff
from tritonsmith.lab import metrics
from tritonsmith.lab.batch import kept_files
from tritonsmith.lab.batch.kept_files import FolderMetrics
from tritonsmith.lab.journal import Observation
from tritonsmith.lab.metrics import TIME, Measured, Metric, growth

# Stages that are compared as texts; a binary by its disassembly.
TEXTS = tuple(show_stage.BINARY.get(name, name) for name in metrics.stage_names())
_ABSENT = "not given"
_NAMED = 5  # kernels of a known issue that are named

J = TypeVar("J")
SideName = Literal["A", "B"]


@dataclass(frozen=True)
class PairMember:
    """One compile and the output folder that it is in.

    Attributes:
        manifest: of the folder.
        point: the compile.
    """

    manifest: Manifest
    point: Point


@dataclass(frozen=True)
class Pair:
    """Two compiles that are compared.

    Attributes:
        kernel: name of the function; with its file or folder where several kernels share the name.
        point: the common part of both ids, and both targets if they differ; unique among the pairs.
        a: of the first side.
        b: of the second.
        differs: target, options, constants and types that are not the same: `num_warps 4 -> 8`.
    """

    kernel: str
    point: str
    a: PairMember
    b: PairMember
    differs: tuple[str, ...] = ()

    @property
    def one_vendor(self) -> bool:
        """Report whether both sides are for GPUs of one vendor."""
        return self.a.point.backend == self.b.point.backend


@dataclass(frozen=True)
class Unpaired:
    """A compile without a counterpart on the other side.

    Attributes:
        side: the side that has it.
        kernel: name of the function, as in `Pair`.
        member: the compile.
        why: what the other side lacks.
    """

    side: SideName
    kernel: str
    member: PairMember
    why: str


@dataclass(frozen=True)
class Paired:
    """All compiles of two sides: each is in exactly one of these.

    Attributes:
        pairs: in A's order.
        unpaired: first those of A.
    """

    pairs: tuple[Pair, ...]
    unpaired: tuple[Unpaired, ...]


def pair(
    a: Sequence[Manifest], b: Sequence[Manifest], requested: Mapping[Path, Sequence[str]] | None = None
) -> Paired:
    """Find the counterpart of every compile.

    Kernels are the same if their names are. Points are the same if their ids are, but for what the two sides
    vary: targets, if they have none in common and as many, and values that are constant on each side.

    Args:
        a: output folders of one side.
        b: of the other.
        requested: the targets of each folder in the order of its request, where some may not have been
            compiled; by default those of its compiles.
    """
    first, second = _by_name(a, b), _by_name(b, a)
    pairs: list[Pair] = []
    unpaired: list[Unpaired] = []
    for name, manifest in first.items():
        if name in second:
            paired = _pair_points(name, manifest, second[name], requested or {})
            pairs += paired.pairs
            unpaired += paired.unpaired
        else:
            unpaired += _without_counterpart("A", name, manifest, f"B has no kernel {name}")
    for name, manifest in second.items():
        if name not in first:
            unpaired += _without_counterpart("B", name, manifest, f"A has no kernel {name}")
    # The sort is stable: within a side, the order of the folders stays.
    return Paired(tuple(pairs), tuple(sorted(unpaired, key=lambda row: row.side)))


def _by_name(manifests: Sequence[Manifest], others: Sequence[Manifest]) -> dict[str, Manifest]:
    """Return output folders by the shortest name that tells their kernels apart, on both sides."""
    # A side may have several kernels of one name; then the file or the folder has to have the same name, too.
    by_name: dict[str, Manifest] = {}
    for manifest in manifests:
        # If not even the longest name is unique, it stays, and the `while` below tells the two apart.
        for name in _names(manifest):
            if all(sum(name in _names(other) for other in side) <= 1 for side in (manifests, others)):
                break
        while name in by_name:  # two folders of one name
            name += "'"
        by_name[name] = manifest
    return by_name


def _names(manifest: Manifest) -> tuple[str, ...]:
    file = manifest.file.rpartition("/")[2]
    return manifest.kernel, f"{file}:{manifest.kernel}", f"{manifest.folder.name}:{file}:{manifest.kernel}"


def _pair_points(
    kernel: str, first: Manifest, second: Manifest, requested: Mapping[Path, Sequence[str]]
) -> Paired:
    # Most sides of an upgrade asked for the same: then each point has its counterpart at its own place, and
    # the rules below, which take as long as all else where nothing is compiled, would find the same.
    if _asked_alike(first, second):
        both = zip(first.points, second.points, strict=True)
        pairs_in_order = (
            Pair(kernel, point.id, PairMember(first, point), PairMember(second, other))
            for point, other in both
        )
        return Paired(tuple(pairs_in_order), ())
    counterparts = _target_pairs(first, second, requested)
    left = {point.id: point for point in second.points}
    varied = _constant_on_each(first, second)
    couples: list[tuple[Point, Point]] = []
    single: list[Point] = []
    for point in first.points:
        here = [other for other in left.values() if other.target == counterparts.get(point.target)]
        # The ids tell more than the values, such as the surgery. But a long id is cut short, so that those of
        # two sides need not be equal where their values are.
        named = [other for other in here if _rest(other, varied) == _rest(point, varied)]
        alike = [other for other in here if _values(other, varied) == _values(point, varied)]
        candidates = named if len(named) == 1 else alike
        if len(candidates) == 1:
            couples.append((point, left.pop(candidates[0].id)))
        else:
            single.append(point)
    # A kernel that was refused is one point for each target, whatever was swept: so it is the counterpart of
    # every compile for that target.
    for point in [point for point in single if point.status == "ok"]:
        target = counterparts.get(point.target)
        couples += [(point, other) for other in left.values() if other.target == target and _refused(other)]
    for other in [other for other in left.values() if other.status == "ok"]:
        couples += [
            (point, other)
            for point in single
            if counterparts.get(point.target) == other.target and _refused(point)
        ]
    order = {point.id: place for place, point in enumerate(first.points)}
    couples.sort(key=lambda couple: order[couple[0].id])
    taken = {id(point) for couple in couples for point in couple}
    pairs = []
    for point, other in couples:
        members = PairMember(first, point), PairMember(second, other)
        pairs.append(Pair(kernel, _common(point, other, varied), *members, tuple(_differences(point, other))))
    unpaired = (
        *_without_counterpart("A", kernel, first, "B has no such point"),
        *_without_counterpart("B", kernel, second, "A has no such point"),
    )
    return Paired(tuple(pairs), tuple(row for row in unpaired if id(row.member.point) not in taken))


def _asked_alike(first: Manifest, second: Manifest) -> bool:
    """Report whether both have the same points in the same order, with all values."""

    # As texts: 1 is True to Python, and to no compiler.
    def asked(manifest: Manifest) -> list[str]:
        return [
            repr((row.id, row.target, row.signature, row.hints, row.constexprs, row.options))
            for row in manifest.points
        ]

    ids = {point.id for point in first.points}
    return len(ids) == len(first.points) == len(second.points) and asked(first) == asked(second)


def _common(point: Point, other: Point, varied: frozenset[str]) -> str:
    """Return what the ids of both have in common, and both targets if they are two."""
    rest = _rest(point, varied)
    if point.id == other.id or rest != _rest(other, varied):
        return point.id if point.id == other.id else f"{point.id} -> {other.id}"
    names = dict.fromkeys(member.target.replace(":", "-") for member in (point, other))
    return ",".join([" -> ".join(names), *rest[1:]])


def _refused(point: Point) -> bool:
    return point.status != "ok" and point.id == point.target.replace(":", "-")


def _target_pairs(
    first: Manifest, second: Manifest, requested: Mapping[Path, Sequence[str]]
) -> Mapping[str, str]:
    """Map A's targets to the same ones of B; or in their order, if none is common and they are as many."""
    # The request has the order: a manifest lacks the targets that were skipped, and the second target of A
    # would then meet the third of B.
    ours, theirs = (
        list(dict.fromkeys(requested.get(manifest.folder) or (point.target for point in manifest.points)))
        for manifest in (first, second)
    )
    common = [target for target in ours if target in theirs]
    if not common and len(ours) == len(theirs):
        return dict(zip(ours, theirs, strict=True))
    return {target: target for target in common}


def _rest(point: Point, without: frozenset[str]) -> list[str]:
    """Return the parts of the id behind its target, without what the sides differ in."""
    values_by_name = _all_values(point)
    parts = {f"{name}={values_by_name[name]}" for name in without if name in values_by_name}
    behind = point.id.removeprefix(point.target.replace(":", "-"))
    return [part for part in behind.split(",") if part not in parts]


def _constant_on_each(first: Manifest, second: Manifest) -> frozenset[str]:
    """Return the names with one value on each side, not the same: the subject of the comparison."""
    sides = [[_all_values(point) for point in manifest.points] for manifest in (first, second)]
    # A name that only one side has counts, too: an option that an upgrade removes must not keep all pairs
    # apart.
    names = set()
    for name in {name for tables in sides for table in tables for name in table}:
        left, right = ({table.get(name, _ABSENT) for table in tables} for tables in sides)
        if len(left) == len(right) == 1 and left != right:
            names.add(name)
    return frozenset(names)


def _values(point: Point, without: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in _all_values(point).items() if name not in without}


def _all_values(point: Point) -> dict[str, str]:
    """Return all types, hints, constants and options that a compile was asked for, as text."""
    # The kind is part of the name: one parameter may have both a type and a hint that vary.
    types = {f"type of {name}": text for name, text in point.signature.items() if text != "constexpr"}
    hints = {f"hint of {name}": str(hint) for name, hint in point.hints.items()}
    plain = {**point.constexprs, **point.options}
    return {**types, **hints, **{name: signature.spell_value(value) for name, value in plain.items()}}


def _differences(point: Point, other: Point) -> Iterator[str]:
    if point.target != other.target:
        yield f"target {point.target} -> {other.target}"
    if point.status != "ok" or other.status != "ok":  # constants that heuristics compute may be missing
        return
    ours, theirs = _all_values(point), _all_values(other)
    for name in dict.fromkeys((*ours, *theirs)):
        before, after = ours.get(name, _ABSENT), theirs.get(name, _ABSENT)
        if before != after:
            yield f"{name} {before} -> {after}"


def _without_counterpart(side: SideName, kernel: str, manifest: Manifest, why: str) -> Iterator[Unpaired]:
    for point in manifest.points:
        yield Unpaired(side, kernel, PairMember(manifest, point), why)


@dataclass(frozen=True)
class MetricChange:
    """A metric that differs between the sides.

    Attributes:
        metric: which.
        a: its value in A; None if it is not known or A's vendor has none.
        b: in B.
        counterpart: whether both vendors have it, so that one may be subtracted from the other.
    """

    metric: Metric
    a: Value
    b: Value
    counterpart: bool

    @property
    def delta(self) -> float | None:
        """Return B less A; None where there is no such number."""
        if self.counterpart and isinstance(self.a, (int, float)) and isinstance(self.b, (int, float)):
            return self.b - self.a
        return None

    @property
    def percent(self) -> float | None:
        """The change in percent of A; infinite from zero."""
        return None if self.delta is None else growth(float(self.a or 0), float(self.b or 0))

    @property
    def verdict(self) -> str:
        """`better`, `worse`, or empty where neither is known."""
        # The reason why a launch fails is a text: only a change from or to a launch is better or worse.
        if self.metric.key == LAUNCH and self.a and self.b and CAN_LAUNCH in (self.a, self.b):
            return "" if self.a == self.b else "worse" if self.a == CAN_LAUNCH else "better"
        if not self.delta or not self.metric.better:
            return ""
        return "better" if (self.delta < 0) == (self.metric.better == "lower") else "worse"


@dataclass(frozen=True)
class Compared:
    """A pair with the differences of its two compiles.

    Attributes:
        pair: the two compiles.
        a: metrics of the first; empty where it did not compile.
        b: of the second.
        diffs: of the texts of stages that both have, in the order of the pipeline.
        alone: stages that only one side has: name to side.
        result: whether the second computes what its source says, where the first does; None if not checked.
    """

    pair: Pair
    a: Measured
    b: Measured
    diffs: Mapping[str, Diff] = field(default_factory=dict)
    alone: Mapping[str, str] = field(default_factory=dict)
    result: Observation | None = None

    @property
    def measured(self) -> bool:
        """Report whether both compiled."""
        return all(member.point.status == "ok" for member in (self.pair.a, self.pair.b))

    @property
    def lost(self) -> bool:
        """Report whether A compiles and B does not."""
        return self.pair.a.point.status == "ok" and not self.measured and not self.untested

    @property
    def untested(self) -> bool:
        """Report whether no compiler saw one of the two, which then tells nothing about either."""
        return any(member.point.status == "lost" for member in (self.pair.a, self.pair.b))

    @property
    def stuck(self) -> str:
        """The reason why B cannot be launched where A can; empty if it can, A cannot either, or unknown."""
        launch = str(self.b.get(LAUNCH) or CAN_LAUNCH)
        return launch if self.a.get(LAUNCH) == CAN_LAUNCH and launch != CAN_LAUNCH else ""

    @property
    def backends(self) -> tuple[str, str]:
        """`cuda` or `hip`, of each side."""
        return self.pair.a.point.backend, self.pair.b.point.backend

    @property
    def changes(self) -> tuple[MetricChange, ...]:
        """Metrics that differ, compile time aside."""
        return tuple(change for change in self._all() if change.metric.key != TIME and change.a != change.b)

    @property
    def same(self) -> int:
        """Count the metrics that are equal on both sides, without those that are zero on both."""
        # Dozens of metrics are zero on both sides, such as the spills of most kernels: that they are equal
        # says nothing.
        return sum(bool(change.a) and change.a == change.b for change in self._all())

    @property
    def unchanged(self) -> bool:
        """Report whether both compiled to the same code."""
        # The texts are not enough: without a disassembler, a change of the binary shows in its resources
        # alone.
        texts = all(diff.same for diff in self.diffs.values())
        return self.measured and texts and not self.changes and not self.alone

    @property
    def same_binary(self) -> bool:
        """Report whether both compiled to the same binary, byte by byte."""
        ours, theirs = (member.point.stages for member in (self.pair.a, self.pair.b))
        return self.measured and any(
            name in ours and name in theirs and ours[name].sha256 == theirs[name].sha256
            for name in show_stage.BINARY
        )

    @cached_property
    def loop_spills(self) -> tuple[int | None, int | None]:
        """The bytes per thread that spills in loops move, of each side; None if the code does not tell.

        Raises:
            FactError: a stage cannot be read.
        """
        a, b = self._answer("loop spills", [self.a, self.b], self._loop_spills)
        return a, b

    def _loop_spills(self) -> list[int | None]:
        return [
            bytes_spilled_in_loops(
                CompiledPoint(
                    member.manifest,
                    member.point,
                    ResourceRow(self.pair.kernel, member.point.id, member.point.target, values=values),
                )
            )
            for member, values in ((self.pair.a, self.a), (self.pair.b, self.b))
        ]

    @cached_property
    def first_change(self) -> str:
        """The first stage that differs when values are renamed, and its operation that changed most.

        In words that are the same for every kernel that a change of the compiler hits: `ttgir: more tt.load`.

        Raises:
            FactError: a stage cannot be read.
        """
        return self._answer("first change", (), self._first_change)

    def _first_change(self) -> str:
        members = self.pair.a, self.pair.b
        ours, theirs = (member.point.stages for member in members)
        for stage in TEXTS:
            # A stage of one side alone is another pipeline (`glir`); the next one of both tells more.
            if stage not in ours or stage not in theirs or ours[stage].sha256 == theirs[stage].sha256:
                continue
            before, after = (
                show_stage.stage_text(member.manifest, member.point, stage) for member in members
            )
            if change := normalize_diff.main_change(before, after, stage):
                way = "other" if change.before == change.after else "more"
                way = "fewer" if change.after < change.before else way
                return f"{stage}: {way} {change.operation or 'operands or order'}"
        return "no stage differs"

    def _answer(self, question: str, more: object, work_out: Callable[[], J]) -> J:
        members = self.pair.a, self.pair.b
        # Also for an answer that is kept: the command that shows what differs reads these folders.
        for member in members:
            kept_files.restore(member.manifest)
        rows = [(member.manifest, member.point) for member in members]
        return kept_files.answer(rows, (question, more), work_out)

    def in_short(self, name: str) -> MetricChange:
        """Return a metric by its short name, changed or not."""
        first, second = self.backends
        keys = [metrics.keys_of(name, backend) for backend in self.backends]
        a, b = metrics.value_of(name, self.a, first)[1], metrics.value_of(name, self.b, second)[1]
        # Two vendors may call different counters by one short name, and those have no difference.
        return MetricChange(metrics.metric_of(name), a, b, keys[0] == keys[1])

    def _all(self) -> Iterator[MetricChange]:
        if not self.measured:
            return
        listed: set[str] = set()
        # Of two vendors, the quantities that each has under a key of its own are shown beside each other.
        for name in () if self.pair.one_vendor else metrics.side_by_side():
            listed.update(*(metrics.keys_of(name, backend) for backend in self.backends))
            yield self.in_short(name)
        for key in dict.fromkeys((*self.a, *self.b)):
            # What one side lacks is a change only if the other's value is not zero.
            both = key in self.a and key in self.b
            if key not in listed and (both or self.a.get(key) or self.b.get(key)):
                yield MetricChange(metrics.metric(key), self.a.get(key), self.b.get(key), both)


@dataclass(frozen=True)
class Comparison:
    """The comparison of two sides.

    Attributes:
        a: the name of the first.
        b: the name of the second.
        compared: the pairs.
        unpaired: compiles without a counterpart.
        notes: what a person should know.
        flaky: output folder and target of compiles of B whose tests disagree.
    """

    a: str
    b: str
    compared: tuple[Compared, ...]
    unpaired: tuple[Unpaired, ...] = ()
    notes: tuple[str, ...] = ()
    flaky: frozenset[tuple[Path, str]] = frozenset()


def compare(
    a: Sequence[Manifest],
    b: Sequence[Manifest],
    *,
    names: tuple[str, str] = ("A", "B"),
    metrics_of: Callable[[Manifest], FolderMetrics] = kept_files.measured_now,
    requested: Mapping[Path, Sequence[str]] | None = None,
) -> Comparison:
    """Pair the compiles in the output folders of two sides, and find the differences.

    Args:
        a: the folders of the first side.
        b: of the second.
        names: of the sides.
        metrics_of: measures a folder.
        requested: the targets that were requested for folders: see `matching.pair`.

    Raises:
        FactError: there is not one pair, or a file of a compile cannot be read.
    """
    paired = pair(a, b, requested)
    if not paired.pairs:
        raise FactError(
            "no compile of A has a counterpart in B",
            why="\n".join(
                f"{row.side}: {row.kernel} {row.member.point.id}: {row.why}" for row in paired.unpaired
            )
            or "neither side has a compile",
            hints=["counterparts share the kernel, target and sweep: docs/compare.md"],
        )
    measured: dict[Path, FolderMetrics] = {}
    notes = list(_about_files(paired.pairs))
    for side, manifests in (("A", a), ("B", b)):
        for manifest in manifests:
            measured[manifest.folder] = metrics_of(manifest)
            notes += [f"{side}, {manifest.kernel}: {text}" for text in measured[manifest.folder].notes]
    compared = tuple(_with_texts(with_metrics(pair, measured)) for pair in paired.pairs)
    return Comparison(*names, compared, paired.unpaired, tuple(dict.fromkeys(notes)))


def with_metrics(pair: Pair, measured: Mapping[Path, FolderMetrics]) -> Compared:
    """Return a pair with the metrics of both compiles, from those of their output folders."""
    first, second = (
        measured[member.manifest.folder].points.get(member.point.id, {}) for member in (pair.a, pair.b)
    )
    compared = Compared(pair, first, second)
    # One binary has one code, and nobody need have disassembled it: what is known of one side is so of both,
    # and what is known of neither does not differ.
    if compared.same_binary and None in (first.get(metrics.ALL), second.get(metrics.ALL)):
        code = first if first.get(metrics.ALL) is not None else second
        known = {} if code.get(metrics.ALL) is None else metrics.of_code(code)
        first, second = ({**_without_code(row), **known} for row in (first, second))
    return replace(compared, a=first, b=second)


def _without_code(measured: Measured) -> Measured:
    code = metrics.of_code(measured)
    return {key: value for key, value in measured.items() if key not in code}


def _with_texts(compared: Compared) -> Compared:
    """Return a pair with the differences of its stages; without anything if a side did not compile."""
    pair = compared.pair
    if not compared.measured:
        return Compared(pair, {}, {})
    diffs, alone = {}, {}
    ours, theirs = (member.point.stages for member in (pair.a, pair.b))
    for stage in TEXTS:
        if stage in ours and stage in theirs:
            diffs[stage] = Diff(stage, 0, 0, ())
            # Equal checksums spare reading and normalizing both texts.
            if ours[stage].sha256 != theirs[stage].sha256:
                before, after = (
                    show_stage.stage_text(member.manifest, member.point, stage) for member in (pair.a, pair.b)
                )
                diffs[stage] = normalize_diff.of(before, after, stage)
        elif pair.one_vendor and (stage in ours or stage in theirs):
            alone[stage] = "A" if stage in ours else "B"
    return Compared(pair, compared.a, compared.b, diffs, alone)


def _about_files(pairs: Sequence[Pair]) -> Iterator[str]:
    for pair in pairs:
        sums = [member.manifest.file_sha256 for member in (pair.a, pair.b)]
        if all(sums) and len(set(sums)) > 1:  # a side that refused the kernel has none
            yield f"{pair.kernel}: the kernel's file differs between the two sides"


@dataclass(frozen=True)
class IssueGroup:
    """The kernels that have a known issue by the second side.

    Attributes:
        issue: the issue.
        kernels: their names.
        before: those that have it by the first side, too.
    """

    issue: KnownIssue
    kernels: tuple[str, ...]
    before: tuple[str, ...]

    @property
    def line(self) -> str:
        """The group in a line: the issue, and its kernels."""
        # The kernels that did not have it before are those to look at, so they come first.
        names = [*(name for name in self.kernels if name not in self.before), *self.before]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        new = len(names) - len(self.before)
        by = f", {new} of them by the second Triton only" if 0 < new < len(names) else ""
        lead = (
            f"{counted(len(names), 'kernel')}{by or ('' if new else ' by both')}, {self.issue.about_kernel}"
        )
        return f"{lead}: {', '.join(names[:_NAMED])}{more}"


def issue_groups(rows: Iterable[tuple[str, Sequence[str], Sequence[str]]]) -> tuple[IssueGroup, ...]:
    """Return the known issues of the second side, in the order of the table.

    Args:
        rows: of each pair its kernel, and the ids of the issues by the first side and by the second.
    """
    kernels: dict[str, dict[str, bool]] = {}
    for kernel, before, after in rows:
        for issue in after:
            names = kernels.setdefault(issue, {})
            names[kernel] = names.get(kernel, True) and issue in before
    return tuple(
        IssueGroup(row, tuple(has), tuple(name for name, both in has.items() if both))
        for row in known_issues.table()
        if (has := kernels.get(row.id))
    )
