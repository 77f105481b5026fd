"""A journal as a table, as JSON and as a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.core.errors import SmithError
from tritonsmith.lab import report
from tritonsmith.lab.journal import Journal, Observation, Verdict

WORDS = {Verdict.BAD: "shows", Verdict.GOOD: "gone", Verdict.OTHER: "differs", Verdict.SKIP: "not tested"}


@pytest.fixture
def notes() -> Journal:
    journal = Journal(skipped={"-O0 of ptxas"})
    journal.add("nothing changed", Observation(Verdict.BAD, "spills\n 8", seconds=1.25))
    journal.add("num_stages=1 <b>", Observation(Verdict.GOOD, "spills 0", notes=("slow & sure",)))
    journal.add("nothing changed", Observation(Verdict.SKIP, why="no GPU"))
    return journal


def test_json_has_every_test_and_whether_it_is_over(notes: Journal) -> None:
    made = report.as_json(notes, WORDS)
    assert [(row["change"], row["verdict"], row["figures"], row["why"]) for row in made["tests"]] == [
        ("nothing changed", "shows", "spills\n 8", ""),
        ("nothing changed", "not tested", "", "no GPU"),
        ("num_stages=1 <b>", "gone", "spills 0", ""),
    ]
    assert (made["skipped"], made["ended"], made["answer"]) == (["-O0 of ptxas"], False, None)
    assert made["command"] is None
    notes.end("it is ptxas")
    notes.command = "tritonsmith triage"
    made = report.as_json(notes)
    assert (made["tests"][0]["verdict"], made["ended"], made["answer"]) == ("bad", True, "it is ptxas")
    assert made["command"] == "tritonsmith triage"


def test_the_table_has_a_row_for_each_test(notes: Journal) -> None:
    table = report.table(notes, WORDS)
    assert table.title == "3 tests"
    assert [[cell.plain for cell in row[:3]] for row in table.rows] == [
        ["nothing changed", "shows", "spills 8"],
        ["nothing changed", "not tested", "no GPU"],
        ["num_stages=1 <b>", "gone", "spills 0"],
    ]


def test_the_page_escapes_what_it_is_given_and_hides_secrets(notes: Journal, tmp_path: Path) -> None:
    path = tmp_path / "new" / "triage.html"
    command = "tritonsmith triage -- env HF_TOKEN=hf_0123456789abcdefghij python k.py"
    report.write(notes, path, "triage", command=command, answer=["decided: <ptxas>", "because"], words=WORDS)
    page = path.read_text()
    assert '<div class="verdict">decided: &lt;ptxas&gt;</div>\n<p>because</p>' in page
    assert "<td>num_stages=1 &lt;b&gt;</td>" in page
    assert "slow &amp; sure" in page
    assert "3 tests, 1.2 s; skipped by hand: -O0 of ptxas" in page
    assert "hf_0123456789" not in page
    assert "<script" not in page
    assert "default-src" in page


def test_a_page_that_cannot_be_written_is_an_error(notes: Journal, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SmithError, match="cannot write the page"):
        report.write(notes, tmp_path / "file" / "page.html", "t", command="c", answer=["a"])


def test_observations_are_kept_whole_on_a_line() -> None:
    assert report.result(replace(Observation(Verdict.BAD), figures="a\n b", why="c")) == "a b, c"
