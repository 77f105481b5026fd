"""Downloads that resume, and that get their final name only after the checksum was verified.

HTTP libraries are imported where they are used: most runs download nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tritonsmith.errors import DownloadError
from tritonsmith.plan.compression import Progress

TIMEOUT = 60.0  # seconds without a byte
_PATIENCE = 5.0  # seconds for the headers of an answer
_CHUNK = 1 << 20  # bytes


def fetch(url: str, dest: Path, *, sha256: str, progress: Progress) -> None:
    """Download an http, https or file URL to `dest`, resuming from `DEST.partial` if it exists.

    Nothing is done if `dest` has the right checksum (64 hex digits) already.

    Raises:
        DownloadError: unreachable, refused, interrupted, or the checksum does not match.
    """
    from http.client import HTTPException  # noqa: PLC0415

    def transfer(partial: Path) -> None:
        try:
            _transfer(url, partial, progress)
        except (OSError, HTTPException, ValueError) as error:
            raise DownloadError(
                "cannot download",
                where=url,
                why=_reason(error),
                hints=[
                    "check the network and the proxy variables (https_proxy)",
                    f"download it elsewhere and put it at {dest}; a partial file is kept and resumed",
                ],
            ) from error

    receive(url, dest, sha256, transfer, "run again: a proxy or a broken transfer may have changed it")


def receive(url: str, dest: Path, sha256: str, transfer: Callable[[Path], None], hint: str) -> None:
    """Transfer a file to `DEST.partial`, which gets its name if it has the right checksum, or is deleted."""
    if dest.is_file() and sha256_of(dest) == sha256.lower():
        return
    dest.parent.mkdir(parents=True, exist_ok=True)
    partial = dest.with_name(f"{dest.name}.partial")
    transfer(partial)
    if (found := sha256_of(partial)) != sha256.lower():
        partial.unlink()
        raise _wrong("the downloaded file has the wrong checksum and was deleted", url, found, sha256, hint)
    partial.replace(dest)


def _transfer(url: str, partial: Path, progress: Progress) -> None:
    import urllib.error  # noqa: PLC0415
    import urllib.request  # noqa: PLC0415

    have = partial.stat().st_size if partial.exists() else 0
    # Azure's blob store ignores Range requests of the API version that anonymous readers get (triton#10418).
    headers = {"User-Agent": "tritonsmith", "x-ms-version": "2011-08-18"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - schemes are checked by the recipe
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # noqa: PLR2004 - nothing beyond what we have: complete, or not the same file
            error.close()
            return
        raise
    with response:
        resumed = have and response.status == 206  # noqa: PLR2004 - Partial Content
        done = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else None
        with partial.open("ab" if resumed else "wb") as file:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                progress(done, total)
            file.flush()
            os.fsync(file.fileno())
        if total is not None and done < total:
            raise OSError(f"the connection ended after {done} of {total} bytes")


def reachable(url: str) -> str | None:
    """Why an http(s) URL cannot be fetched, or None if it can; sends only a HEAD request."""
    try:
        with _opened(url, "HEAD", _PATIENCE):
            return None
    except DownloadError as error:
        return error.why


def text(url: str, limit: int = 1 << 16) -> str:
    """The content of a small text file at an http(s) URL, at most 64 KiB or `limit` bytes.

    Raises:
        DownloadError: the file cannot be read.
    """
    with _opened(url, "GET", TIMEOUT) as response:
        content: bytes = response.read(limit)
        return content.decode("utf-8", errors="replace")


@contextmanager
def _opened(url: str, method: str, timeout: float) -> Iterator[IO[bytes]]:
    import urllib.request  # noqa: PLC0415
    from http.client import HTTPException  # noqa: PLC0415

    try:
        request = urllib.request.Request(url, method=method, headers={"User-Agent": "tritonsmith"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
            yield response
    except (OSError, HTTPException, ValueError) as error:
        raise DownloadError("cannot download", where=url, why=_reason(error)) from error


def verify(path: Path, sha256: str, progress: Progress) -> None:
    """Verify the checksum of an archive, 64 hex digits.

    Raises:
        DownloadError: the checksum does not match.
    """
    if (found := sha256_of(path, progress)) != sha256.lower():
        hint = "download the archive again: a broken transfer may have changed it"
        raise _wrong("the archive has the wrong checksum", path, found, sha256, hint)


def _wrong(what: str, where: Path | str, found: str, sha256: str, hint: str) -> DownloadError:
    why = f"sha256 is    {found}\nit should be {sha256.lower()}"
    return DownloadError(what, where=where, why=why, hints=[hint])


def sha256_of(path: Path, progress: Progress = lambda *_: None) -> str:
    """SHA-256 of a file, 64 hex digits."""
    seen, whole = hashlib.sha256(), path.stat().st_size
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            seen.update(chunk)
            progress(file.tell(), whole)
    return seen.hexdigest()


def _reason(error: Exception) -> str:
    import urllib.error  # noqa: PLC0415

    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return f"the server answered {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
