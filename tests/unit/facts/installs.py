"""What installers leave in a site folder, made by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tritonsmith.facts import package_owners
from tritonsmith.facts.python_env import PythonEnv

MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"


def site_of(prefix: Path) -> Path:
    """The site folder of an environment, made if need be."""
    site = prefix / "lib" / f"python{MINOR}" / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    return site


def put(folder: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder; `..` leads out of it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def install(
    site: Path,
    name: str,
    version: str,
    files: Mapping[str, str] | None = None,
    *,
    more: Mapping[str, str] | None = None,
    also_recorded: tuple[str, ...] = (),
) -> Path:
    """What pip leaves of a distribution.

    Args:
        site: the site folder.
        name: as in the name of its metadata folder.
        version: its version.
        files: path relative to the site folder, to text.
        more: files of the metadata folder: `top_level.txt`, `direct_url.json` ...
        also_recorded: what RECORD lists besides.

    Returns:
        The metadata folder.
    """
    info = site / f"{name}-{version}.dist-info"
    metadata = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "INSTALLER": "pip\n",
        **(more or {}),
    }
    put(info, metadata)
    put(site, files or {})
    own = [f"{info.name}/{part}" for part in (*metadata, "RECORD")]
    lines = (f"{path},," for path in (*(files or {}), *own, *also_recorded))
    (info / "RECORD").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return info


def triton(site: Path, name: str = "triton", version: str = "3.5.0", **more: str) -> Path:
    """A small wheel of Triton, with a script.

    Args:
        site: the site folder.
        name: of the distribution.
        version: its version.
        more: name of a module below `triton/` to its text.
    """
    modules = {f"triton/{module}.py": text for module, text in more.items()}
    files = {
        "triton/__init__.py": f"__version__ = '{version}'\n",
        "triton/_C/libtriton.so": f"library of {name}",
        "../../../bin/proton": f"#!/usr/bin/python\n# script of {name}",
    }
    return install(site, name, version, files | modules)


def checkout(root: Path) -> Path:
    """A source tree with the package in `python/`."""
    put(root, {"python/triton/__init__.py": "", "setup.py": ""})
    return root


def editable(site: Path, source: Path, name: str = "triton", version: str = "3.6.0", *, finder: bool) -> Path:
    """What setuptools leaves of an editable install.

    Args:
        site: the site folder.
        source: the tree.
        name: of the distribution.
        version: its version.
        finder: by a module that maps packages to folders; otherwise by a folder in a `.pth` file.
    """
    pth = f"__editable__.{name}-{version}.pth"
    module = f"__editable___{name}_{version.replace('.', '_')}_finder"
    mapping = {"triton": str(source / "python" / "triton")}
    files = {pth: f"{source / 'python'}\n"}
    if finder:
        files = {pth: f"import {module}; {module}.install()", f"{module}.py": FINDER.format(mapping=mapping)}
    url = json.dumps({"dir_info": {"editable": True}, "url": source.as_uri()})
    return install(site, name, version, files, more={"direct_url.json": url, "top_level.txt": "triton\n"})


def python_of(
    prefix: Path, *, version: str = f"{MINOR}.0", base: bool = False, **changes: object
) -> PythonEnv:
    """The facts of an interpreter that is not there: what lies in its site folder is read."""
    site = site_of(prefix)
    found = package_owners.read([site])
    return PythonEnv(
        executable=prefix / "bin" / "python",
        version=version,
        include=prefix / "include",
        headers=True,
        purelib=site,
        platform="linux-x86_64",
        dists=tuple(sorted({one.name: one.version for one in found}.items())),
        triton_owners=tuple(sorted(one.name for one in package_owners.owners(found))),
        prefix=prefix,
        base=base,
        path=(site,),
        distributions=found,
        **changes,  # type: ignore[arg-type]
    )


# What setuptools 65 to 80 write, as far as an import needs it.
FINDER = """
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

MAPPING: dict[str, str] = {mapping!r}
NAMESPACES: dict[str, list[str]] = {{}}


class _EditableFinder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        folder = MAPPING.get(fullname)
        init = Path(folder, "__init__.py") if folder else None
        return spec_from_file_location(fullname, init) if init and init.exists() else None


def install():
    if not any(finder == _EditableFinder for finder in sys.meta_path):
        sys.meta_path.append(_EditableFinder)
"""
