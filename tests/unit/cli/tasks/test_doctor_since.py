"""`doctor --since` and `doctor.compare`, in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tritonsmith.core.envs import workspace
from tritonsmith.doctor import history


def test_a_new_user_and_a_changed_variable(smith: Smith, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tritonsmith.facts.machine.disk_free", lambda _: 500.0)
    first = smith("doctor", "--since", "last-good")
    assert first.code == 1
    assert "environment dev has no history yet" in first.err
    assert "--since last-good" in first.err
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    told = json.loads(smith("doctor", "--since", "2020-01-01", "--json").out)["since"]
    assert [one["what"] for one in told["changes"]] == ["$TRITON_ALWAYS_COMPILE"]
    assert "the history begins on" in told["remarks"][0]
    again = smith("doctor", "--since", "9999-01-01")
    assert "nothing the doctor tracks has changed since then" in again.out
    assert "the setup has changed since" in again.err
    assert len(history.read(workspace.default().env("dev").history)) == 2


def test_a_wrong_word_is_told_before_any_check(smith: Smith) -> None:
    answer = smith("doctor", "--since", "lastgood")
    assert (answer.code, answer.out) == (2, "")
    assert not workspace.default().root.exists()
    assert smith("doctor", "--since", "last-good", "--report").code == 2
    assert not workspace.default().root.exists()


def test_two_reports(smith: Smith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    one.write_text(smith("doctor", "--json").out)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr("tritonsmith.facts.machine.disk_free", lambda _: 0.1)
    two.write_text(smith("doctor", "--json").out)
    shown = smith("doctor.compare", str(one), str(two))
    assert shown.code == 0
    assert "$TRITON_INTERPRET" in shown.out
    assert "machine.disk" in shown.out
    told = json.loads(smith("doctor.compare", str(one), str(two), "--json").out)
    assert [row["what"] for row in told["changes"]] == ["$TRITON_INTERPRET"]
    assert {row["id"] for row in told["checks"]} >= {"machine.disk"}
    assert "nothing the doctor tracks differs" in smith("doctor.compare", str(one), str(one)).out
    assert "$TRITON_INTERPRET" in smith("doctor", "--since", str(one)).out


def test_a_report_of_a_later_version(smith: Smith, tmp_path: Path) -> None:
    report = json.loads(smith("doctor", "--json").out)
    later = tmp_path / "later.json"
    odd = [7, {"id": 1}, {"id": "x.y", "status": "splendid"}, {"id": "x.z", "status": ["ok"]}]
    report |= {"schema": 3, "horoscope": {}, "findings": [*report["findings"], *odd], "when": 7}
    report["setup"]["mood"] = "fine"
    later.write_text(json.dumps(report))
    same = tmp_path / "same.json"
    same.write_text(smith("doctor", "--json").out)
    answer = smith("doctor.compare", str(later), str(same))
    assert answer.code == 0
    assert "unknown keys, which are not compared: horoscope" in answer.err
    assert "schema 3" in answer.err
    assert "not compared: mood" in answer.err
