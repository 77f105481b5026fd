"""Find installed Tritons: in the tool's environments, and for the interpreters in use."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.versions import version_key
from tritonsmith.facts import distributions, python_env
from tritonsmith.facts.python_env import PythonEnv

_VERSION = re.compile(r"""^__version__ = ["']([^"']+)["']""", re.MULTILINE)
_SITES = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "lib/python3/dist-packages")


@dataclass(frozen=True)
class InstalledTriton:
    """A Triton that could have made a cache entry.

    Attributes:
        version: its version as caches name it: without a local part such as `+git1234`.
        where: its folder of packages.
        checkout: it is installed from a checkout, whose version stays that of the last release for months.
    """

    version: str
    where: Path
    checkout: bool = False


def find(
    environ: Mapping[str, str], space: Workspace, packages: PythonEnv | None = None
) -> tuple[InstalledTriton, ...]:
    """Return every Triton in the tool's environments, in the active one, on PATH and for `packages`.

    Only files are read: the version in `triton/__init__.py` is the one that goes into an entry.
    """
    prefixes = dict.fromkeys([*sorted((space.root / "envs").glob("*/venv")), *_active(environ)])
    tritons = [triton for prefix in prefixes for triton in _in_prefix(prefix)]
    if packages:
        tritons += [
            InstalledTriton(_public(owner.version), packages.purelib, checkout=owner.editable is not None)
            for owner in distributions.owners(packages.distributions)
        ]
    return tuple(dict.fromkeys(tritons))


def here(environ: Mapping[str, str]) -> InstalledTriton | None:
    """Return the Triton that `python` imports in this shell: the active environment's, or that on PATH."""
    return next((triton for prefix in _active(environ) for triton in _in_prefix(prefix)), None)


def environments(space: Workspace) -> tuple[str, ...]:
    """Return the tool's environments that have a Triton."""
    envs = (space.env(folder.parent.name) for folder in sorted((space.root / "envs").glob("*/venv")))
    return tuple(env.name for env in envs if of_env(env))


def newest(space: Workspace) -> InstalledTriton | None:
    """Return the newest Triton in the tool's environments; None if there is none."""
    tritons = [triton for name in environments(space) if (triton := of_env(space.env(name)))]
    return max(tritons, key=lambda triton: version_key(triton.version), default=None)


def of_env(env: EnvDir) -> InstalledTriton | None:
    """Return the Triton of one of the tool's environments."""
    return next(_in_prefix(env.venv), None)


def of_python(executable: Path) -> InstalledTriton | None:
    """Return the Triton of an interpreter."""
    python = python_env.read(executable)
    sites = python.sites if python else ()
    return next((_installed(site) for site in sites if version_in(site)), None)


def version_in(site: Path) -> str:
    """Return the version of the Triton in a folder of packages; empty if there is none."""
    if _package(site).is_file():
        return version_of(site / "triton")
    return _public(python_env.installed_version(site, "triton"))  # an editable one leaves its distribution


def _package(site: Path) -> Path:
    return site / "triton" / "__init__.py"


def version_of(package: Path) -> str:
    """Return the version in a folder `triton`; empty if there is none."""
    match = _VERSION.search(untrusted.text_if_any(package / "__init__.py"))
    return _public(match[1]) if match else ""


def _in_prefix(prefix: Path) -> Iterator[InstalledTriton]:
    for pattern in _SITES:
        yield from (_installed(site) for site in sorted(prefix.glob(pattern)) if version_in(site))


def _installed(site: Path) -> InstalledTriton:
    return InstalledTriton(version_in(site), site, checkout=not _package(site).is_file())


def _active(environ: Mapping[str, str]) -> Iterator[Path]:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if environ.get(name):
            yield Path(environ[name])
    for folder in filter(None, environ.get("PATH", "").split(os.pathsep)):
        for name in ("python3", "python"):
            python = Path(folder) / name
            if os.access(python, os.F_OK) and Path(folder).parent != Path(sys.prefix):
                yield python.parent.parent  # a venv's
                yield python.resolve().parent.parent  # its base, or the system's
    if home := environ.get("HOME"):
        yield Path(home) / ".local"  # pip install --user


def _public(version: str) -> str:
    return version.partition("+")[0]
