"""What a plan's summary says of the time that it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tritonsmith.cli.tasks import output
from tritonsmith.core import configs
from tritonsmith.core.envs import receipts, workspace
from tritonsmith.core.plan import MakeDir, Plan, stamped


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A phase that is done, and two that are not."""
    done = stamped((MakeDir(tmp_path / "a", phase="fetch"),), tmp_path / "stamp")
    for step in done:
        assert step.stamp
        step.stamp.path.write_text(step.stamp.key, encoding="utf-8")
    todo = (MakeDir(tmp_path / "b", phase="configure"), MakeDir(tmp_path / "c", phase="build"))
    return Plan("make it", (*done, *todo))


def kept(folder: Path, **seconds: float) -> Path:
    """A receipt of a run that took so long."""
    path = folder / "receipt.json"
    path.write_text(receipts.render("setup-mlir", {"seconds": seconds}), encoding="utf-8")
    return path


def test_a_plan_says_how_long_its_open_phases_took_before(plan: Plan, tmp_path: Path) -> None:
    receipt = kept(tmp_path, fetch=90.0, build=183.0, elsewhere=5.0)
    (line,) = output.time_of(plan, receipt, 590)
    assert line.startswith("time of the last run (20")
    assert line.endswith("): build 3 min 03 s")


def test_a_first_run_says_what_was_measured_elsewhere_if_anything_was(plan: Plan, tmp_path: Path) -> None:
    nowhere = tmp_path / "none.json"
    assert output.time_of(plan, nowhere, 590) == [
        "time: 9 min 50 s of CPU time for all of it, measured on another machine"
    ]
    assert output.time_of(plan, nowhere) == []
    assert output.time_of(Plan("nothing to do"), nowhere, 590) == []


@pytest.mark.parametrize("seconds", [{"build": 0.3}, {"build": "long"}, {"elsewhere": 100.0}, {}])
def test_a_receipt_that_does_not_tell_is_no_reason_to_guess(
    plan: Plan, tmp_path: Path, seconds: dict[str, float]
) -> None:
    assert output.time_of(plan, kept(tmp_path, **seconds), 590) == []


def test_the_figures_name_builds_that_there_are() -> None:
    table = configs.load("resources")["cpu-seconds"]
    assert table["triton-build"]["Debug"] < table["llvm-closure"]["Debug"]


def test_up_says_it(smith: Smith) -> None:
    script = smith("up", "--dry-run").out
    assert "time of the last run" not in script
    assert "\n# compile vector-add\n" in script
    path = workspace.default().env("wheel").receipt("up")
    path.parent.mkdir(parents=True)
    path.write_text(receipts.render("up", {"seconds": {"compile vector-add": 12.0}}), encoding="utf-8")
    assert "): compile vector-add 12.0 s\n" in smith("up", "--dry-run").out
