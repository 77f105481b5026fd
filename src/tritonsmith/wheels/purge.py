"""Remove every distribution that owns files under `triton/`, and the files left there without an owner.

Two wheels that share that folder overwrite each other, and pip's uninstall of one breaks the other
(triton#3359, vllm-project/vllm-ascend#7790), so a purge removes all of them at once. The source tree of an
editable install is never touched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import OwnershipError, SmithError
from tritonsmith.core.plan import Plan, Recover, Step, Uninstall
from tritonsmith.core.plan.steps import uninstall
from tritonsmith.core.plan.steps.uninstall import UninstallJournal
from tritonsmith.facts import installed_tritons, package_owners
from tritonsmith.facts.package_owners import EASY_INSTALL, PACKAGE, Distribution
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.wheels import venv

PHASE = "purge"
NOBODY = "(no owner)"
_SCRIPT_HEAD = 400  # bytes within which a setuptools script names its distribution
# Files of an environment itself, besides the folders of its interpreter.
_ITSELF = re.compile(r"(?:python|pypy|pip)[\w.-]*|activate(?:[._].*)?|Activate\.ps1")
_PIPS = re.compile(r"pip|pip-.*")
# A script that an installer wrote: `#!/path/python`, or through sh if that path is long or has a space.
_SCRIPT = re.compile(rb"#![^\n]*(?:python|pypy)|#!/bin/sh\n'''exec' ")
_DATA = ("share", "include/site")  # in a virtual environment, where only wheels put files


@dataclass(frozen=True)
class PurgeRow:
    """One row of files to remove.

    Attributes:
        title: `triton 3.5.0`, or `(no owner)`.
        what: the evidence that it is a Triton, or the source tree of an editable install.
        files: number of files.
        size: bytes.
        site: site folder.
    """

    title: str
    what: str
    files: int
    size: int
    site: Path


@dataclass(frozen=True)
class Survey:
    """A prepared purge.

    Attributes:
        rows: files to remove.
        refused: recorded files that are kept: outside the environment, or the environment's own.
        notes: other things to know.
        plan: the steps; none if there is nothing to remove.
    """

    rows: tuple[PurgeRow, ...]
    refused: tuple[Path, ...]
    notes: tuple[str, ...]
    plan: Plan


class _Site:
    """Files to remove from one site folder.

    Attributes:
        site: the folder, resolved.
        root: the environment's folder, resolved: nothing outside is removed.
        goes: each file to remove, with the metadata of its owner; None for files without an owner.
        refused: recorded paths that are kept, because no wheel installs files there.
    """

    def __init__(self, site: Path, root: Path, *, virtual: bool) -> None:
        self.site, self.root = site.resolve(), root
        self._data = tuple(root / name for name in _DATA) if virtual else ()
        self.goes: dict[Path, Path | None] = {}
        self.refused: list[Path] = []
        self._parents: dict[Path, Path] = {}

    def add(self, owner: Path | None, paths: Iterable[Path], staying: frozenset[Path] = frozenset()) -> None:
        """Add files to remove, except missing ones, those no wheel installs, and those of kept owners."""
        for path in paths:
            target = self.at_its_parent(path)
            if not self._may_go(target):
                self.refused.append(path)
            elif target not in staying and os.path.lexists(target) and not _is_folder(target):
                self.goes.setdefault(target, owner)

    def _may_go(self, target: Path) -> bool:
        """Report whether a wheel may have installed a file there."""
        # A RECORD is a text of a stranger: it may list `../../../home/me/thesis.tex`, or pip itself.
        if target.name == "..":
            return False
        if target.is_relative_to(self.site):
            return target != self.site and not _PIPS.fullmatch(target.relative_to(self.site).parts[0])
        if not target.is_relative_to(self.root):
            return False
        # `bin` has the interpreter and scripts of other wheels, too: only what an installer wrote may go.
        if target.parent == self.root / "bin":
            return not _ITSELF.fullmatch(target.name) and (not os.path.lexists(target) or _is_script(target))
        return any(folder in target.parents for folder in self._data)

    def row(self, owner: Path | None, title: str, what: str) -> PurgeRow:
        """Return the row of one owner; a file that two owners list counts for the first."""
        paths = [path for path, info in self.goes.items() if info == owner]
        return PurgeRow(title, what, len(paths), sum(path.lstat().st_size for path in paths), self.site)

    def at_its_parent(self, path: Path) -> Path:
        """Return the path with all parent links resolved; a link at its end stays a link."""
        # `resolve` asks the disk for every folder on the way, and a wheel has thousands of files in few.
        if path.parent not in self._parents:
            self._parents[path.parent] = path.parent.resolve()
        return self._parents[path.parent] / path.name


def recovery(python: PythonEnv, *, system: bool = False) -> Plan:
    """Plan to finish an interrupted purge, if there is one. Facts must be read again afterwards.

    Raises:
        OwnershipError: this is the system's Python, or a stash cannot be read.
    """
    _check(python, system=system)
    steps: list[Recover] = []
    for site in _own_sites(python):
        place = site / uninstall.NAME
        if left := uninstall.pending(place):
            steps.append(Recover(left.journal, place, _root(site, python), left.committed, phase=PHASE))
    forward = all(step.committed for step in steps)
    done = "deleting the files that it had moved" if forward else "restoring the files that it had moved"
    return Plan(f"a purge of {python.prefix} was interrupted: {done}", tuple(steps))


def still_found(python: PythonEnv) -> Path | None:
    """Return the folder that `import triton` finds after a purge, which no distribution installed."""
    finders = installed_tritons.import_finders(python.sites, python.distributions)
    resolved = installed_tritons.resolve_import(python.path, finders)
    return resolved.folder if resolved else None


def survey(python: PythonEnv, *, system: bool = False) -> Survey:
    """Find the files to remove, and plan the removal; from the system's Python only with `system`.

    Raises:
        OwnershipError: this is the system's Python, or its packages lie in a folder outside it.
        SmithError: an earlier purge was killed, and `recovery` was not run.
    """
    _check(python, system=system)
    # A survey on top of half a purge would take moved files for missing ones.
    for site in _own_sites(python):
        if os.path.lexists(site / uninstall.NAME):
            raise SmithError(
                "a purge of this environment was interrupted",
                where=site / uninstall.NAME,
                hints=[f"finish it first: {command('purge-wheels', python=python.executable)}"],
            )
    _check_sites(python)
    surveyed = [_survey_site(site, python) for site in _own_sites(python)]
    rows = tuple(row for _, rows in surveyed for row in rows)
    steps = tuple(_step(site_files, python) for site_files, rows in surveyed if rows)
    refused = tuple(dict.fromkeys(path for site_files, _ in surveyed for path in site_files.refused))
    title = f"remove every Triton from {python.prefix}"
    return Survey(rows, refused, tuple(_notes(python, rows)), Plan(title, steps))


def _survey_site(site: Path, python: PythonEnv) -> tuple[_Site, tuple[PurgeRow, ...]]:
    site_files = _Site(site, _root(site, python), virtual=(python.prefix / "pyvenv.cfg").is_file())
    here = [distribution for distribution in python.distributions if distribution.site == site]
    owners = package_owners.owners(here)
    alone = installed_tritons.orphans(site, here)
    if not owners and not alone.any:
        return site_files, ()
    files_of = {owner.info: tuple(_files(owner, site_files.root)) for owner in owners}
    elsewhere = {  # scripts in `bin`, say; below triton/ everything goes
        path.name
        for info, paths in files_of.items()
        # Resolved, or `triton/../pip/x.py` would pass for a file below it.
        for path in map(site_files.at_its_parent, paths)
        if not path.is_relative_to(site_files.site / PACKAGE)
        and not path.is_relative_to(site_files.at_its_parent(info))
    }
    staying = _staying(site_files, here, elsewhere)
    for info, paths in files_of.items():
        site_files.add(info, paths, staying)
    site_files.add(None, (file for path in alone.all for file in package_owners.files_below(path)))
    site_files.add(None, (file for hook in alone.hooks for file in _bytecode(hook.parent, {hook.stem})))
    rows = [site_files.row(owner.info, owner.title, _what(owner)) for owner in owners]
    return site_files, (*rows, site_files.row(None, NOBODY, alone.words)) if alone.any else tuple(rows)


def _staying(site_files: _Site, here: Iterable[Distribution], names: Container[str]) -> frozenset[Path]:
    """Return files of kept distributions that have one of the given names."""
    # Another distribution may list the same script in `bin`, and still need it. Only names of interest are
    # compared, because torch alone lists 15,000 files.
    staying = set()
    for other in here:
        if not other.owns:
            folder, entries = package_owners.listed(other)
            shared = (entry for entry in entries if entry.rpartition("/")[2] in names)
            staying |= {site_files.at_its_parent(folder / entry) for entry in shared}
    return frozenset(staying)


def _files(distribution: Distribution, root: Path) -> Iterator[Path]:
    """Yield the files in a distribution's metadata, and unlisted bytecode and scripts."""
    # Bytecode is in no RECORD: Python writes it at the first import.
    modules: dict[Path, set[str]] = {}
    for path in package_owners.recorded(distribution):
        yield path
        if path.suffix == ".py":
            modules.setdefault(path.parent, set()).add(path.stem)
    for folder, stems in modules.items():
        yield from _bytecode(folder, stems)
    # Nor do old setuptools list their scripts, whose text names the distribution instead.
    if distribution.info.suffix in (".egg-link", ".egg"):
        yield from _setuptools_scripts(root / "bin", distribution.name)


def _bytecode(folder: Path, stems: Container[str]) -> Iterator[Path]:
    return (path for path in (folder / "__pycache__").glob("*.pyc") if path.name.split(".")[0] in stems)


def _setuptools_scripts(folder: Path, name: str) -> Iterator[Path]:
    """Yield scripts of `setup.py develop` and `install`: unlisted, but each names its distribution."""
    pattern = re.compile(rf"EASY-INSTALL-[A-Z-]+: '{re.escape(name)}['=]".encode(), re.IGNORECASE)
    for path in sorted(folder.glob("*")):
        if path.is_file() and not path.is_symlink():
            with untrusted.opened(path) as file:
                if pattern.search(file.read(_SCRIPT_HEAD)):
                    yield path


def _step(site_files: _Site, python: PythonEnv) -> Step:
    linked = [
        distribution.editable.project if distribution.editable else distribution.info
        for distribution in python.distributions
        if distribution.owns and distribution.info.suffix in (".egg-link", ".egg")
    ]
    easy = site_files.site / EASY_INSTALL
    # An editable install by setuptools is a line of easy-install.pth, beside those of other packages.
    text = package_owners.without_folder(easy, [folder for folder in linked if folder]) if linked else None
    # Without its stamp, the next `up` installs the wheel again.
    stamp = site_files.root / venv.STAMP
    journal = UninstallJournal(
        files=(*site_files.goes, *([stamp] if stamp.is_file() else [])),
        edits=() if text is None else ((easy, text),),
        folders=tuple(sorted(_folders(site_files))),
    )
    return Uninstall(journal, site_files.site / uninstall.NAME, site_files.root, phase=PHASE)


def _folders(site_files: _Site) -> set[Path]:
    """Return folders below the site folder that may be empty afterwards."""
    folders = {
        folder for path in site_files.goes for folder in path.parents if site_files.site in folder.parents
    }
    for top in (site_files.site / PACKAGE, *package_owners.leftovers(site_files.site)):
        if not top.is_symlink():  # `os.walk` does not follow links below it
            folders |= {Path(folder) for folder, _, _ in os.walk(top)}
    return folders


def _own_sites(python: PythonEnv) -> tuple[Path, ...]:
    """Return the environment's site folders, without those of a virtual environment's base."""
    prefix = python.prefix.resolve()
    return tuple(site for site in python.sites if python.base or site.resolve().is_relative_to(prefix))


def _root(site: Path, python: PythonEnv) -> Path:
    """Return the folder that a site folder's distributions may reach: the prefix, as scripts lie in `bin`."""
    site, prefix = site.resolve(), python.prefix.resolve()
    root = prefix if site.is_relative_to(prefix) else site.parents[2]  # ~/.local/lib/python3.11/site-packages
    # A site folder right below the home folder must not make all of it an environment.
    return site if root in {Path("/"), Path.home().resolve()} else root


def _notes(python: PythonEnv, rows: tuple[PurgeRow, ...]) -> Iterator[str]:
    own = _own_sites(python)
    for owner in package_owners.owners(python.distributions):
        if owner.site not in own:
            yield f"{owner.title} in {owner.site} belongs to another interpreter, though visible here: kept"
        elif owner.installer == "conda":
            yield f"{owner.title} came from Conda, which still lists it: conda remove --force {owner.name}"
    for row in rows:
        if row.what.startswith("editable"):
            yield f"{row.title}: the source tree is not changed"


def _what(distribution: Distribution) -> str:
    if distribution.editable:
        tree = distribution.editable.project or distribution.editable.package
        return f"editable: {tree or 'unknown source tree'}"
    return package_owners.known_names().get(distribution.name, f"by its {distribution.owns}")


def _check_sites(python: PythonEnv) -> None:
    """Refuse a site folder that links out of the environment."""
    # Passed over in silence, it would end in "nothing to remove", while `import triton` still works.
    own = _own_sites(python)
    for site in python.sites:
        linked = site not in own and site.absolute().is_relative_to(python.prefix.absolute())
        here = [distribution for distribution in python.distributions if distribution.site == site]
        if linked and (package_owners.owners(here) or installed_tritons.orphans(site, here).any):
            raise OwnershipError(
                "its packages are outside this environment; nothing was removed",
                where=site,
                why=f"the site folder is a link to {site.resolve()}, which other environments may share",
                hints=["use the interpreter that owns that folder: --python PATH"],
            )


def _check(python: PythonEnv, *, system: bool) -> None:
    if not python.base or system:
        return
    manager = "its files belong to the system's package manager" if python.managed else "it is shared"
    raise OwnershipError(
        "this is a system Python",
        where=python.executable,
        why=f"it is in neither a virtual environment nor a Conda one; {manager}",
        hints=[
            "give an environment: --env NAME",
            "or an interpreter: --python PATH",
            "or --system to purge this one",
        ],
    )


def _is_script(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with untrusted.opened(path) as file:
        return _SCRIPT.match(file.read(_SCRIPT_HEAD)) is not None


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
