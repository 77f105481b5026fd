"""The folder of a triage: what an earlier one left is removed, what is somebody else's is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.cli.tasks.triage import emptied
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import UsageError


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "home")
    for name in ("triage/k", "passes/knockout/program", "envs/dev"):
        (made.root / name).mkdir(parents=True)
        (made.root / name / "file").touch()
    return made


@pytest.mark.parametrize("name", ["triage/k", "passes/knockout/program"])
def test_what_an_earlier_run_left_is_removed(space: Workspace, name: str) -> None:
    assert name in emptied(space.root / name, space).shell()


@pytest.mark.parametrize(
    "name",
    ["envs", "envs/dev", "triage", "passes/knockout", "triage/../envs", "triage/k/../../envs"],
)
def test_other_folders_of_the_workspace_are_not(space: Workspace, name: str) -> None:
    with pytest.raises(UsageError, match="the folder of --out is not empty"):
        emptied(space.root / name, space)


def test_a_link_to_another_folder_is_not_followed(space: Workspace) -> None:
    (space.root / "triage" / "link").symlink_to(space.root / "envs")
    with pytest.raises(UsageError, match="the folder of --out is not empty"):
        emptied(space.root / "triage" / "link", space)


def test_an_empty_folder_elsewhere_is_taken_as_it_is(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert emptied(tmp_path / "out", space).steps == ()
    assert emptied(tmp_path / "not there", space).steps == ()
