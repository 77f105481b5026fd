"""`--fail-on`: its grammar, and what it lets pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.lab.compare.making import manifest, point, written
from tritonsmith.compiler.manifest import Point, Status
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.lab import terms
from tritonsmith.lab.compare import report, thresholds
from tritonsmith.lab.compare.matching import Compared, Comparison, Pair, PairMember
from tritonsmith.lab.compare.thresholds import Violation
from tritonsmith.lab.metrics import Measured
from tritonsmith.lab.terms import Limit

NVIDIA: Measured = {
    "registers_per_thread": 100,
    "spill_store_bytes": 0,
    "spill_load_bytes": 0,
    "code_bytes": 1000,
    "occupancy_percent": 50.0,
    "limiter": "registers",
    "instructions tensor core": 8,
    "ptx_bytes": 5000,
    "compile_seconds": 1.0,
}
AMD: Measured = {
    "vgprs_per_lane": 64,
    "sgpr_spills": 0,
    "vgpr_spills": 0,
    "code_bytes": 800,
    "compile_seconds": 1.0,
}


def pair(a: Point, b: Point, kernel: str = "k") -> Pair:
    return Pair(kernel, a.id, PairMember(manifest(a), a), PairMember(manifest(b), b))


def comparison(
    *measured: tuple[Measured, Measured], a: str = "cuda:90:32", b: str = "cuda:90:32"
) -> Comparison:
    pairs = [pair(point(a), point(b), f"k{number}") for number, _ in enumerate(measured)]
    made = [Compared(one, first, second) for one, (first, second) in zip(pairs, measured, strict=True)]
    return Comparison("A", "B", tuple(made))


def check(fail_on: str | None, found: Comparison) -> tuple[Violation, ...]:
    judgement = thresholds.check(found, thresholds.parse(fail_on))
    thresholds.require(judgement, found)
    return judgement.violations


def broken(text: str, changes: Measured, a: Measured = NVIDIA) -> bool:
    found = check(text, comparison((a, {**a, **changes})))
    assert all((one.kernel, one.point, one.limit) == ("k0", "cuda-90-32", text) for one in found)
    return bool(found)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("spills>0", Limit("spills>0", "spills", ">", 0, False, False)),
        ("registers > +5%", Limit("registers>+5%", "registers", ">", 5, True, True)),
        ("code>=+1024", Limit("code>=+1024", "code", ">=", 1024, True, False)),
        ("occupancy<-2.5%", Limit("occupancy<-2.5%", "occupancy", "<", -2.5, True, True)),
        ("tensor core==0", Limit("tensor core==0", "tensor core", "==", 0, False, False)),
        ("global load 128!=+0", Limit("global load 128!=+0", "global load 128", "!=", 0, True, False)),
    ],
)
def test_terms(text: str, limit: Limit) -> None:
    assert terms.parse([text], "--fail-on") == (limit,)


def test_a_term_that_comes_twice_counts_once() -> None:
    assert terms.parse(["spills>0, spills > 0"], "--fail-on") == terms.parse(["spills>0"], "--fail-on")


def test_terms_are_separated_by_commas() -> None:
    found = terms.parse(["registers>+5%, spills>0,code>=+1024,time>+50%"], "--fail-on")
    assert [one.metric for one in found] == ["registers", "spills", "code", "time"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "cannot be ''"),
        ("spills>0,", "cannot be ''"),
        ("spills", "cannot be 'spills'"),
        ("spills>", "cannot be 'spills>'"),
        (">0", "cannot be '>0'"),
        ("spills=0", "cannot be 'spills=0'"),
        ("spills=>0", "cannot be 'spills=>0'"),
        ("spills>0%%", "cannot be"),
        ("spills>many", "cannot be"),
        ("spills>0>1", "cannot be"),
        ("spills>+-1", "cannot be"),
        ("time>nan", "cannot be"),
        ("registers>5%", "registers>+5%"),
        ("registres>5", "did you mean 'registers'?"),
        ("Registers>5", "did you mean 'registers'?"),
        ("tensorcore>5", "did you mean 'tensor core'?"),
        ("limiter==1", "limiter is not a number"),
        ("zzz>1", "short names: registers, spills"),
    ],
)
def test_wrong_terms(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=re.escape(what)):
        terms.parse([text], "--fail-on")


@pytest.mark.parametrize(
    ("text", "key", "value", "fails"),
    [
        ("registers>+5%", "registers_per_thread", 105, False),
        ("registers>+5%", "registers_per_thread", 106, True),
        ("registers>=+5%", "registers_per_thread", 105, True),
        ("registers>+5", "registers_per_thread", 105, False),
        ("registers>+5", "registers_per_thread", 106, True),
        ("registers>105", "registers_per_thread", 106, True),
        ("registers>105", "registers_per_thread", 105, False),
        ("registers<-3%", "registers_per_thread", 96, True),
        ("registers<-3%", "registers_per_thread", 97, False),
        ("registers!=+0", "registers_per_thread", 99, True),
        ("registers!=+0", "registers_per_thread", 100, False),
        ("registers==+0", "registers_per_thread", 100, True),
        ("registers<=99", "registers_per_thread", 99, True),
        ("spills>0", "spill_load_bytes", 4, True),
        ("spills>0", "spill_load_bytes", 0, False),
        ("spills>+1000%", "spill_load_bytes", 1, True),  # from nothing: infinite growth
        ("spills>+0%", "spill_load_bytes", 0, False),
        ("code>=+1024", "code_bytes", 2024, True),
        ("code>=+1024", "code_bytes", 2023, False),
        ("occupancy<-10%", "occupancy_percent", 44.0, True),
        ("occupancy<-10", "occupancy_percent", 44.0, False),
        ("occupancy<45", "occupancy_percent", 44.0, True),
        ("time>+50%", "compile_seconds", 1.6, True),
        ("ptx>5000", "ptx_bytes", 5001, True),
        ("ptx_bytes>5000", "ptx_bytes", 5001, True),
        ("registers_per_thread>100", "registers_per_thread", 101, True),
        ("tensor core<8", "instructions tensor core", 7, True),
        ("instructions tensor core<8", "instructions tensor core", 8, False),
    ],
)
def test_values(text: str, key: str, value: float, fails: bool) -> None:
    assert broken(text, {key: value}) is fails


def test_a_value_that_is_not_known_does_not_pass() -> None:
    whole, half = (NVIDIA, NVIDIA), (NVIDIA, {**NVIDIA, "spill_load_bytes": None})
    found = check("spills>0", comparison(whole, half))
    assert [(one.kernel, one.b, report.explain(one)) for one in found] == [
        ("k1", None, "the value is unknown")
    ]


def test_a_change_from_what_is_not_known_does_not_pass() -> None:
    assert broken("registers>+5%", {"registers_per_thread": 100}, {**NVIDIA, "registers_per_thread": None})
    assert not broken(
        "registers>200", {"registers_per_thread": 100}, {**NVIDIA, "registers_per_thread": None}
    )


@pytest.mark.parametrize("text", ["vgprs_per_lane>0", "matrix core>0", "amdgcn>+1%", "ttgir_operations>0"])
def test_a_metric_that_no_pair_has_is_an_error(text: str) -> None:
    with pytest.raises(FactError, match="no pair has") as error:
        check(f"registers>1000,{text}", comparison((NVIDIA, NVIDIA)))
    assert "for cuda" in str(error.value)


def test_a_metric_that_is_nowhere_known_is_an_error() -> None:
    unknown = {**NVIDIA, "instructions tensor core": None}
    with pytest.raises(FactError, match="no pair has tensor core"):
        check("tensor core<1", comparison((unknown, unknown)))


def test_terms_of_one_vendor_pass_over_the_other() -> None:
    amd = point("hip:gfx942:64")
    both = Comparison("A", "B", (
        Compared(pair(point(), point(), "nvidia"), NVIDIA, {**NVIDIA, "registers_per_thread": 200}),
        Compared(pair(amd, amd, "amd"), AMD, {**AMD, "vgprs_per_lane": 128}),
    ))  # fmt: skip
    assert [one.kernel for one in check("tensor core>0", both)] == ["nvidia"]
    assert [one.kernel for one in check("vgprs_per_lane>0", both)] == ["amd"]
    assert [one.kernel for one in check("registers>+50%", both)] == [
        "nvidia",
        "amd",
    ]


def test_two_vendors_are_not_subtracted() -> None:
    crossed = comparison((NVIDIA, {**AMD, "vgpr_spills": 1}), b="hip:gfx942:64")
    (found,) = check("spills>0", crossed)
    assert (found.metric, found.a, found.b) == ("spills", 0, 1)
    assert not check("code>+0%,time>+50%", crossed)  # both have these
    with pytest.raises(FactError, match="different vendors"):
        check("registers>+5%", crossed)


@pytest.mark.parametrize(
    ("a", "b", "fails"),
    [("ok", "failed", True), ("ok", "crashed", True), ("failed", "ok", False), ("failed", "failed", False)],
)
@pytest.mark.parametrize("text", ["", "registers>1000"])
def test_what_compiles_in_one_side_only(a: Status, b: Status, fails: bool, text: str) -> None:
    first, second = point(status=a), point(status=b, error="at 2:8:\n    x\n    ^\nno such\n")
    fine = Compared(pair(point(), point(), "fine"), NVIDIA, NVIDIA)
    one = Compared(pair(first, second), {}, {})
    found = check(text or None, Comparison("A", "B", (one, fine)))
    wanted = [f"compiles in A but not in B: {b}: no such"] if fails else []
    assert [report.explain(one) for one in found] == wanted


@pytest.mark.parametrize("a", ["ok", "failed"])
def test_where_nothing_compiles_twice_nothing_passes(a: Status) -> None:
    one = Compared(pair(point(status=a), point(status="failed")), {}, {})
    if a == "ok":
        assert check("registers>1000", Comparison("A", "B", (one,)))
        return
    with pytest.raises(FactError, match="nothing compiles on both sides"):
        check(None, Comparison("A", "B", (one,)))


def test_violations_come_in_the_order_of_the_pairs() -> None:
    worse = {**NVIDIA, "registers_per_thread": 200, "code_bytes": 2000}
    found = check("code>+5%,registers>+5%", comparison((NVIDIA, worse), (NVIDIA, worse)))
    assert [(one.kernel, one.metric) for one in found] == [
        ("k0", "code"), ("k0", "registers"), ("k1", "code"), ("k1", "registers"),
    ]  # fmt: skip


def test_a_text_is_a_limit_of_b_alone(tmp_path: Path) -> None:
    """`--fail-on` takes the terms of `--when`."""
    made = [written(tmp_path / text, [point()], texts={"ptx": text}) for text in ("ret", "ld.global.b8")]
    a, b = (PairMember(one, one.points[0]) for one in made)
    sides = Comparison("A", "B", (Compared(Pair("k", a.point.id, a, b), NVIDIA, NVIDIA),))
    (violation,) = check("spills>0,ptx contains ld.global.b8", sides)
    assert (violation.metric, report.explain(violation)) == ("ptx", "ptx contains ld.global.b8")
    assert not check("ptx not contains ld.global.b8", sides)
    with pytest.raises(FactError, match="no pair has amdgcn"):
        check("amdgcn contains s_nop", sides)
