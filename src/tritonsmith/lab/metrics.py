"""The metrics by which compiles are compared: resources, instructions by class, sizes, operations, time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.resources import measure as resources_measure
from tritonsmith.compiler.resources.measure import COLUMNS, WORDS, ResourceRow, Value
from tritonsmith.core import configs
from tritonsmith.inspect import show as show_stage
from tritonsmith.ir.normalize import assembly, diff

TIME = "compile_seconds"
_INSTRUCTIONS = "instructions "
ALL = f"{_INSTRUCTIONS}{assembly.TOTAL}"  # the instructions of all classes
_BYTES, _OPERATIONS = "_bytes", "_operations"
_LANGUAGES = {"cuda": "sass", "hip": "amd"}  # backend to the language of its disassembly

Better = Literal["lower", "higher", ""]
# Metric's key to value: None is not known; what a vendor has not got is not in it.
Measured = Mapping[str, Value]


@dataclass(frozen=True)
class Metric:
    """One compared quantity.

    Attributes:
        key: in JSON and in `--fail-on`; ends with the unit.
        title: on the screen, with the unit.
        better: which way; empty where neither is.
    """

    key: str
    title: str
    better: Better = ""


def measure(manifest: Manifest, point: Point, row: ResourceRow) -> Measured:
    """Return all metrics of one successful compile and its resources, in display order.

    Raises:
        FactError: the file of a stage cannot be read.
    """
    language = _LANGUAGES[point.backend]
    # Without a disassembler nothing was counted, which is not the same as 0 of each class.
    counted = {
        f"{_INSTRUCTIONS}{name}": row.instructions.get(name, 0) if row.instructions else None
        for name in (assembly.TOTAL, *assembly.names(language))
    }
    stages = [name for name in stage_names() if name in point.stages]
    sizes = {f"{name}{_BYTES}": point.stages[name].size for name in stages}
    return {
        **row.values,
        **counted,
        **sizes,
        **dict(_operations(manifest, point, stages)),
        TIME: point.seconds,
    }


def of_code(measured: Measured) -> Measured:
    """Return the metrics that need a disassembly."""
    return {key: value for key, value in measured.items() if key.startswith(_INSTRUCTIONS)}


def needs_code(name: str) -> bool:
    """Report whether a known name stands for metrics that need a disassembly."""
    keys = (key for backend in _LANGUAGES for key in keys_of(name, backend))
    return any(key.startswith(_INSTRUCTIONS) for key in keys)


def is_timed(name: str) -> bool:
    """Report whether a known name stands for the time of a compile."""
    return any(TIME in keys_of(name, backend) for backend in _LANGUAGES)


def metric(key: str) -> Metric:
    """Return the description of a metric, by its key."""
    return Metric(key, _title(key), _better(key))


def side_by_side() -> tuple[str, ...]:
    """Return the short names of what both vendors have, and mean different things by."""
    short = configs.load("kernel-metrics")["short"]
    return tuple(name for name, row in short.items() if row["cuda"] != row["hip"])


def summary() -> tuple[str, ...]:
    """Return the short names of the metrics in the one-line summary of a pair."""
    return tuple(configs.load("kernel-metrics")["summary"])


def metric_of(name: str) -> Metric:
    """Return the description of a short name; which direction is better follows from its keys."""
    row = configs.load("kernel-metrics")["short"][name]
    # Where the keys of the vendors disagree, neither direction is called better.
    ways = {_better(key) for key in (*row["cuda"], *row["hip"])}
    return Metric(name, row["title"], ways.pop() if len(ways) == 1 else "")


@cache
def stage_names() -> tuple[str, ...]:
    """Return the stages of the pipeline in order, except `source`, the ttir before the first pass."""
    return tuple(name for name in configs.load("kernels")["stages"]["compiler"] if name != "source")


def short_names() -> tuple[str, ...]:
    """Return the names in `configs/kernel-metrics.toml`, and the stages, whose sizes are metrics."""
    return (*configs.load("kernel-metrics")["short"], *stage_names())


def known_names() -> tuple[str, ...]:
    """Return all names that `--fail-on` accepts."""
    classes = sorted(known_classes())
    keys = [column.key for column in COLUMNS if column.key not in WORDS]
    stages = [f"{name}{_BYTES}" for name in stage_names()]
    stages += [f"{name}{_OPERATIONS}" for name in stage_names() if name not in resources_measure.BINARIES]
    bare = [name for name in classes if name != assembly.TOTAL]  # `instructions` is the word for it
    return (*short_names(), *keys, *stages, TIME, *(f"{_INSTRUCTIONS}{name}" for name in classes), *bare)


@cache
def keys_of(name: str, backend: str) -> tuple[str, ...]:
    """Return the keys that a known name stands for, to be added up; none where that vendor has none."""
    short = configs.load("kernel-metrics")["short"]
    if name in short:
        return tuple(short[name][backend])
    if name in stage_names():
        return (f"{name}{_BYTES}",)
    language = _LANGUAGES[backend]
    bare = name.removeprefix(_INSTRUCTIONS)
    if bare in _classes(language):
        every = (assembly.TOTAL, *assembly.names(language))
        # `global load` has no count of its own: it is the sum of its widths.
        wide = [
            name for name in every if name.rpartition(" ")[0] == bare and name.rpartition(" ")[2].isdigit()
        ]
        return tuple(f"{_INSTRUCTIONS}{name}" for name in wide or [bare])
    return () if bare in known_classes() else (name,)


def value_of(name: str, measured: Measured, backend: str) -> tuple[bool, Value]:
    """Return whether a compile has a metric (of `known_names`), and its value; None if that is unknown."""
    keys = keys_of(name, backend)
    if not keys or any(key not in measured for key in keys):
        return False, None
    # One unknown part makes the sum unknown: a partial sum would look like an improvement.
    parts = [measured[key] for key in keys]
    numbers = [part for part in parts if isinstance(part, (int, float))]
    return True, sum(numbers) if len(numbers) == len(parts) else None


def growth(a: float, b: float) -> float:
    """Return the change from A to B in percent of A."""
    # The first spill is always worth a report, so growth from zero passes every limit, whatever the amount.
    if a == 0:
        return 0.0 if b == 0 else math.inf
    return 100 * (b - a) / a


@cache
def known_classes() -> frozenset[str]:
    """Return the classes of instructions of both vendors, with and without a width."""
    return frozenset(name for language in _LANGUAGES.values() for name in _classes(language))


@cache
def _classes(language: str) -> tuple[str, ...]:
    wide = {name: name.rpartition(" ") for name in assembly.names(language)}
    whole = [head for head, _, width in wide.values() if width.isdigit()]
    return tuple(dict.fromkeys((assembly.TOTAL, *whole, *wide)))


def _operations(manifest: Manifest, point: Point, stages: list[str]) -> Iterator[tuple[str, Value]]:
    for stage in stages:
        if stage not in resources_measure.BINARIES:
            text = show_stage.stage_text(manifest, point, stage)
            yield f"{stage}{_OPERATIONS}", diff.operations(text, stage).total()


def _title(key: str) -> str:
    for column in COLUMNS:
        if column.key == key:
            # Heads break lines so that a table is narrow, at a hyphen in the middle of a word.
            head = column.head.replace("-\n", "").replace("\n", " ")
            return f"{head}, {column.unit}" if column.unit else head
    if key == TIME:
        return "compile time, s"
    for ending, unit in ((_BYTES, "B"), (_OPERATIONS, "operations")):
        if key.endswith(ending):
            return f"{key.removesuffix(ending)}, {unit}"
    name = key.removeprefix(_INSTRUCTIONS)
    return "instructions" if name == assembly.TOTAL else f"{name}, instructions"


def _better(key: str) -> Better:
    table = configs.load("kernel-metrics")["better"]
    return "lower" if key in table["lower"] else "higher" if key in table["higher"] else ""
