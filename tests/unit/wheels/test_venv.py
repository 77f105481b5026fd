from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import MakeDir, Plan, Run
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.wheels import venv

BASE = PythonEnv(Path("/usr/bin/python3.12"), "3.12.3", Path("/i"), True, Path("/p"), "linux-x86_64")


def test_the_plan_makes_a_venv_and_installs_into_it(tmp_path: Path) -> None:
    env = Workspace(tmp_path).env("a")
    plan = venv.plan(env, BASE, ("triton==3.5.0", "lit<20"))
    make, create, install = plan.steps
    assert make == MakeDir(env.path, phase=venv.PHASE, stamp=make.stamp)
    assert isinstance(create, Run)
    assert create.argv == ("/usr/bin/python3.12", "-m", "venv", "--clear", str(env.venv))
    assert isinstance(install, Run)
    assert install.argv[:4] == (str(env.python), "-m", "pip", "install")
    assert install.argv[-2:] == ("triton==3.5.0", "lit<20")
    stamps = [step.stamp.path for step in plan.steps if step.stamp]
    assert stamps == [env.path / ".venv.done", env.path / ".venv.done", env.venv / ".requirements.done"]


def test_requirements_are_installed_on_top_and_another_interpreter_starts_anew(tmp_path: Path) -> None:
    env = Workspace(tmp_path).env("a")
    other = PythonEnv(Path("/usr/bin/python3.11"), "3.11.2", Path("/i"), True, Path("/p"), "linux-x86_64")
    one, more, moved = (
        [step.stamp for step in venv.plan(env, base, wanted).steps]
        for base, wanted in ((BASE, ("a",)), (BASE, ("a", "b")), (other, ("a",)))
    )
    assert one[:2] == more[:2]
    assert one[2] != more[2]
    assert one[0] != moved[0]


def test_another_interpreter_takes_the_old_one_out(tmp_path: Path) -> None:
    env = Workspace(tmp_path).env("a")
    env.path.mkdir(parents=True)
    left_over = env.venv / "bin" / "python"
    left_over.parent.mkdir(parents=True)
    left_over.symlink_to("/no/such/python")
    base = venv.base_interpreter("")
    runner = Runner(tmp_path / "log", PhaseProgress(live=False, silent=True))
    folder, create, _ = venv.plan(env, base, ()).steps
    assert isinstance(create, Run)
    quick = replace(
        create, argv=(*create.argv, "--without-pip")
    )  # pip takes seconds and changes nothing here
    runner.run(Plan("venv", (folder, quick)))
    assert left_over.resolve() == base.executable.resolve()


def test_where_packages_go(tmp_path: Path) -> None:
    env = Workspace(tmp_path).env("a")
    assert venv.site_packages(env, BASE) == env.venv / "lib" / "python3.12" / "site-packages"


def test_the_running_interpreter_is_the_default_base() -> None:
    base = venv.base_interpreter("")
    assert base.version == ".".join(map(str, sys.version_info[:3]))
    assert base.executable.is_file()


@pytest.mark.parametrize("wanted", ["3.99", "/no/such/python", "/bin/echo"])
def test_no_such_interpreter(wanted: str) -> None:
    with pytest.raises(FactError, match=f"no working Python '{wanted}'") as caught:
        venv.base_interpreter(wanted)
    assert any("python3.12-venv" in hint for hint in caught.value.hints)
