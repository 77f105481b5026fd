"""Find distributions in site folders, editable or not, and the owners of `triton/`, from files alone."""

from __future__ import annotations

import ast
import csv
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement

from tritonsmith.core import configs, untrusted

PACKAGE = "triton"
EASY_INSTALL = "easy-install.pth"
# Left by setuptools for the distribution `triton`, which may be gone since.
_OURS = re.compile(rf"__editable__\.{PACKAGE}-\d.*\.pth|__editable___{PACKAGE}_\d.*_finder\.py")
_COMMIT_HASH = re.compile(r"[0-9a-f]{7,40}")
_MAPPING = re.compile(r"^MAPPING(?:\s*:[^=]+)?\s*=\s*(\{.*\})\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Editable:
    """A distribution with its code elsewhere.

    Attributes:
        project: the folder that was installed; None where no file says so.
        package: its folder for `import triton`, which may be missing; None for another package.
        hooks: files of the site folder that lead there: `.pth` files, finders, egg-links.
    """

    project: Path | None
    package: Path | None
    hooks: tuple[Path, ...]


def editable_of(site: Path, info: Path, record: bytes) -> Editable | None:
    """Return the editable install whose `.pth` file a distribution's RECORD lists; None if there is none."""
    # RECORDs have up to 1.5 MB (torch's), and few of them a `.pth`.
    if b".pth," not in record:
        return None
    text = record.replace(b"\0", b"?").decode("utf-8", "surrogateescape")
    names = [line.split(",", 1)[0] for line in text.splitlines()]
    hooks = tuple(site / name for name in names if "/" not in name and name.endswith((".pth", "_finder.py")))
    return Editable(_project(info / "direct_url.json"), editable_package(hooks), hooks)


def editable_of_link(link: Path) -> Editable:
    """Return the editable install of an egg-link: `setup.py develop`, or pip before PEP 660."""
    # The first line is the folder; the second, which leads from there to setup.py, adds nothing.
    lines = text_of_file(link).splitlines()
    folder = link.parent / lines[0].strip() if lines else None
    if folder is None or not untrusted.fits(folder):
        return Editable(None, None, (link,))
    return Editable(folder, _inside(folder) or (folder / PACKAGE), (link,))


def editable_package(hooks: Iterable[Path]) -> Path | None:
    """Return the folder for `import triton` that finders or lines of `.pth` files lead to."""
    for hook in hooks:
        if hook.suffix == ".py":
            folder = finder_mapping(hook).get(PACKAGE)
        else:
            folder = next(filter(None, map(_inside, pth_folders(hook))), None)
        if folder:
            return folder
    return None


def finder_mapping(finder: Path) -> dict[str, Path]:
    """Return package to folder, as setuptools wrote it into a finder; empty if there is none to read."""
    # setuptools' finder is a program; it is read, and its table parsed as a literal, never imported.
    match = _MAPPING.search(text_of_file(finder))
    try:
        table = ast.literal_eval(untrusted.parse_expression(match[1])) if match else {}
    # The last two: nested too deeply.
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return {}
    pairs = table.items() if isinstance(table, dict) else ()
    folders = {str(name): Path(folder) for name, folder in pairs if isinstance(folder, str)}
    return {name: folder for name, folder in folders.items() if untrusted.fits(folder)}


def pth_folders(pth: Path) -> list[Path]:
    """Return the folders that a `.pth` file adds to the path, existing or not."""
    # Lines that begin with `import` are run by site.py: they are code, not folders.
    lines = (line.rstrip() for line in text_of_file(pth).splitlines())
    return [pth.parent / line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]


def without_folder(pth: Path, folders: Sequence[Path]) -> str | None:
    """Return a `.pth` file's text without the lines that lead to some folders; None if it has none."""
    lines = text_of_file(pth).splitlines(keepends=True)
    kept = [line for line in lines if not line.strip() or pth.parent / line.strip() not in folders]
    return "".join(kept) if len(kept) < len(lines) else None


def forsaken_hooks(site: Path, claimed: Iterable[Path]) -> tuple[Path, ...]:
    """Return setuptools' hooks for `triton` in a site folder that no distribution claims any more."""
    taken = set(claimed)
    hooks = (path for path in site.glob("__editable__*") if _OURS.fullmatch(path.name))
    return tuple(path for path in sorted(hooks) if path not in taken)


def _inside(folder: Path) -> Path | None:
    package = folder / PACKAGE
    return package if untrusted.is_file(package / "__init__.py") else None


def editable_commit(info: Path) -> str:
    """Return the commit that pip installed a distribution from, if its source was a repository; or empty."""
    try:
        digits = untrusted.read_json(info / "direct_url.json")["vcs_info"]["commit_id"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return digits if isinstance(digits, str) and _COMMIT_HASH.fullmatch(digits) else ""


def _project(direct_url: Path) -> Path | None:
    try:
        content = untrusted.read_json(direct_url)
        url = urlsplit(content["url"])
        place = Path(unquote(url.path).replace("\0", "\N{REPLACEMENT CHARACTER}"))
        editable = content.get("dir_info", {}).get("editable")
        return place if editable and untrusted.fits(place) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def text_of_file(path: Path) -> str:
    """Return the text of a small file, empty if there is none; bytes that are no UTF-8 become surrogates."""
    try:
        text = untrusted.read_bytes(path).decode("utf-8", "surrogateescape")
        return text.replace("\0", "\N{REPLACEMENT CHARACTER}")  # or a path from it could not be looked at
    except OSError:
        return ""


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
        # pip renames `triton` to `~riton`, or to `~-iton` if that exists, before it deletes the folder.
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
        rows = _rows(text_of_file(info / "RECORD").splitlines())
        return distribution.site, [row[0] for row in rows if row and row[0]]
    return info, [line for line in text_of_file(info / "installed-files.txt").splitlines() if line]


def _rows(lines: list[str]) -> list[list[str]]:
    """Return rows of CSV."""
    # A quote that is not closed takes in all that follows, up to csv's limit.
    try:
        return list(csv.reader(lines))
    except csv.Error:
        return [line.split(",") for line in lines]


def files_below(path: Path) -> Iterator[Path]:
    """Yield files and links in a folder at any depth, following no link; or the path itself, if a file."""
    if path.is_symlink() or untrusted.is_file(path):
        yield path
        return
    # `os.walk` counts a link to a folder among the folders, and does not enter it.
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
    metadata = text_of_file(distribution.info / "METADATA")
    lines: list[str] = re.findall(r"^Requires-Dist:\s*(.+?)\s*$", metadata, re.MULTILINE)
    for line in lines:
        # Metadata of old wheels have requirements of forms that no standard knows.
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
    # From the folder's name, as its standard has it: `importlib.metadata` would parse every METADATA.
    name, _, version = stem.rpartition("-")
    name = normalised(name or stem)
    record = _read_bytes(info / "RECORD")
    how = _how_owned(info, record)
    editable = editable_of(site, info, record)
    if not how and editable and editable.package:
        how = "editable"
    # A damaged Triton has no RECORD, and still stands in the way of another one.
    if not how and (editable or not record) and name in known_names():
        how = "name"
    installer = text_of_file(info / "INSTALLER").strip() if how else ""
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
    editable = editable_of_link(link)
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
    # torch's RECORD has 1.5 MB: no regular expression.
    if record.startswith(_BELOW) or b"\n" + _BELOW in record:
        return "RECORD"
    return "top_level.txt" if _names_package(info) else ""


def _names_package(info: Path) -> bool:
    """Return whether top_level.txt names the package; old ones name subpackages, too: `triton/_C`."""
    return any(
        line.split("/", 1)[0].strip() == PACKAGE for line in text_of_file(info / "top_level.txt").splitlines()
    )


def _version_in(metadata: Path) -> str:
    match = re.search(r"^Version:\s*(\S+)", text_of_file(metadata), re.MULTILINE)
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
