"""A Python: its version, its headers, and which distributions own files under `triton/`."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.plan.process import capture

# Runs in the interpreter that is looked at, so it uses the standard library of any Python 3.8 or later.
_PROBE = """
import importlib.metadata as m, json, os, platform, sys, sysconfig
dists, owners = {}, []
for d in m.distributions():
    name = (d.metadata["Name"] or "").lower().replace("_", "-")
    dists.setdefault(name, d.version)
    top = (d.read_text("top_level.txt") or "").split()
    record = (d.read_text("RECORD") or "").splitlines()  # d.files leaves out missing files since 3.12
    if "triton" in top or any(line.startswith("triton/") for line in record):
        owners.append(name)
include = sysconfig.get_path("platinclude") or ""
print(json.dumps({
    "version": platform.python_version(),
    "include": include,
    "headers": os.path.isfile(os.path.join(include, "Python.h")),
    "purelib": sysconfig.get_path("purelib"),
    "platform": sysconfig.get_platform(),
    "dists": dists,
    "owners": sorted(set(owners)),
}))
"""


@dataclass(frozen=True)
class PythonEnv:
    """An interpreter and what is installed for it.

    Attributes:
        executable: path of the interpreter, as it was named (a venv's is a link).
        version: `3.11.7`.
        include: folder of Python.h.
        headers: Python.h is there.
        purelib: site-packages.
        platform: `linux-x86_64`, which setup.py puts into the name of its build folder.
        dists: distribution to version.
        triton_owners: distributions that own files under `triton/`.
    """

    executable: Path
    version: str
    include: Path
    headers: bool
    purelib: Path
    platform: str
    dists: tuple[tuple[str, str], ...] = ()
    triton_owners: tuple[str, ...] = ()

    @property
    def minor(self) -> str:
        """`3.11`."""
        return ".".join(self.version.split(".")[:2])


def read(executable: Path) -> PythonEnv | None:
    """What an interpreter says of itself; None if it does not run."""
    output = capture((str(executable), "-I", "-c", _PROBE), timeout=30)
    if output is None:
        return None
    try:
        seen = json.loads(output.splitlines()[-1])  # a .pth file may have printed something before
    except (IndexError, ValueError):
        return None  # it runs, and is no Python
    return PythonEnv(
        executable=executable,
        version=seen["version"],
        include=Path(seen["include"]),
        headers=seen["headers"],
        purelib=Path(seen["purelib"]),
        platform=seen["platform"],
        dists=tuple(sorted(seen["dists"].items())),
        triton_owners=tuple(seen["owners"]),
    )


def installed_version(packages: Path, name: str) -> str:
    """Version of a distribution in a site-packages folder, by its dist-info; empty if it is not there."""
    for distribution in importlib.metadata.distributions(name=name, path=[str(packages)]):
        return distribution.version
    return ""


def find_interpreter(wanted: str) -> Path | None:
    """A base interpreter for an env's venv.

    Args:
        wanted: version (`3.12`), path, or empty for the one that runs the tool.
    """
    if not wanted:
        return Path(sys._base_executable)  # type: ignore[attr-defined]  # noqa: SLF001 - no public name for it
    if "/" in wanted:
        path = Path(wanted).expanduser().absolute()
        return path if path.is_file() else None
    running = ".".join(map(str, sys.version_info[:2]))
    if wanted == running:
        return Path(sys._base_executable)  # type: ignore[attr-defined]  # noqa: SLF001
    found = shutil.which(f"python{wanted}")
    return Path(found) if found else None
