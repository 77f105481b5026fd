"""Download files: resume partial ones, and verify the checksum before a file gets its final name.

HTTP libraries are imported where they are used: most runs download nothing.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tritonsmith.core.errors import DownloadError
from tritonsmith.core.plan import compression
from tritonsmith.core.plan.compression import Progress

TIMEOUT = 60.0  # seconds without a byte
_PATIENCE = 5.0  # seconds for the headers of an answer
_CHUNK = 1 << 20  # bytes
_SPARED = 1 << 30  # bytes of the disk that an answer of unknown length leaves free
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
    if (checksum := sha256_of(partial)) != sha256.lower():
        partial.unlink()
        # Deleted, or every later run would resume it and fail at the same checksum.
        raise _wrong(
            "the downloaded file has the wrong checksum and was deleted", url, checksum, sha256, hint
        )
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
        # There is nothing beyond what we have: it is complete, or another file. The checksum decides.
        if error.code == 416 and have:  # noqa: PLR2004 - Range Not Satisfiable
            error.close()
            return
        raise
    with response:
        # A server may ignore the range and send everything, with 200: then the partial file begins anew.
        resumed = have and response.status == 206  # noqa: PLR2004 - Partial Content
        done = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else None
        check_room(url, partial, done, total)
        try:
            with partial.open("ab" if resumed else "wb") as file:
                while chunk := response.read(_CHUNK):
                    done += len(chunk)
                    check_room(url, partial, done, total)
                    file.write(chunk)
                    progress(done, total)
                # The rename may reach the disk before the data does. After a power failure the file would
                # have its final name, and zeros.
                file.flush()
                os.fsync(file.fileno())
        except (OSError, DownloadError) as error:
            if isinstance(error, DownloadError) or error.errno in _FULL:
                # A partial file is kept to be resumed, but not this one: it keeps the
                # disk full, or never ends.
                partial.unlink(missing_ok=True)
            raise
        # `read` returns an empty piece both at the end and when the connection breaks.
        if total is not None and done < total:
            raise OSError(f"the connection ended after {done} of {total} bytes")


def check_room(url: str, partial: Path, done: int, total: int | None) -> None:
    """Check that a transfer can end.

    Args:
        url: the URL of the file, for the error.
        partial: the file that its bytes go to.
        done: bytes received so far.
        total: bytes of the file; None if unknown.

    Raises:
        DownloadError: it is larger than an archive or the disk, or has no end.
    """
    limit, disk = compression.limits().bytes, shutil.disk_usage(partial.parent)
    why, hint = "", f"free disk space at {partial.parent}"
    if max(total or 0, done) > limit:
        why = f"larger than {limit:,} bytes"
        hint = f"no LLVM archive is that large; for one that is: {compression.VARIABLE}=200GB"
    elif total is None and disk.free < min(_SPARED, disk.total // 20):
        why = f"after {done:,} bytes no end is in sight, and the disk has {disk.free:,} left"
    elif total is not None and total - done > disk.free:
        why = f"{total - done:,} bytes are to come, and the disk has {disk.free:,} left"
    elif total is not None and done > total:
        why, hint = f"the server announced {total:,} bytes, and sends more", "run again, or ask its owner"
    if why:
        raise DownloadError("cannot download", where=url, why=why, hints=[hint])


def reachable(url: str) -> str | None:
    """Return why an http(s) URL cannot be fetched, or None if it can; only a HEAD request is sent."""
    try:
        with _opened(url, "HEAD", _PATIENCE):
            return None
    except DownloadError as error:
        return error.why


def text(url: str, limit: int = 1 << 16) -> str:
    """Return the content of a small text file at an http(s) URL, at most 64 KiB or `limit` bytes.

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
    if (checksum := sha256_of(path, progress)) != sha256.lower():
        hint = "download the archive again: a broken transfer may have changed it"
        raise _wrong("the archive has the wrong checksum", path, checksum, sha256, hint)


def _wrong(what: str, where: Path | str, checksum: str, sha256: str, hint: str) -> DownloadError:
    why = f"sha256 is    {checksum}\nit should be {sha256.lower()}"
    return DownloadError(what, where=where, why=why, hints=[hint])


def sha256_of(path: Path, progress: Progress = lambda *_: None) -> str:
    """Return the SHA-256 of a file, 64 hex digits."""
    sha256, whole = hashlib.sha256(), path.stat().st_size
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            sha256.update(chunk)
            progress(file.tell(), whole)
    return sha256.hexdigest()


def _reason(error: Exception) -> str:
    import urllib.error  # noqa: PLC0415

    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return f"the server answered {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
