"""The page of a bisect, as text."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.unit.lab.bisect.findings import CULPRIT, FINDINGS, commit
from tritonsmith.lab.bisect import report
from tritonsmith.lab.bisect.report import BisectPage
from tritonsmith.lab.journal import Observation, Verdict


class Reader(HTMLParser):
    """Texts by the element and class that they are in; attributes of links and circles."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[tuple[str, str]] = []
        self.links: list[str] = []
        self.circles: list[dict[str, str | None]] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._inside.append(f"{tag}.{given['class']}" if given.get("class") else tag)
        if tag == "a":
            self.links.append(given["href"] or "")
        if tag == "circle":
            self.circles.append(given)

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop().partition(".")[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.words.append((self._inside[-1] if self._inside else "", data))

    def of(self, element: str) -> list[str]:
        return [word for where, word in self.words if where == element]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    return tmp_path / "bisect.html"


def written(found: BisectPage, path: Path) -> Reader:
    report.write(found, path)
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def test_the_culprit_comes_first_with_its_pull_request(made: Path) -> None:
    reader = written(FINDINGS, made)
    assert reader.of("div.verdict findings") == ["spills>0: since 2222222222"]
    assert reader.of("strong") == [CULPRIT.subject]
    upstream = "https://github.com/triton-lang/triton"
    assert reader.links[:2] == [f"{upstream}/commit/{'2' * 40}", f"{upstream}/pull/123"]


def test_points_stand_in_order_with_verdicts_and_figures(made: Path) -> None:
    reader = written(FINDINGS, made)
    assert reader.of("span.better") == ["good", "good"]
    assert reader.of("span.worse") == ["bad", "bad"]
    assert reader.of("span.soft")[0] == "skip"
    assert "(cannot build: <error>)" in reader.of("td")
    heights = [float(circle["cy"] or 0) for circle in reader.circles]
    assert heights[0] > heights[-1], "980 B is lower than 4472 B"
    assert [circle["fill"] for circle in reader.circles].count("var(--page)") == 1


def test_figures_without_one_number_are_all_of_one_height(made: Path) -> None:
    points = tuple(
        replace(one, outcome=replace(one.outcome, figures="registers 4, spills 5")) for one in FINDINGS.points
    )
    assert len({circle["cy"] for circle in written(replace(FINDINGS, points=points), made).circles}) == 1


def test_the_stage_is_a_diff_and_the_pass_stands_side_by_side(made: Path) -> None:
    reader = written(FINDINGS, made)
    assert [line for line in reader.of("span.added") if "ld.global" in line]
    assert [line for line in reader.of("span.gone") if "ld.global" in line]
    assert [line.split()[2] for line in reader.of("code.gone")] == ["arith.addi"]
    assert [line.split()[2] for line in reader.of("code.added")] == ["arith.muli"]
    assert "lib/Coalesce.cpp" in reader.of("code")


def test_several_suspects_are_listed_and_none_is_accused(made: Path) -> None:
    reader = written(replace(FINDINGS, suspects=(CULPRIT, commit("3", "Another <one>"))), made)
    assert reader.of("div.verdict unsure") == ["spills>0: since one of 2"]
    assert "Another <one>" in reader.of("td")
    assert not reader.of("strong")


def test_releases_alone(made: Path) -> None:
    found = replace(FINDINGS, suspects=("3.7.0",), stage=None, by_pass=None)
    assert written(found, made).of("div.verdict findings") == ["spills>0: since 3.7.0"]


def test_a_secret_of_the_command_is_not_written(made: Path) -> None:
    report.write(replace(FINDINGS, command="env API_TOKEN=hunter2hunter2 pytest"), made)
    assert "hunter2" not in made.read_text(encoding="utf-8")


def test_a_long_diff_is_folded_and_cut(made: Path) -> None:
    assert FINDINGS.stage
    stage = replace(FINDINGS.stage, stage="text", good="", bad="\n".join(f"line {n}" for n in range(4000)))
    reader = written(replace(FINDINGS, stage=stage), made)
    assert reader.of("summary") == ["4001 lines"]
    assert "1001 more lines are left out" in reader.of("p.soft")


def test_commits_stand_where_a_bad_release_follows_a_good_one() -> None:
    good, bad = Observation(Verdict.GOOD), Observation(Verdict.BAD)
    first, bump, last = commit("1", "First"), replace(commit("3", "Bump"), bump=True), CULPRIT
    outcomes = {
        "3.10.0": bad,
        last.commit: bad,
        "3.6.0": good,
        "3.9.0": bad,
        first.commit: good,
        "3.8.0": good,
    }
    outcomes |= {bump.commit: good, "4" * 40: bad}
    points = report.points_of(outcomes, [first, commit("9", "Not tested"), bump, last])
    assert [(point.name[:6], point.kind) for point in points] == [
        ("3.6.0", "release"),
        ("3.8.0", "release"),
        ("444444", "commit"),
        ("111111", "commit"),
        ("333333", "pin"),
        ("222222", "commit"),
        ("3.9.0", "release"),
        ("3.10.0", "release"),
    ]
    assert points[5].subject == CULPRIT.subject
