from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Run
from tritonsmith.doctor.pins import install
from tritonsmith.doctor.pins.install import PreparedInstall
from tritonsmith.facts import pytorch_pins
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.package_owners import Distribution, Editable
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.facts.pytorch_pins import PyTorchRelease

BASE = PythonEnv(Path("/usr/bin/python3.11"), "3.11.7", Path("/i"), True, Path("/p"), "linux-x86_64")
HOST = Machine("Linux", "x86_64", 2, 1 << 34)


@pytest.fixture
def env() -> EnvDir:
    return workspace.default().env("dev")


def release(version: str) -> PyTorchRelease:
    return pytorch_pins.find(version).release


def having(*owners: tuple[str, str], editable: bool = False) -> PythonEnv:
    there = tuple(
        Distribution(name, version, Path("/s"), Path("/s/x.dist-info"), "RECORD") for name, version in owners
    )
    if editable:
        elsewhere = Editable(project=None, package=Path("/src/triton"), hooks=())
        there = tuple(replace(one, editable=elsewhere) for one in there)
    names = tuple(name for name, _ in owners)
    return replace(BASE, dists=owners, triton_owners=names, distributions=there)


def prepare(
    env: EnvDir,
    version: str,
    now: PythonEnv | None = None,
    *,
    channel: str = "cuda",
    base: PythonEnv = BASE,
    host: Machine = HOST,
    before: Plan | None = None,
) -> PreparedInstall:
    more = {} if before is None else {"before": before}
    return install.prepare(release(version), channel, env, base, host, now, **more)


def hints(caught: pytest.ExceptionInfo[SmithError]) -> str:
    return "\n".join(caught.value.hints)


def test_a_new_environment_is_made_and_gets_the_wheel(env: EnvDir) -> None:
    prepared = prepare(env, "2.9.1")
    make, create, forget, wheel = prepared.plan.steps
    assert isinstance(make, MakeDir)
    assert isinstance(create, Run)
    assert create.argv[1:3] == ("-m", "venv")
    assert isinstance(forget, Remove)
    assert forget.paths == (env.venv / ".requirements.done",)
    assert isinstance(wheel, Run)
    assert wheel.argv[:4] == (str(env.python), "-m", "pip", "install")
    assert wheel.argv[-2:] == ("--force-reinstall", "triton==3.5.1")
    assert wheel.stamp is None
    assert (prepared.requirement, prepared.replaces) == ("triton==3.5.1", ())


@pytest.mark.parametrize(
    ("version", "requirement"),
    [("2.0.1", "triton==2.0.0"), ("2.5", "triton==3.1.0"), ("2.14", "triton~=3.8.0")],
)
def test_requirements_of_every_form(env: EnvDir, version: str, requirement: str) -> None:
    assert prepare(env, version).requirement == requirement


def test_the_wheel_is_there_already(env: EnvDir) -> None:
    prepared = prepare(env, "2.9.1", having(("triton", "3.5.1")))
    assert prepared.plan.steps == ()
    assert "already" in prepared.plan.title


@pytest.mark.parametrize(
    ("version", "editable"), [("3.5.0", False), ("3.5.1+gitbfeb0668", False), ("3.5.1", True), ("", False)]
)
def test_another_build_is_replaced(env: EnvDir, version: str, editable: bool) -> None:
    prepared = prepare(env, "2.9.1", having(("triton", version), editable=editable))
    assert len(prepared.plan.steps) == 4
    leads = ", editable: /src/triton" if editable else ""
    assert prepared.replaces == (f"triton {version}".strip() + leads,)


def test_other_owners_are_purged_first_or_nothing_happens(env: EnvDir) -> None:
    now = having(("pytorch-triton-rocm", "3.5.1"), ("triton", "3.5.1"))
    with pytest.raises(SmithError, match="another distribution owns files") as caught:
        prepare(env, "2.9.1", now)
    assert "invoke purge-wheels --env dev" in hints(caught)
    assert "pytorch-triton-rocm 3.5.1, triton 3.5.1" in str(caught.value)
    purge = Plan("purge", (MakeDir(env.path / "x", phase="purge"),), ("a note",))
    prepared = prepare(env, "2.9.1", now, before=purge)
    assert prepared.plan.phases == ("Python environment", "purge", "Triton")
    assert prepared.plan.notes == ("a note",)


@pytest.mark.parametrize(
    ("version", "channel", "says"),
    [
        ("2.9.1", "rocm", "triton-lang/triton: git checkout bfeb066872bc1e8b2d2bc0a3b295b99dd77206e7"),
        ("2.3.1", "rocm", "ROCm/triton: git checkout c8ad905211f45e162102823149f0d7f2cfaa4418"),
        ("2.10.0", "xpu", "intel/intel-xpu-backend-for-triton: git checkout 225cdbde3ea155d5ed4c0aad1f2aa4b"),
        ("2.6.0", "xpu", "unconfirmed candidates: e98b6fcb8df5b44eb0d0addb6767c573d37ba024"),
        ("2.15.0", "xpu", "invoke pins --live --pytorch 2.15.0"),
        ("2.0.1", "xpu", "PyTorch 2.0.1 pins no Triton for this channel"),
    ],
)
def test_a_channel_without_a_wheel_on_the_index(env: EnvDir, version: str, channel: str, says: str) -> None:
    with pytest.raises(FactError, match="no Triton wheel to install") as caught:
        prepare(env, version, channel=channel)
    assert says in hints(caught)
    assert ("invoke build-triton" in hints(caught)) is (version != "2.0.1")


@pytest.mark.parametrize(
    ("version", "base", "host"),
    [
        ("2.9.1", BASE, replace(HOST, system="Darwin", arch="arm64")),
        ("2.9.1", BASE, replace(HOST, arch="aarch64")),
        ("2.4.1", replace(BASE, version="3.13.1"), HOST),
    ],
)
def test_where_the_wheel_is_not_required(env: EnvDir, version: str, base: PythonEnv, host: Machine) -> None:
    with pytest.raises(FactError, match="no Triton wheel to install") as caught:
        prepare(env, version, base=base, host=host)
    assert "PyTorch requires Triton only where" in str(caught.value)
    assert f"Python {base.minor}" in str(caught.value)


def test_aarch64_has_wheels_since_2_11(env: EnvDir) -> None:
    assert prepare(env, "2.11.0", host=replace(HOST, arch="aarch64")).requirement == "triton==3.6.0"


def test_which_release_is_meant(env: EnvDir) -> None:
    assert install.release_of("2.9", env).release.version == "2.9.1"
    with pytest.raises(UsageError, match="no PyTorch version given") as caught:
        install.release_of("", env)
    assert "--pytorch 2.9.1" in hints(caught)
    with pytest.raises(UsageError, match="the table has no PyTorch 2"):
        install.release_of("2.9.9", env)


@pytest.mark.parametrize("text", ["nightly", "main", "2.16.0.dev20261006", "2.10.0a0+git449b176"])
def test_what_is_not_released_has_a_commit_to_build(env: EnvDir, text: str) -> None:
    with pytest.raises(FactError, match="no Triton wheel") as caught:
        install.release_of(text, env)
    assert "invoke pins --live --ref nightly" in hints(caught)
    assert "git checkout COMMIT" in hints(caught)


def test_an_environment_that_is_not_made_has_nothing(env: EnvDir) -> None:
    assert install.current(env, BASE) is None
