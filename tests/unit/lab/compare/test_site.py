"""The pages of many Tritons: what is compiled, what is judged, and what is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from tests.unit.lab.compare import compiler
from tests.unit.lab.compare.making import point, written
from tritonsmith.cli.tasks.compare import site as task
from tritonsmith.compiler import targets
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import CommitSource, Triton
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.lab.batch import kept_files
from tritonsmith.lab.compare import matching, rehearsal, site
from tritonsmith.lab.compare.matching import Pair, PairMember
from tritonsmith.lab.compare.site import BadgeText, SiteContent, SiteFinding, SiteRow, SiteState
from tritonsmith.lab.compare.thresholds import Threshold
from tritonsmith.lab.journal import Observation, Verdict

EVIL = "</script><script>alert(1)</script><!--"
OK = SiteState("ok", "", {"registers": 32, "spills": 0, "code": 1024})
MORE = SiteState("ok", "", {"registers": 40, "spills": 8, "code": 1024})
FAILED = SiteState("failed", f"failed: {EVIL}", {})
OLD, NEW = (Triton(version, version=version) for version in ("3.6.0", "3.9.0"))
SPILLS = {(0, 1): (SiteFinding("spills more", "spills 0 -> 8", 6),)}
ROWS = (
    SiteRow("fine", "", "pack", "cuda:90:32", (OK,), (0, 0), (0.5, 0.25)),
    SiteRow(EVIL, "BLOCK=64", "", "cuda:90:32", (OK, MORE), (0, 1), (None, 1.23456), SPILLS),
    SiteRow("lost", "", "", "hip:gfx942:64", (FAILED,), (None, 0), (None, None)),
)


def content(rows: tuple[SiteRow, ...] = ROWS, *tritons: Triton, state: str = "findings") -> SiteContent:
    verdict = BadgeText(state, "1 finding of 1 kind", {"findings": "1 finding"}.get(state, "no verdict"))
    return SiteContent("kernels.toml", tritons or (OLD, NEW), rows, verdict)


def blocks(text: str) -> dict[str, Any]:
    """What the page has for its script, by the name of the element, as a browser would cut it out."""
    pattern = r'<script type="application/json" id="([\w-]+)">(.*?)</script>'
    return {name: json.loads(block) for name, block in re.findall(pattern, text, re.DOTALL)}


def test_the_page_has_columns_for_each_target(tmp_path: Path) -> None:
    page = site.write(content(), tmp_path / "site")
    told = blocks(page.read_text())
    assert told["index"]["targets"] == ["cuda:90:32", "hip:gfx942:64"]
    assert [row["label"] for row in told["index"]["tritons"]] == ["3.6.0", "3.9.0"]
    nvidia, amd = told["data-0"], told["data-1"]
    assert [name for name, _, _ in nvidia["metrics"]][:3] == ["registers", "spills", "code"]
    assert "tensor core" in {name for name, _, _ in nvidia["metrics"]}
    assert "matrix core" in {name for name, _, _ in amd["metrics"]}
    assert nvidia["kernel"] == ["fine", EVIL]
    assert [nvidia["texts"][n] for n in nvidia["point"]] == ["", "BLOCK=64"]
    assert [nvidia["texts"][n] for n in nvidia["package"]] == ["pack", ""]
    assert nvidia["states"][1][1][:4] == [0, 40, 8, 1024]
    assert (nvidia["at"], amd["at"]) == ([[0, 0], [0, 1]], [[-1, 0]])
    assert nvidia["cpu"] == [[0.5, 0.25], [None, 1.235]]
    ((a, b, kind, what),) = nvidia["found"][1]
    assert (a, b, nvidia["kinds"][kind], nvidia["texts"][what]) == (0, 1, ["spills more", 1], "spills 0 -> 8")
    assert [len(state) for state in amd["states"][0]] == [1]  # a compile that fails has a message only


def test_names_and_messages_are_text(tmp_path: Path) -> None:
    text = site.write(content(), tmp_path / "site").read_text()
    assert EVIL not in text
    assert "<!--" not in text
    assert text.count("<script") == 4  # the index, two targets, and the page's own
    assert blocks(text)["data-0"]["kernel"][1] == EVIL
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy
    assert "unsafe" not in policy[1]
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    named = Triton(f"/home/x/{EVIL}/bin/python", python="/home/x/y/bin/python")
    text = site.write(content(ROWS, OLD, named), tmp_path / "site").read_text()
    assert EVIL not in text
    badge = (tmp_path / "site" / site.BADGE).read_text()
    assert [one.tag for one in ET.fromstring(badge).iter() if one.tag.endswith("script")] == []  # noqa: S314


def test_no_path_or_secret_of_this_machine_is_on_the_page(tmp_path: Path) -> None:
    secret = "ghp_" + "a1" * 15
    message = f"failed: /home/x/secret/kernel.py:3: token={secret}"
    rows = (replace(ROWS[2], states=(SiteState("failed", message, {}),)),)
    text = site.write(content(rows, OLD, Triton("/home/x/mine/venv/bin/python")), tmp_path).read_text()
    assert "/home/x" not in text
    assert secret not in text
    assert "Kernels by Triton 3.6.0 to mine" in text


def test_two_interpreters_of_one_name_are_two_columns() -> None:
    pythons = [Triton(f"/{place}/venv/bin/python", python=f"/{place}/venv/bin/python") for place in "aa"]
    assert content(ROWS, *pythons).labels == ("a", "a (2)")


@pytest.mark.parametrize(
    ("state", "colour"), [("clear", "#2c8a57"), ("findings", "#c2483f"), ("unsure", "#66707d")]
)
def test_the_badge_is_green_only_where_that_is_sure(state: str, colour: str) -> None:
    root = ET.fromstring(site.badge(content(state=state)))  # noqa: S314 - ours
    fill = [one.get("fill") for one in root.iter() if one.tag.endswith("rect")]
    assert fill == [colour]
    texts = [one.text for one in root.iter() if one.tag.endswith("}text")]
    assert texts == ["Triton 3.6.0 → 3.9.0", "1 finding" if state == "findings" else "no verdict"]
    parts = [float(one.get("x", 0)) + float(one.get("textLength", 0)) for one in root.iter() if one.get("x")]
    assert parts == sorted(parts)
    assert parts[-1] < float(root.get("width", 0))


def test_a_commit_is_named_by_its_hash_in_commands() -> None:
    commit = Triton(
        "main 1a2b3c", python="/x", commit="1a2b3c" * 6, source=CommitSource(Path("/c"), "dev", "3.9.0", "k")
    )
    index = site.index_of(content(ROWS, OLD, commit))
    assert index["tritons"] == [
        {"label": "3.6.0", "word": "3.6.0", "built": False},
        {"label": "main 1a2b3c", "word": "1a2b3c1a2b3c", "built": True},
    ]


def test_json_has_the_findings_of_neighbours() -> None:
    told = json.loads(json.dumps(site.as_json(content(), Path("/site/index.html"))))
    assert told["badge"] == "/site/badge.svg"
    fine, evil, lost = told["rows"]
    assert fine["by"]["3.6.0"] == {"message": "", "cpu_seconds": 0.5, **OK.values}
    assert evil["findings"] == [
        {"from": "3.6.0", "to": "3.9.0", "finding": "spills more", "what": "spills 0 -> 8", "sure": True}
    ]
    assert (fine["findings"], lost["findings"], list(lost["by"])) == ([], [], ["3.9.0"])


def test_a_folder_of_somebody_else_stays(tmp_path: Path) -> None:
    site.check(tmp_path / "new")
    page = site.write(content(), tmp_path / "site")
    site.check(tmp_path / "site")
    for name in (site.PAGE, site.BADGE):
        (tmp_path / name).write_text("<h1>Mine</h1>")
        with pytest.raises(UsageError, match=r"a file that `invoke farm --site` did not write"):
            site.check(tmp_path)
        (tmp_path / name).unlink()
    with pytest.raises(UsageError, match="is a file"):
        site.check(page)
    with pytest.raises(UsageError, match="--out cannot be written"):
        site.check(page / "below")
    with pytest.raises(SmithError, match="cannot write the site"):
        site.write(content(), page)
    with pytest.raises(SmithError, match="no kernel was compiled"):
        site.write(content(()), tmp_path)


def judged(a: PairMember, b: PairMember, limits: tuple[Threshold, ...]) -> list[tuple[str, str, bool]]:
    measured = {side.manifest.folder: kept_files.measured_now(side.manifest) for side in (a, b)}
    pair = matching.with_metrics(Pair("k", "p", a, b), measured)
    return [(row.kind, row.what, row.sure) for row in site.judge(pair, limits)]


def test_states_are_judged_as_compare_does(tmp_path: Path) -> None:
    limits = rehearsal.parse_limits("registers>+10%")

    def member(name: str, **of_cubin: Any) -> PairMember:
        manifest = written(tmp_path / name, [point()], **of_cubin)
        return PairMember(manifest, manifest.points[0])

    few, many = member("few", registers=32), member("many", registers=64)
    failed = written(tmp_path / "failed", [point(status="failed", error="no")])
    lost = PairMember(failed, failed.points[0])
    assert judged(few, few, limits) == []
    assert judged(few, many, limits) == [("breaks registers>+10%", "registers 32 -> 64 (+100 %)", True)]
    assert judged(many, few, limits) == []
    assert judged(few, lost, limits) == [("does not compile any more", "no", True)]
    assert judged(lost, lost, limits) == [("compiles by neither", "no", False)]
    state = site.state_of(few, kept_files.measured_now(few.manifest).points[few.point.id])
    assert (state.status, state.message, state.values["registers"]) == ("ok", "", 32)
    assert "matrix core" not in state.values
    assert site.state_of(lost, {}) == SiteState("failed", "failed: no", {})
    # Where a value is not known, one binary is one state, and two may differ in it.
    assert not state.binary
    unknown = {"registers_per_thread": None}
    assert site.state_of(few, unknown) != site.state_of(many, unknown)
    assert site.state_of(few, unknown) == site.state_of(few, unknown)


def test_a_compile_without_a_counterpart_is_not_sure(flags: Mapping[str, str], tmp_path: Path) -> None:
    plan = prepared(flags)
    old, new = (plan.kernels[0].jobs[triton.label].out for triton in plan.tritons)
    here = {
        old: written(tmp_path / "a", [point("cuda:80:32"), point("cuda:80:32", ",N=8")]),
        new: written(tmp_path / "b", [point("cuda:80:32")]),
    }
    observations = {cell.name: Observation(Verdict.GOOD) for cell in plan.cells}
    reader = site._SiteReader(plan, here, observations, rehearsal.parse_limits("registers>+10%"))
    shown = reader.content()
    assert [(row.point, row.at) for row in shown.rows] == [("", (0, 0)), ("N=8", (0, None))]
    assert (shown.verdict.state, shown.verdict.short) == ("unsure", "no verdict")
    # A kernel that is refused is one point, whatever was swept: that is the outcome of each.
    here[new] = written(tmp_path / "c", [point("cuda:80:32", status="failed", error="no")])
    here[old] = written(tmp_path / "d", [point("cuda:80:32", f",N={n}") for n in (8, 16)])
    reader = site._SiteReader(plan, here, observations, rehearsal.parse_limits("registers>+10%"))
    shown = reader.content()
    assert [(row.point, row.at) for row in shown.rows] == [("N=8", (0, 1)), ("N=16", (0, 1))]
    assert (shown.verdict.state, shown.verdict.short) == ("findings", "2 findings")


LIST = """
[[kernel]]
file = "one.py"
signature = "*fp32,64"
targets = ["a100", "mi300x"]

[[kernel]]
file = "two.py"
signature = "*fp32,64"
versions = ">=3.6"

[[kernel]]
file = "two.py"
signature = "*fp32,32"
versions = "<3.6"
"""


@pytest.fixture
def flags(tmp_path: Path) -> Mapping[str, str]:
    """What somebody gives: two interpreters, and a list."""
    pythons = [
        compiler.make(tmp_path / name, version) for name, version in (("old", "3.4.0"), ("new", "3.6.0"))
    ]
    for name in ("one", "two"):
        compiler.kernel(tmp_path, name)
    (tmp_path / "kernels.toml").write_text(LIST)
    return {"kernels": str(tmp_path / "kernels.toml"), "triton": ",".join(map(str, pythons)), "jobs": "2"}


def prepared(flags: Mapping[str, str], *more: Triton) -> site.SitePlan:
    file = Path(flags["kernels"])
    tritons = [rehearsal.parse_side(name, "--triton") for name in flags["triton"].split(",")]
    request = CompileRequest(Path(), "", "", targets.parse_all(["h100"]))
    return site.prepare(kernel_list.read(file), file, request, [*tritons, *more])


def test_a_name_with_several_ranges_of_versions_is_one_line(flags: Mapping[str, str], tmp_path: Path) -> None:
    plan = prepared(flags)
    assert [kernel.name for kernel in plan.kernels] == ["one", "two"]
    assert [len(plan.jobs_of(triton)) for triton in plan.tritons] == [2, 2]
    assert [cell.target for cell in plan.cells] == ["cuda:80:32", "hip:gfx942:64", "cuda:90:32"] * 2
    with pytest.raises(UsageError, match="given twice"):
        prepared(flags, plan.tritons[0])
    (tmp_path / "kernels.toml").write_text(LIST.replace('versions = "<3.6"', ""))
    with pytest.raises(UsageError, match="has two twice"):
        prepared(flags)
    (tmp_path / "kernels.toml").write_text(
        '[[kernel]]\nfile = "one.py"\nsignature = "*fp32,64"\nversions = ">9"\n'
    )
    with pytest.raises(UsageError, match="for these Tritons"):
        prepared(flags)
    with pytest.raises(UsageError, match="no Triton"):
        site.parse_tritons(())


@pytest.mark.slow
@pytest.mark.usefixtures("in_threads")
def test_the_task(flags: Mapping[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = {**flags, "triton": [flags["triton"]]}
    task(Context(), dry_run=True, **flags)
    assert capsys.readouterr().out.count("kernel.compile") == 4
    out = tmp_path / "site"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("mine")
    with pytest.raises(Exit, match="did not write"):
        task(Context(), out=str(tmp_path / "mine"), **flags)
    compiler.kernel(tmp_path, "two", "crash")
    task(Context(), out=str(out), **flags)
    shown = capsys.readouterr()
    assert "Kernels by Triton old to new: not sure: 1 kernel compiles by neither" in shown.out
    assert f"the page is {out / 'index.html'}" in " ".join(shown.err.split())
    assert "no verdict" in (out / "badge.svg").read_text()
    task(Context(), out=str(out), skip=["two"], json=True, **flags)
    told = json.loads(capsys.readouterr().out)
    assert (told["state"], told["tritons"]) == ("unsure", ["old", "new"])
    assert [(row["kernel"], row["target"], list(row["by"])) for row in told["rows"]] == [
        ("one", "cuda:80:32", ["old", "new"]),
        ("one", "hip:gfx942:64", ["old", "new"]),
    ]
    task(Context(), status=True, **flags)
    assert "finished" in capsys.readouterr().out
    one = {**flags, "triton": flags["triton"][0].split(",")[:1]}
    task(Context(), out=str(out), **one)
    assert "Kernels by Triton old: one Triton: nothing to compare it with" in capsys.readouterr().out
    assert "no verdict" in (out / "badge.svg").read_text()
