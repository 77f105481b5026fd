"""Pair the compiles of A and B: same kernel, and equal in everything but what the sides vary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonsmith.compiler import signature
from tritonsmith.compiler.manifest import Manifest, Point

_ABSENT = "not given"

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
        point: what the ids of both have in common, and both targets if they are two; no two pairs share it.
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
        side: which one has it.
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

    Kernels are the same if their names are; where a side has a name several times, the kernel's file or else
    the output folder has to have the same name too. What the sides differ in: targets, if they have none in
    common and as many, and options and constants that have one value on each side. Points are the same if the
    rest of their ids is; or else, as long ids are cut short, if all other values and options are.

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
    return Paired(tuple(pairs), tuple(sorted(unpaired, key=lambda row: row.side)))


def _by_name(manifests: Sequence[Manifest], others: Sequence[Manifest]) -> dict[str, Manifest]:
    """Return output folders by the shortest name that tells their kernels apart, on both sides."""
    by_name: dict[str, Manifest] = {}
    for manifest in manifests:
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
    counterparts = _target_pairs(first, second, requested)
    left = {point.id: point for point in second.points}
    varied = _constant_on_each(first, second)
    couples: list[tuple[Point, Point]] = []
    single: list[Point] = []
    for point in first.points:
        here = [other for other in left.values() if other.target == counterparts.get(point.target)]
        # The ids tell more than the values, such as the surgery; but a long id is cut short.
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
