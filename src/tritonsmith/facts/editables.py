"""Read editable installs: their folders for `import triton`, and their hooks in the site folder."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tritonsmith.core import untrusted

PACKAGE = "triton"
EASY_INSTALL = "easy-install.pth"
# Left by setuptools for the distribution `triton`, which may be gone since.
_OURS = re.compile(rf"__editable__\.{PACKAGE}-\d.*\.pth|__editable___{PACKAGE}_\d.*_finder\.py")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
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


def installed(site: Path, info: Path, record: bytes) -> Editable | None:
    """Return the editable install whose `.pth` file a distribution's RECORD lists; None if there is none."""
    if b".pth," not in record:
        return None
    text = record.replace(b"\0", b"?").decode("utf-8", "surrogateescape")
    names = [line.split(",", 1)[0] for line in text.splitlines()]
    hooks = tuple(site / name for name in names if "/" not in name and name.endswith((".pth", "_finder.py")))
    return Editable(_project(info / "direct_url.json"), package_of(hooks), hooks)


def linked(link: Path) -> Editable:
    """Return the editable install of an egg-link: `setup.py develop`, or pip before PEP 660."""
    lines = read_text(link).splitlines()
    folder = link.parent / lines[0].strip() if lines else None
    if folder is None or not untrusted.fits(folder):
        return Editable(None, None, (link,))
    return Editable(folder, _inside(folder) or (folder / PACKAGE), (link,))


def package_of(hooks: Iterable[Path]) -> Path | None:
    """Return the folder for `import triton` that finders or lines of `.pth` files lead to."""
    for hook in hooks:
        if hook.suffix == ".py":
            folder = mapping(hook).get(PACKAGE)
        else:
            folder = next(filter(None, map(_inside, pth_folders(hook))), None)
        if folder:
            return folder
    return None


def mapping(finder: Path) -> dict[str, Path]:
    """Return package to folder, as setuptools wrote it into a finder; empty if there is none to read."""
    match = _MAPPING.search(read_text(finder))
    try:
        table = ast.literal_eval(match[1]) if match else {}
    # The last two: nested too deeply.
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return {}
    pairs = table.items() if isinstance(table, dict) else ()
    folders = {str(name): Path(folder) for name, folder in pairs if isinstance(folder, str)}
    return {name: folder for name, folder in folders.items() if untrusted.fits(folder)}


def pth_folders(pth: Path) -> list[Path]:
    """Return the folders that a `.pth` file adds to the path, existing or not."""
    lines = (line.rstrip() for line in read_text(pth).splitlines())
    return [pth.parent / line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]


def without_folder(pth: Path, folders: Sequence[Path]) -> str | None:
    """Return a `.pth` file's text without the lines that lead to some folders; None if it has none."""
    lines = read_text(pth).splitlines(keepends=True)
    kept = [line for line in lines if not line.strip() or pth.parent / line.strip() not in folders]
    return "".join(kept) if len(kept) < len(lines) else None


def forsaken(site: Path, claimed: Iterable[Path]) -> tuple[Path, ...]:
    """Return setuptools' hooks for `triton` in a site folder that no distribution claims any more."""
    taken = set(claimed)
    hooks = (path for path in site.glob("__editable__*") if _OURS.fullmatch(path.name))
    return tuple(path for path in sorted(hooks) if path not in taken)


def _inside(folder: Path) -> Path | None:
    package = folder / PACKAGE
    return package if untrusted.is_file(package / "__init__.py") else None


def commit(info: Path) -> str:
    """Return the commit that pip installed a distribution from, if its source was a repository; or empty."""
    try:
        digits = untrusted.read_json(info / "direct_url.json")["vcs_info"]["commit_id"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return digits if isinstance(digits, str) and _COMMIT.fullmatch(digits) else ""


def _project(direct_url: Path) -> Path | None:
    try:
        content = untrusted.read_json(direct_url)
        url = urlsplit(content["url"])
        place = Path(unquote(url.path).replace("\0", "\N{REPLACEMENT CHARACTER}"))
        editable = content.get("dir_info", {}).get("editable")
        return place if editable and untrusted.fits(place) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def read_text(path: Path) -> str:
    """Return the text of a small file, empty if there is none; bytes that are no UTF-8 become surrogates."""
    try:
        text = untrusted.read_bytes(path).decode("utf-8", "surrogateescape")
        return text.replace("\0", "\N{REPLACEMENT CHARACTER}")  # or a path from it could not be looked at
    except OSError:
        return ""
