from __future__ import annotations

import os
from pathlib import Path

import pytest

from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import OwnershipError, SmithError
from tritonsmith.core.plan import files


@pytest.mark.parametrize(
    ("value", "expected"),
    [("/a/b", "/a/b"), ("~/smith", "HOME/smith"), ("sub/smith", "CWD/sub/smith")],
)
def test_the_variable_names_it(
    value: str, expected: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRITONSMITH_HOME", value)
    wanted = expected.replace("HOME", str(home)).replace("CWD", str(tmp_path))
    assert workspace.default().root == Path(wanted)


@pytest.mark.parametrize("value", ["", None])
def test_without_it_the_platforms_folder_is_taken(
    value: str | None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITONSMITH_HOME")
    if value is not None:
        monkeypatch.setenv("TRITONSMITH_HOME", value)
    root = workspace.default().root
    assert root.name == "tritonsmith"
    assert root.is_relative_to(home)


def test_claim_marks_it(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "new" / "space")
    space.claim()
    space.claim()
    assert files.is_marked(space.root)


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(OwnershipError, match="refusing to use a folder") as caught:
        Workspace(tmp_path).claim()
    assert caught.value.where == str(tmp_path)
    assert "TRITONSMITH_HOME" in caught.value.hints[0]
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("where", ["file", "file/sub", "/proc/tritonsmith"])
def test_a_place_that_cannot_be_written(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(SmithError, match="cannot write to the workspace") as caught:
        Workspace(tmp_path / where).claim()
    assert caught.value.why
    assert (tmp_path / "file").read_text() == "precious"


def test_everything_lies_below_the_root(tmp_path: Path) -> None:
    space = Workspace(tmp_path)
    env = space.env("dev")
    paths = [
        space.downloads,
        space.toolchain,
        space.sources,
        space.llvm,
        space.log("up"),
        env.path,
        env.venv,
        env.python,
        env.build,
        env.probe,
        space.triton_home("a66376b0" * 5),
        space.triton_home(""),
        env.lock,
        env.receipt("up"),
    ]
    assert len(set(paths)) == len(paths)
    assert all(path.is_relative_to(tmp_path) for path in paths)
    assert env.name == "dev"
    assert env.root == tmp_path


def test_a_log_is_named_after_its_task_and_process(tmp_path: Path) -> None:
    log = Workspace(tmp_path).log("build-triton")
    assert log.parent == tmp_path / "logs"
    assert log.name.endswith(f"-build-triton-{os.getpid()}.log")


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A uid that no passwd entry knows, as in many containers."""
    for name in ("HOME", "TRITONSMITH_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 987654)
    with pytest.raises(SmithError, match="no home folder") as caught:
        workspace.default()
    assert caught.value.hints == ("export TRITONSMITH_HOME=/path/to/a/folder",)
