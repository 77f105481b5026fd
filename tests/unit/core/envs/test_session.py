from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support import all_gone
from tritonsmith.core.envs import receipts, workspace
from tritonsmith.core.errors import LockedError, SmithError
from tritonsmith.core.plan import MakeDir, Plan, files


def test_a_session_claims_locks_runs_and_leaves_a_receipt(tmp_path: Path) -> None:
    space = workspace.default()
    with receipts.open_session("build-triton", "dev") as running:
        assert files.is_marked(space.root)
        with (
            pytest.raises(LockedError, match="runs `build-triton --env dev`"),
            receipts.open_session("up", "dev"),
        ):
            pytest.fail("two sessions in one environment")
        with receipts.open_session("up", "other") as second:
            assert second.env.path != running.env.path
        for name in ("one", "two"):
            running.run(Plan(name, (MakeDir(tmp_path / name, phase="make"),)))
        running.leave_receipt({"commit": "abc"}, tmp_path / "one" / "copy.json")
    receipt = receipts.read(space.env("dev").receipt("build-triton"))
    assert receipt is not None
    assert receipt == receipts.read(tmp_path / "one" / "copy.json")
    assert (receipt["commit"], receipt["log"], list(receipt["seconds"])) == (
        "abc",
        str(running.log),
        ["make"],
    )
    text = running.log.read_text()
    assert text.index("# one") < text.index("# two") < text.index("# receipt")
    with receipts.open_session("up", "dev"):
        pass


@pytest.mark.parametrize("obstacle", ["envs", "envs/dev", "envs/dev/lock"])
def test_a_workspace_that_cannot_be_written(obstacle: str) -> None:
    space = workspace.default()
    space.claim()
    path = space.root / obstacle
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if path.name == "lock" else path.touch()
    with pytest.raises(SmithError, match="cannot write") as caught, receipts.open_session("up", "dev"):
        pytest.fail("it could")
    assert caught.value.why
    assert caught.value.exit_code == 1


def test_a_foreign_workspace_is_left_alone() -> None:
    root = workspace.default().root
    root.mkdir()
    (root / "theirs").touch()
    with pytest.raises(SmithError, match="refusing to use a folder"), receipts.open_session("up", "dev"):
        pytest.fail("it took it over")
    assert [path.name for path in root.iterdir()] == ["theirs"]


HANG = """
import sys
from pathlib import Path
from tritonsmith.core.envs import receipts, workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import Plan, Run, stopping
from tritonsmith.core.ui.progress import PhaseProgress

class Telling(PhaseProgress):
    def update(self, done, total, current=""):
        Path("pid").write_text(current)

workspace.PhaseProgress = Telling
try:
    with stopping.stoppable(), receipts.open_session("up", "dev") as running:
        script = "sleep 600 & echo $!; wait"
        running.run(Plan("x", (Run(("/bin/sh", "-c", script), cwd=Path.cwd(), phase="p"),)))
except SmithError as error:
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_stopped_from_outside_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    logs = workspace.default().root / "logs"
    with subprocess.Popen((sys.executable, "-c", HANG), cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        pid = tmp_path / "pid"
        while not (pid.exists() and pid.read_text()):
            assert process.poll() is None
            time.sleep(0.01)
        sleep = psutil.Process(int(pid.read_text()))
        children = [sleep, *sleep.parents()[:1]]
        process.send_signal(number)
        assert process.wait(timeout=30) == 130
    assert all_gone(children)
    assert "interrupted" in next(logs.iterdir()).read_text()
    assert not (workspace.default().env("dev").path / "lock.holder").exists()


def test_what_environments_share_is_made_by_one_at_a_time() -> None:
    with (
        receipts.open_session("setup-mlir", "one", shared=True),
        receipts.open_session("build-triton", "two"),
        pytest.raises(LockedError, match="another run is busy") as caught,
        receipts.open_session("setup-mlir", "three", shared=True),
    ):
        pytest.fail("two runs at once in what environments share")
    assert "setup-mlir --env one" in str(caught.value)
    with receipts.open_session("setup-mlir", "three", shared=True):
        pass
