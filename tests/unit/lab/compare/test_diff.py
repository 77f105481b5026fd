"""Compiles that were compared, and how that looks."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.unit.lab.compare.making import SASS, TTIR, manifest, point, written
from tritonsmith.compiler.resources.measure import Value
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Write
from tritonsmith.core.ui import console
from tritonsmith.lab.compare import matching, report, thresholds
from tritonsmith.lab.compare.matching import Comparison, MetricChange
from tritonsmith.lab.metrics import metric

OTHER_TTIR = TTIR.replace("constant 1", "constant 2")


@pytest.fixture
def sides(tmp_path: Path) -> Comparison:
    """More registers and another constant, a kernel that fails in B, a point that A has alone."""
    failing = point("cuda:80:32", status="failed", error="k.py:3: no such thing\nmore")
    a = written(tmp_path / "a", [point(seconds=2.0), point("cuda:80:32"), point("cuda:100:32")], registers=40)
    texts = {"ttir": OTHER_TTIR, "sass": SASS, "ptx": "ret;\n"}
    b = written(tmp_path / "b", [point(), failing], texts=texts, registers=50)
    return matching.compare([a], [b], names=("3.4.0", "3.9.0"))


def seen(found: Comparison, width: int = 80) -> str:
    console = Console(width=width, highlight=False, soft_wrap=True, color_system=None)
    with console.capture() as capture:
        for block in report.blocks(found):
            console.print(block)
    return capture.get()


def change(key: str, a: Value, b: Value, *, counterpart: bool = True) -> MetricChange:
    return MetricChange(metric(key), a, b, counterpart)


def test_what_changed(sides: Comparison) -> None:
    one, lost = sides.compared
    found = {change.metric.key: change for change in one.changes}
    registers = found["registers_per_thread"]
    assert (registers.a, registers.b, registers.delta, registers.percent) == (40, 50, 10, 25.0)
    assert registers.verdict == "worse"
    assert "code_bytes" not in found
    assert "compile_seconds" not in found
    assert one.same > 5
    assert one.diffs["ttir"].added == one.diffs["ttir"].removed == 1
    assert not one.diffs["sass"].lines
    assert one.alone == {"ptx": "B"}
    assert lost.lost
    assert not lost.changes
    assert [one.member.point.target for one in sides.unpaired] == ["cuda:100:32"]


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (change("registers_per_thread", 40, 41), "worse"),
        (change("registers_per_thread", 41, 40), "better"),
        (change("occupancy_percent", 50.0, 75.0), "better"),
        (change("occupancy_percent", 75.0, 50.0), "worse"),
        (change("ttgir_bytes", 1, 2), ""),
        (change("limiter", "registers", "threads"), ""),
        (change("registers_per_thread", None, 2), ""),
        (change("registers_per_thread", 40, None, counterpart=False), ""),
    ],
)
def test_verdicts(made: MetricChange, verdict: str) -> None:
    assert made.verdict == verdict


def test_what_has_no_counterpart_is_not_subtracted() -> None:
    assert change("registers_per_thread", 40, None, counterpart=False).delta is None
    assert change("limiter", "registers", "threads").delta is None
    assert change("spill_load_bytes", 0, 4).delta == 4


def test_the_screen(sides: Comparison) -> None:
    assert list(report.head(sides)) == ["A: 3.4.0, by Triton 3.9.0", "B: 3.9.0, by Triton 3.9.0"]
    text = seen(sides)
    assert max(map(len, text.splitlines())) <= 80
    line = next(line for line in text.splitlines() if "registers, per thread" in line)
    assert line.split() == ["registers,", "per", "thread", "40", "50", "+10", "+25.0", "%"]
    assert "code, B" not in text
    for words in (
        "k cuda-90-32\n",
        "compile time 2.0 s -> 1.0 s, one run each",
        "differing stages: ttir +1 -1",
        "equal stages: sass",
        "only B has ptx",
        "A: ok",
        "B: failed\n     k.py:3: no such thing\n     more\n",
        "only A has k cuda-100-32",
    ):
        assert words in text


def test_colours_follow_the_verdict(sides: Comparison) -> None:
    console = Console(width=80, force_terminal=True, color_system="standard", highlight=False)
    with console.capture() as capture:
        for block in report.blocks(sides):
            console.print(block)
    line = next(line for line in capture.get().splitlines() if "registers, per" in line)
    assert re.search(r"\x1b\[31m *\+10 ", line)


def test_no_changes_are_said(tmp_path: Path) -> None:
    a, b = (written(tmp_path / name, [point(seconds=time)]) for name, time in (("a", 1.0), ("b", 2.0)))
    assert seen(matching.compare([a], [b])) == "no changes: one pair compiles to the same\n"
    twice = [written(tmp_path / name, [point(), point("cuda:80:32")]) for name in ("c", "d")]
    assert "no changes: 2 pairs compile to the same" in seen(matching.compare(twice[:1], twice[1:]))


def test_no_pair_at_all_is_an_error(tmp_path: Path) -> None:
    a = written(tmp_path / "a", [point()])
    b = written(tmp_path / "b", [point("hip:gfx942:64", status="failed")])
    other = manifest(point(), kernel="other")
    with pytest.raises(FactError, match="no compile of A has a counterpart in B") as error:
        matching.compare([a], [other])
    assert "B has no kernel k" in str(error.value)
    compared = matching.compare([a], [b]).compared  # one target against another, which fails
    assert any(one.lost for one in compared)


def test_a_file_that_is_not_the_same_is_noted(tmp_path: Path) -> None:
    a, b = (written(tmp_path / name, [point()]) for name in "ab")
    changed = type(b)(**{**vars(b), "file_sha256": "1" * 64})
    assert not any("file" in note for note in matching.compare([a], [b]).notes)
    assert "k: the kernel's file differs between the two sides" in matching.compare([a], [changed]).notes


def test_json(sides: Comparison) -> None:
    limits = thresholds.parse("registers>+5%")
    made = report.as_json(sides, limits, thresholds.check(sides, limits).violations)
    content: dict[str, Any] = json.loads(json.dumps(made, allow_nan=False))
    assert content["schema"] == 1
    assert (content["a"], content["b"], content["fail_on"]) == ("3.4.0", "3.9.0", ["registers>+5%"])
    one, lost = content["pairs"]
    assert one["a"]["metrics"]["registers_per_thread"] == 40
    assert {"metric": "registers_per_thread", "a": 40, "b": 50, "change": 10, "percent": 25.0,
            "verdict": "worse"} in one["changes"]  # fmt: skip
    assert one["stages"]["ttir"] == {"added": 1, "removed": 1, "diff": "diffs/k/cuda-90-32/ttir.diff"}
    assert one["stages"]["sass"]["diff"] is None
    assert lost["b"]["status"] == "failed"
    assert content["unpaired"][0]["side"] == "A"
    assert [(v["point"], v["metric"], v["limit"]) for v in content["violations"]] == [
        ("cuda-90-32", "registers", "registers>+5%"),
        ("cuda-80-32", "", ""),
    ]


def test_infinite_growth_is_no_number_in_json(tmp_path: Path) -> None:
    a, b = (written(tmp_path / name, [point()], frame=frame) for name, frame in (("a", 0), ("b", 8)))
    content = report.as_json(matching.compare([a], [b]), (), ())
    (stack,) = [one for one in content["pairs"][0]["changes"] if one["metric"] == "stack_bytes"]
    assert (stack["change"], stack["percent"]) == (8, None)
    assert "from 0" in seen(matching.compare([a], [b]))


def test_the_change_of_occupancy_is_that_of_the_exact_values(tmp_path: Path) -> None:
    """Blocks of 10 warps, on a multiprocessor that holds 64: three fit, then four."""
    a, b = (written(tmp_path / str(used), [point()], registers=used, threads=320) for used in (64, 48))
    found = matching.compare([a], [b])
    (occupancy,) = [one for one in found.compared[0].changes if one.metric.key == "occupancy_percent"]
    assert (occupancy.a, occupancy.b) == (46.875, 62.5)
    assert occupancy.percent == pytest.approx(100 / 3, abs=1e-9)
    assert not thresholds.check(found, thresholds.parse("occupancy<+33.3%")).violations
    line = next(line for line in seen(found).splitlines() if "occupancy, %" in line)
    assert line.split() == ["occupancy,", "%", "46.88", "62.5", "+15.62", "+33.3", "%"]


def test_violations_are_named(sides: Comparison) -> None:
    judgement = thresholds.check(sides, thresholds.parse("registers>+5%"))
    assert list(report.violation_lines(judgement.violations)) == [
        "k cuda-90-32: registers: A 40, B 50; limit registers>+5%",
        "k cuda-80-32: compiles in A but not in B: failed: k.py:3: no such thing",
    ]


def texts(sides: Comparison, folder: Path) -> dict[Path, str]:
    steps = report.files(sides, "{}\n", folder).steps
    return {step.path: step.text for step in steps if isinstance(step, Write)}


def test_files(sides: Comparison, tmp_path: Path) -> None:
    steps = texts(sides, tmp_path)
    assert set(steps) == {tmp_path / "compare.json", tmp_path / "diffs/k/cuda-90-32/ttir.diff"}
    text = steps[tmp_path / "diffs/k/cuda-90-32/ttir.diff"]
    assert text.startswith("--- a/k/cuda-90-32/ttir\n+++ b/k/cuda-90-32/ttir\n@@ ")
    assert re.search(r"^\+ +%.* = arith\.constant 2", text, re.MULTILINE)


@pytest.mark.parametrize(
    "name", ["cuda-90-32/sass.diff", "cuda-90-32/amdgcn.diff", "cuda-80-32/ttir.diff"]
)  # the same now; not a stage of both; of a compile that failed
def test_a_diff_that_is_no_longer_true_is_emptied(name: str, sides: Comparison, tmp_path: Path) -> None:
    stale = tmp_path / "diffs/k" / name
    stale.parent.mkdir(parents=True)
    stale.write_text("+old\n")
    steps = texts(sides, tmp_path)
    assert steps[stale] == ""


def test_names_of_a_manifest_stay_in_the_folder(tmp_path: Path) -> None:
    a = written(tmp_path / "a", [point()])
    b = written(tmp_path / "b", [point()], texts={"ttir": OTHER_TTIR})
    evil = [type(one)(**{**vars(one), "kernel": "../../evil"}) for one in (a, b)]
    found = report.files(matching.compare(evil[:1], evil[1:]), "{}\n", tmp_path / "out")
    for step in found.steps:
        assert isinstance(step, Write)
        assert step.path.resolve().is_relative_to(tmp_path / "out")
        assert ".." not in step.path.parts


def test_differences_are_chosen_by_stage(sides: Comparison) -> None:
    assert [stage for _, stage, _ in report.differences(sides)] == ["ttir"]
    assert [stage for _, stage, _ in report.differences(sides, ["ttgir"])] == []
    assert [stage for _, stage, _ in report.differences(sides, ["cubin"])] == []  # by its sass
    (_, _, lines), *_ = report.differences(sides, ["ttir"])
    assert console.coloured_diff(lines).plain == "".join(f"{line}\n" for line in lines)


def test_two_vendors_are_shown_side_by_side(tmp_path: Path) -> None:
    a = written(tmp_path / "a", [point()], registers=40)
    b = written(tmp_path / "b", [point("hip:gfx942:64")])
    (one,) = matching.compare([a], [b]).compared
    found = {change.metric.key: change for change in one.changes}
    assert (found["registers"].a, found["registers"].b, found["registers"].delta) == (40, 64, None)
    assert "registers_per_thread" not in found
    assert "vgprs_per_lane" not in found
    assert (found["sgprs_per_wave"].a, found["sgprs_per_wave"].b) == (None, 20)
    assert "instructions tensor core" not in found  # none, against what the other vendor has not got
    assert found["code_bytes"].delta == 48
    assert not one.alone
    assert set(one.diffs) == {"ttir"}
    line = next(
        line for line in seen(matching.compare([a], [b])).splitlines() if "per thread or lane" in line
    )
    assert line.split()[-2:] == ["40", "64"]


def test_many_pairs_end_with_a_line_for_each(tmp_path: Path) -> None:
    points = [point(), point("cuda:80:32"), point("cuda:100:32", status="failed")]
    a = written(tmp_path / "a", points, registers=40)
    b = written(tmp_path / "b", points, registers=50)
    text = seen(matching.compare([a], [b]))
    lines = [line.split() for line in text[text.index("summary, A -> B") :].splitlines()]
    assert ["kernel", "registers", "spills", "code"] in lines
    assert ["k", "cuda-90-32", "40", "->", "50", "0", "16"] in lines
    assert ["k", "cuda-80-32", "40", "->", "50", "0", "16"] in lines
    assert max(map(len, text.splitlines())) <= 80


def test_one_pair_needs_no_summary(sides: Comparison) -> None:
    assert "in short" not in seen(sides)


def test_notes_name_the_side(tmp_path: Path) -> None:
    a = written(tmp_path / "a", [point()])
    b = written(tmp_path / "b", [point()], texts={"ttir": TTIR})
    (note,) = matching.compare([a], [b]).notes
    assert note.startswith("B, k: no sass for cuda-90-32: instructions are not counted")


def test_what_only_a_can_launch_is_worse_and_a_failure(tmp_path: Path) -> None:
    wide = replace(point(), metadata={"shared": 262144}, remarks=["(C7510) Lost"])
    a, b = written(tmp_path / "a", [point()]), written(tmp_path / "b", [wide])
    found = matching.compare([a], [b])
    (one,) = found.compared
    launch = next(change for change in one.changes if change.metric.key == "launch")
    assert (launch.a, launch.b, launch.verdict) == ("yes", "no: shared 262144 > 232448 B", "worse")
    assert "B, k: cuda-90-32: cannot launch: shared 262144 > 232448 B" in found.notes
    assert "B, k: cuda-90-32: ptxas: (C7510) Lost" in found.notes
    (violation,) = thresholds.check(found, ()).violations
    assert report.explain(violation) == "A can be launched, but B cannot: shared 262144 > 232448 B"
    assert report.as_json(found, (), ())["pairs"][0]["b"]["remarks"] == ["(C7510) Lost"]
    back = matching.compare([b], [a])
    (other,) = back.compared
    assert next(one.verdict for one in other.changes if one.metric.key == "launch") == "better"
    assert thresholds.check(back, ()).violations == ()
