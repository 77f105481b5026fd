"""Find distributions in site folders, and the owners of `triton/`, from files without starting a program.

`importlib.metadata` would parse every METADATA; here names and versions come from the names of the metadata
folders, as the standard for them says, and RECORDs are searched as bytes.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from tritonsmith.core import configs, untrusted
from tritonsmith.facts import editables
from tritonsmith.facts.editables import PACKAGE, Editable, read_text

_BELOW = f"{PACKAGE}/".encode()
_NAMED = re.compile(r"(?P<name>.+?)(?:-(?P<version>\d[^-]*)(?:-py\d.*)?)?")
_COMMIT = re.compile(r"\+(?:git)?([0-9a-f]{7,40})\b")
_PIPS_OWN = re.compile(r"~[-~.=%0-9]*")  # how pip begins the name of what it is about to remove


@dataclass(frozen=True)
class Distribution:
    """An installed distribution.

    Attributes:
        name: normalised: lower case, runs of `-_.` as one dash.
        version: from its metadata; empty if unknown.
        site: the site folder that it lies in.
        info: its `.dist-info`, `.egg-info` or `.egg` folder, or its `.egg-info` or `.egg-link` file.
        owns: evidence that it owns files under `triton/`: `RECORD`, `top_level.txt`, `editable`, or `name`
            where its metadata are damaged; empty for others.
        installer: `pip`, `uv`, `conda` ...; empty if unknown.
        editable: the location of its code, if elsewhere.
    """

    name: str
    version: str
    site: Path
    info: Path
    owns: str = ""
    installer: str = ""
    editable: Editable | None = None

    @property
    def title(self) -> str:
        """`triton 3.5.0`."""
        return f"{self.name} {self.version}".rstrip()


def read(sites: Iterable[Path]) -> tuple[Distribution, ...]:
    """Return every distribution in some site folders, in order, without an interrupted pip's leftovers."""
    return tuple(distribution for site in sites for distribution in _read_site(site))


def owners(distributions: Iterable[Distribution]) -> tuple[Distribution, ...]:
    """Return the distributions that own files under `triton/`."""
    return tuple(distribution for distribution in distributions if distribution.owns)


def leftovers(site: Path) -> tuple[Path, ...]:
    """Return an interrupted pip's leftovers of `triton/` and its owners, such as `~riton-3.5.0.dist-info`."""
    paths = []
    for name in sorted(_names(site)):
        rest = name[_PIPS_OWN.match(name).end() :] if name.startswith("~") else ""  # type: ignore[union-attr]
        if not rest:
            continue
        package = len(name) == len(PACKAGE) and PACKAGE.endswith(rest)
        if package or (
            name.endswith(".dist-info") and _how_owned(site / name, _read_bytes(site / name / "RECORD"))
        ):
            paths.append(site / name)
    return tuple(paths)


def recorded(distribution: Distribution) -> Iterator[Path]:
    """Yield every file in a distribution's list of files, and its metadata: neither resolved nor checked."""
    folder, names = listed(distribution)
    yield from (folder / name for name in names)
    yield from files_below(distribution.info)


def listed(distribution: Distribution) -> tuple[Path, list[str]]:
    """Return the folder that a distribution's list of files is relative to, and all its entries."""
    info = distribution.info
    if info.suffix == ".dist-info":
        rows = _rows(read_text(info / "RECORD").splitlines())
        return distribution.site, [row[0] for row in rows if row and row[0]]
    return info, [line for line in read_text(info / "installed-files.txt").splitlines() if line]


def _rows(lines: list[str]) -> list[list[str]]:
    """Return rows of CSV; split each line by itself if a quote is not closed, or exceeds csv's limit."""
    try:
        return list(csv.reader(lines))
    except csv.Error:
        return [line.split(",") for line in lines]


def files_below(path: Path) -> Iterator[Path]:
    """Yield files and links in a folder at any depth, following no link; or the path itself, if a file."""
    if path.is_symlink() or untrusted.is_file(path):
        yield path
        return
    for folder, inner, names in os.walk(path):
        here = Path(folder)
        yield from (here / name for name in names)
        yield from (here / name for name in inner if (here / name).is_symlink())


def required_triton(distribution: Distribution, python: str) -> str:
    """Return the requirement of a Triton by any name on this Python (`3.11`); empty if there is none."""
    required = requirements(distribution, python)
    return next((line for line, requirement in required if normalised(requirement.name) in known_names()), "")


def requirements(distribution: Distribution, python: str) -> Iterator[tuple[str, Requirement]]:
    """Yield its requirements on this Python (`3.11`) without extras, as written and parsed."""
    metadata = read_text(distribution.info / "METADATA")
    lines: list[str] = re.findall(r"^Requires-Dist:\s*(.+?)\s*$", metadata, re.MULTILINE)
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        here = {"python_version": python, "extra": ""}
        if requirement.marker is None or requirement.marker.evaluate(here):
            yield line, requirement


def commit_in(version: str) -> str:
    """Return the commit that a version ends in: `3.5.1+gitbfeb0668`, up to 3.1 without `git`; or empty."""
    match = _COMMIT.search(version)
    return match[1] if match else ""


def known_names() -> dict[str, str]:
    """Return the names of distributions known to contain `triton`, with a description."""
    return {row["name"]: row["what"] for row in configs.load("triton-distributions")["distribution"]}


@cache
def normalised(name: str) -> str:
    """Return the name as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _read_site(site: Path) -> Iterator[Distribution]:
    for name in sorted(_names(site)):
        stem, dot, suffix = name.rpartition(".")
        if not dot or name.startswith(("~", ".")):
            continue
        if suffix == "dist-info":
            yield _dist_info(site, stem)
        elif suffix in ("egg-info", "egg"):
            yield _egg(site / name, stem)
        elif suffix == "egg-link":
            yield _egg_link(site / name, stem)


def _dist_info(site: Path, stem: str) -> Distribution:
    info = site / f"{stem}.dist-info"
    name, _, version = stem.rpartition("-")
    name = normalised(name or stem)
    record = _read_bytes(info / "RECORD")
    how = _how_owned(info, record)
    editable = editables.installed(site, info, record)
    if not how and editable and editable.package:
        how = "editable"
    if not how and (editable or not record) and name in known_names():
        how = "name"
    installer = read_text(info / "INSTALLER").strip() if how else ""
    return Distribution(name, version, site, info, how, installer, editable if how else None)


def _egg(info: Path, stem: str) -> Distribution:
    """Read setuptools' metadata from before wheels: `setup.py install`, a distribution's packages."""
    named = _NAMED.fullmatch(stem)
    name = normalised(named["name"] if named else stem)
    metadata = info / "EGG-INFO" if info.suffix == ".egg" else info
    version = (named["version"] if named else "") or _version_in(metadata / "PKG-INFO")
    how = "top_level.txt" if _names_package(metadata) else ""
    if not how and (name == PACKAGE or (untrusted.is_file(info) and name in known_names())):
        how = "name"
    return Distribution(name, version, info.parent, info, how)


def _egg_link(link: Path, stem: str) -> Distribution:
    editable = editables.linked(link)
    name = normalised(stem)
    metadata = editable.project / f"{stem}.egg-info" if editable.project else link
    if _names_package(metadata):
        how = "top_level.txt"
    elif name in known_names():
        how = "name"
    else:
        how = ""
    version = _version_in(metadata / "PKG-INFO")
    return Distribution(name, version, link.parent, link, how, "", editable if how else None)


def _how_owned(info: Path, record: bytes) -> str:
    if record.startswith(_BELOW) or b"\n" + _BELOW in record:  # torch's RECORD has 1.5 MB: no regex
        return "RECORD"
    return "top_level.txt" if _names_package(info) else ""


def _names_package(info: Path) -> bool:
    """Return whether top_level.txt names the package; old ones name subpackages, too: `triton/_C`."""
    return any(
        line.split("/", 1)[0].strip() == PACKAGE for line in read_text(info / "top_level.txt").splitlines()
    )


def _version_in(metadata: Path) -> str:
    match = re.search(r"^Version:\s*(\S+)", read_text(metadata), re.MULTILINE)
    return match[1] if match else ""


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are all that is wanted, and half the time
    except OSError:
        return []


def _read_bytes(path: Path) -> bytes:
    try:
        return untrusted.read_bytes(path)
    except OSError:
        return b""
