"""Pair the compiles of A and B: same kernel, and equal in everything but what the sides vary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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


def pair(a: Sequence[Manifest], b: Sequence[Manifest]) -> Paired:
    """Find the counterpart of every compile.

    Kernels are the same if their names are; where a side has a name several times, the kernel's file or else
    the output folder has to have the same name too. What the sides differ in: targets, if they have none in
    common and as many, and options and constants that have one value on each side. Points are the same if the
    rest of their ids is; or else, as long ids are cut short, if all other values and options are.
    """
    first, second = _named(a, b), _named(b, a)
    pairs: list[Pair] = []
    unpaired: list[Unpaired] = []
    for name, manifest in first.items():
        if name in second:
            found = _points(name, manifest, second[name])
            pairs += found.pairs
            unpaired += found.unpaired
        else:
            unpaired += _lonely("A", name, manifest, f"B has no kernel {name}")
    for name, manifest in second.items():
        if name not in first:
            unpaired += _lonely("B", name, manifest, f"A has no kernel {name}")
    return Paired(tuple(pairs), tuple(sorted(unpaired, key=lambda one: one.side)))


def _named(manifests: Sequence[Manifest], others: Sequence[Manifest]) -> dict[str, Manifest]:
    """Output folders by the shortest name that tells their kernels apart, on both sides."""
    found: dict[str, Manifest] = {}
    for one in manifests:
        for name in _names(one):
            if all(sum(name in _names(other) for other in side) <= 1 for side in (manifests, others)):
                break
        while name in found:  # two folders of one name
            name += "'"
        found[name] = one
    return found


def _names(manifest: Manifest) -> tuple[str, ...]:
    file = manifest.file.rpartition("/")[2]
    return manifest.kernel, f"{file}:{manifest.kernel}", f"{manifest.folder.name}:{file}:{manifest.kernel}"


def _points(kernel: str, first: Manifest, second: Manifest) -> Paired:
    twins = _twins(first, second)
    left = {point.id: point for point in second.points}
    fixed = _constant_on_each(first, second)
    couples: list[tuple[Point, Point]] = []
    lonely: list[Point] = []
    for point in first.points:
        here = [other for other in left.values() if other.target == twins.get(point.target)]
        named = [other for other in here if _rest(other, fixed) == _rest(point, fixed)]
        alike = [other for other in here if _values(other, fixed) == _values(point, fixed)]
        found = named if len(named) == 1 else alike
        if len(found) == 1:
            couples.append((point, left.pop(found[0].id)))
        else:
            lonely.append(point)
    # A kernel that was refused is one point for each target, whatever was swept.
    for point in [one for one in lonely if one.status == "ok"]:
        found = [one for one in left.values() if one.target == twins.get(point.target) and _refused(one)]
        couples += [(point, one) for one in found]
    for other in [one for one in left.values() if one.status == "ok"]:
        found = [one for one in lonely if twins.get(one.target) == other.target and _refused(one)]
        couples += [(one, other) for one in found]
    order = {point.id: place for place, point in enumerate(first.points)}
    couples.sort(key=lambda couple: order[couple[0].id])
    taken = {id(point) for couple in couples for point in couple}
    pairs = []
    for point, other in couples:
        members = PairMember(first, point), PairMember(second, other)
        pairs.append(Pair(kernel, _common(point, other, fixed), *members, tuple(_differences(point, other))))
    unpaired = (
        *_lonely("A", kernel, first, "B has no such point"),
        *_lonely("B", kernel, second, "A has no such point"),
    )
    return Paired(tuple(pairs), tuple(one for one in unpaired if id(one.member.point) not in taken))


def _common(point: Point, other: Point, fixed: frozenset[str]) -> str:
    rest = _rest(point, fixed)
    if point.id == other.id or rest != _rest(other, fixed):
        return point.id if point.id == other.id else f"{point.id} -> {other.id}"
    names = dict.fromkeys(one.target.replace(":", "-") for one in (point, other))
    return ",".join([" -> ".join(names), *rest[1:]])


def _refused(point: Point) -> bool:
    return point.status != "ok" and point.id == point.target.replace(":", "-")


def _twins(first: Manifest, second: Manifest) -> Mapping[str, str]:
    """A's targets to B's: the same; or, where they have none in common and as many, in their order."""
    ours, theirs = (list(dict.fromkeys(point.target for point in one.points)) for one in (first, second))
    common = [target for target in ours if target in theirs]
    if not common and len(ours) == len(theirs):
        return dict(zip(ours, theirs, strict=True))
    return {target: target for target in common}


def _rest(point: Point, without: frozenset[str]) -> list[str]:
    """The parts of the id behind its target, but those that tell what the sides differ in."""
    everything = _all(point)
    told = {f"{name}={everything[name]}" for name in without if name in everything}
    return [
        part for part in point.id.removeprefix(point.target.replace(":", "-")).split(",") if part not in told
    ]


def _constant_on_each(first: Manifest, second: Manifest) -> frozenset[str]:
    """Return the names with one value on each side, not the same: the subject of the comparison."""
    sides = [[_all(point) for point in one.points] for one in (first, second)]
    found = set()
    for name in {name for tables in sides for table in tables for name in table}:
        left, right = ({table.get(name, _ABSENT) for table in tables} for tables in sides)
        if len(left) == len(right) == 1 and left != right:
            found.add(name)
    return frozenset(found)


def _values(point: Point, without: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in _all(point).items() if name not in without}


def _all(point: Point) -> dict[str, str]:
    """Everything that a compile was asked for but its target, as text."""
    types = {f"type of {name}": text for name, text in point.signature.items() if text != "constexpr"}
    hints = {f"hint of {name}": str(hint) for name, hint in point.hints.items()}
    plain = {**point.constexprs, **point.options}
    return {**types, **hints, **{name: signature.spell_value(value) for name, value in plain.items()}}


def _differences(point: Point, other: Point) -> Iterator[str]:
    if point.target != other.target:
        yield f"target {point.target} -> {other.target}"
    if point.status != "ok" or other.status != "ok":  # constants that heuristics compute may be missing
        return
    ours, theirs = _all(point), _all(other)
    for name in dict.fromkeys((*ours, *theirs)):
        before, after = ours.get(name, _ABSENT), theirs.get(name, _ABSENT)
        if before != after:
            yield f"{name} {before} -> {after}"


def _lonely(side: SideName, kernel: str, manifest: Manifest, why: str) -> Iterator[Unpaired]:
    for point in manifest.points:
        yield Unpaired(side, kernel, PairMember(manifest, point), why)
