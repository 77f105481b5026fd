"""Which Triton is meant: a flag, the env file, the checkout around the current folder, or a clone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build.triton.source import TritonSource, locate, request_for, request_for_revision
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.schema import LlvmSettings, Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import GitFetch, Run
from tritonsmith.facts import eras

URL = "https://github.com/triton-lang/triton"
FORK = "git@github.com:somebody/triton.git"


@pytest.fixture
def around(tmp_path: Path) -> Path:
    """A folder deep inside a checkout."""
    root = tmp_path / "around"
    for name in ("include/triton", "third_party/nvidia", "lib/Analysis"):
        (root / name).mkdir(parents=True)
    return root / "lib" / "Analysis"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder in no checkout."""
    (tmp_path / "outside").mkdir()
    return tmp_path / "outside"


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """An empty workspace."""
    return Workspace(tmp_path / "workspace")


def chosen(*, flag: str = "", env: str = "", revision: str = "main") -> Settings:
    layers: list[settings.Layer] = [("envs/dev.toml", {"triton.revision": revision})]
    if env:
        layers.append(("envs/dev.toml", {"triton.source": env}))
    if flag:
        layers.append(("command line", {"triton.source": flag}))
    return settings.resolve("dev", layers)


def where(found: TritonSource) -> Path:
    assert found.fetch.steps == ()
    return found.root


def test_a_flag_comes_first(around: Path, space: Workspace) -> None:
    assert where(locate(chosen(flag="/srv/a", env="/srv/b"), space, around)) == Path("/srv/a")


def test_then_a_path_in_the_env_file(around: Path, space: Workspace) -> None:
    assert where(locate(chosen(env="/srv/b"), space, around)) == Path("/srv/b")


def test_then_the_checkout_around_the_current_folder(around: Path, space: Workspace) -> None:
    root = around.parents[1]
    assert where(locate(chosen(), space, around)) == root
    assert where(locate(chosen(env=URL), space, around)) == root  # a URL in the env file is for who has none
    assert where(locate(chosen(env=FORK), space, root)) == root


def test_then_a_clone(outside: Path, space: Workspace) -> None:
    found = locate(chosen(env=URL, revision="release/3.5.x"), space, outside)
    assert found.root == space.sources / "triton-dev"
    _, fetch, checkout = found.fetch.steps
    assert isinstance(fetch, GitFetch)
    assert (fetch.repository, fetch.urls, fetch.commit) == (found.root, (URL,), "release/3.5.x")
    assert not fetch.blobless
    assert isinstance(checkout, Run)
    assert checkout.argv[-2:] == ("--detach", "FETCH_HEAD")


@pytest.mark.parametrize("url", [URL, FORK])
def test_a_url_on_the_command_line_is_cloned_even_from_inside_a_checkout(
    around: Path, space: Workspace, url: str
) -> None:
    found = locate(chosen(flag=url), space, around)
    assert found.root == space.sources / "triton-dev"
    assert any(isinstance(step, GitFetch) and step.urls == (url,) for step in found.fetch.steps)


def test_a_clone_that_is_there_is_not_moved(outside: Path, space: Workspace) -> None:
    (space.sources / "triton-dev").mkdir(parents=True)
    (space.sources / ".triton-dev.done").touch()
    assert where(locate(chosen(env=URL, revision="v3.5.0"), space, outside)) == space.sources / "triton-dev"


def test_a_clone_that_was_interrupted_is_gone_on_with(outside: Path, space: Workspace) -> None:
    """`git init` has run, and the fetch failed."""
    (space.sources / "triton-dev" / ".git").mkdir(parents=True)
    steps = locate(chosen(env=URL), space, outside).fetch.steps
    assert [step.stamp.path if step.stamp else None for step in steps] == [
        space.sources / ".triton-dev.done"
    ] * 3


def test_paths_may_be_relative_or_below_home(
    around: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(around)
    monkeypatch.setenv("HOME", "/home/dev")
    assert where(locate(chosen(flag="~/triton"), space, around)) == Path("/home/dev/triton")
    assert where(locate(chosen(flag="../../other"), space, around)).resolve() == (around.parents[1] / "other")


def test_what_a_checkout_wants_of_an_llvm() -> None:
    checkout = made.checkout("3.7")
    request = request_for(made.settings(LlvmSettings(build_type="Debug")), checkout)
    assert (request.pin, request.features) == (checkout.pin, checkout.features)
    assert (request.version, request.settings.build_type) == ("3.7.0", "Debug")


@pytest.mark.parametrize("revision", ["3.5", "v3.5.1", "release/3.5.x", "3.5.0"])
def test_a_release_tells_its_pin_without_sources(revision: str) -> None:
    request = request_for_revision(chosen(revision=revision))
    assert request is not None
    assert request.pin is not None
    assert request.pin.commit == eras.release("3.5").llvm
    assert request.features == eras.features("3.5")
    assert request.projects == ("mlir", "lld")


@pytest.mark.parametrize("revision", ["main", "63068fcc27", "release/3.5.x-mine", ""])
def test_other_revisions_do_not(revision: str) -> None:
    assert request_for_revision(chosen(revision=revision)) is None


def test_the_newest_line_has_no_pin_yet() -> None:
    request = request_for_revision(chosen(revision="3.9"))
    assert request is not None
    assert request.pin is None
    assert request.describe_pin() == "unknown"


def test_a_release_before_all_others_is_an_error() -> None:
    with pytest.raises(UsageError, match="unknown Triton release line"):
        request_for_revision(chosen(revision="1.1"))


def test_an_env_without_sources_outside_of_any_checkout(outside: Path, space: Workspace) -> None:
    with pytest.raises(FactError, match="has no Triton source") as caught:
        locate(chosen(), space, outside)
    assert any("--source" in hint for hint in caught.value.hints)
