"""`up --like REPORT`, in this process: its dry run, and the names that it refuses."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.tasks.conftest import Smith
from tritonsmith.core.envs import settings, workspace


def test_the_dry_run_shows_the_environment_and_what_cannot_be_had(smith: Smith, tmp_path: Path) -> None:
    path = tmp_path / "theirs.json"
    setup = {"triton": "3.4.0", "torch": "2.8.0+cpu", "driver": "570.124.06"}
    path.write_text(json.dumps({"schema": 2, "findings": [], "setup": setup}))
    answer = smith("up", "--like", str(path), "--dry-run")
    assert answer.code == 0
    assert "# note: NVIDIA driver: 570.124.06 there, none here" in answer.out
    assert "triton==3.4.0" in answer.out
    assert "torch==2.8.0+cpu" in answer.out
    assert not workspace.default().root.exists()
    refused = smith("up", "--like", str(path), "--env", "wheel", "--dry-run")
    assert (refused.code, "'wheel' exists already" in refused.err) == (2, True)
    assert smith("up", "--like", str(path), "--env", "../x", "--dry-run").code == 2
    text = answer.out.partition("like-theirs.toml <<'EOF'\n")[2].partition("EOF\n")[0]
    file = workspace.default().like / "like-theirs.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert settings.load("like-theirs").triton.wheel == "3.4.0"
