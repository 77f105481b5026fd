"""Which compile of A belongs to which of B."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lab.compare.making import manifest, point
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.lab.compare import matching

A100, H100, H200 = "cuda:80:32", "cuda:90:32", "cuda:100:32"
MI300X, MI210 = "hip:gfx942:64", "hip:gfx90a:64"


def swept(target: str, warps: int) -> Point:
    return point(target, f",num_warps={warps}", options={"num_warps": warps})


@pytest.mark.parametrize(
    ("a", "b", "pairs", "only"),
    [
        # versions: the same ids
        ([point(H100), point(MI300X)], [point(MI300X), point(H100)], ["cuda-90-32", "hip-gfx942-64"], []),
        # options that no id tells
        ([point(options={"num_warps": 4})], [point(options={"num_warps": 8})], ["cuda-90-32"], []),
        # one target against another, with a sweep
        (
            [swept(H100, 4), swept(H100, 8)],
            [swept(MI300X, 8), swept(MI300X, 4)],
            ["cuda-90-32 -> hip-gfx942-64,num_warps=4", "cuda-90-32 -> hip-gfx942-64,num_warps=8"],
            [],
        ),
        # two against two, none in common: in their order
        ([point(A100), point(MI210)], [point(H100), point(MI300X)],
         ["cuda-80-32 -> cuda-90-32", "hip-gfx90a-64 -> hip-gfx942-64"], []),
        # one in common, so the others are nobody's
        ([point(H100), point(A100)], [point(H100), point(MI300X)], ["cuda-90-32"],
         ["A cuda-80-32", "B hip-gfx942-64"]),
        # two against one: which one is meant cannot be told
        ([point(H100), point(A100)], [point(MI300X)], [],
         ["A cuda-90-32", "A cuda-80-32", "B hip-gfx942-64"]),
        # sweeps of one value each, told by the ids
        ([swept(H100, 4)], [swept(H100, 8)], ["cuda-90-32"], []),
        # sweeps that overlap
        ([swept(H100, 4), swept(H100, 8)], [swept(H100, 4), swept(H100, 2)], ["cuda-90-32,num_warps=4"],
         ["A cuda-90-32,num_warps=8", "B cuda-90-32,num_warps=2"]),
        # sweeps that do not: more than one value on a side is no difference of the sides
        ([swept(H100, 4), swept(H100, 8)], [swept(H100, 1), swept(H100, 2)], [],
         ["A cuda-90-32,num_warps=4", "A cuda-90-32,num_warps=8",
          "B cuda-90-32,num_warps=1", "B cuda-90-32,num_warps=2"]),
    ],
)  # fmt: skip
def test_points(a: list[Point], b: list[Point], pairs: list[str], only: list[str]) -> None:
    found = matching.pair([manifest(*a)], [manifest(*b)])
    assert [one.point for one in found.pairs] == pairs
    assert [f"{one.side} {one.member.point.id}" for one in found.unpaired] == only
    assert 2 * len(found.pairs) + len(found.unpaired) == len(a) + len(b)


def test_ids_that_were_cut_short_are_told_by_their_values() -> None:
    """The hash at the end of such an id is of the target too."""
    long = {"BLOCK": 64}
    a = point(H100, constexprs=long, name="cuda-90-32,BLOCK=_x_-0123abcd")
    b = point(MI300X, constexprs=long, name="hip-gfx942-64,BLOCK=_x_-4567cdef")
    other = point(MI300X, constexprs={"BLOCK": 128}, name="hip-gfx942-64,BLOCK=_y_-89abef01")
    more = point(H100, constexprs={"BLOCK": 128}, name="cuda-90-32,BLOCK=_y_-aaaaaaaa")
    found = matching.pair([manifest(a, more)], [manifest(other, b)])
    assert [(one.a.point, one.b.point) for one in found.pairs] == [(a, b), (more, other)]


def test_what_heuristics_compute_follows_what_the_sides_differ_in() -> None:
    """EVEN is N % BLOCK == 0: not the same on both sides, and not constant on one of them."""

    def side(block: int) -> list[Point]:
        sizes = (64, 96)
        return [
            point(rest=f",N={n},BLOCK={block}", constexprs={"N": n, "BLOCK": block, "EVEN": n % block == 0})
            for n in sizes
        ]

    found = matching.pair([manifest(*side(64))], [manifest(*side(32))])
    assert [one.differs for one in found.pairs] == [
        ("BLOCK 64 -> 32",),
        ("BLOCK 64 -> 32", "EVEN False -> True"),
    ]


def test_a_number_is_not_the_beginning_of_another() -> None:
    a = [point(rest=f",num_warps=4,N={n}", options={"num_warps": 4}, constexprs={"N": n}) for n in (4, 40)]
    b = [point(rest=f",N={n}", constexprs={"N": n}) for n in (40, 4)]
    found = matching.pair([manifest(*a)], [manifest(*b)])
    assert [one.differs for one in found.pairs] == [("num_warps 4 -> not given",)] * 2
    assert all(one.a.point.constexprs == one.b.point.constexprs for one in found.pairs)


def test_a_kernel_that_one_side_refuses_is_lost_at_every_point() -> None:
    """Then nothing was expanded: there is one point for each target."""
    a = manifest(swept(H100, 4), swept(H100, 8), swept(A100, 4))
    b = manifest(point(H100, status="failed"), point(A100, status="failed"))
    found = matching.pair([a], [b])
    assert not found.unpaired
    assert [(one.a.point.id, one.b.point.id) for one in found.pairs] == [
        ("cuda-90-32,num_warps=4", "cuda-90-32"),
        ("cuda-90-32,num_warps=8", "cuda-90-32"),
        ("cuda-80-32,num_warps=4", "cuda-80-32"),
    ]
    assert [one.point for one in found.pairs][:2] == [
        "cuda-90-32,num_warps=4 -> cuda-90-32",
        "cuda-90-32,num_warps=8 -> cuda-90-32",
    ]
    back = matching.pair([b], [a])
    assert not back.unpaired
    assert [(one.a.point.status, one.b.point.status) for one in back.pairs] == [("failed", "ok")] * 3


def test_what_differs_is_said() -> None:
    a = point(H100, options={"num_warps": 4}, constexprs={"BLOCK": 64})
    b = point(H200, options={"num_warps": 4, "maxnreg": 64}, constexprs={"BLOCK": 128})
    (found,) = matching.pair([manifest(a)], [manifest(b)]).pairs
    assert found.differs == (
        "target cuda:90:32 -> cuda:100:32",
        "BLOCK 64 -> 128",
        "maxnreg not given -> 64",
    )


def test_a_failed_compile_lacks_what_heuristics_computed() -> None:
    a = point(constexprs={"BLOCK": 64, "EVEN": True})
    b = point(constexprs={"BLOCK": 64}, status="failed")
    (found,) = matching.pair([manifest(a)], [manifest(b)]).pairs
    assert found.differs == ()


def test_a_kernel_of_one_side_only_is_said() -> None:
    mine, both, yours = (manifest(point(), kernel=name) for name in ("mine", "both", "yours"))
    found = matching.pair([mine, both], [both, yours])
    assert [one.kernel for one in found.pairs] == ["both"]
    assert [(one.side, one.kernel, one.why) for one in found.unpaired] == [
        ("A", "mine", "B has no kernel mine"),
        ("B", "yours", "A has no kernel yours"),
    ]


def test_kernels_of_one_name_are_told_by_file_and_folder() -> None:
    def side(root: str) -> list[Manifest]:
        places = (("/v/a.py", "one"), ("/v/b.py", "two"), ("/v/b.py", "three"))
        return [manifest(point(), kernel="add", file=f, folder=Path(root) / name) for f, name in places]

    found = matching.pair(side("/a"), list(reversed(side("/b"))))
    assert not found.unpaired
    assert [one.kernel for one in found.pairs] == ["a.py:add", "two:b.py:add", "three:b.py:add"]
    for one in found.pairs:
        assert one.a.manifest.folder.name == one.b.manifest.folder.name


def test_a_kernel_that_moved_to_another_file_is_the_same() -> None:
    found = matching.pair([manifest(point(), file="/3.4/a.py")], [manifest(point(), file="/3.9/b.py")])
    assert [one.kernel for one in found.pairs] == ["k"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([point(), point("hip:gfx942:64")], [point(), point("hip:gfx942:64")]),
        ([point(rest=",N=1", constexprs={"N": 1})], [point(rest=",N=1", constexprs={"N": 1})]),
        ([point()], [point(status="failed")]),
        ([point(rest=",N=1"), point(rest=",N=2")], [point(rest=",N=1"), point(rest=",N=2")]),
    ],
)
def test_sides_that_asked_for_the_same_are_paired_as_all_others(
    first: list[Point], second: list[Point], monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = [manifest(*first)], [manifest(*second)]
    quick = matching.pair(*sides)
    monkeypatch.setattr(matching, "_asked_alike", lambda *_: False)
    assert matching.pair(*sides) == quick
    assert len(quick.pairs) == len(first)


def test_one_is_not_true() -> None:
    """To Python, both are equal."""
    a, b = ([manifest(point(constexprs={"N": value}))] for value in (1, True))
    (row,) = matching.pair(a, b).pairs
    assert row.differs == ("N 1 -> True",)


def test_points_of_the_same_values_are_not_compared_value_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_constant_on_each", None)
    assert len(matching.pair([manifest(point())], [manifest(point())]).pairs) == 1
