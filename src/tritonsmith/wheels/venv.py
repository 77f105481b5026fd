"""Plan an env's virtual environment: created once, and changed only when its requirements change."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import InstallWheel, MakeDir, Plan, Run, Step, stamped
from tritonsmith.core.plan.steps.fetch import UV_INSTALL
from tritonsmith.core.text import version_key
from tritonsmith.facts import python_env, tools
from tritonsmith.facts.python_env import PythonEnv

PHASE = "Python environment"
MADE = ".venv.done"  # beside the venv
STAMP = ".requirements.done"  # in the venv, so it is deleted with it
_UV = (0, 4)  # the first that has all options that it is called with
_BARE = (3, 12)  # the first Python whose venvs have no setuptools


def gave_up_on_an_index(pip_output: str) -> bool:
    """Report whether pip gave up on an index, in which case it lists only the versions of the others."""
    # pip ends with 0 all the same: this line of its output is the only sign.
    return "WARNING: Retrying (Retry(total=0," in pip_output


def base_interpreter(version: str) -> PythonEnv:
    """Return facts about an env's interpreter: a version (`3.12`), a path, or empty for the tool's own.

    Raises:
        FactError: the interpreter does not exist, or does not run.
    """
    path = python_env.find_interpreter(version)
    interpreter = python_env.interpreter(path) if path else None
    if interpreter is None:
        raise FactError(
            f"no working Python {version!r}",
            where=path,
            why="an env uses an interpreter of this machine; tritonsmith does not install one",
            hints=[
                "install it (Debian: apt install python3.12-venv python3.12-dev)",
                "or set another: [python] interpreter",
            ],
        )
    return interpreter


def site_packages(env: EnvDir, base: PythonEnv) -> Path:
    """Return the site folder of the env's venv, before and after its creation."""
    return env.venv / "lib" / f"python{base.minor}" / "site-packages"


def plan(env: EnvDir, base: PythonEnv, *requirements: tuple[str, ...], large: str = "") -> Plan:
    """Plan to create the venv and install into it.

    Another base interpreter recreates the venv; new requirements are installed on top.

    Args:
        env: the environment.
        base: the interpreter that the venv is based on.
        requirements: requirements for pip, one call each.
        large: a package of one large wheel, to be installed last: `triton==3.9.0`.
    """
    # Without `--clear`, `venv` over an older one would keep the older python.
    create = Run((str(base.executable), "-m", "venv", "--clear", str(env.venv)), cwd=env.path, phase=PHASE)
    make = (MakeDir(env.path, phase=PHASE), create)
    installs = [
        Run(pip_install(env.python, *requirement), cwd=env.path, phase=PHASE)
        for requirement in (*requirements, *([(large,)] if large else []))
    ]
    # Two stamps, so that a new requirement does not recreate the venv. The first lies outside, where
    # `--clear` does not reach it; the second inside, so that a new venv gets everything again.
    steps = (*stamped(make, env.path / MADE, env.python), *stamped(installs, env.venv / STAMP))
    return Plan(f"virtual environment of {env.name}", _by_uv(steps, env, base, large))


def _by_uv(steps: tuple[Step, ...], env: EnvDir, base: PythonEnv, large: str) -> tuple[Step, ...]:
    """Return the steps with what uv does in a fraction of pip's time, if it is there.

    The stamps stay those of the plain steps: they say what the venv has, and not who put it there.
    """
    uv = tools.own("uv")
    # A tool that was installed by uv has no pip, and needs that of each venv.
    if uv is None or version_key(uv.version) < _UV or base.wheels is None or find_spec("pip") is None:
        return steps
    folder, create, *installs = steps
    assert isinstance(create, Run)  # noqa: S101 - for the type checker
    names = ("pip",) if version_key(base.version) >= _BARE else ("pip", "setuptools")
    from_wheels = ("--find-links", str(base.wheels), *names)
    # ensurepip runs pip out of its wheel, and compiles everything that it installs: nine tenths of the time.
    seed = Run(
        (str(uv.path), *UV_INSTALL, "--no-cache", "--python", str(env.python), *from_wheels),
        cwd=env.path,
        env=tuple((name, None) for name in sorted(os.environ) if name.startswith("UV_")),
        phase=PHASE,
        stamp=create.stamp,
    )
    begun = (folder, replace(create, argv=(*create.argv, "--without-pip")), seed)
    # Of a free-threaded Python, the site folder has another name.
    if not large or base.free_threaded:
        return (*begun, *installs)
    last = InstallWheel(
        (sys.executable, "-m", "pip"),
        _chooses_alike(base),
        uv.path,
        env.python,
        site_packages(env, base),
        large,
        env.path / "wheel",
        env.root,
        phase=PHASE,
        stamp=installs[-1].stamp,
    )
    return (*begun, *installs[:-1], last)


def _chooses_alike(base: PythonEnv) -> bool:
    """Report whether the tool's own pip runs in this interpreter, and has no settings of its own."""
    same = base.executable.resolve() == Path(sys.executable).resolve()
    return same and not Path(sys.prefix, "pip.conf").exists()


def pip_install(python: Path, *arguments: str) -> tuple[str, ...]:
    """Return the command line of pip in an interpreter."""
    quiet = ("--quiet", "--disable-pip-version-check")
    return (str(python), "-m", "pip", "install", *quiet, *arguments)


def torch_requirement(version: str) -> tuple[str, ...]:
    """Return pip's arguments for a CPU build of PyTorch: `cpu` for the newest, or a version.

    `core/envs/settings.py` has checked the version's form.
    """
    requirement = "torch" if version == "cpu" else f"torch=={version}"
    # From PyTorch's own index: the builds on PyPI are those for CUDA.
    return requirement, "--index-url", configs.load("capture")["torch-index"]["cpu"]
