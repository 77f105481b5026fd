"""What a rehearsal finds, in which order, and how sure it is."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.lab.compare.making import point
from tests.unit.lab.compare.test_thresholds import AMD, NVIDIA, pair
from tritonsmith.compiler.manifest import Status
from tritonsmith.compiler.tritons import CommitSource, Triton
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.lab.compare import rehearsal, thresholds
from tritonsmith.lab.compare.matching import Compared, Comparison
from tritonsmith.lab.compare.rehearsal import Assessment
from tritonsmith.lab.compare.thresholds import COMPILES, LAUNCHES
from tritonsmith.lab.metrics import Measured


def one(kernel: str, a: Measured, b: Measured, target: str = "cuda:90:32") -> Compared:
    """A kernel that compiles by both."""
    return Compared(pair(point(target), point(target), kernel), a, b)


def other(kernel: str, a: Status, b: Status) -> Compared:
    """A kernel that does not."""
    return Compared(pair(point(status=a), point(status=b, error="error: no"), kernel), {}, {})


def verdict(*compared: Compared, fail_on: str | None = None) -> Assessment:
    return rehearsal.check(Comparison("3.6.0", "3.9.0", compared), rehearsal.parse_limits(fail_on))


SAME = one("same", NVIDIA, NVIDIA)


def test_no_finding_says_what_was_looked_at() -> None:
    made = verdict(
        SAME, one("less", NVIDIA, {**NVIDIA, "code_bytes": 500}), one("amd", AMD, AMD, "hip:gfx942:64")
    )
    assert made.words == "no finding by these terms in 3 compiles of 3 kernels"
    assert not made.findings
    assert not made.regressions
    assert not made.doubts


def test_what_gets_worse_within_the_terms_is_named_beside_the_verdict() -> None:
    """96 -> 124 registers at the same occupancy breaks no term, and is not `no worse`."""
    before = {**NVIDIA, "registers_per_thread": 96}
    made = verdict(
        one("matmul", before, {**NVIDIA, "registers_per_thread": 124, "code_bytes": 1100}),
        one("found", NVIDIA, {**NVIDIA, "spill_store_bytes": 8, "code_bytes": 1400}),
        SAME,
    )
    assert [(row.kernel, row.change) for row in made.regressions] == [
        ("matmul", "registers 96 -> 124 (+29 %)"),
        ("matmul", "code 1000 -> 1100 (+10 %)"),
    ]
    alone = verdict(one("matmul", before, {**NVIDIA, "registers_per_thread": 124}), SAME)
    assert alone.words == (
        "no finding by these terms in 2 compiles of 2 kernels; the largest change for the worse: "
        "registers 96 -> 124 (+29 %), matmul cuda-90-32"
    )


def test_what_grows_from_nothing_has_no_percentage() -> None:
    spilled = one("k", NVIDIA, {**NVIDIA, "spill_store_bytes": 64, "spill_load_bytes": 64})
    made = verdict(spilled, SAME, fail_on="registers>+10%")
    assert made.regressions[0].change == "spills 0 -> 128"


def test_the_worst_is_first() -> None:
    spilled = {**NVIDIA, "spill_store_bytes": 8}
    made = verdict(
        one("grows", NVIDIA, {**NVIDIA, "code_bytes": 1501}),
        one("crowded", NVIDIA, {**NVIDIA, "occupancy_percent": 25.0}),
        one("spills", spilled, {**NVIDIA, "spill_store_bytes": 16}),
        one("spills from none", NVIDIA, spilled),
        one("spills a lot more", spilled, {**NVIDIA, "spill_store_bytes": 80}),
        one("scalar", NVIDIA, {**NVIDIA, "instructions tensor core": 0}),
        one("stuck", {**NVIDIA, "launch": "yes"}, {**NVIDIA, "launch": "no: too much shared memory"}),
        other("broken", "ok", "failed"),
        other("dies", "ok", "timeout"),
        SAME,
    )
    assert [(found.kernel, found.finding, thresholds.explain(found)) for found in made.findings] == [
        ("broken", COMPILES, "error: no"),
        ("dies", COMPILES, "timeout: error: no"),
        ("stuck", LAUNCHES, "too much shared memory"),
        ("scalar", "loses tensor cores", "tensor core 8 -> 0 (-100 %)"),
        ("spills from none", "spills more", "spills 0 -> 8"),
        ("spills a lot more", "spills more", "spills 8 -> 80 (+900 %)"),
        ("spills", "spills more", "spills 8 -> 16 (+100 %)"),
        ("crowded", "occupies less", "occupancy 50 -> 25 (-50 %)"),
        ("grows", "grows", "code 1000 -> 1501 (+50 %)"),
    ]
    assert made.words == "9 findings"


@pytest.mark.parametrize(
    "changes",
    [{"code_bytes": 1500}, {"occupancy_percent": 40.0}, {"instructions tensor core": 4}],
)
def test_what_the_usual_limits_allow(changes: Measured) -> None:
    assert not verdict(one("k", NVIDIA, {**NVIDIA, **changes})).findings


@pytest.mark.parametrize("after", [37.5, 100 * 15 / 40])
def test_a_quarter_less_occupancy_is_a_finding(after: float) -> None:
    made = verdict(one("k", NVIDIA, {**NVIDIA, "occupancy_percent": after}))
    assert [row.finding for row in made.findings] == ["occupies less"]


def test_a_quarter_is_one_however_floats_are_rounded() -> None:
    before, after = ({**NVIDIA, "occupancy_percent": 100 * warps / 48} for warps in (20, 15))
    assert [row.finding for row in verdict(one("k", before, after)).findings] == ["occupies less"]


@pytest.mark.parametrize("after", ["ok", "failed"])
def test_a_baseline_that_took_too_long_decides_nothing(after: Status) -> None:
    made = verdict(SAME, other("late", "timeout", after))
    assert not made.findings
    assert [(kernel, metric) for kernel, _, metric in made.unknown] == [
        ("late", "its compile by the first Triton, which took too long")
    ]


@pytest.mark.parametrize(("a", "b"), [("ok", "lost"), ("lost", "ok"), ("lost", "failed"), ("lost", "lost")])
def test_a_compile_that_no_worker_could_run_decides_nothing(a: Status, b: Status) -> None:
    made = verdict(SAME, other("far", a, b))
    assert not [*made.findings, *made.neither, *made.fixed]
    assert [(kernel, metric) for kernel, _, metric in made.unknown] == [
        ("far", "its compile, which no worker could run")
    ]
    with pytest.raises(FactError, match="no kernel compiles by both") as caught:
        verdict(other("far", a, b))
    assert "far cuda-90-32: lost" in str(caught.value)


def test_terms_of_the_user_take_the_place_of_the_usual() -> None:
    worse = one("k", NVIDIA, {**NVIDIA, "code_bytes": 5000, "registers_per_thread": 101})
    (found,) = verdict(worse, fail_on="registers>+0").findings
    assert (found.finding, found.limit, found.a, found.b) == ("breaks a limit", "registers>+0", 100, 101)
    with pytest.raises(UsageError, match="no metric 'register'"):
        rehearsal.parse_limits("register>+0")
    made = verdict(SAME, fail_on="matrix core<=-100%")
    assert made.unchecked == ("matrix core",)
    assert made.words == "not sure: no kernel has matrix core"


def test_not_sure_is_an_answer() -> None:
    made = verdict(SAME, other("old", "failed", "failed"), other("new", "failed", "ok"))
    assert made.words == "not sure: 1 kernel compiles by neither"
    assert made.neither == (("old", "cuda-90-32", "error: no"),)
    assert made.fixed == (("new", "cuda-90-32"),)
    unknown = one("k", NVIDIA, {**NVIDIA, "spill_store_bytes": None, "occupancy_percent": None})
    made = verdict(unknown, other("old", "failed", "crashed"), other("older", "failed", "failed"))
    assert made.words == "not sure: 2 kernels compile by neither, 1 kernel has unknown values"
    assert [metric for _, _, metric in made.unknown] == ["spills", "occupancy"]
    broken = verdict(SAME, other("broken", "ok", "failed"), other("old", "failed", "failed"))
    assert broken.words == "1 finding; not sure: 1 kernel compiles by neither"
    with pytest.raises(FactError, match="not sure: no kernel compiles by both") as caught:
        verdict(other("old", "failed", "failed"), other("new", "failed", "ok"))
    assert "old cuda-90-32: error: no" in str(caught.value)


def test_releases_between() -> None:
    old, new, own = (Triton(text, version=text) for text in ("3.5.1", "3.8.0", ""))
    assert rehearsal.between(old, new) == ("3.6.0", "3.7.0")
    assert rehearsal.between(new, old) == ("3.7.0", "3.6.0")
    assert rehearsal.between(old, own) == ()


def test_each_finding_has_the_commands_that_go_on() -> None:
    (found,) = verdict(other("03 matmul", "ok", "failed")).findings
    old, new = (Triton(text, version=text) for text in ("3.7.0", "3.9.0"))
    assert shlex.split(rehearsal.culprit_command(found, Path("/c/kernels.toml"), old, new)) == [
        "invoke", "bisect", "--good", "3.7.0", "--bad", "3.9.0", "--kernel", "/c/kernels.toml:03 matmul",
        "--target", "cuda:90:32",
    ]  # fmt: skip
    (spilled,) = verdict(one("k", NVIDIA, {**NVIDIA, "spill_store_bytes": 8})).findings
    assert "--when 'spills>+0' --target cuda:90:32" in rehearsal.culprit_command(
        spilled, Path("/c/kernels.toml"), old, new
    )
    own = Triton("debug", env="debug")
    assert shlex.split(rehearsal.culprit_command(spilled, Path("/c/kernels.toml"), old, own)) == [
        "invoke", "compare", "/c/kernels.toml:k", "--triton", "3.7.0,debug", "--target", "cuda:90:32",
    ]  # fmt: skip
    assert rehearsal.differences_command(found) == "invoke compare /out /out --diff"


def test_a_finding_between_commits_goes_on_in_their_clone() -> None:
    (found,) = verdict(other("k", "ok", "failed")).findings
    source = CommitSource(Path("/my clone"), "dev", "3.6.0", "key")
    base, head = (Triton(f"main {c}", python=f"/{c}", commit=c * 40, source=source) for c in "ab")
    assert shlex.split(rehearsal.culprit_command(found, Path("/c/kernels.toml"), base, head)) == [
        "invoke", "bisect", "--good", "a" * 40, "--bad", "b" * 40, "--source", "/my clone", "--env", "dev",
        "--kernel", "/c/kernels.toml:k", "--target", "cuda:90:32",
    ]  # fmt: skip
    # A comment on a pull request can name commits, and no interpreter of the machine that made it.
    launch = replace(found, finding=LAUNCHES)
    assert shlex.split(rehearsal.culprit_command(launch, Path("/c/kernels.toml"), base, head)) == [
        "invoke", "farm", "/c/kernels.toml:k", "--base", "a" * 40, "--head", "b" * 40,
        "--source", "/my clone", "--env", "dev", "--target", "cuda:90:32",
    ]  # fmt: skip
    own = Triton("debug", env="debug")
    assert "--triton debug,/b " in rehearsal.culprit_command(found, Path("/c/kernels.toml"), own, head)
