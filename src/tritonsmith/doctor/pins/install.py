"""Read and judge the torch and Triton of an interpreter, and install the Triton that a torch requires.

Neither is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from tritonsmith.core.command_line import command
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.envs.receipts import Session
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import FactError, SmithError, StepError, UsageError
from tritonsmith.core.plan import Plan, Remove, Run, Step
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.facts import libtriton, package_owners, python_env, pytorch_pins
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.package_owners import PACKAGE, Distribution, Editable
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.facts.pytorch_pins import PinMatch, PyTorchRelease, Torch
from tritonsmith.wheels import venv

__all__ = ["InstalledTorch", "Owner", "Torch", "judge", "read_installed", "release_of"]


@dataclass(frozen=True)
class Owner:
    """A distribution that owns `triton/`.

    Attributes:
        name: the name of the distribution.
        version: its version, with the local part.
        commit: the digits of Triton's commit, from the version or pip's record; else empty.
        known_by: the source of the commit, if it is not in the version.
        llvm: the LLVM in its libtriton.so, as a commit or version; empty if there is a torch.
    """

    name: str
    version: str
    commit: str
    known_by: str = ""
    llvm: str = ""


@dataclass(frozen=True)
class InstalledTorch:
    """The torch and Triton of an interpreter.

    Attributes:
        python: the interpreter.
        torch: its torch; None for none.
        owners: the distributions that own `triton/`; several overwrite each other's files.
        release: the row of the table; None for a torch that is not a release.
        agrees: Triton matches this torch; None if undecided.
        reasons: the reasons, each a sentence.
    """

    python: Path
    torch: Torch | None
    owners: tuple[Owner, ...]
    release: PyTorchRelease | None
    agrees: bool | None
    reasons: tuple[str, ...]


def read_installed(python: Path) -> InstalledTorch:
    """Read an interpreter's torch and Triton.

    Raises:
        FactError: the interpreter does not run, or has neither a torch nor a Triton.
    """
    packages = python_env.read(python)
    if packages is None:
        raise FactError(
            "this Python does not run",
            where=python,
            why=None if python.exists() else "no such file",
            hints=["choose another: --python PATH, or an environment: --env NAME"],
        )
    torch = pytorch_pins.read_torch(packages)
    if torch is None:
        return _without_torch(python, packages)
    # Only by the version: beside a torch the question is whether both match, and reading each library for
    # its LLVM would not answer it.
    owners = tuple(
        Owner(name, version, package_owners.commit_in(version))
        for name, version in packages.dists
        if name in packages.triton_owners
    )
    release = release_of_torch(torch.version)
    agrees, reasons = judge(torch, owners, release)
    return InstalledTorch(python, torch, owners, release, agrees, reasons)


def python_of(env: str) -> Path:
    """Return the interpreter of an environment.

    Raises:
        FactError: the environment has no virtual environment.
    """
    folder = workspace.default().env(settings.load(env).name)
    if not folder.python.exists():
        raise FactError(
            f"environment {folder.name!r} has no virtual environment yet",
            where=folder.venv,
            hints=["give a Python with torch: --python PATH", "or another environment: --env NAME"],
        )
    return folder.python


def _without_torch(python: Path, packages: PythonEnv) -> InstalledTorch:
    """Read the Triton of an interpreter without a torch, from its wheel's metadata and library."""
    owners = tuple(map(_owner, package_owners.owners(packages.distributions)))
    if not owners:
        raise FactError(
            "no torch in this Python, and no Triton",
            where=python,
            hints=[
                "choose a Python that has one: --python PATH, or an environment: --env NAME",
                "or use the table: invoke pins --pytorch VERSION",
            ],
        )
    return InstalledTorch(python, None, owners, None, None, ("no torch here requires a Triton",))


def _owner(distribution: Distribution) -> Owner:
    """Return a distribution with Triton's commit and LLVM, as far as they are known."""
    version = distribution.version
    commit, known_by = package_owners.commit_in(version), ""
    if not commit:
        # pip's record of a source in git is the only trace where the version has no commit.
        commit, known_by = package_owners.editable_commit(distribution.info), "direct_url.json"
    # The published wheels of `triton` have plain versions; the table knows what those were built from.
    if not commit and distribution.name == "triton":
        rows = (row for row in pytorch_pins.releases() if row.cuda.version == version)
        row = next((row for row in rows if row.wheel.commit), None)
        commit = row.wheel.commit if row else ""
        known_by = f"the wheel that PyTorch {row.version} requires" if row else ""
    return Owner(distribution.name, version, commit, known_by if commit else "", _llvm(distribution))


def _llvm(distribution: Distribution) -> str:
    """Return the LLVM in a distribution's libtriton.so; empty if it is not recorded."""
    for path in libtriton.find(distribution.site / PACKAGE):
        with suppress(OSError):
            library = libtriton.read(path)
            return library.llvm_commit or library.llvm_version
    return ""


def release_of_torch(version: str) -> PyTorchRelease | None:
    """Return the release of a torch; None for a nightly, or one that is newer than the table."""
    try:
        return pytorch_pins.find(version).release
    except UsageError:
        return None


def judge(
    torch: Torch, owners: tuple[Owner, ...], release: PyTorchRelease | None
) -> tuple[bool | None, tuple[str, ...]]:
    """Decide whether the owners of `triton/` match a torch and its row of the table, if any, and why."""
    judgements = tuple(_judgements(torch, owners, release))
    verdicts = {agrees for agrees, _ in judgements}
    # One contradiction decides; a doubt only prevents a yes.
    doubtful = None if None in verdicts else True
    return (False if False in verdicts else doubtful), tuple(reason for _, reason in judgements)


def _judgements(
    torch: Torch, owners: tuple[Owner, ...], release: PyTorchRelease | None
) -> Iterator[tuple[bool | None, str]]:
    if len(owners) > 1:
        names = ", ".join(f"{owner.name} {owner.version}" for owner in owners)
        yield False, f"several distributions own triton/ and overwrite each other's files: {names}"
    # The metadata of this very torch counts more than the table, which has the requirement of its CUDA build.
    if torch.requires:
        yield _fits("torch", torch.requires, owners)
    elif owners and release is not None:
        who = f"this torch requires no Triton; PyTorch {release.version} for CUDA"
        yield _fits(who, release.cuda.requires, owners)
    else:
        yield None, "this torch requires no Triton, as CPU builds and builds from sources do not"
    for owner in owners:
        # The version alone proves little: many commits were built as 3.0.0.
        if release is not None and owner.commit:
            yield _commit_fits(owner, release)
    if release is None:
        unlisted = f"torch {torch.version} is not a release in the table"
        yield None, f"{unlisted}, so its pin is that of its own commit"


def _fits(who: str, line: str, owners: tuple[Owner, ...]) -> tuple[bool | None, str]:
    requirement = Requirement(line)
    specification = f"{requirement.name}{requirement.specifier}"
    named = [owner for owner in owners if owner.name == canonicalize_name(requirement.name)]
    if not named:
        instead = ", ".join(f"{owner.name} {owner.version}" for owner in owners) or "no Triton"
        return False, f"{who} requires {specification}; installed is {instead}"
    version = named[0].version
    # `prereleases`: a version of one's own, such as 3.5.0.dev1, is not refused for being a prerelease.
    try:
        fits = requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return None, f"{who} requires {specification}; {version!r} cannot be compared"
    return fits, f"{who} requires {specification}; installed is {version}"


def _commit_fits(owner: Owner, release: PyTorchRelease) -> tuple[bool | None, str]:
    """Compare the commit in a version with the release's pins and its wheel."""
    text = f"{owner.name} {owner.version} was built from {owner.commit}"
    # A version has only the first digits of its commit, hence `startswith`.
    pins = [pin for pin in release.own_pins.values() if pin is not None]
    if any(pin.commit.startswith(owner.commit) for pin in pins):
        return True, f"{text}, which PyTorch {release.version} pins"
    if any(candidate.startswith(owner.commit) for pin in pins for candidate in pin.candidates):
        return None, f"{text}, an unconfirmed candidate for the pin of PyTorch {release.version}"
    if not release.cuda.commit:
        return None, f"{text}; the pin of PyTorch {release.version} is unknown"
    return False, f"{text}, which PyTorch {release.version} does not pin"


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
    # Only for the hint: a nightly torch knows the commit that it was built from, which beats the branch.
    ref = "nightly"
    if not text:
        try:
            torch = read_installed(folder.python).torch
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
                *_build_commands("COMMIT", "Triton"),
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
        f"{name} {versions.get(name, '')}".strip() + _editable_suffix(editable.get(name)) for name in owners
    )
    # An editable install has the wheel's name and may have its version, but other code.
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
    # A venv whose stamp no longer holds is created again, so what is in it now does not count.
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
        # pip writes its error last, after all that it tried.
        lines = [line for line in failure.output if line.strip()][-8:]
        raise StepError(
            f"{failure.step.phase}: {prepared.requirement} could not be installed",
            where=failure.log,
            why="\n".join(lines),
            hints=[
                f"check that pip can reach its index: pip download --no-deps '{prepared.requirement}'",
                "an old Triton has no wheel for a new Python: set [python] interpreter in the env file",
                *_build_hints(release, "cuda"),
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
    # Without these values `Marker.evaluate` would judge the interpreter that runs this tool.
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
        hints=_build_hints(release, channel),
    )


def _build_hints(release: PyTorchRelease, channel: str) -> list[str]:
    """Return commands that build the pinned commit, as far as it is known."""
    own, pin = release.own_pins[channel], release.pin(channel)
    if own is None or pin is None:
        return [f"PyTorch {release.version} pins no Triton for this channel"]
    # Where a channel shares CUDA's file, the commit is one of CUDA's repository.
    if pin.commit:
        place = "cuda" if own.same_file else channel
        (file,) = (file for file in pytorch_pins.pin_files() if file.channel == place)
        return _build_commands(pin.commit, file.repository)
    ask = command("pins", live=True, pytorch=release.version)
    hints = [f"its pin is unknown; to read PyTorch's own pin file: {ask}"]
    if pin.candidates:
        hints.append(f"unconfirmed candidates: {', '.join(pin.candidates)}")
    return [*hints, *_build_commands("COMMIT", "Triton")]


def _build_commands(commit: str, repository: str) -> list[str]:
    return [
        f"build the pinned commit, in a clone of {repository}: git checkout {commit}",
        "then: invoke setup-mlir, invoke build-triton, invoke install-triton",
    ]


def _editable_suffix(editable: Editable | None) -> str:
    """Return a suffix with the source tree of an editable install; empty for other installs."""
    target = (editable.project or editable.package) if editable else None
    return f", editable: {target or 'unknown source tree'}" if editable else ""


def _satisfied(requirement: Requirement, version: str) -> bool:
    """Report whether a published wheel of that version will do."""
    try:
        parsed = Version(version)
        # `+git...` marks a private build: its version satisfies the requirement and
        # says nothing of its commit.
        return parsed.local is None and requirement.specifier.contains(parsed)
    except InvalidVersion:
        return False


def _plain(requirement: Requirement) -> str:
    return f"{canonicalize_name(requirement.name)}{requirement.specifier}"
