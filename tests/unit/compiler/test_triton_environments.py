"""The environment of a release: made when it lacks something, and only then."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.compiler import tritons
from tritonsmith.core.envs import receipts
from tritonsmith.core.errors import LockedError, StepError, UsageError
from tritonsmith.core.plan import Run, stopping
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.wheels import venv

PIP = """#!/bin/sh
case "$*" in
*pip*triton==9*)
  echo "ERROR: Could not find a version that satisfies the requirement $6 (from versions: 3.0.0, 3.4.0)" >&2
  exit 1;;
*pip*triton==7*)
  echo "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'no route': /triton/" >&2
  echo "ERROR: Could not find a version that satisfies the requirement $6 (from versions: 3.0.0, 3.4.0)" >&2
  exit 1;;
*pip*triton==8*) echo "ERROR: no network" >&2; exit 1;;
*pip*triton==*)
  version=${6#triton==}
  mkdir -p SITES/triton
  echo "__version__ = '$version'" > SITES/triton/__init__.py;;
*) exec PYTHON "$@";;
esac
"""  # pip of an index with two releases


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Interpreters whose venvs have that pip; the log of what they were asked."""
    log = tmp_path / "log"
    base = tmp_path / "python"
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    base.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *"index versions"*) cat {tmp_path}/versions; cat {tmp_path}/retries >&2; exit;; esac\n'
        f'echo "$*" >> {log}\n'
        f'mkdir -p "$4/bin"\nsite=$4/lib/python{own}/site-packages\n'
        f'sed -e "s,SITES,$site,g" {tmp_path}/pip > "$4/bin/python"\n'
        'chmod +x "$4/bin/python"\n'
    )
    base.chmod(0o755)
    (tmp_path / "pip").write_text(PIP.replace("PYTHON", sys.executable))

    def interpreter(_: str) -> PythonEnv:
        return PythonEnv(base, f"{own}.1", Path(), headers=True, purelib=Path(), platform="linux")

    monkeypatch.setattr(venv, "base_interpreter", interpreter)
    return log


def test_it_is_made_once(index: Path) -> None:
    place = tritons.place_of(tritons.parse("3.4"), jobs=3)
    env = tritons.env_of("3.4.0")
    assert (place.python, place.jobs) == (env.python, 3)
    assert env.name == "triton-3.4.0"
    receipt = receipts.read(env.receipt("up"))
    assert receipt is not None
    assert receipt["requirement"] == "triton==3.4.0"
    assert not tritons.plan("3.4.0").steps
    tritons.make("3.4.0")
    assert len(index.read_text().splitlines()) == 1


def test_several_are_made_at_once_and_one_alone_is_not(index: Path) -> None:
    tritons.make_all(["", "3.4.0"])
    assert not index.exists()
    tritons.make_all(["3.4.0", "3.0.0", "3.4.0"])
    assert not tritons.plan("3.4.0").steps
    assert not tritons.plan("3.0.0").steps
    assert len(index.read_text().splitlines()) == 2
    logs = {receipt["log"] for version in ("3.4.0", "3.0.0") if (receipt := receipt_of(version))}
    assert len(logs) == 2


def test_the_first_of_several_that_fails_is_the_error() -> None:
    with pytest.raises(UsageError, match=r"has no Triton 9\.4\.0"):
        tritons.make_all(["3.4.0", "9.4.0"])


def receipt_of(version: str) -> dict[str, Any] | None:
    return receipts.read(tritons.env_of(version).receipt("up"))


def test_another_triton_in_it_is_replaced(index: Path) -> None:
    env = tritons.make("3.4.0")
    (package,) = env.venv.glob("lib/*/site-packages/triton/__init__.py")
    package.write_text("__version__ = '3.2.0'\n")
    (step,) = tritons.plan("3.4.0").steps
    assert isinstance(step, Run)
    assert step.argv[-1] == "triton==3.4.0"
    tritons.make("3.4.0")
    assert "3.4.0" in package.read_text()
    assert not tritons.plan("3.4.0").steps
    assert len(index.read_text().splitlines()) == 1  # the venv stayed


def test_a_release_that_does_not_exist_leaves_nothing() -> None:
    with pytest.raises(UsageError, match=r"has no Triton 9\.4\.0") as caught:
        tritons.make("9.4.0")
    assert "did you mean '3.4.0'?" in caught.value.hints
    assert not tritons.env_of("9.4.0").venv.exists()
    with pytest.raises(StepError, match=r"cannot install Triton 8\.0\.0") as offline:
        tritons.make("8.0.0")
    assert "check that pip can reach its index" in str(offline.value)
    assert tritons.env_of("8.0.0").venv.exists()


def test_an_index_that_does_not_answer_says_nothing_about_releases(tmp_path: Path) -> None:
    (tmp_path / "versions").write_text("triton (3.4.0)\nAvailable versions: 3.4.0, 3.0.0\n")
    (tmp_path / "retries").write_text("")
    with pytest.raises(UsageError, match=r"has no Triton 7\.0\.0"):
        tritons.check(["7.0.0"])
    (tmp_path / "retries").write_text(
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'no route': /triton/\n"
    )
    tritons.check(["7.0.0"])
    with pytest.raises(StepError, match=r"cannot install Triton 7\.0\.0") as offline:
        tritons.make("7.0.0")
    assert "check that pip can reach its index" in str(offline.value)


def test_who_is_busy_in_it_is_named() -> None:
    with (
        receipts.open_session("up", "triton-3.4.0"),
        pytest.raises(LockedError, match="another run is busy in this environment"),
    ):
        tritons.make("3.4.0", patience=0.1)


def test_whoever_waits_for_it_can_be_interrupted() -> None:
    """A unit of a cluster, whose task was cancelled while another worker installs the release."""
    with (
        receipts.open_session("up", "triton-3.4.0"),
        stopping.interruptible(lambda: True),
        pytest.raises(KeyboardInterrupt),
    ):
        tritons.make("3.4.0", patience=5)
