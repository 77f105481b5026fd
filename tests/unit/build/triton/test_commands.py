"""The use cases behind the build tasks: what they read of an environment, and what they leave in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.build import made
from tritonsmith.build.compile_commands import COMPILE_COMMANDS
from tritonsmith.build.llvm import setup_mlir
from tritonsmith.build.preflight import PreparedBuild
from tritonsmith.build.triton import commands
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.build.triton.source import TritonSource, request_for
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs.receipts import Session
from tritonsmith.core.envs.settings import LlvmSettings, Settings, TritonSettings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, PreflightError, StepError, UsageError
from tritonsmith.core.plan import Plan, Run, Step
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress

THERE = Plan("Triton's sources are present")


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """A workspace of the tool's own."""
    space = Workspace(tmp_path / "workspace")
    space.claim()
    return space


@pytest.fixture
def env(space: Workspace) -> EnvDir:
    """The environment `dev`."""
    return space.env("dev")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As little as makes a checkout."""
    root = tmp_path / "triton"
    files = {
        "setup.py": 'TRITON_VERSION = "3.5.0"\n',
        "CMakeLists.txt": "project(triton)\n",
        "cmake/llvm-hash.txt": f"{made.PIN}\n",
    }
    for folder in ("include/triton", "third_party", "cmake"):
        (root / folder).mkdir(parents=True)
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    return root


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def leave_receipt(env: EnvDir, prefix: Path) -> None:
    path = env.receipt("setup-mlir")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(receipts.render("setup-mlir", {"prefix": str(prefix)}), encoding="utf-8")


def test_tritons_database_comes_before_that_of_the_llvm_in_the_receipt(
    space: Workspace, env: EnvDir, checkout: Path, tmp_path: Path
) -> None:
    leave_receipt(env, tmp_path / "llvm")
    mine, llvms = write(env.build / COMPILE_COMMANDS, []), write(tmp_path / "llvm" / COMPILE_COMMANDS, [])
    prepared = commands.link_compile_commands(made.settings(), space, TritonSource(checkout, THERE))
    merge = prepared.plan.steps[0]
    assert isinstance(merge, Run)
    assert merge.argv[-2:] == (str(mine), str(llvms))
    assert prepared.receipt["was"] == "absent"


def test_an_installed_llvm_has_no_database(
    space: Workspace, env: EnvDir, checkout: Path, tmp_path: Path
) -> None:
    leave_receipt(env, tmp_path / "llvm")
    mine = write(env.build / COMPILE_COMMANDS, [])
    prepared = commands.link_compile_commands(made.settings(), space, TritonSource(checkout, THERE))
    assert prepared.receipt["databases"] == (mine,)


def test_nothing_to_link_before_the_first_build(space: Workspace, checkout: Path) -> None:
    with pytest.raises(FactError, match="compile_commands\\.json does not exist"):
        commands.link_compile_commands(made.settings(), space, TritonSource(checkout, THERE))


def test_no_llvm_yet(space: Workspace, checkout: Path) -> None:
    with pytest.raises(FactError, match="has no LLVM yet") as caught:
        commands.gather(made.settings(), space, TritonSource(checkout, THERE))
    assert "invoke setup-mlir --env dev" in str(caught.value)


def test_an_llvm_that_is_gone(space: Workspace, env: EnvDir, checkout: Path, tmp_path: Path) -> None:
    leave_receipt(env, tmp_path / "llvm")
    with pytest.raises(FactError, match="no longer exists") as caught:
        commands.gather(made.settings(), space, TritonSource(checkout, THERE))
    assert caught.value.where == str(tmp_path / "llvm")


def test_a_named_llvm_that_is_none(space: Workspace, checkout: Path, tmp_path: Path) -> None:
    named = made.settings(LlvmSettings(dir=str(tmp_path)))
    with pytest.raises(FactError, match="no LLVM to build against"):
        commands.gather(named, space, TritonSource(checkout, THERE))


def test_a_pin_needs_sources_or_a_release(space: Workspace, tmp_path: Path) -> None:
    fetch = Plan("fetch", (Run(("git",), cwd=tmp_path, phase="sources"),))
    with pytest.raises(FactError, match="cannot determine the LLVM pin of Triton 'main'") as caught:
        setup_mlir.prepare(made.settings(), space, TritonSource(tmp_path / "absent", fetch))
    assert "--source PATH" in str(caught.value)


def gathered(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> TritonSource:
    """Put facts made by hand in the place of those of this machine."""
    request = request_for(inputs.settings, inputs.checkout)
    monkeypatch.setattr(commands, "gather", lambda *_, **__: (inputs, request))
    return TritonSource(inputs.checkout.root, THERE)


def prepared_from(inputs: Inputs, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> PreparedBuild:
    return commands.prepare_build(inputs.settings, space, gathered(inputs, monkeypatch), force=True)


def test_the_receipt_of_a_build(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = made.inputs("3.5")
    prepared = prepared_from(inputs, space, monkeypatch)
    assert prepared.receipt["commit"] == inputs.checkout.commit
    assert prepared.receipt["pin"] == "064f02dac0c81c19350a74415b3245f42fed09dc"
    assert prepared.receipt["llvm"] == inputs.llvm.prefix
    assert prepared.beside == inputs.env.build
    assert json.loads(receipts.render("build-triton", prepared.receipt))["source"] == "/home/dev/triton"


@pytest.mark.parametrize(
    ("commit", "words"),
    [
        ("", "19.1.7 in /usr/lib/llvm-19, commit not recorded"),
        (made.OTHER, f"19.1.7 in /usr/lib/llvm-19, commit {made.OTHER}"),
        ("064f02dac0c81c19350a74415b3245f42fed09dc", ""),
    ],
)
def test_an_llvm_that_is_not_the_pin_is_put_into_words(
    space: Workspace, monkeypatch: pytest.MonkeyPatch, commit: str, words: str
) -> None:
    prepared = prepared_from(made.inputs("3.5", tree=made.llvm(commit=commit)), space, monkeypatch)
    assert prepared.llvm_in_words == words
    assert prepared.pin_in_words == "064f02dac0c81c19350a74415b3245f42fed09dc (cmake/llvm-hash.txt)"


def test_a_build_that_would_fail_is_not_started(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = made.inputs("3.5", compilers=made.compilers(cxx=None))
    located = gathered(inputs, monkeypatch)
    with pytest.raises(PreflightError, match="nothing was started"):
        commands.prepare_build(inputs.settings, space, located)


def test_setup_py_is_kept_from_a_folder_of_the_users(
    space: Workspace, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / COMPILE_COMMANDS).mkdir()
    inputs = made.inputs("3.5", checkout=made.checkout("3.5", checkout))
    located = gathered(inputs, monkeypatch)
    with pytest.raises(PreflightError, match="nothing was started") as caught:
        commands.prepare_install(inputs.settings, space, located, Plan("proof"))
    assert "[compile-commands] setup.py would delete the folder" in str(caught.value)


@pytest.mark.parametrize(
    ("version", "triton", "proven"),
    [
        ("2.2", {}, False),
        ("3.1", {}, True),
        ("main", {}, True),
        ("3.1", {"backends": ("amd",)}, False),
        ("main", {"backends": ("amd",)}, True),
        ("main", {"backends": ()}, False),
        ("main", {"sanitizer": "address"}, False),
    ],
)
def test_an_install_ends_with_its_proof_where_there_is_one(
    space: Workspace, monkeypatch: pytest.MonkeyPatch, version: str, triton: dict[str, Any], proven: bool
) -> None:
    inputs = made.inputs(version, chosen=made.settings(**triton))
    located = gathered(inputs, monkeypatch)
    proof = Plan("proof", (Run(("true",), cwd=space.root, phase="proof"),))
    prepared = commands.prepare_install(inputs.settings, space, located, proof, force=True)
    assert (prepared.plan.steps[-1] == proof.steps[0]) is proven


def run(prepared: PreparedBuild) -> Session:
    with receipts.open_session("build-triton", "dev") as running:
        commands.execute(prepared, running)
    return running


@pytest.fixture
def opened(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The workspace that a session opens."""
    monkeypatch.setenv("TRITONSMITH_HOME", str(space.root))
    return space


def python(code: str, cwd: Path) -> Plan:
    return Plan("a plan", (Run((sys.executable, "-c", code), cwd=cwd, phase="build Triton"),))


@pytest.mark.usefixtures("opened")
def test_success_leaves_a_receipt_in_the_env_and_beside_the_build(tmp_path: Path) -> None:
    prepared = PreparedBuild(python("", tmp_path), (), {"commit": made.PIN}, beside=tmp_path)
    running = run(prepared)
    in_env = receipts.read(running.env.receipt("build-triton"))
    assert in_env is not None
    assert (in_env["commit"], in_env["task"]) == (made.PIN, "build-triton")
    assert in_env["seconds"].keys() == {"build Triton"}
    assert receipts.read(tmp_path / commands.RECEIPT_BESIDE) == in_env


def test_failure_leaves_none_and_is_explained(opened: Workspace, tmp_path: Path) -> None:
    code = "print('a.cpp:3:1: error: no member named x in y'); raise SystemExit(4)"
    prepared = PreparedBuild(
        python(code, tmp_path),
        (),
        {"commit": made.PIN},
        beside=tmp_path,
        llvm_in_words="19.1.7 in /usr/lib/llvm-19, commit not recorded",
        pin_in_words=made.PIN,
    )
    with pytest.raises(StepError, match=r"build Triton failed \(exit code 4\)") as caught:
        run(prepared)
    assert caught.value.where == "a.cpp:3"
    assert "[llvm-near-pin]" in str(caught.value)
    assert not opened.env("dev").receipt("build-triton").exists()
    assert not (tmp_path / commands.RECEIPT_BESIDE).exists()


def test_sources_are_fetched_unless_a_pin_will_do(opened: Workspace, tmp_path: Path) -> None:
    mark = tmp_path / "fetched"
    located = TritonSource(tmp_path / "triton", python(f"open({str(mark)!r}, 'w').close()", tmp_path))
    release = Settings("dev", triton=TritonSettings(revision="3.5"))
    commands.bring_sources(release, located, pin_will_do=True)
    assert not mark.exists()
    commands.bring_sources(release, located)
    assert mark.exists()
    mark.unlink()
    commands.bring_sources(made.settings(), located, pin_will_do=True)  # main tells no pin
    assert mark.exists()
    mark.unlink()
    commands.bring_sources(made.settings(), TritonSource(tmp_path, THERE))
    assert not mark.exists()
    assert opened.root.is_dir()


def test_an_install_takes_up_how_the_last_build_built(opened: Workspace) -> None:
    assert commands.last_build("dev") is None
    told = {"triton.build-type": "Debug", "triton.backends": ["nvidia"]}
    receipt = opened.env("dev").receipt("build-triton")
    receipt.parent.mkdir(parents=True)
    receipt.write_text(receipts.render("build-triton", {"settings": told}), encoding="utf-8")
    chosen = settings.load("dev", {"triton.backends": None}, commands.last_build("dev"))
    assert chosen.triton.build_type == "Debug"
    assert chosen.triton.backends == ("nvidia",)
    assert dict(chosen.origin)["triton.build-type"] == "the last build-triton"
    flagged = settings.load("dev", {"triton.build-type": "Release"}, commands.last_build("dev"))
    assert flagged.triton.build_type == "Release"


def test_an_install_is_a_build_too(opened: Workspace) -> None:
    """`install-triton --build-type Debug`, then again without: the folder holds Debug."""
    env = opened.env("dev")
    env.receipt("x").parent.mkdir(parents=True)
    for task, kind, when in (
        ("build-triton", "Release", "2026-01-01"),
        ("install-triton", "Debug", "2026-01-02"),
    ):
        content = json.loads(receipts.render(task, {"settings": {"triton.build-type": kind}}))
        env.receipt(task).write_text(json.dumps(content | {"finished": when}), encoding="utf-8")
    chosen = settings.load("dev", {}, commands.last_build("dev"))
    assert chosen.triton.build_type == "Debug"
    assert dict(chosen.origin)["triton.build-type"] == "the last install-triton"


def test_a_secret_of_the_last_build_is_in_the_env_file_or_lost(opened: Workspace, tmp_path: Path) -> None:
    """Without its other CMake arguments another Triton would be built, and nobody told."""
    file = tmp_path / "mine.toml"
    told = {"triton.build-type": "Debug", "triton.cmake-args": ["-DA=1", "-DB_TOKEN=canary"]}
    receipt = opened.env("mine").receipt("build-triton")
    receipt.parent.mkdir(parents=True)
    receipt.write_text(receipts.render("build-triton", {"settings": told}), encoding="utf-8")
    assert "canary" not in receipt.read_text()
    file.write_text('[triton]\ncmake-args = ["-DA=1", "-DB_TOKEN=canary"]\n')
    chosen = settings.load(str(file), {}, commands.last_build(str(file)))
    assert chosen.triton.cmake_args == ("-DA=1", "-DB_TOKEN=canary")
    assert chosen.triton.build_type == "Debug"
    file.write_text('[triton]\ncmake-args = ["-DA=1"]\n')
    with pytest.raises(UsageError, match="got a secret from a flag"):
        commands.last_build(str(file))


class StoppedSession:
    """A session whose plan ends in an error; what it notes is really written."""

    def __init__(self, space: Workspace, task: str, error: BaseException) -> None:
        self.task, self.env, self.log, self._error = task, space.env("dev"), space.log(task), error
        self.env.receipt("x").parent.mkdir(parents=True, exist_ok=True)

    def run(self, _: Plan) -> None:
        raise self._error

    def run_unseen(self, steps: tuple[Step, ...]) -> None:
        Runner(self.log, PhaseProgress(live=False, silent=True)).run(Plan("receipt", steps))


@pytest.mark.parametrize(
    "error", [StepError("the disk is full"), InterruptedRunError("interrupted"), KeyboardInterrupt()]
)
def test_an_install_goes_on_with_a_build_that_did_not_end_well(
    opened: Workspace, error: BaseException
) -> None:
    """Debug failed; without this, RelWithDebInfo would be configured over it and everything compiled anew."""
    opened.claim()
    content = {"settings": {"triton.build-type": "Debug"}}
    prepared = PreparedBuild(Plan("p"), (), content, checkout=made.checkout("3.4"))
    stopped = StoppedSession(opened, "build-triton", error)
    with pytest.raises(type(error)):
        commands.execute(prepared, stopped)  # type: ignore[arg-type]
    chosen = settings.load("dev", {}, commands.last_build("dev"))
    assert chosen.triton.build_type == "Debug"
    told = dict(chosen.origin)["triton.build-type"]
    assert told == "the last build-triton, which did not finish"
    attempt = receipts.unfinished(opened.env("dev"))
    assert attempt is not None
    assert attempt.interrupted is isinstance(error, InterruptedRunError)
    assert attempt.what == ("" if isinstance(error, KeyboardInterrupt) else str(error))
    stopped.run_unseen(receipts.ended_steps(opened.env("dev")))
    assert commands.last_build("dev") is None
    stopped.run_unseen(
        receipts.ended_steps(opened.env("dev"))
    )  # nothing is there any more, and nothing goes wrong


def test_a_build_that_succeeded_since_counts_more_than_one_that_was_killed(opened: Workspace) -> None:
    env = opened.env("dev")
    opened.claim()
    stopped = StoppedSession(opened, "build-triton", KeyboardInterrupt())
    stopped.run_unseen(
        receipts.unfinished_steps(
            env, "build-triton", {"settings": {"triton.build-type": "Debug"}}, stopped.log
        )
    )
    text = receipts.render("build-triton", {"settings": {"triton.build-type": "Release"}})
    later = json.loads(text) | {"finished": "2999-01-01T00:00:00+00:00"}
    env.receipt("build-triton").write_text(json.dumps(later), encoding="utf-8")
    assert receipts.unfinished(env) is None
    chosen = settings.load("dev", {}, commands.last_build("dev"))
    assert chosen.triton.build_type == "Release"
