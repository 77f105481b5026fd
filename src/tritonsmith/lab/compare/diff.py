"""Compare two sides: the metrics that differ in each pair, and the differences in each stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.resources.table import CAN_LAUNCH, LAUNCH, Value
from tritonsmith.core.errors import FactError
from tritonsmith.inspect.show import stage as show_stage
from tritonsmith.ir.normalize import diff as normalize_diff
from tritonsmith.ir.normalize.diff import Diff
from tritonsmith.lab import metrics
from tritonsmith.lab.batch import kept
from tritonsmith.lab.batch.kept import FolderMetrics
from tritonsmith.lab.compare import matching
from tritonsmith.lab.compare.matching import Pair, Unpaired
from tritonsmith.lab.metrics import TIME, Measured, Metric, growth

TEXTS = tuple(
    show_stage.BINARY.get(name, name) for name in metrics.stage_names()
)  # binaries are read as disassembly


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
        """B less A; None where there is no such number."""
        if self.counterpart and isinstance(self.a, (int, float)) and isinstance(self.b, (int, float)):
            return self.b - self.a
        return None

    @property
    def percent(self) -> float | None:
        """The change in percent of A; infinite from zero."""
        return None if self.delta is None else growth(float(self.a or 0), float(self.b or 0))

    @property
    def verdict(self) -> str:
        """`better`, `worse`, or empty where neither can be said."""
        if self.metric.key == LAUNCH and self.a and self.b and CAN_LAUNCH in (self.a, self.b):
            return "" if self.a == self.b else "worse" if self.a == CAN_LAUNCH else "better"
        if not self.delta or not self.metric.better:
            return ""
        return "better" if (self.delta < 0) == (self.metric.better == "lower") else "worse"


@dataclass(frozen=True)
class Compared:
    """A pair and its comparison.

    Attributes:
        pair: the two compiles.
        a: metrics of the first; empty where it did not compile.
        b: of the second.
        diffs: of the texts of stages that both have, in the order of the pipeline.
        alone: stages that only one side has: name to side.
    """

    pair: Pair
    a: Measured
    b: Measured
    diffs: Mapping[str, Diff] = field(default_factory=dict)
    alone: Mapping[str, str] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        """Report whether both compiled."""
        return all(member.point.status == "ok" for member in (self.pair.a, self.pair.b))

    @property
    def lost(self) -> bool:
        """Report whether A compiles and B does not."""
        return self.pair.a.point.status == "ok" and self.pair.b.point.status != "ok"

    @property
    def stuck(self) -> str:
        """Why B cannot be launched where A can; empty if it can, if A cannot either, or if unknown."""
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
        return sum(bool(change.a) and change.a == change.b for change in self._all())

    @property
    def unchanged(self) -> bool:
        """Report whether both compiled to the same code."""
        texts = all(diff.same for diff in self.diffs.values())
        return self.measured and texts and not self.changes and not self.alone

    def in_short(self, name: str) -> MetricChange:
        """Return a metric by its short name, changed or not."""
        first, second = self.backends
        keys = [metrics.keys_of(name, backend) for backend in self.backends]
        a, b = metrics.value_of(name, self.a, first)[1], metrics.value_of(name, self.b, second)[1]
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
    """Two sides.

    Attributes:
        a: what the first is called.
        b: what the second is called.
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
    metrics_of: Callable[[Manifest], FolderMetrics] = kept.measured_now,
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
    paired = matching.pair(a, b, requested)
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
    return Compared(pair, first, second)


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
                    show_stage.text(member.manifest, member.point, stage) for member in (pair.a, pair.b)
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
