from __future__ import annotations

import json

import pytest

from tritonsmith.doctor import finding, report
from tritonsmith.doctor.finding import Finding, Status

ALL = (
    Finding("tools.cmake", "ok", "3.31"),
    Finding("tools.ccache", "note", "not installed", "slow", ("install it",)),
    Finding("machine.memory", "warning", "2 GiB", "killed", ("add swap", "or [x]")),
    Finding("builds.llvm", "error", "gone", "no build", ("run it",)),
    Finding("builds.triton", "crashed", "KeyError: 'x'"),
)


def test_the_documented_json() -> None:
    answer = json.loads(json.dumps(finding.as_json(ALL)))
    assert answer["schema"] == 1
    assert answer["findings"][2] == {
        "id": "machine.memory",
        "status": "warning",
        "seen": "2 GiB",
        "affects": "killed",
        "remedy": ["add swap", "or [x]"],
    }
    assert [row["status"] for row in answer["findings"]] == ["ok", "note", "warning", "error", "crashed"]


@pytest.mark.parametrize("count", range(6))
def test_the_worst(count: int) -> None:
    order: tuple[Status, ...] = ("ok", "ok", "note", "warning", "error", "crashed")
    assert finding.worst(tuple(reversed(ALL[:count]))) == order[count]


def test_groups() -> None:
    assert [one.group for one in ALL] == ["tools", "tools", "machine", "builds", "builds"]


def test_the_summary_counts_all_and_lists_what_is_wrong() -> None:
    assert report.summary(ALL).splitlines() == [
        "doctor: 1 ok, 1 note, 1 warning, 1 error, 1 crashed",
        "  warning: machine.memory: 2 GiB. add swap; or [x]",
        "  error: builds.llvm: gone. run it",
        "  crashed: builds.triton: KeyError: 'x'. ",
    ]


def test_the_table_has_a_row_for_each() -> None:
    assert report.table(ALL).row_count == len(ALL)
