"""Gives an environment the Triton that a PyTorch requires, or says which commit to build instead."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from tritonsmith.envs.session import Session
from tritonsmith.envs.workspace import EnvDir
from tritonsmith.errors import FactError, SmithError, StepError, UsageError
from tritonsmith.facts import python_env, pytorch_pins
from tritonsmith.facts.editables import Editable
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.facts.pytorch_pins import PinMatch, PyTorchRelease
from tritonsmith.pins import installed_torch
from tritonsmith.plan import Plan, Remove, Run, Step
from tritonsmith.plan.runner import CommandFailedError
from tritonsmith.wheels import venv

PHASE = "Triton"
_NAME = "triton"  # the one distribution that the package index has for every release
_MOVING = ("nightly", "main", "viable/strict")
_NOTHING = Plan("nothing to purge")
_PLATFORMS = {"Linux": "linux", "Darwin": "darwin"}


@dataclass(frozen=True)
class PreparedInstall:
    """The plan of `env-triton`.

    Attributes:
        plan: the virtual environment, the purge, the wheel; empty if all of it is there.
        requirement: what is installed, without its marker: `triton==3.5.1`.
        replaces: `NAME VERSION` of what holds Triton now, and where an editable install leads.
    """

    plan: Plan
    requirement: str
    replaces: tuple[str, ...]


def release_of(text: str, folder: EnvDir) -> PinMatch:
    """The release of PyTorch that is meant.

    Args:
        text: version; empty for that of the env's torch.
        folder: the env.

    Raises:
        UsageError: nothing says which, or the table lacks it.
        FactError: it is not a release: no wheel belongs to it; says how to build instead.
    """
    ref = "nightly"
    if not text:
        try:
            torch = installed_torch.read(folder.python).torch
        except FactError as error:
            raise UsageError(
                "nothing says which PyTorch is meant",
                why=f"environment {folder.name!r} has no torch that could tell",
                hints=["name one: --pytorch 2.9.1"],
            ) from error
        text, ref = torch.version, torch.git_version or ref
    if text in _MOVING or _is_prerelease(text):
        raise FactError(
            f"there is no wheel of Triton to install for PyTorch {text}",
            why="what is not released has the Triton that its own commit of PyTorch pins",
            hints=[f"which commit that is: invoke pins --live --ref {ref}", *_commands("COMMIT", "Triton")],
        )
    return pytorch_pins.find(text)


def _is_prerelease(text: str) -> bool:
    try:
        return Version(text).is_prerelease
    except InvalidVersion:
        return False


def prepare(
    release: PyTorchRelease,
    channel: str,
    env: EnvDir,
    base: PythonEnv,
    host: Machine,
    now: PythonEnv | None,
    before: Plan = _NOTHING,
) -> PreparedInstall:
    """Make the plan.

    Args:
        release: of PyTorch.
        channel: `cuda`, `rocm` or `xpu`.
        env: whose venv.
        base: interpreter that the venv is made from.
        host: the machine.
        now: what the venv has; None if it is not made yet.
        before: removes every other distribution that holds files of `triton/`.

    Raises:
        FactError: there is no wheel on the package index; says which commit to build.
        SmithError: something else holds `triton/`, and `before` does not remove it.
    """
    requirement = _wheel(release, channel, base, host)
    owners = now.triton_owners if now else ()
    versions = dict(now.dists) if now else {}
    editable = {one.name: one.editable for one in now.distributions if one.editable} if now else {}
    replaces = tuple(
        f"{name} {versions.get(name, '')}".strip() + _leads(editable.get(name)) for name in owners
    )
    if owners == (_NAME,) and not editable and _satisfied(requirement, versions[_NAME]):
        return PreparedInstall(Plan(f"{env.name} has {_plain(requirement)} already"), _plain(requirement), ())
    if set(owners) - {_NAME} and not before.steps:
        raise SmithError(
            "another distribution holds files of triton/ in this environment",
            where=env.venv,
            why=f"found: {', '.join(replaces)}; pip would leave a mixture of both",
            hints=[f"take them out first: invoke purge-wheels --env {env.name}"],
        )
    done = env.venv / venv.STAMP  # or `up` and `install-triton` would take theirs for installed
    # Anew even if it is there: what was purged may have taken files of it along.
    argv = venv.pip_install(env.python, "--force-reinstall", _plain(requirement))
    steps = (
        *_make(env, base),
        *before.steps,
        Remove((done,), env.root, phase=PHASE),
        Run(argv, cwd=env.path, phase=PHASE),
    )
    title = f"Triton of PyTorch {release.version} in {env.name}"
    return PreparedInstall(Plan(title, steps, before.notes), _plain(requirement), replaces)


def current(env: EnvDir, base: PythonEnv) -> PythonEnv | None:
    """What the env's venv has; None if it is not there, or will be made anew."""
    kept = all(step.stamp is not None and step.stamp.holds() for step in _make(env, base))
    return python_env.read(env.python) if kept else None


def _make(env: EnvDir, base: PythonEnv) -> tuple[Step, ...]:
    """The steps of `venv.plan` without its last one, which installs."""
    return venv.plan(env, base, ()).steps[:-1]


def execute(prepared: PreparedInstall, release: PyTorchRelease, session: Session) -> None:
    """Run it.

    Raises:
        StepError: pip could not install the wheel.
    """
    try:
        session.run(prepared.plan)
    except CommandFailedError as failure:
        lines = [line for line in failure.output if line.strip()][-8:]
        raise StepError(
            f"{failure.step.phase}: {prepared.requirement} could not be installed",
            where=failure.log,
            why="\n".join(lines),
            hints=[
                f"check that pip reaches its index: pip download --no-deps '{prepared.requirement}'",
                "an old Triton has no wheel for a new Python: [python] interpreter in the env file",
                *_build(release, "cuda"),
            ],
        ) from failure
    session.leave_receipt(
        {"env": session.env.name, "pytorch": release.version, "requirement": prepared.requirement}
    )


def _wheel(release: PyTorchRelease, channel: str, base: PythonEnv, host: Machine) -> Requirement:
    """The requirement that the package index can satisfy here."""
    if channel != "cuda":
        name = pytorch_pins.wheel_name(release.version, channel)
        called = f" (it is called {name})" if name else ""
        raise _no_wheel(release, channel, f"the wheel of this channel is not on the package index{called}")
    if not release.cuda.requires:
        raise _no_wheel(release, channel, "what this release requires is unknown")
    requirement = Requirement(release.cuda.requires)
    here = {
        "python_version": base.minor,
        "python_full_version": base.version,
        "platform_system": host.system,
        "platform_machine": host.arch,
        "sys_platform": _PLATFORMS.get(host.system, host.system.lower()),
    }
    if requirement.marker is not None and not requirement.marker.evaluate(here):
        there = f"{host.system} on {host.arch}, Python {base.minor}"
        raise _no_wheel(
            release, channel, f"it requires Triton only where {requirement.marker}; here is {there}"
        )
    return requirement


def _no_wheel(release: PyTorchRelease, channel: str, why: str) -> FactError:
    title = pytorch_pins.titles()[channel]
    return FactError(
        f"there is no wheel of Triton to install for PyTorch {release.version}, {title}",
        why=why,
        hints=_build(release, channel),
    )


def _build(release: PyTorchRelease, channel: str) -> list[str]:
    """What to type to build the pinned commit, as far as that is known."""
    own, pin = release.own_pins[channel], release.pin(channel)
    if own is None or pin is None:
        return [f"PyTorch {release.version} pins no Triton for this channel"]
    if pin.commit:
        place = "cuda" if own.same_file else channel
        (file,) = (file for file in pytorch_pins.pin_files() if file.channel == place)
        return _commands(pin.commit, file.repository)
    ask = f"invoke pins --live --pytorch {release.version}"
    hints = [f"which commit it pins is unknown; PyTorch's own pin file says it: {ask}"]
    if pin.candidates:
        hints.append(f"unconfirmed candidates: {', '.join(pin.candidates)}")
    return [*hints, *_commands("COMMIT", "Triton")]


def _commands(commit: str, repository: str) -> list[str]:
    return [
        f"build the commit that it pins, in a clone of {repository}: git checkout {commit}",
        "then: invoke setup-mlir, invoke build-triton, invoke install-triton",
    ]


def _leads(editable: Editable | None) -> str:
    """Where an editable install leads, behind its name; nothing for another."""
    target = (editable.project or editable.package) if editable else None
    return f", editable: {target or 'it does not say where'}" if editable else ""


def _satisfied(requirement: Requirement, version: str) -> bool:
    """Whether a published wheel of that version will do; a local part (`+git...`) is somebody's own build."""
    try:
        parsed = Version(version)
        return parsed.local is None and requirement.specifier.contains(parsed)
    except InvalidVersion:
        return False


def _plain(requirement: Requirement) -> str:
    return f"{canonicalize_name(requirement.name)}{requirement.specifier}"
