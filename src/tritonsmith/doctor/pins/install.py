"""Install the Triton that a PyTorch requires into an environment, or name the commit to build instead."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from tritonsmith.core.command_line import command
from tritonsmith.core.envs.session import Session
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import FactError, SmithError, StepError, UsageError
from tritonsmith.core.plan import Plan, Remove, Run, Step
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.doctor.pins import installed_torch
from tritonsmith.facts import python_env, pytorch_pins
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.package_owners import Editable
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.facts.pytorch_pins import PinMatch, PyTorchRelease
from tritonsmith.wheels import venv

PHASE = "Triton"
_NAME = "triton"  # the only distribution that the package index has for every release
_MOVING = ("nightly", "main", "viable/strict")
_NOTHING = Plan("nothing to purge")
_PLATFORMS = {"Linux": "linux", "Darwin": "darwin"}


@dataclass(frozen=True)
class PreparedInstall:
    """The plan of `env-triton`.

    Attributes:
        plan: the virtual environment, the purge, the wheel; empty if everything is installed.
        requirement: the requirement to install, without its marker: `triton==3.5.1`.
        replaces: `NAME VERSION` of the current owners of `triton/`, with the source of an editable install.
    """

    plan: Plan
    requirement: str
    replaces: tuple[str, ...]


def release_of(text: str, folder: EnvDir) -> PinMatch:
    """Return the PyTorch release that a text names; that of the env's torch for an empty text.

    Raises:
        UsageError: no version is given or found, or the table lacks it.
        FactError: there is no wheel, as it is not a release; the hints tell how to build instead.
    """
    ref = "nightly"
    if not text:
        try:
            torch = installed_torch.read(folder.python).torch
        except FactError:
            torch = None
        if torch is None:
            raise UsageError(
                "no PyTorch version given",
                why=f"environment {folder.name!r} has no torch to read the version from",
                hints=["name one: --pytorch 2.9.1"],
            )
        text, ref = torch.version, torch.git_version or ref
    if text in _MOVING or _is_prerelease(text):
        raise FactError(
            f"no Triton wheel to install for PyTorch {text}",
            why="an unreleased torch needs the Triton that its own PyTorch commit pins",
            hints=[
                f"to see that commit: {command('pins', live=True, ref=ref)}",
                *_commands("COMMIT", "Triton"),
            ],
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
    """Make the plan for a release of PyTorch and a channel: `cuda`, `rocm` or `xpu`.

    `now` is the venv's content, None if it does not exist; `before` removes every other owner of `triton/`.

    Raises:
        FactError: the package index has no wheel; the hints name the commit to build.
        SmithError: another distribution owns `triton/`, and `before` does not remove it.
    """
    requirement = _wheel(release, channel, base, host)
    owners = now.triton_owners if now else ()
    versions = dict(now.dists) if now else {}
    editable = (
        {
            distribution.name: distribution.editable
            for distribution in now.distributions
            if distribution.editable
        }
        if now
        else {}
    )
    replaces = tuple(
        f"{name} {versions.get(name, '')}".strip() + _leads(editable.get(name)) for name in owners
    )
    if owners == (_NAME,) and not editable and _satisfied(requirement, versions[_NAME]):
        return PreparedInstall(Plan(f"{env.name} has {_plain(requirement)} already"), _plain(requirement), ())
    if set(owners) - {_NAME} and not before.steps:
        raise SmithError(
            "another distribution owns files of triton/ in this environment",
            where=env.venv,
            why=f"found: {', '.join(replaces)}; pip would mix the files of both",
            hints=[f"remove them first: {command('purge-wheels', env=env.name)}"],
        )
    # Otherwise `up` and `install-triton` would take their own Triton for installed.
    done = env.venv / venv.STAMP
    # Reinstalled even if it exists: the purge may have removed files that it shared with others.
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
    """Return the content of the env's venv; None if it does not exist, or will be recreated."""
    kept = all(step.stamp is not None and step.stamp.holds() for step in _make(env, base))
    return python_env.read(env.python) if kept else None


def _make(env: EnvDir, base: PythonEnv) -> tuple[Step, ...]:
    """Return the steps of `venv.plan` without its last one, which installs."""
    return venv.plan(env, base, ()).steps[:-1]


def execute(prepared: PreparedInstall, release: PyTorchRelease, session: Session) -> None:
    """Run the plan.

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
                f"check that pip can reach its index: pip download --no-deps '{prepared.requirement}'",
                "an old Triton has no wheel for a new Python: set [python] interpreter in the env file",
                *_build(release, "cuda"),
            ],
        ) from failure
    session.leave_receipt(
        {"env": session.env.name, "pytorch": release.version, "requirement": prepared.requirement}
    )


def _wheel(release: PyTorchRelease, channel: str, base: PythonEnv, host: Machine) -> Requirement:
    """Return the requirement that the package index can satisfy on this machine."""
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
            release, channel, f"PyTorch requires Triton only where {requirement.marker}; here is {there}"
        )
    return requirement


def _no_wheel(release: PyTorchRelease, channel: str, why: str) -> FactError:
    title = pytorch_pins.titles()[channel]
    return FactError(
        f"no Triton wheel to install for PyTorch {release.version}, {title}",
        why=why,
        hints=_build(release, channel),
    )


def _build(release: PyTorchRelease, channel: str) -> list[str]:
    """Return commands that build the pinned commit, as far as it is known."""
    own, pin = release.own_pins[channel], release.pin(channel)
    if own is None or pin is None:
        return [f"PyTorch {release.version} pins no Triton for this channel"]
    if pin.commit:
        place = "cuda" if own.same_file else channel
        (file,) = (file for file in pytorch_pins.pin_files() if file.channel == place)
        return _commands(pin.commit, file.repository)
    ask = command("pins", live=True, pytorch=release.version)
    hints = [f"its pin is unknown; to read PyTorch's own pin file: {ask}"]
    if pin.candidates:
        hints.append(f"unconfirmed candidates: {', '.join(pin.candidates)}")
    return [*hints, *_commands("COMMIT", "Triton")]


def _commands(commit: str, repository: str) -> list[str]:
    return [
        f"build the pinned commit, in a clone of {repository}: git checkout {commit}",
        "then: invoke setup-mlir, invoke build-triton, invoke install-triton",
    ]


def _leads(editable: Editable | None) -> str:
    """Return a suffix with the source tree of an editable install; empty for other installs."""
    target = (editable.project or editable.package) if editable else None
    return f", editable: {target or 'unknown source tree'}" if editable else ""


def _satisfied(requirement: Requirement, version: str) -> bool:
    """Report whether a published wheel of that version will do; `+git...` marks a private build."""
    try:
        parsed = Version(version)
        # `+git...` marks a private build: its version satisfies the requirement and
        # says nothing of its commit.
        return parsed.local is None and requirement.specifier.contains(parsed)
    except InvalidVersion:
        return False


def _plain(requirement: Requirement) -> str:
    return f"{canonicalize_name(requirement.name)}{requirement.specifier}"
