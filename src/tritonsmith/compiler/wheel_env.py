"""The environment of a released Triton (`triton-3.4.0`), created on demand and kept."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from tritonsmith.compiler import run
from tritonsmith.compiler.run import Toolchain
from tritonsmith.compiler.spec import WHEEL, CompilerSpec
from tritonsmith.core.envs import session, settings, workspace
from tritonsmith.core.envs.session import Session
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import LockedError, SmithError, StepError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan, Remove, locks
from tritonsmith.core.plan.process import query
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.facts import installed_tritons, machine
from tritonsmith.wheels import ptxas, venv
from tritonsmith.wheels.ptxas import RegistryPtxas

TASK = "up"  # which an env of a wheel is made by: its receipt, and the name of its logs
_PATIENCE = 1800.0  # seconds to wait for somebody else who makes the same environment: a slow network
_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")
_AVAILABLE = re.compile(r"^Available versions: (.*)$", re.MULTILINE)
_ANSWER = 60.0  # seconds that the package index may take
_LINES = 8  # of pip's output in an error


def env_of(version: str) -> EnvDir:
    """The folder of a release's environment, made or not."""
    return workspace.default().env(f"{WHEEL}{version}")


def plan(version: str) -> Plan:
    """Steps that make the environment; none where it is there and has that release.

    Raises:
        FactError: there is no such interpreter.
    """
    env = env_of(version)
    base = venv.base_interpreter(settings.load("wheel").python.interpreter)
    made = venv.plan(env, base, (f"triton=={version}",))
    todo = tuple(step for step in made.steps if not (step.stamp and step.stamp.holds()))
    if todo or installed_tritons.version_in(venv.site_packages(env, base)) == version:
        return replace(made, steps=todo)
    install = made.steps[-1]  # its stamp holds, and somebody has put another Triton there since
    return replace(
        made, steps=(replace(install, stamp=install.stamp and replace(install.stamp, again=True)),)
    )


def check(versions: Iterable[str]) -> None:
    """Check that the package index has releases which are not installed yet, before one of them is installed.

    Says nothing where an index does not answer: the installation tells more.

    Raises:
        UsageError: there is no such release for this Python.
    """
    missing = [version for version in dict.fromkeys(versions) if version and plan(version).steps]
    if not missing:
        return
    python = venv.base_interpreter(settings.load("wheel").python.interpreter).executable
    argv = (str(python), "-m", "pip", "index", "versions", "triton", "--disable-pip-version-check")
    answer = query(argv, timeout=_ANSWER)
    complete = answer and answer.code == 0 and not venv.gave_up_on_an_index(answer.err)
    listed = _AVAILABLE.search(answer.out) if answer and complete else None
    known = listed[1].split(", ") if listed else []
    for version in missing:
        if known and version not in known:
            what = f"the package index has no Triton {version} for this Python"
            raise UsageError(what, where=python, hints=did_you_mean(version, known))


def make(version: str, *, patience: float = _PATIENCE) -> EnvDir:
    """Create the environment of a release (in full) if needed; wait `patience` seconds if it is locked.

    Raises:
        UsageError: there is no such release for this Python.
        StepError: it could not be installed.
        LockedError: somebody else was busy in it all that time.
    """
    until = time.monotonic() + patience
    while plan(version).steps:
        try:
            with _session(env_of(version).name) as running:
                _act(version, running)
            break
        except LockedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
    return env_of(version)


def place_of(
    side: CompilerSpec, jobs: int | None = None, timeout: int | None = None, env: str = "wheel"
) -> Toolchain:
    """The toolchain of a side; creates the environment of a release if needed.

    Args:
        side: names a Triton, or none.
        jobs: compiles at once; None or 0 for as many as cores and memory allow.
        timeout: seconds for one point; None or 0 for the usual.
        env: of a side that names no Triton.

    Raises:
        SmithError: there is no such Triton, or it could not be installed.
    """
    named = ("", str(make(side.version).python)) if side.version else (side.env or env, side.python)
    place = run.toolchain(*named, jobs=jobs, timeout=timeout)
    if side.ptxas:
        place, other = with_ptxas(place, side.ptxas)
        ptxas.install(other, place.space)
    return place


def with_ptxas(place: Toolchain, version: str) -> tuple[Toolchain, RegistryPtxas]:
    """The toolchain with another ptxas, and that ptxas, which is not installed yet.

    Raises:
        SmithError: there is no such ptxas.
    """
    python = ptxas.pip_python(place.python)
    other = ptxas.prepare(ptxas.resolve(version, python), place.space, machine.read(), python)
    flags = {**place.flags, "ptxas": other.version}
    return replace(place, flags=flags, variables=ptxas.variables(other.path)), other


def python_of(side: CompilerSpec) -> Path:
    """The interpreter of a side that names a release or an interpreter, whether it exists yet or not."""
    return env_of(side.version).python if side.version else Path(side.python)


def _act(version: str, running: Session) -> None:
    steps = plan(version)  # again: who held the lock before may have made it
    try:
        running.run(steps)
    except CommandFailedError as failure:
        error = _explain(version, failure)
        if isinstance(error, UsageError):  # nobody will ever want what was begun
            env = running.env
            gone = Remove((env.venv, env.path / ".venv.done"), env.root, phase=venv.PHASE)
            running.run_unseen((gone,))
        raise error from failure
    running.leave_receipt({"env": running.env.name, "requirement": f"triton=={version}"})


@contextmanager
def _session(name: str) -> Iterator[Session]:
    """As every task's, but in a thread of a Dask worker too, where no signals can be heard."""
    with ExitStack() as held:
        if threading.current_thread() is threading.main_thread():
            yield held.enter_context(session.opened(TASK, name))
            return
        space = workspace.default()
        space.claim()
        env = space.env(name)
        env.make()
        held.enter_context(locks.hold(env.lock, purpose=f"{TASK} --env {name}"))
        yield Session(TASK, space, env, space.log(TASK))


def _explain(version: str, failure: CommandFailedError) -> SmithError:
    said = [line for line in failure.output if line.strip() and not line.startswith("WARNING: Retrying")]
    why = "\n".join(said[-_LINES:])
    complete = not venv.gave_up_on_an_index("\n".join(failure.output))
    listed = _VERSIONS.search(why) if complete else None
    versions = [] if listed is None else [word for word in listed[1].split(", ") if word != "none"]
    if versions:
        hints = did_you_mean(version, versions)
        return UsageError(f"the package index has no Triton {version} for this Python", why=why, hints=hints)
    hints = (
        "check that pip can reach its index; behind a proxy, set https_proxy",
        f"full log: {failure.log}",
    )
    what = f"cannot install Triton {version} (exit code {failure.code})"
    return StepError(what, where=failure.log, why=why, hints=hints)
