from __future__ import annotations

import json
from pathlib import Path

import pytest

from tritonsmith.core.plan import Move
from tritonsmith.doctor import finding
from tritonsmith.doctor.finding import Finding, Status, ok, skipped

STEP = Move(Path("/a"), Path("/b"), phase="p")
ALL = (
    Finding("not applicable", "nothing to look at", check="builds.cmake-paths"),
    Finding("ok", "3.31", "/usr/bin/cmake", check="tools.cmake"),
    Finding("note", "not installed", affects="slow", remedy="install it", check="tools.ccache"),
    Finding("warning", "2 GiB", affects="killed", remedy="or [x]", check="machine.memory"),
    Finding(
        "error",
        "a link to nowhere",
        "/src",
        "no build",
        "link it",
        ("do this", "then that"),
        (STEP,),
        "builds.llvm",
    ),
    Finding("crashed", "KeyError: 'x'", check="builds.triton"),
)


def test_the_documented_json() -> None:
    answer = json.loads(json.dumps(finding.as_json(ALL)))
    assert list(answer) == ["schema", "worst", "findings"]
    assert (answer["schema"], answer["worst"]) == (2, "crashed")
    assert answer["findings"][4] == {
        "id": "builds.llvm",
        "group": "builds",
        "status": "error",
        "seen": "a link to nowhere",
        "where": "/src",
        "affects": "no build",
        "remedy": "link it",
        "commands": ["do this", "then that"],
        "docs": "invoke doctor --explain builds.llvm",
        "fixable": True,
    }
    assert [row["status"] for row in answer["findings"]] == [one.status for one in ALL]
    assert {tuple(row) for row in answer["findings"]} == {tuple(answer["findings"][0])}
    assert [row["fixable"] for row in answer["findings"]].count(True) == 1


def test_the_json_of_nothing() -> None:
    assert finding.as_json(()) == {"schema": 2, "worst": "ok", "findings": []}


@pytest.mark.parametrize("count", range(7))
def test_the_worst(count: int) -> None:
    order: tuple[Status, ...] = ("ok", "not applicable", "ok", "note", "warning", "error", "crashed")
    assert finding.worst(tuple(reversed(ALL[:count]))) == order[count]


def test_groups_and_what_is_wrong() -> None:
    assert [one.group for one in ALL] == ["builds", "tools", "tools", "machine", "builds", "builds"]
    assert [one.name for one in ALL[:2]] == ["cmake-paths", "cmake"]
    assert [one.wrong for one in ALL] == [False, False, False, True, True, True]


def test_the_two_short_forms() -> None:
    assert ok("fine", Path("/x")) == Finding("ok", "fine", "/x")
    assert ok("fine").where == ""
    assert skipped("nothing") == Finding("not applicable", "nothing")
