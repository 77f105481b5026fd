"""What bisects keep: found, cleared, and never under a bisect that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import LockedError
from tritonsmith.core.plan import locks
from tritonsmith.lab.bisect import session
from tritonsmith.lab.bisect.session import BisectQuestion

pytestmark = pytest.mark.unit

OURS = {
    "bisects/3.6.0-3.9.0-0123abcd": "bisect",
    "bisect/libraries/0123": "libraries",
    "envs/bisect-0123abcd-89abcdef": "builds",
    "envs/bisect-0123abcd-unpinned": "builds",
    "envs/bisect-pytest": "builds",
    "sources/bisect-0123abcd": "clone",
}
THEIRS = ("envs/bisect-mine", "envs/triton-3.6.0", "envs/dev", "sources/triton", "sources/bisect-mine")


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    made = Workspace(tmp_path / "home")
    made.claim()
    for name in (*OURS, *THEIRS):
        file = made.root / name / "in" / "it"
        file.parent.mkdir(parents=True)
        file.write_text("12345")
    return made


def test_what_bisects_made_is_cleared_and_nothing_else(space: Workspace) -> None:
    found = session.kept(space)
    assert {str(one.folder.relative_to(space.root)): one.kind for one in found} == OURS
    assert {one.bytes for one in found} == {5}
    with session.all_held(found, space, "clear-cache"):
        space.run(session.removal(found, space), "clear-cache")
    assert session.kept(space) == ()
    assert all((space.root / name / "in" / "it").is_file() for name in THEIRS)


def test_a_bisect_that_runs_keeps_everything(space: Workspace) -> None:
    running = session.begin(BisectQuestion(good="3.6.0", bad="3.9.0"))
    with running.held():
        everything = session.all_held(session.kept(space), space, "clear-cache")
        with pytest.raises(LockedError), everything:
            raise AssertionError("held")
    building = locks.hold(space.sources / "bisect-0123abcd.lock", purpose="bisect")
    with building, pytest.raises(LockedError), session.all_held(session.kept(space), space, "clear-cache"):
        raise AssertionError("held")
