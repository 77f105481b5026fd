"""Inspect a Python: its version, headers, import path, and the distributions with files in `triton/`."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.core import process, untrusted
from tritonsmith.core.process import capture
from tritonsmith.facts import tools

if TYPE_CHECKING:
    from tritonsmith.facts.package_owners import Distribution

# Runs in the interpreter that is looked at, so it uses the standard library of any Python 3.8 or later.
# `-I` leaves the user's own site folder out of the path; `_whole_path` adds it where Python would.
_PROBE = """
import glob, json, os, site, sys, sysconfig
include = sysconfig.get_path("platinclude") or ""
stdlib = sysconfig.get_path("stdlib") or ""
wheels = sysconfig.get_config_var("WHEEL_PKG_DIR") or os.path.join(stdlib, "ensurepip", "_bundled")
print(json.dumps({
    "version": sys.version.split()[0],
    "include": include,
    "headers": os.path.isfile(os.path.join(include, "Python.h")),
    "purelib": sysconfig.get_path("purelib"),
    "platform": sysconfig.get_platform(),
    "soabi": sysconfig.get_config_var("SOABI") or "",
    "prefix": sys.prefix,
    "virtual": sys.prefix != sys.base_prefix,
    "managed": os.path.isfile(os.path.join(stdlib, "EXTERNALLY-MANAGED")),
    "path": sys.path,
    "user": site.getusersitepackages(),
    "wheels": wheels if glob.glob(os.path.join(wheels, "pip-*.whl")) else "",
}))
"""
_ASKED = ("-I", "-c", _PROBE)
_SITE_FOLDERS = ("site-packages", "dist-packages")  # the second is Debian's


@dataclass(frozen=True)
class PythonEnv:
    """An interpreter and the packages installed for it.

    Attributes:
        executable: path of the interpreter, as it was named (a venv's is a link).
        version: `3.11.7`.
        include: folder of Python.h.
        headers: Python.h is there.
        purelib: site-packages.
        platform: `linux-x86_64`, which setup.py puts into the name of its build folder.
        dists: distribution to version; the one that is found first.
        triton_owners: distributions that own files under `triton/`.
        prefix: `sys.prefix`.
        base: the prefix is neither a virtual environment nor one of Conda.
        managed: the base is the system's: PEP 668's EXTERNALLY-MANAGED is there.
        path: `sys.path` of a program that is started in no particular folder, `.pth` files included.
        distributions: everything that is installed, in the order of the path.
        soabi: `cpython-311-x86_64-linux-gnu`, as in the names of its extension modules; may be empty.
        wheels: the folder of the wheels that ensurepip installs; None if it lacks that of pip.
    """

    executable: Path
    version: str
    include: Path
    headers: bool
    purelib: Path
    platform: str
    dists: tuple[tuple[str, str], ...] = ()
    triton_owners: tuple[str, ...] = ()
    prefix: Path = Path()
    base: bool = False
    managed: bool = False
    path: tuple[Path, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    soabi: str = ""
    wheels: Path | None = None

    @property
    def minor(self) -> str:
        """The release line: `3.11`."""
        return ".".join(self.version.split(".")[:2])

    @property
    def tag(self) -> str:
        """The tag: `cpython-311`, or `cpython-314t` if free-threaded, which loads no `cpython-314`."""
        spelling = "-".join(self.soabi.split("-")[:2])
        return spelling or f"cpython-{self.minor.replace('.', '')}"

    @property
    def free_threaded(self) -> bool:
        """Report whether it was built without the global lock (PEP 703), with its own ABI and no `abi3`."""
        return self.tag.endswith("t")

    @property
    def sites(self) -> tuple[Path, ...]:
        """The site folders on the path, each once."""
        # In many environments `lib64` is a link to `lib`, and both are on the path.
        folders: dict[Path, Path] = {}
        for folder in self.path:
            if folder.name in _SITE_FOLDERS and folder.is_dir():
                folders.setdefault(folder.resolve(), folder)
        return tuple(folders.values())


def read(executable: Path) -> PythonEnv | None:
    """Start an interpreter once, and read the rest from its site folders; None if it does not run."""
    from tritonsmith.facts import package_owners  # noqa: PLC0415 - builds ask for the interpreter alone

    bare = with_path(executable)
    if bare is None:
        return None
    installed = package_owners.read(bare.sites)
    # Of two distributions of one name an import finds the first on the path: read backwards, it comes last.
    return replace(
        bare,
        dists=tuple(
            sorted({distribution.name: distribution.version for distribution in reversed(installed)}.items())
        ),
        triton_owners=tuple(sorted({distribution.name for distribution in package_owners.owners(installed)})),
        distributions=installed,
    )


def with_path(executable: Path) -> PythonEnv | None:
    """Return an interpreter with its import path, but without its packages; None if it does not run."""
    facts = _parsed(capture((str(executable), *_ASKED), timeout=30))
    if facts is None:
        return None
    bare = _bare(executable, facts)
    entries = [Path(entry) for entry in facts["path"]]
    return replace(bare, path=_whole_path(entries, Path(facts["user"]), bare.prefix, facts["virtual"]))


def interpreter(executable: Path) -> PythonEnv | None:
    """Return an interpreter without its import path and packages; None if it does not run.

    Its answer is remembered as long as its file is the same.
    """
    facts = _parsed(tools.ask(executable, *_ASKED, timeout=30))
    if facts is None:
        return None
    bare = _bare(executable, facts)
    # The headers are another package of the distribution: they may have come or gone since the answer.
    return replace(bare, headers=(bare.include / "Python.h").is_file())


def _parsed(output: str | None) -> dict[str, Any] | None:
    try:
        # A `.pth` file may have printed something before.
        facts = json.loads((output or "").splitlines()[-1])
    except (IndexError, ValueError):
        return None  # it does not run, or is no Python
    return facts if isinstance(facts, dict) else None


def _bare(executable: Path, facts: dict[str, Any]) -> PythonEnv:
    prefix = Path(facts["prefix"])
    return PythonEnv(
        executable=executable,
        version=facts["version"],
        include=Path(facts["include"]),
        headers=facts["headers"],
        purelib=Path(facts["purelib"]),
        platform=facts["platform"],
        prefix=prefix,
        base=not facts["virtual"] and not (prefix / "conda-meta").is_dir(),
        managed=facts["managed"] and not facts["virtual"],
        soabi=facts["soabi"],
        wheels=Path(facts["wheels"]) if facts["wheels"] else None,
    )


def _whole_path(path: list[Path], user: Path, prefix: Path, virtual: bool) -> tuple[Path, ...]:
    """Return the path with the user's site folder where Python puts it: before those of the base."""
    configuration = prefix / "pyvenv.cfg"
    text = untrusted.read_text(configuration) if virtual and configuration.is_file() else ""
    # The interpreter was asked with -I, which leaves the user's folder out; an ordinary start has it,
    # and a Triton in `~/.local` then shadows the base's.
    shut = virtual and not re.search(r"^include-system-site-packages\s*=\s*true", text, re.MULTILINE)
    if shut or os.environ.get("PYTHONNOUSERSITE") or user in path or not user.is_dir():
        return tuple(path)
    bases = [
        number
        for number, entry in enumerate(path)
        if entry.name in _SITE_FOLDERS and not (virtual and entry.is_relative_to(prefix))
    ]
    first = bases[0] if bases else len(path)
    return (*path[:first], user, *path[first:])


def installed_version(packages: Path, name: str) -> str:
    """Return a distribution's version in a site-packages folder, by its dist-info; empty if missing."""
    # dist-info folders have the name with underscores, in any case, as the tool of the time spelled it.
    spelling = re.sub(r"[-_.]+", "_", name).lower()
    for info in packages.glob("*.dist-info"):
        stem, _, version = info.stem.partition("-")
        if re.sub(r"[-_.]+", "_", stem).lower() == spelling:
            return version
    return ""


def find_interpreter(version: str) -> Path | None:
    """Return the base interpreter of a version (`3.12`) or at a path; for an empty text the tool's own."""
    running = ".".join(map(str, sys.version_info[:2]))
    # Not `sys.executable`: a venv made from a venv's python would point into the tool's own.
    if version in ("", running):
        return Path(sys._base_executable)  # type: ignore[attr-defined]  # noqa: SLF001 - no public name for it
    if "/" in version:
        path = Path(version).expanduser().absolute()
        return path if path.is_file() else None
    program = process.which(f"python{version}")
    return Path(program) if program else None
