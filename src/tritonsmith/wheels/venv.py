"""Plan an env's virtual environment: created once, and changed only when its requirements change."""

from __future__ import annotations

from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import MakeDir, Plan, Run, stamped
from tritonsmith.facts import python_env
from tritonsmith.facts.python_env import PythonEnv

PHASE = "Python environment"
MADE = ".venv.done"  # beside the venv
STAMP = ".requirements.done"  # in the venv, so it is deleted with it


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


def plan(env: EnvDir, base: PythonEnv, *requirements: tuple[str, ...]) -> Plan:
    """Plan to create the venv and install into it.

    Another base interpreter recreates the venv; new requirements are installed on top.

    Args:
        env: the environment.
        base: the interpreter that the venv is based on.
        requirements: requirements for pip, one call each.
    """
    # Without `--clear`, `venv` over an older one would keep the older python.
    create = (str(base.executable), "-m", "venv", "--clear", str(env.venv))
    make = (MakeDir(env.path, phase=PHASE), Run(create, cwd=env.path, phase=PHASE))
    installs = [
        Run(pip_install(env.python, *requirement), cwd=env.path, phase=PHASE) for requirement in requirements
    ]
    return Plan(
        f"virtual environment of {env.name}",
        (
            # Two stamps, so that a new requirement does not recreate the venv. The first lies outside, where
            # `--clear` does not reach it; the second inside, so that a new venv gets everything again.
            *stamped(make, env.path / MADE, env.python),
            *stamped(installs, env.venv / STAMP),
        ),
    )


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
