"""Check briefly whether a remote storage of ccache answers."""

from __future__ import annotations

import os
import socket
import time
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

_REDIS_PORT = 6379
_SERVER_ERROR = 500  # what a server answers from here on is its own trouble


@dataclass(frozen=True)
class StorageAnswer:
    """The result of a check.

    Attributes:
        seconds: the time from the call to the answer.
        trouble: why it cannot be used; empty if it can.
    """

    seconds: float
    trouble: str = ""


def ask(remote: str, *, write: bool = False, timeout: float) -> StorageAnswer:
    """Connect, and send a greeting.

    Args:
        remote: `redis://`, `http://` or `file://`, without a password.
        write: whether this machine may write there; checked for a folder only.
        timeout: seconds.
    """
    parts = urlsplit(remote)
    start = time.monotonic()
    try:
        if parts.scheme == "file":
            trouble = _folder(Path(parts.path), write=write)
        elif parts.scheme == "redis":
            trouble = _redis(parts, timeout)
        else:
            trouble = _http(parts, timeout)
    except (OSError, HTTPException) as error:
        trouble = str(error) or type(error).__name__
    return StorageAnswer(time.monotonic() - start, trouble)


def listens(path: Path, *, timeout: float) -> bool:
    """Return whether a daemon answers on a Unix socket."""
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.settimeout(timeout)
        return connection.connect_ex(str(path)) == 0


def _folder(path: Path, *, write: bool) -> str:
    if not path.is_dir():
        return "no such folder"
    mode = os.R_OK | os.X_OK | (os.W_OK if write else 0)
    return "" if os.access(path, mode) else f"it may not be {'written to' if write else 'read'}"


def _redis(parts: SplitResult, timeout: float) -> str:
    address = (parts.hostname or "", parts.port or _REDIS_PORT)
    with socket.create_connection(address, timeout) as connection:
        connection.settimeout(timeout)
        connection.sendall(b"PING\r\n")
        answer = connection.recv(200).decode("utf-8", errors="replace").strip()
    return "" if answer == "+PONG" else f"it answers {answer.lstrip('-+') or 'nothing'}"


def _http(parts: SplitResult, timeout: float) -> str:
    with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)) as connection:
        connection.request("HEAD", parts.path or "/")
        status = connection.getresponse().status
    if status in (401, 403):
        return f"it requires a login (HTTP {status})"
    return f"it answers HTTP {status}" if status >= _SERVER_ERROR else ""
