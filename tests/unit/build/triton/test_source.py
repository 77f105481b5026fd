"""Which Triton is meant: a flag, the env file, the checkout around the current folder, or a clone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.build import made
from tests.unit.facts import fakes
from tritonsmith.build.triton import source
from tritonsmith.build.triton.source import TritonSource, locate, request_for, request_for_revision
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.settings import LlvmSettings, Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import GitFetch, Run
from tritonsmith.facts import checkout, llvm_tree
from tritonsmith.facts.checkout import LlvmPin
from tritonsmith.facts.llvm_tree import LlvmTree

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
    assert request.pin.commit == checkout.triton_release("3.5").llvm
    assert request.features == checkout.features_of("3.5")
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


OLD = "1" * 40
RECEIPT = {"pin": OLD, "commit": OLD}


def never() -> list[Path]:
    raise AssertionError("nobody needs to look")


def whole(prefix: Path, commit: str) -> Path:
    files = ("bin/mlir-tblgen", "lib/cmake/mlir/MLIRConfig.cmake", "lib/libLLVMSupport.a", "lib/libMLIRIR.a")
    header = "include/llvm/Support/VCSRevision.h"
    fakes.llvm(prefix, files=(*files, header))
    (prefix / header).write_text(f'#define LLVM_REVISION "{commit}"\n')
    return prefix


def old() -> LlvmTree:
    return made.llvm(Path("/llvm/old"), OLD)


@pytest.mark.parametrize(
    ("pin", "commit", "receipt"),
    [
        (OLD, OLD, RECEIPT),  # nothing moved
        (made.PIN, made.PIN, RECEIPT),  # it is at the new pin: rebuilt at the same path
        (made.PIN, "", {"pin": OLD, "commit": ""}),  # a distribution's, taken knowingly
        (made.PIN, made.OTHER, {"pin": OLD, "commit": made.OTHER}),  # with --any-commit
        (None, OLD, RECEIPT),
    ],
)
def test_the_llvm_of_setup_mlir_stays(pin: str | None, commit: str, receipt: dict[str, str]) -> None:
    tree = made.llvm(commit=commit)
    assert source.right_llvm(tree, made.request(pin), receipt, never, "dev") is tree


def test_another_at_the_new_pin_is_taken(tmp_path: Path) -> None:
    unusable = [tmp_path / "gone", whole(tmp_path / "other", made.OTHER), fakes.llvm(tmp_path / "half")]
    right = whole(tmp_path / "right", made.PIN)
    taken = source.right_llvm(old(), made.request(), RECEIPT, lambda: [*unusable, right], "dev")
    assert (taken.prefix, taken.commit) == (right, made.PIN)


def test_without_one_it_says_what_to_run() -> None:
    with pytest.raises(FactError, match=f"pin changed from {OLD[:12]} to {made.PIN[:12]}") as caught:
        source.right_llvm(old(), made.request(), RECEIPT, list, "dev")
    assert caught.value.hints[0].startswith("run `invoke setup-mlir --env dev`")
    assert caught.value.hints[1].endswith("--llvm-dir /llvm/old")


def test_what_is_told() -> None:
    last = {"pin": OLD, "llvm": "/llvm/old"}
    assert list(source.pin_notes(None, made.request(), old())) == []
    assert list(source.pin_notes({"pin": made.PIN, "llvm": "/llvm/old"}, made.request(), old())) == []
    new = made.llvm(Path("/llvm/new"), made.PIN)
    assert list(source.pin_notes(last, made.request(), new)) == [
        f"the checkout's LLVM pin changed from {OLD[:12]} to {made.request().describe_pin()}",
        "the LLVM changed: /llvm/old -> /llvm/new",
    ]


@pytest.mark.parametrize(
    ("receipt", "told"),
    [
        ({"kind": "prebuilt", "pin": made.PIN, "pin_build": 1}, True),
        ({"kind": "prebuilt", "pin": made.PIN, "pin_build": 2}, False),
        ({"kind": "prebuilt", "pin": made.PIN}, False),  # before numbers were kept
        ({"kind": "built", "pin": made.PIN, "pin_build": 1}, False),
        ({"kind": "prebuilt", "pin": OLD, "pin_build": 1}, False),  # another commit is told as such
        (None, False),
    ],
)
def test_an_archive_that_was_built_again(receipt: dict[str, object] | None, told: bool) -> None:
    """`62b7cf96` has build 1, and build 2 since 2104a207c0: the same hash is not the same archive."""
    pin = LlvmPin(made.PIN, "cmake/llvm-info.json", build=2)
    request = replace(made.request(), pin=pin)
    said = list(source.newer_archive(receipt, request, "dev"))
    assert bool(said) is told
    assert all("names build 2, here is build 1" in words for words in said)


def test_an_llvm_in_words_tells_it_from_another_at_the_same_path(tmp_path: Path) -> None:
    def words() -> str:
        return llvm_tree.read(tmp_path).in_words

    fakes.llvm(tmp_path)
    first = words()
    assert first.startswith("19.1.7, commit unknown, RelWithDebInfo, assertions OFF, RTTI ON, ")
    assert words() == first
    checks = tmp_path / "include/llvm/Config/abi-breaking.h"
    checks.parent.mkdir(parents=True)
    checks.write_text("#define LLVM_ENABLE_ABI_BREAKING_CHECKS 1\n")
    second = words()
    config = tmp_path / "lib/cmake/llvm/LLVMConfig.cmake"
    config.write_text(config.read_text() + "set(LLVM_ENABLE_DUMP ON)\n")
    assert len({first, second, words()}) == 3
