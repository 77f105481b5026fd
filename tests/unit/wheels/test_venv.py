from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import FactError
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.plan import MakeDir, Run
from tritonsmith.wheels import venv

BASE = PythonEnv(Path("/usr/bin/python3.12"), "3.12.3", Path("/i"), True, Path("/p"), "linux-x86_64")


def test_the_plan_makes_a_venv_and_installs_into_it(tmp_path: Path) -> None:
    env = Workspace(tmp_path).env("a")
    plan = venv.plan(env, BASE, ("triton==3.5.0", "lit<20"))
    make, create, install = plan.steps
    assert make == MakeDir(env.path, phase=venv.PHASE, stamp=make.stamp)
    assert isinstance(create, Run)
    assert create.argv == ("/usr/bin/python3.12", "-m", "venv", str(env.venv))
    assert isinstance(install, Run)
    assert install.argv[:4] == (str(env.python), "-m", "pip", "install")
    assert install.argv[-2:] == ("triton==3.5.0", "lit<20")
    assert {step.stamp.path for step in plan.steps if step.stamp} == {env.path / ".venv.done"}
    assert all(step.stamp for step in plan.steps)


def test_the_stamp_changes_with_the_requirements_and_the_interpreter(tmp_path: Path) -> None:
    env = Workspace(tmp_path).env("a")
    other = PythonEnv(Path("/usr/bin/python3.11"), "3.11.2", Path("/i"), True, Path("/p"), "linux-x86_64")
    plans = [
        venv.plan(env, BASE, ("a",)),
        venv.plan(env, BASE, ("b",)),
        venv.plan(env, BASE, ("a", "b")),
        venv.plan(env, other, ("a",)),
    ]
    assert len({plan.steps[0].stamp for plan in plans}) == len(plans)
    assert venv.plan(env, BASE, ("a",)) == plans[0]


def test_where_packages_go(tmp_path: Path) -> None:
    env = Workspace(tmp_path).env("a")
    assert venv.site_packages(env, BASE) == env.venv / "lib" / "python3.12" / "site-packages"


def test_the_running_interpreter_is_the_default_base() -> None:
    base = venv.base_interpreter("")
    assert base.version == ".".join(map(str, sys.version_info[:3]))
    assert base.executable.is_file()


@pytest.mark.parametrize("wanted", ["3.99", "/no/such/python", "/bin/echo"])
def test_no_such_interpreter(wanted: str) -> None:
    with pytest.raises(FactError, match=f"no Python '{wanted}' that runs") as caught:
        venv.base_interpreter(wanted)
    assert any("python3.12-venv" in hint for hint in caught.value.hints)
