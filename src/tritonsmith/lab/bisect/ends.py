"""The two ends of a bisect: `3.4.0`, `v3.4.0`, `pytorch:2.9`, `installed`, or a commit of a clone."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler import tritons
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.versions import version_key
from tritonsmith.facts import eras, git_history, installed_tritons, pytorch_pins

_PYTORCH = "pytorch:"
_INSTALLED = "installed"
_RELEASE = re.compile(r"v?\d+\.\d+(\.\d+)?", re.ASCII)
_KINDS = "3.4.0, pytorch:2.9, installed; with --source, a commit, tag or branch"


@dataclass(frozen=True)
class BisectEnd:
    """One end.

    Attributes:
        text: as it was given.
        release: in full, `3.4.0`; empty for a commit.
        commit: 40 digits; empty for a release.
        spec: the Triton of a release; None for a commit, which may have to be built.
    """

    text: str
    release: str = ""
    commit: str = ""
    spec: Triton | None = None

    @property
    def name(self) -> str:
        """The release or the commit."""
        return self.release or self.commit


def parse(text: str, flag: str, clone: Path | None = None) -> BisectEnd:
    """One end from its text.

    Raises:
        UsageError: nothing of the kind, or a commit without a clone.
        FactError: nobody knows which Triton it is.
    """
    if not text:
        raise UsageError(f"{flag} is missing", hints=[f"{flag} takes {_KINDS}"])
    if text.startswith(_PYTORCH):
        return _release(text, _pytorch(text.removeprefix(_PYTORCH)))
    if text == _INSTALLED:
        return _installed(text)
    if _RELEASE.fullmatch(text):
        return _release(text, tritons.full(text.removeprefix("v")))
    if clone is None:
        hints = [f"{flag} takes {_KINDS}"]
        raise UsageError(f"{flag} cannot be {text!r} without a clone", hints=hints)
    with git_history.opened(clone) as repository:
        commit = git_history.resolve(repository, text)
    if not commit:
        hints = ["git fetch --all --tags"]
        raise UsageError(f"{flag}: no commit, tag or branch {text!r}", where=clone, hints=hints)
    return BisectEnd(text, commit=commit)


def releases_between(good: str, bad: str) -> tuple[str, ...]:
    """Releases on the package index from the good end to the bad one, both included, in this order.

    Raises:
        UsageError: the good end is the same as the bad one.
    """
    first, last = sorted((version_key(good), version_key(bad)))
    if first == last:
        raise UsageError(f"--good and --bad are the same release, {good}")
    every = {wheel for row in eras.releases() for wheel in row.wheels} | {good, bad}
    between = sorted((one for one in every if first <= version_key(one) <= last), key=version_key)
    return tuple(between if version_key(good) == first else reversed(between))


def _release(text: str, version: str) -> BisectEnd:
    return BisectEnd(text, release=version, spec=Triton(version, version=version))


def _pytorch(text: str) -> str:
    release = pytorch_pins.find(text).release
    if not release.cuda.version:
        hints = ["name the Triton itself: 3.4.0"]
        raise FactError(f"the Triton of PyTorch {release.version} is unknown", hints=hints)
    return release.cuda.version


def _installed(text: str) -> BisectEnd:
    found = installed_tritons.here(os.environ)
    python = found and next((one for one in _pythons(found.where) if os.access(one, os.X_OK)), None)
    if found is None or python is None:
        hints = ["activate the environment that has it", "or name the release: 3.4.0"]
        raise FactError("no Triton in the active environment, and none for Python on PATH", hints=hints)
    if found.checkout:
        hints = ["name the commit that it was built from, with --source CLONE"]
        raise FactError(
            f"the installed Triton {found.version} is a build, not a release", where=found.where, hints=hints
        )
    return BisectEnd(text, release=found.version, spec=Triton(found.version, python=str(python)))


def _pythons(site: Path) -> tuple[Path, ...]:
    """Interpreters whose packages are in this folder: PREFIX/lib/python3.11/site-packages."""
    folder = site.parent.parent.parent / "bin"
    return folder / site.parent.name, folder / "python3", folder / "python"
