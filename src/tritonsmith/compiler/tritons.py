"""A Triton that can compile: how it is spelled, as in `3.9.0,ptxas=13.0`, and how it is made ready.

A release is installed on demand into an environment of its own (`triton-3.4.0`), which is kept. So is a
nightly wheel (`nightly-3.6.0.dev20251012-gitfeedf00d`), and the newest release into the environment `wheel`,
where `up` finds it. A commit is built from the user's clone.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from packaging.version import Version

from tritonsmith.compiler import manifest, signature, targets
from tritonsmith.compiler.interpreter import Interpreter, choose_interpreter
from tritonsmith.compiler.request import CompileRequest, Sweep
from tritonsmith.compiler.targets import Target
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.envs.receipts import Session
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import FactError, LockedError, SmithError, StepError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan, Remove, digest, locks, stopping
from tritonsmith.core.plan.steps.base import CHUNK, CommandFailedError
from tritonsmith.core.process import query
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.facts import (
    checkout,
    git_history,
    installed_tritons,
    machine,
    package_owners,
    pytorch_pins,
)
from tritonsmith.wheels import ptxas, venv
from tritonsmith.wheels.ptxas import RegistryPtxas

WHEEL = "triton-"  # `triton-3.4.0`: the environment of a release
_VERSION = re.compile(r"\d+(\.\d+){1,2}((a|b|rc|\.post|\.dev)\d+)*", re.ASCII)
_OPTION = re.compile(r"([A-Za-z_]\w*)=(?!=)(.+)", re.ASCII | re.DOTALL)
_INFO = ".dist-info"
_PTXAS = "ptxas"
# Spellings that tell where a Triton is from.
_PYTORCH, _INSTALLED, _NIGHTLY, _COMMIT = "pytorch:", "installed", "nightly:", "commit "
# Upstream's tags (`v3.4.0`) and branches (`release/3.4.x`) spell a release nearly alike: a number is the
# release.
_RELEASE = re.compile(r"v?\d+\.\d+(\.\d+)?", re.ASCII)
_DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)", re.ASCII)
_ENDS = "3.4.0, pytorch:2.9, installed, nightly:2026-11-20; with --source, a commit, tag or branch"
_SITES = ("lib/python3*/site-packages", "lib/python3*/dist-packages")
TASK = "up"  # the task that makes a wheel's environment: names its receipt and logs
# Seconds to wait while another process makes the same environment: a wheel has more than 150 MB, and networks
# are slow.
PATIENCE = 1800.0
_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")
_AVAILABLE = re.compile(r"^Available versions: (.*)$", re.MULTILINE)
_ANSWER = 60.0  # seconds that the package index may take
_LINES = 8  # of pip's output in an error


@dataclass(frozen=True)
class CommitSource:
    """The sources of a Triton that is built from a commit.

    Attributes:
        clone: the repository that has the commit.
        env: environment whose settings the build has, by name or file.
        version: the version that its package has: `3.6.0`.
        content: a key of everything that its compiles depend on, which commits may share.
    """

    clone: Path
    env: str
    version: str
    content: str


@dataclass(frozen=True)
class Triton:
    """A Triton and what it compiles for.

    Of `env`, `version`, `python`, `commit` and `folder` at most one is set, but for two: a nightly has a
    commit and the interpreter of the environment that its wheel is installed into, and a commit with `source`
    has the interpreter that its build makes, which need not exist yet.

    Attributes:
        label: the text that it was parsed from.
        env: an environment, by name or file.
        version: a release of Triton, in full: `3.4.0`.
        python: an interpreter, absolute.
        targets: its targets; those of the other flags if empty.
        options: of the backend, and constants of the kernel: name to value.
        folder: compiled kernels: an output folder, or a folder that contains some.
        ptxas: a ptxas other than the one of its Triton, in full: `13.0.88`.
        commit: of Triton, 40 hex digits, or as many as the name of a nightly has.
        url: of a nightly's wheel, with the checksum if its index has it.
        source: of a commit that is built to compile kernels; None for anything else.
    """

    label: str
    env: str = ""
    version: str = ""
    python: str = ""
    targets: tuple[Target, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    ptxas: str = ""
    commit: str = ""
    url: str = ""
    source: CommitSource | None = None

    @property
    def triton(self) -> str:
        """The version of its Triton, as far as files tell; empty if they do not."""
        # Of a commit by its files: the same before it is built as after, and without the hash that a build
        # adds, by which a list's `versions` would judge.
        if self.source:
            return self.source.version
        return self.version or (installed(Path(self.python)) if self.python else "")


def parse(text: str, *, targets_too: bool = True) -> Triton:
    """Parse a side: words between commas, as in `3.4.0,h100`, `debug,num_warps=8,ptxas=13.0`, `out/before`.

    `3.4` means 3.4.0, as in PEP 440, not the newest of its patches.

    Args:
        text: the words.
        targets_too: suggest targets and options, too, for a word that is nothing known.

    Raises:
        UsageError: a word is none of these, or contradicts another.
        FactError: the package index does not tell whether it has a ptxas.
    """
    words = [word for word in signature.split_values(text) if word]
    if not words:
        raise UsageError(
            "one side is empty", hints=["give a version (3.4.0), an environment, a target or an option"]
        )
    side = Triton(text.strip())
    for word in words:
        side = _with(side, word, alone=len(words) == 1, targets_too=targets_too)
    return side


def parse_end(
    text: str,
    flag: str,
    clone: Path | None = None,
    nightlies: Callable[[], Sequence[Triton]] | None = None,
) -> Triton:
    """Parse an end of a bisect: a release, a nightly or, with a clone, a commit, a tag or a branch.

    Its label is the release in full, the version of the nightly, or all digits of the commit.

    Args:
        text: `3.4.0`, `v3.4`, `pytorch:2.9`, `installed`, `nightly:2026-11-20`, `main`, `commit 1a2b3c4`.
        flag: the flag that has it, for errors.
        clone: a clone of Triton; None if none was given.
        nightlies: reads those of an index; None if none was given.

    Raises:
        UsageError: it is nothing of the kind, or needs a clone or an index.
        FactError: it is unknown which Triton that is.
    """
    if not text:
        raise UsageError(f"{flag} is missing", hints=[f"{flag} takes {_ENDS}"])
    if _RELEASE.fullmatch(text):
        version = full(text.removeprefix("v"))
        return Triton(version, version=version)
    if end := _from(text, clone, nightlies):
        return end
    # A plain word is a branch or a tag here, even if an environment has the same name.
    if clone is None:
        raise UsageError(f"{flag} cannot be {text!r} without a clone", hints=[f"{flag} takes {_ENDS}"])
    try:
        return _commit(text, clone)
    except UsageError as error:
        raise UsageError(f"{flag}: {error.what}", where=error.where, hints=error.hints) from error


def is_nightly(text: str) -> bool:
    """Report whether a text names a nightly, so that an index of nightlies has to tell what it is."""
    return text.startswith(_NIGHTLY)


def _from(
    word: str, clone: Path | None = None, nightlies: Callable[[], Sequence[Triton]] | None = None
) -> Triton | None:
    """Return the Triton of a word that says where it is from; None for any other word."""
    if word.startswith(_PYTORCH):
        version = _of_pytorch(word.removeprefix(_PYTORCH))
        return Triton(version, version=version)
    if word == _INSTALLED:
        return _installed()
    if is_nightly(word):
        if nightlies is None:
            raise UsageError(
                f"{word} needs an index of nightlies",
                hints=[f"name one: {command('bisect', nightlies='URL')}"],
            )
        return _nightly(word.removeprefix(_NIGHTLY), nightlies())
    if word.startswith(_COMMIT):
        if clone is None:
            raise UsageError(
                f"{word} needs a clone of Triton", hints=[f"name one: {command('bisect', source='CLONE')}"]
            )
        return _commit(word.removeprefix(_COMMIT).strip(), clone)
    return None


def _of_pytorch(text: str) -> str:
    release = pytorch_pins.find(text).release
    if not release.cuda.version:
        hints = ["name the Triton itself: 3.4.0"]
        raise FactError(f"the Triton of PyTorch {release.version} is unknown", hints=hints)
    return release.cuda.version


def _installed() -> Triton:
    active = installed_tritons.here(os.environ)
    python = active and next((path for path in pythons_of(active.where) if os.access(path, os.X_OK)), None)
    if active is None or python is None:
        hints = ["activate the environment that has it", "or name the release: 3.4.0"]
        raise FactError("no Triton in the active environment, and none for Python on PATH", hints=hints)
    # A build has the version of a release, and may be any commit after it.
    if active.checkout:
        hints = ["name the commit that it was built from, with --source CLONE"]
        what = f"the installed Triton {active.version} is a build, not a release"
        raise FactError(what, where=active.where, hints=hints)
    return Triton(active.version, python=str(python))


def pythons_of(site: Path) -> tuple[Path, ...]:
    """Return interpreters whose packages are in this folder: PREFIX/lib/python3.11/site-packages."""
    folder = site.parent.parent.parent / "bin"
    return folder / site.parent.name, folder / "python3", folder / "python"


def _nightly(text: str, nightlies: Sequence[Triton]) -> Triton:
    """Return the nightly of a date or a version; the last one of several.

    Raises:
        UsageError: the index has none.
    """
    date = _DATE.fullmatch(text)
    end = f".dev{''.join(date.groups())}" if date else ""
    named = [row for row in nightlies if row.label == text or (end and end in row.label.partition("+")[0])]
    if not named:
        hints = did_you_mean(text, [row.label for row in nightlies])
        raise UsageError(f"the index of nightlies has no {text}", hints=hints)
    return named[-1]


def _commit(text: str, clone: Path) -> Triton:
    # Resolved now: a branch may move while a bisect runs.
    with git_history.opened(clone) as repository:
        commit = git_history.resolve(repository, text)
    if not commit:
        hints = ["git fetch --all --tags"]
        raise UsageError(f"no commit, tag or branch {text!r}", where=clone, hints=hints)
    return Triton(commit, commit=commit)


def joined(words: Iterable[str]) -> list[str]:
    """Rejoin sides of a list that was split at every comma: `3.9.0`, `ptxas=13.0` are one side."""
    # No Triton is spelled NAME=VALUE, so such a word always belongs to the side before it.
    sides: list[str] = []
    for word in words:
        if sides and _OPTION.fullmatch(word):
            sides[-1] += f",{word}"
        else:
            sides.append(word)
    return sides


def applied(request: CompileRequest, side: Triton) -> CompileRequest:
    """Return the request with the targets, options and constants of a side.

    Raises:
        UsageError: a sweep is over a name that the side sets.
    """
    if not side.targets and not side.options:
        return request
    both = [sweep.name for sweep in request.sweeps if sweep.name in side.options]
    if both:
        raise UsageError(f"both --sweep and the side {side.label} set {both[0]}", hints=["omit one of them"])
    # Each is a sweep of one value: this overrides the signature, and puts the value into the point's name.
    fixed = tuple(Sweep(name, (signature.spell_value(value),)) for name, value in side.options.items())
    return replace(request, targets=side.targets or request.targets, sweeps=(*request.sweeps, *fixed))


def installed(python: Path) -> str:
    """Return the version of the Triton beside an interpreter, read from files; empty if there is none."""
    site = _site(python)
    return installed_tritons.version_in(site) if site else ""


def package(python: Path) -> Path:
    """Return the folder of the Triton beside an interpreter, unless that was installed from a checkout."""
    return (_site(python) or python.parent) / "triton"


def is_checkout(python: Path) -> bool:
    """Report whether that Triton is installed from a checkout: its package is then elsewhere."""
    site = _site(python)
    return site is not None and not (site / "triton" / "__init__.py").is_file()


def fingerprint(python: Path) -> str:
    """Return a key of the content of the Triton that an interpreter imports; empty if there is none to find.

    A version does not tell two Tritons apart: a checkout has that of its last release for months.
    """
    rows = []
    for name, path, about in _files(python):
        base = name.rpartition("/")[2]
        # What compiles is read. The rest of a wheel, such as profilers, has some hundred MiB.
        whole = base.endswith((".py", ".bc")) or base.startswith(("libtriton", _PTXAS))
        content = _sum(path, about.st_size, about.st_mtime_ns) if whole else str(about.st_size)
        rows.append((name, content))
    return digest(rows) if rows else ""


def state(python: Path) -> str:
    """Return a key of what an interpreter imports as Triton; empty if there is none to find.

    The files of the package, of the interpreter and of what decides where Python looks count by their sizes,
    times and modes.
    """
    site = _site(python)
    rows = [(name, *_about(about)) for name, _, about in _files(python)]
    if site is None or not rows:
        return ""
    # `.pth` files and the entry points of backends lie beside the package.
    beside = sorted(site.iterdir())
    infos = [path for folder in beside if folder.suffix == _INFO for path in sorted(folder.iterdir())]
    own = [python.resolve(), python, python.parents[1] / "pyvenv.cfg", *beside, *infos]
    # Python writes into folders, so these count by their names.
    states = [_about(path.lstat()) if path.is_file() or path.is_symlink() else () for path in own]
    return digest(rows, [(str(path), *state) for path, state in zip(own, states, strict=True)])


def _about(status: os.stat_result) -> tuple[int, ...]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode


def _files(python: Path) -> Iterator[tuple[str, str, os.stat_result]]:
    """Yield the files of the Triton that an interpreter imports: names in the package, paths and states."""
    site = _site(python)
    if site is None:
        return
    folder = site / "triton"
    if not (folder / "__init__.py").is_file():  # an editable install, or the interpreter of a commit
        hooks = [*sorted(site.glob("*.pth")), *sorted(site.glob("*_finder.py"))]
        folder = package_owners.editable_package(hooks) or folder
    visited = set[str]()
    # Links are followed: backends of a checkout, and all libraries of a commit, lie elsewhere.
    for parent, inner, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(parent)
        # A link that leads back would be followed for ever.
        inner[:] = [] if real in visited else sorted(set(inner) - {"__pycache__"})
        visited.add(real)
        inside = parent[len(str(folder)) + 1 :]
        # As texts: a worker looks at seven hundred files for each unit, of which paths would take the most.
        for name in sorted(names):
            path = f"{parent}/{name}"
            with suppress(OSError):  # a link to nothing
                yield f"{inside}/{name}" if inside else name, path, os.stat(path)  # noqa: PTH116 - see above


def changed(python: Path) -> str:
    """Return a key of the packages beside an interpreter, which is another one after each install by pip."""
    site = _site(python)
    # Whatever is installed or removed there, such as torch, is a new entry of the folder, or one that goes.
    return str(site.stat().st_mtime_ns) if site else ""


@cache
def _sum(path: str, _size: int, _changed: int) -> str:
    """Return the SHA-256 of a file; once for its size and time, as a worker compares it for each unit."""
    content = hashlib.sha256()
    with untrusted.opened(Path(path)) as file:
        while piece := file.read(CHUNK):
            content.update(piece)
    return content.hexdigest()


def _site(python: Path) -> Path | None:
    # Not `resolve`: the interpreter of a virtual environment is a link to one without Triton.
    prefix = python.parent.parent
    sites = (site for pattern in _SITES for site in sorted(prefix.glob(pattern)))
    return next((site for site in sites if installed_tritons.version_in(site)), None)


def _with(side: Triton, word: str, *, alone: bool, targets_too: bool) -> Triton:
    if match := _OPTION.fullmatch(word):
        return _with_option(side, match[1], match[2])
    if (named_targets := _targets(word)) is not None:
        return replace(side, targets=tuple(dict.fromkeys((*side.targets, *named_targets))))
    # Before names of environments and releases: whoever has compiled into a folder `debug` means that folder.
    path = Path(word).expanduser().absolute()
    if path.is_dir() and next(path.rglob(manifest.FILE), None):
        if not alone:
            raise UsageError(
                f"{word} is already compiled and cannot be combined with other words",
                hints=[f"give {word} alone"],
            )
        return replace(side, folder=path)
    if side.env or side.version or side.python:
        raise UsageError(
            f"{side.label} names two Tritons: {side.env or side.version or side.python} and {word}",
            hints=["each side has one Triton; compare it with the other side"],
        )
    number = word.removeprefix(WHEEL)
    named = Triton(word, version=full(number)) if _VERSION.fullmatch(number) else None
    if not named and (word.endswith(".toml") or word in {name for name, _, _ in settings.available()}):
        settings.find(word)
        return replace(side, env=word)
    if not named and path.is_file() and os.access(path, os.X_OK):
        return replace(side, python=str(path))
    named = named or _from(word)
    if named is None:
        raise _unknown(word, path, targets_too=targets_too)
    return replace(side, version=named.version, python=named.python)


def _with_option(side: Triton, name: str, text: str) -> Triton:
    if name in side.options or (name == _PTXAS and side.ptxas):
        raise UsageError(f"{side.label} sets {name} twice", hints=["omit one of them"])
    # In full, because `13.0` names whatever the registry has newest of it, and results are kept by this name.
    if name == _PTXAS:
        return replace(side, ptxas=ptxas.resolve(text, ptxas.pip_python(Path(sys.executable))))
    return replace(side, options={**side.options, name: signature.parse_value(text)})


def _targets(word: str) -> tuple[Target, ...] | None:
    try:
        return targets.parse_all([word])
    except UsageError:
        return None


def full(version: str) -> str:
    """Return a version with at least three numbers: `3.4.0` for `3.4`."""
    # PEP 440 takes 3.4 and 3.4.0 for one version, and environments are named by their text.
    parsed = Version(version)
    number = ".".join(map(str, (*parsed.release, 0, 0)[: max(3, len(parsed.release))]))
    return f"{number}{str(parsed).removeprefix(parsed.base_version)}"


def _unknown(word: str, path: Path, *, targets_too: bool) -> UsageError:
    if wrong := targets.mistaken(word):
        return wrong
    if path.is_dir():
        python = path / "bin" / "python"
        hint = "invoke kernel.compile --out DIR creates such folders"
        hint = f"its interpreter: {python}" if python.is_file() else hint
        return UsageError(f"{word} is a folder without compiled kernels", hints=[hint])
    if "/" in word:
        return UsageError("no such interpreter, folder or env file", where=path)
    if not targets_too:
        return UsageError(f"{word!r} is not a Triton", hints=did_you_mean(word, _known()))
    known = (*_known(), *targets.known(), targets.ALL)
    hints = [*did_you_mean(word, known), "options are NAME=VALUE, paths contain a /"]
    return UsageError(f"{word!r} is neither a Triton nor a target", hints=hints)


def _known() -> Iterator[str]:
    yield from (name for name, _, _ in settings.available())
    yield from (path.parent.name for path in workspace.default().root.glob(f"envs/{WHEEL}*/venv"))
    yield from (row.version for row in checkout.triton_releases())


def env_of(version: str) -> EnvDir:
    """Return the folder of a release's environment, which may not exist yet."""
    return workspace.default().env(f"{WHEEL}{version}")


def plan(version: str) -> Plan:
    """Return steps that make the environment; none if it exists and has that release.

    Raises:
        FactError: the base interpreter does not exist.
    """
    # The same base interpreter as `--env wheel`, so that a user's setting of it holds for releases, too.
    env = env_of(version)
    base = venv.base_interpreter(settings.load("wheel").python.interpreter)
    whole = venv.plan(env, base, large=f"triton=={version}")
    todo = tuple(step for step in whole.steps if not (step.stamp and step.stamp.holds()))
    if todo or installed_tritons.version_in(venv.site_packages(env, base)) == version:
        return replace(whole, steps=todo)
    # The stamp of the installation holds, but the user has installed another Triton there since.
    install = whole.steps[-1]
    return replace(
        whole, steps=(replace(install, stamp=install.stamp and replace(install.stamp, again=True)),)
    )


def check(versions: Iterable[str]) -> None:
    """Check that the package index has all releases that are not installed yet, before one is installed.

    Raises:
        UsageError: there is no such release for this Python.
    """
    # All at once, before the first is installed: a misspelled last one would be reported after minutes.
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


def make(version: str, *, patience: float = PATIENCE) -> EnvDir:
    """Create the environment of a release (in full) if needed; wait `patience` seconds if it is locked.

    Raises:
        UsageError: there is no such release for this Python.
        StepError: it could not be installed.
        LockedError: another process held the lock all that time.
    """
    env = env_of(version)
    _make(env, f"triton=={version}", lambda: plan(version), patience)
    return env


def make_all(versions: Iterable[str]) -> None:
    """Create the environments of several releases, as many at once as there are cores.

    One that is missing alone is left to `make`, which shows its steps.

    Raises:
        SmithError: as `make`, for the first that fails; the others are stopped.
        KeyboardInterrupt: ^C, after all were stopped.
    """
    missing = [version for version in dict.fromkeys(versions) if version and plan(version).steps]
    if len(missing) < 2:  # noqa: PLR2004 - several
        return
    began = time.monotonic()
    with PhaseProgress() as progress:
        progress.begin(venv.PHASE)
        calls = {version: partial(make, version) for version in missing}
        with closing(stopping.at_once(calls, machine.read().cores)) as ready:
            for count, (version, _) in enumerate(ready, 1):
                progress.update(count, len(missing), version)
        progress.end(time.monotonic() - began)


def wheel_plan(chosen: Settings, env: EnvDir) -> Plan:
    """Return steps that make an environment whose settings name a wheel, and install what they name.

    Raises:
        FactError: the base interpreter does not exist.
    """
    base = venv.base_interpreter(chosen.python.interpreter)
    torch = (venv.torch_requirement(chosen.python.torch),) if chosen.python.torch != "none" else ()
    return venv.plan(env, base, *torch, large=_requirement(chosen))


def missing_wheel(name: str) -> Plan:
    """Return the steps of `wheel_plan` for an environment that has no Triton yet; none for any other.

    An environment whose settings build Triton, or in which the user has changed something, stays as it is.

    Args:
        name: an environment, by name or file.

    Raises:
        SmithError: there is no such environment, or its base interpreter does not exist.
    """
    chosen = settings.load(name)
    env = workspace.default().env(chosen.name)
    begun = untrusted.exists(env.path / venv.MADE) and not untrusted.exists(env.venv / venv.STAMP)
    # An installation that was stopped leaves an interpreter without Triton. Without the first mark, the user
    # has made the environment, and may have put a Triton there that no file tells of.
    absent = not untrusted.exists(env.python) or (begun and not installed(env.python))
    return wheel_plan(chosen, env) if absent and chosen.triton.wheel else Plan("nothing is missing")


def make_wheel(name: str) -> None:
    """Install the wheel of an environment that has no Triton yet, as `up` does, which then finds it there.

    Raises:
        StepError: it could not be installed.
        LockedError: another process held the lock for half an hour.
    """
    chosen = settings.load(name)
    env = workspace.default().env(chosen.name)
    _make(env, _requirement(chosen), lambda: missing_wheel(name), PATIENCE)


def _requirement(chosen: Settings) -> str:
    return "triton" if chosen.triton.wheel == "newest" else f"triton=={chosen.triton.wheel}"


def _make(env: EnvDir, requirement: str, steps: Callable[[], Plan], patience: float) -> None:
    """Run the steps that an environment lacks, once no other process holds its lock."""
    until = time.monotonic() + patience
    while steps().steps:
        try:
            with _session(env.name) as running:
                _act(requirement, steps, running)
            break
        except LockedError:
            if time.monotonic() > until:
                raise
            # Not a blocking lock: whether the environment is complete is asked again each time.
            stopping.check()
            time.sleep(0.5)


def place_of(
    side: Triton, jobs: int | None = None, timeout: int | None = None, env: str = "wheel"
) -> Interpreter:
    """Return the interpreter of a side; create the environment of a release if needed.

    Args:
        side: names a Triton, or none.
        jobs: compiles at once; None or 0 for as many as cores and memory allow.
        timeout: seconds for one point; None or 0 for the default.
        env: environment of a side that names no Triton.

    Raises:
        SmithError: there is no such Triton, or it could not be installed.
    """
    env, python = ("", str(make(side.version).python)) if side.version else (side.env or env, side.python)
    place = choose_interpreter(env, python, jobs=jobs, timeout=timeout)
    if side.ptxas:
        place, other = with_ptxas(place, side.ptxas)
        ptxas.install(other, place.space)
    return place


def plan_of(side: Triton) -> Plan:
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


def with_ptxas(place: Interpreter, version: str) -> tuple[Interpreter, RegistryPtxas]:
    """Return the interpreter with another ptxas, and that ptxas, which is not installed yet.

    Raises:
        SmithError: there is no such ptxas.
    """
    python = ptxas.pip_python(place.python)
    other = ptxas.prepare(ptxas.resolve(version, python), place.space, machine.read(), python)
    flags = {**place.flags, "ptxas": other.version}
    return replace(place, flags=flags, variables=ptxas.variables(other.path)), other


def python_of(side: Triton) -> Path:
    """Return the interpreter of a side that names a release or an interpreter; it may not exist yet."""
    return env_of(side.version).python if side.version else Path(side.python)


def _act(requirement: str, steps: Callable[[], Plan], running: Session) -> None:
    try:
        # Planned again under the lock: its previous holder may have made the environment.
        running.run(steps())
    except CommandFailedError as failure:
        error = _explain(requirement.partition("==")[2], failure)
        # There is no such release, so nobody will ever use its folder.
        if isinstance(error, UsageError):
            env = running.env
            gone = Remove((env.venv, env.path / ".venv.done"), env.root, phase=venv.PHASE)
            running.run_unseen((gone,))
        raise error from failure
    running.leave_receipt({"env": running.env.name, "requirement": requirement})


@contextmanager
def _session(name: str) -> Iterator[Session]:
    """Open a session as every task does, also in a thread of a Dask worker."""
    with ExitStack() as held:
        # Signal handlers can be installed in the main thread only.
        if threading.current_thread() is threading.main_thread():
            yield held.enter_context(receipts.open_session(TASK, name))
            return
        space = workspace.default()
        space.claim()
        env = space.env(name)
        env.make()
        held.enter_context(locks.hold(env.lock, purpose=f"{TASK} --env {name}"))
        # Nor can several threads have a log of one name, or draw bars on one screen.
        yield Session(TASK, space, env, space.log(f"{TASK}-{name}"), quiet=True)


def _explain(version: str, failure: CommandFailedError) -> SmithError:
    output = [line for line in failure.output if line.strip() and not line.startswith("WARNING: Retrying")]
    why = "\n".join(output[-_LINES:])
    complete = not venv.gave_up_on_an_index("\n".join(failure.output))
    listed = _VERSIONS.search(why) if complete else None
    versions = [] if listed is None else [word for word in listed[1].split(", ") if word != "none"]
    if version and versions:
        hints = did_you_mean(version, versions)
        return UsageError(f"the package index has no Triton {version} for this Python", why=why, hints=hints)
    hints = (
        "check that pip can reach its index; behind a proxy, set https_proxy",
        f"full log: {failure.log}",
    )
    release = f"Triton {version}" if version else "the newest Triton"
    what = f"cannot install {release} (exit code {failure.code})"
    return StepError(what, where=failure.log, why=why, hints=hints)
