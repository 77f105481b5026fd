"""Create the environment of a released Triton (`triton-3.4.0`) on demand, and keep it."""

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

TASK = "up"  # the task that makes a wheel's environment: names its receipt and logs
_PATIENCE = 1800.0  # seconds to wait while another process makes the same environment: a slow network
_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")
_AVAILABLE = re.compile(r"^Available versions: (.*)$", re.MULTILINE)
_ANSWER = 60.0  # seconds that the package index may take
_LINES = 8  # of pip's output in an error


def env_of(version: str) -> EnvDir:
    """Return the folder of a release's environment, which may not exist yet."""
    return workspace.default().env(f"{WHEEL}{version}")


def plan(version: str) -> Plan:
    """Return steps that make the environment; none if it exists and has that release.

    Raises:
        FactError: the base interpreter does not exist.
    """
    env = env_of(version)
    base = venv.base_interpreter(settings.load("wheel").python.interpreter)
    full = venv.plan(env, base, (f"triton=={version}",))
    todo = tuple(step for step in full.steps if not (step.stamp and step.stamp.holds()))
    if todo or installed_tritons.version_in(venv.site_packages(env, base)) == version:
        return replace(full, steps=todo)
    install = full.steps[-1]  # its stamp holds, but another Triton was installed there since
    return replace(
        full, steps=(replace(install, stamp=install.stamp and replace(install.stamp, again=True)),)
    )


def check(versions: Iterable[str]) -> None:
    """Check that the package index has all releases that are not installed yet, before one is installed.

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
    # An index that does not answer is no error here: the installation reports it better.
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
        LockedError: another process held the lock all that time.
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
    """Return the toolchain of a side; create the environment of a release if needed.

    Args:
        side: names a Triton, or none.
        jobs: compiles at once; None or 0 for as many as cores and memory allow.
        timeout: seconds for one point; None or 0 for the default.
        env: environment of a side that names no Triton.

    Raises:
        SmithError: there is no such Triton, or it could not be installed.
    """
    named = ("", str(make(side.version).python)) if side.version else (side.env or env, side.python)
    place = run.toolchain(*named, jobs=jobs, timeout=timeout)
    if side.ptxas:
        place, other = with_ptxas(place, side.ptxas)
        ptxas.install(other, place.space)
    return place


def plan_of(side: CompilerSpec) -> Plan:
    """Return the steps that a side's Triton and ptxas lack; of a ptxas only when its Triton is there.

    Raises:
        SmithError: there is no such Triton or ptxas.
    """
    check([side.version])
    if side.version and (missing := plan(side.version)).steps:
        return missing
    if not side.ptxas:
        return Plan("nothing is missing")
    _, other = with_ptxas(place_of(replace(side, ptxas="")), side.ptxas)
    return other.plan


def with_ptxas(place: Toolchain, version: str) -> tuple[Toolchain, RegistryPtxas]:
    """Return the toolchain with another ptxas, and that ptxas, which is not installed yet.

    Raises:
        SmithError: there is no such ptxas.
    """
    python = ptxas.pip_python(place.python)
    other = ptxas.prepare(ptxas.resolve(version, python), place.space, machine.read(), python)
    flags = {**place.flags, "ptxas": other.version}
    return replace(place, flags=flags, variables=ptxas.variables(other.path)), other


def python_of(side: CompilerSpec) -> Path:
    """Return the interpreter of a side that names a release or an interpreter; it may not exist yet."""
    return env_of(side.version).python if side.version else Path(side.python)


def _act(version: str, running: Session) -> None:
    steps = plan(version)  # again: the previous holder of the lock may have made it
    try:
        running.run(steps)
    except CommandFailedError as failure:
        error = _explain(version, failure)
        if isinstance(error, UsageError):  # no such release: the folder would stay unused
            env = running.env
            gone = Remove((env.venv, env.path / ".venv.done"), env.root, phase=venv.PHASE)
            running.run_unseen((gone,))
        raise error from failure
    running.leave_receipt({"env": running.env.name, "requirement": f"triton=={version}"})


@contextmanager
def _session(name: str) -> Iterator[Session]:
    """Open a session as every task does, also in a thread of a Dask worker."""
    with ExitStack() as held:
        # Signal handlers can be installed in the main thread only.
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
    output = [line for line in failure.output if line.strip() and not line.startswith("WARNING: Retrying")]
    why = "\n".join(output[-_LINES:])
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
