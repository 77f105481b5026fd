"""Locations of archives: paths, `file://`, HTTP, and object stores through fsspec."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tritonsmith.core import redact, untrusted
from tritonsmith.core.errors import DownloadError, UsageError
from tritonsmith.core.plan import download
from tritonsmith.core.plan.steps import object_store

_WEB = ("http://", "https://")
_HEX = re.compile(r"[0-9a-fA-F]{64}")


def is_url(place: str) -> bool:
    """Report whether a location is on another machine, or in an object store."""
    return "://" in place and not place.startswith("file://")


def is_web(place: str) -> bool:
    """Report whether a location is fetched over HTTP."""
    return place.startswith(_WEB)


def local(place: str) -> Path:
    """Return the path of a path or `file://` URL."""
    if place.startswith("file://"):
        return Path(unquote(urlsplit(place).path))
    return Path(place).expanduser().absolute()


def shown(place: str) -> str:
    """Return a location for the record: without passwords and signatures of signed URLs."""
    return redact.hidden(place.partition("?")[0] if is_url(place) else place)


def checksum(place: str) -> str:
    """Read the checksum of an archive, at a path or URL, from the file beside it.

    Raises:
        DownloadError: the checksum does not exist, or cannot be read.
        UsageError: the file has no checksum.
    """
    beside = _beside(place)
    text = _read(beside)
    match = _HEX.match(text.strip())
    if not match:
        raise UsageError("not a SHA-256 checksum", where=shown(beside), hints=["give one with --sha256 HEX"])
    return match[0].lower()


def _beside(place: str) -> str:
    path, mark, query = place.partition("?") if is_web(place) else (place, "", "")
    return f"{path}.sha256{mark}{query}"


def _read(place: str) -> str:
    hints = ["give the expected one with --sha256 HEX", "an interrupted export has none: export again"]
    try:
        if is_web(place):
            return download.text(place)
        return object_store.text(place) if is_url(place) else untrusted.read_text(local(place))
    except DownloadError as error:
        why = error.why or error.what
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    raise DownloadError("no checksum beside this archive", where=shown(place), why=why, hints=hints)
