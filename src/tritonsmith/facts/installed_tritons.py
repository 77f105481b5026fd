"""Find installed Tritons, the one that an import would find, files without an owner, and running processes.

Only files are read; nothing is imported.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import InvalidVersion, Version

from tritonsmith.core import untrusted
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.facts import package_owners, python_env
from tritonsmith.facts.package_owners import PACKAGE, Distribution, finder_mapping, forsaken_hooks
from tritonsmith.facts.python_env import PythonEnv

_VERSION = re.compile(r"""^__version__ = ["']([^"']+)["']""", re.MULTILINE)
_LIBRARY = re.compile(rb"(/.*)/_C/libtriton[^/\n]*$", re.MULTILINE)  # in a process's maps
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
    """Return every Triton in the tool's environments, in the active one, on PATH and for `packages`."""
    prefixes = dict.fromkeys([*sorted((space.root / "envs").glob("*/venv")), *_active(environ)])
    tritons = [triton for prefix in prefixes for triton in _in_prefix(prefix)]
    if packages:
        tritons += [
            InstalledTriton(_public(owner.version), packages.purelib, checkout=owner.editable is not None)
            for owner in package_owners.owners(packages.distributions)
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
    return max(tritons, key=lambda triton: _order(triton.version), default=None)


def _order(version: str) -> Version:
    # A nightly came before its release, which its numbers alone do not tell.
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")


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
    # The version in `triton/__init__.py` goes into a cache entry, not the distribution's.
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
            # The tool's own interpreter is first on PATH under `./bootstrap`, and is not what the user runs.
            python = Path(folder) / name
            if os.access(python, os.F_OK) and Path(folder).parent != Path(sys.prefix):
                yield python.parent.parent  # a venv's
                yield python.resolve().parent.parent  # its base, or the system's
    if home := environ.get("HOME"):
        yield Path(home) / ".local"  # pip install --user


def _public(version: str) -> str:
    # Caches name versions without the local part, which a build from a checkout has.
    return version.partition("+")[0]


@dataclass(frozen=True)
class ResolvedImport:
    """The result of `import triton`.

    Attributes:
        folder: the package's folder, or the module's file.
        by: the entry of the path, or the finder, that provides it.
        namespace: a folder without `__init__.py`: importing it gives an empty package.
    """

    folder: Path
    by: Path
    namespace: bool = False


def resolve_import(path: Sequence[Path], finders: Iterable[Path] = ()) -> ResolvedImport | None:
    """Resolve by the entries of the path in order, then by setuptools' finders of editable installs."""
    spaces = []
    for entry in path:
        folder = entry / PACKAGE
        # As importlib does it: in each entry of the path a package comes before a module, and a folder
        # without `__init__.py` counts only if no later entry has more.
        if untrusted.is_file(folder / "__init__.py"):
            return ResolvedImport(folder, entry)
        if untrusted.is_file(module := entry / f"{PACKAGE}.py"):
            return ResolvedImport(module, entry)
        if untrusted.is_dir(folder):
            spaces.append(ResolvedImport(folder, entry, namespace=True))
    if spaces:
        return spaces[0]
    for finder in finders:
        mapped = finder_mapping(finder).get(PACKAGE)
        if mapped and untrusted.is_file(mapped / "__init__.py"):
            return ResolvedImport(mapped, finder)
    return None


def import_finders(sites: Iterable[Path], distributions: Iterable[Distribution]) -> tuple[Path, ...]:
    """Return the finders of editable installs, including those that no distribution owns any more."""
    known = [
        hook
        for distribution in distributions
        if distribution.editable
        for hook in distribution.editable.hooks
    ]
    # Python runs every `.pth` file of a site folder, whether its distribution is still there or not.
    forsaken = [hook for site in sites for hook in forsaken_hooks(site, known)]
    return tuple(hook for hook in (*known, *forsaken) if hook.suffix == ".py")


@dataclass(frozen=True)
class Orphans:
    """Files of `triton` in a site folder that belong to no installed distribution.

    Attributes:
        site: the site folder.
        files: files and links below `triton/`, or `triton` itself where it is a link.
        leftovers: folders that an interrupted pip left: `~riton`, `~riton-3.5.0.dist-info`.
        hooks: `.pth` files and finders of an editable install that is gone.
        hollow: `triton` is a folder without a single file: an import of it works, and gives nothing.
        size: bytes of all of them.
    """

    site: Path
    files: tuple[Path, ...] = ()
    leftovers: tuple[Path, ...] = ()
    hooks: tuple[Path, ...] = ()
    hollow: bool = False
    size: int = 0

    @property
    def any(self) -> bool:
        """Report whether there is anything."""
        return bool(self.files or self.leftovers or self.hooks or self.hollow)

    @property
    def all(self) -> tuple[Path, ...]:
        """The files, hooks and leftover folders."""
        return (*self.files, *self.hooks, *self.leftovers)

    @property
    def words(self) -> str:
        """The orphans in a few words."""
        copied = [path.name for path in self.files if path.suffix == ".so"]
        parts = [
            f"{PACKAGE}/ without a file in it" if self.hollow else "",
            f"{len(self.files)} below {PACKAGE}/" if self.files else "",
            f"copied in: {', '.join(copied)}" if copied else "",
            f"left by an interrupted pip: {_names(self.leftovers)}" if self.leftovers else "",
            f"of a removed editable install: {_names(self.hooks)}" if self.hooks else "",
        ]
        return "; ".join(filter(None, parts))


def orphans(site: Path, installed: Iterable[Distribution]) -> Orphans:
    """Find orphans in a site folder, beside the distributions installed in it."""
    # Bytecode of an owned file is no orphan: Python may write it at any time.
    owners = [owner for owner in package_owners.owners(installed) if owner.site == site]
    owned = {path for owner in owners for path in package_owners.recorded(owner)}
    folder = site / PACKAGE
    present = tuple(package_owners.files_below(folder))
    files = tuple(sorted(path for path in present if path not in owned and _source(path) not in owned))
    leftovers = package_owners.leftovers(site)
    claimed = [hook for owner in owners if owner.editable for hook in owner.editable.hooks]
    hooks = forsaken_hooks(site, claimed)
    orphans = Orphans(site, files, leftovers, hooks, hollow=untrusted.is_dir(folder) and not present)
    size = sum(path.lstat().st_size for top in orphans.all for path in package_owners.files_below(top))
    return replace(orphans, size=size)


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(path.name for path in paths)


def _source(path: Path) -> Path | None:
    """Return the source of `__pycache__/NAME.cpython-311.pyc`; None for other files."""
    if path.suffix != ".pyc" or path.parent.name != "__pycache__":
        return None
    return path.parent.parent / f"{path.name.split('.', 1)[0]}.py"


@dataclass(frozen=True)
class TritonProcess:
    """A process that has `libtriton` mapped, and may be writing to a cache or reading from it.

    Attributes:
        pid: its id.
        command: its command line.
        version: version of its Triton; empty if it cannot be read.
    """

    pid: int
    command: str
    version: str = ""


def living_processes(proc: Path = Path("/proc")) -> tuple[TritonProcess, ...] | None:
    """Return such processes of this user on this machine; None where the system hides them (macOS)."""
    if not (proc / "self" / "maps").exists():
        return None
    processes = []
    for folder in proc.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            # By the mapped library and not by the command line: a notebook's kernel or a
            # server names no Triton in it.
            match = _LIBRARY.search((folder / "maps").read_bytes())
            if match:
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                version = version_of(Path(match[1].decode(errors="surrogateescape")))
                processes.append(TritonProcess(int(folder.name), " ".join(filter(None, words)), version))
        except OSError:  # it has ended, or is someone else's
            continue
    return tuple(sorted(processes, key=lambda process: process.pid))
