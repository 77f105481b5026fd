from __future__ import annotations

import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import InstallWheel, MakeDir, Plan, Run
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.facts import tools
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.facts.tools import Tool
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
    base = replace(venv.base_interpreter(""), wheels=None)
    runner = Runner(tmp_path / "log", PhaseProgress(live=False, silent=True))
    folder, create, _ = venv.plan(env, base, ()).steps
    assert isinstance(create, Run)
    quick = replace(
        create, argv=(*create.argv, "--without-pip")
    )  # pip takes seconds and changes nothing here
    runner.run(Plan("venv", (folder, quick)))
    assert left_over.resolve() == base.executable.resolve()


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A uv that puts the package of the wheel where uv would, and notes how it was called."""
    program = tmp_path / "uv"
    program.write_text(
        f"""#!/bin/sh
for word; do last=$word; done
echo "$last UV_LINK_MODE=${{UV_LINK_MODE-unset}}" >> {tmp_path}/calls
case $last in
triton*)
  mkdir {tmp_path}/home/envs/a/wheel/uv
  cd {tmp_path}/home/envs/a/venv/lib/python*/site-packages && mkdir triton
  echo "x = 1" > triton/__init__.py
esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setattr(tools, "own", lambda name: Tool(name, program, "0.5.0"))
    monkeypatch.setenv("UV_LINK_MODE", "symlink")
    return program


def pip_with(tmp_path: Path, needs: str, settings: str = "") -> tuple[str, ...]:
    """A pip whose index has one wheel, and which notes its subcommands, but for questions."""
    wheel = tmp_path / "triton-3.9.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("triton-3.9.0.dist-info/METADATA", f"Name: triton\n{needs}\n")
    # Its settings are asked for once in a process, and a folder of an earlier test may have had this name.
    program = tmp_path / f"pip-{settings.partition('.')[0]}"
    program.write_text(
        f"""#!/bin/sh
if [ "$1" = config ]; then echo "global.timeout='9'"; echo "{settings}"; exit; fi
in=
if [ "$1" = --python ]; then in=" --python"; shift 2; fi
echo "pip$in $1 PIP_PYTHON=${{PIP_PYTHON-unset}}${{PIP_REQUIRE_VIRTUALENV}}" >> {tmp_path}/calls
[ "$1" = install ] || {{ mkdir {tmp_path}/home/envs/a/wheel && cp {wheel} {tmp_path}/home/envs/a/wheel; }}
"""
    )
    program.chmod(0o755)
    return (str(program),)


INSTALLED = "pip --python install PIP_PYTHON=/another/python"
NEEDS_NOTHING = 'Requires-Dist: importlib-metadata; python_version < "3.10"\nRequires-Dist: lit; extra == "x"'


@pytest.mark.parametrize(
    ("needs", "calls"),
    [(NEEDS_NOTHING, []), (f"{NEEDS_NOTHING}\nRequires-Dist: setuptools>=40", [INSTALLED])],
)
@pytest.mark.parametrize("alike", [True, False])
def test_uv_unpacks_what_pip_finds(
    tmp_path: Path, uv: Path, needs: str, calls: list[str], *, alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_PYTHON", "/another/python")
    space = Workspace(tmp_path / "home")
    space.claim()
    env = space.env("a")
    base = replace(venv.base_interpreter(""), wheels=tmp_path)
    plan = venv.plan(env, base, large="triton==3.9.0")
    *begun, last = plan.steps
    assert isinstance(last, InstallWheel)
    assert last.uv == uv
    assert last.alike  # the tests run in the interpreter that the environment is based on
    assert last.installs
    # Of a run that was killed.
    left_over = env.path / "wheel" / "half.whl"
    left_over.parent.mkdir(parents=True)
    left_over.touch()
    runner = Runner(tmp_path / "log", PhaseProgress(live=False, silent=True))
    runner.run(replace(plan, steps=(*begun, replace(last, pip=pip_with(tmp_path, needs), alike=alike))))
    said = (tmp_path / "calls").read_text().splitlines()
    seeds = "setuptools" if base.minor == "3.11" else "pip"
    assert said == [
        f"{seeds} UV_LINK_MODE=unset",
        f"pip{'' if alike else ' --python'} download PIP_PYTHON=unset0",
        "triton==3.9.0 UV_LINK_MODE=unset",
        *calls,
    ]
    assert (venv.site_packages(env, base) / "triton" / "__init__.py").is_file()
    assert not (env.path / "wheel").exists()


@pytest.mark.usefixtures("uv")
def test_a_pip_of_another_python_or_with_settings_of_its_own_is_told_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env, base = Workspace(tmp_path / "home").env("a"), replace(venv.base_interpreter(""), wheels=tmp_path)

    def is_alike(base: PythonEnv) -> bool:
        last = venv.plan(env, base, large="triton==3.9.0").steps[-1]
        assert isinstance(last, InstallWheel)
        return last.alike

    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert is_alike(base)
    other = tmp_path / "python"
    other.touch()
    assert not is_alike(replace(base, executable=other))
    (tmp_path / "pip.conf").touch()
    assert not is_alike(base)


@pytest.mark.parametrize(
    "setting",
    ["install.index-url='https://mirror'", "download.index-url='https://mirror'", "global.python='3.12'"],
)
def test_settings_of_pip_install_hold_and_no_others(tmp_path: Path, uv: Path, setting: str) -> None:
    space = Workspace(tmp_path / "home")
    space.claim()
    env = space.env("a")
    last = venv.plan(env, replace(venv.base_interpreter(""), wheels=tmp_path), large="triton==3.9.0").steps[
        -1
    ]
    assert isinstance(last, InstallWheel)
    assert last.uv == uv
    pip = pip_with(tmp_path, NEEDS_NOTHING, setting)
    env.path.mkdir(parents=True)
    Runner(tmp_path / "log", PhaseProgress(live=False, silent=True)).run(
        Plan("wheel", (replace(last, pip=pip, stamp=None),))
    )
    assert (tmp_path / "calls").read_text().splitlines() == ["pip --python install PIP_PYTHON=unset"]


def test_who_puts_it_there_is_no_part_of_what_a_venv_has(tmp_path: Path, uv: Path) -> None:
    assert uv.is_file()
    env = Workspace(tmp_path).env("a")
    by_uv = venv.plan(env, replace(BASE, wheels=tmp_path), ("lit",), large="triton==3.9.0")
    plain = venv.plan(env, BASE, ("lit",), large="triton==3.9.0")
    assert {step.stamp for step in by_uv.steps} == {step.stamp for step in plain.steps}
    # Of tools before uv was asked for: a user's environments are not made again.
    assert [step.stamp and step.stamp.key for step in venv.plan(env, BASE, ("lit",), ("triton",)).steps] == [
        step.stamp and step.stamp.key for step in venv.plan(env, BASE, ("lit",), large="triton").steps
    ]
    assert [type(step) for step in by_uv.steps] == [MakeDir, Run, Run, Run, InstallWheel]
    assert by_uv.steps[-1].shell()[0] == f"rm -rf -- {env.path}/wheel"


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
