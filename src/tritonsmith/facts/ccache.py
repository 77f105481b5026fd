"""Read ccache: its settings and statistics, the inputs of its keys, the state of its remote storage."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from tritonsmith.core import untrusted
from tritonsmith.core.process import capture

_GIB = float(1 << 30)
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": _GIB}


@dataclass(frozen=True)
class Ccache:
    """Configuration and statistics of ccache.

    Attributes:
        folder: its cache folder.
        limit_gib: size limit, at which it starts to evict; 0 for none.
        used_gib: size now.
        hits: cache hits since its statistics were last zeroed.
        misses: cache misses.
        base_dir: paths below it are made relative, so that worktrees share; empty for none.
        hash_dir: the current folder is part of the key (for debug info).
        remote: there is a remote storage, by its settings or the environment's variables.
        remote_hits: local misses that a remote storage had.
        remote_misses: local misses that it did not have either.
        remote_errors: requests without an answer: errors and timeouts.
    """

    folder: Path
    limit_gib: float
    used_gib: float
    hits: int
    misses: int
    base_dir: str
    hash_dir: bool
    remote: bool = False
    remote_hits: int = 0
    remote_misses: int = 0
    remote_errors: int = 0

    @property
    def hit_rate(self) -> float | None:
        """The share of hits, 0 to 1; None before the first compile."""
        requests = self.hits + self.misses
        return self.hits / requests if requests else None


def read(program: Path) -> Ccache | None:
    """Query ccache, 3.7 or later; None if it fails."""
    # By its two machine-readable listings: `--show-stats` is for people, and changes with the versions.
    config = capture((str(program), "--show-config"), timeout=10)
    stats = capture((str(program), "--print-stats"), timeout=10)
    if config is None or stats is None:
        return None
    return parse(config, stats)


def parse(config: str, stats: str) -> Ccache:
    """Parse the two listings.

    Args:
        config: output of `ccache --show-config`: `(origin) key = value`.
        stats: output of `ccache --print-stats`: key, tab, number.
    """
    # Up to 4.6 ccache called a remote storage a secondary one.
    config, stats = (text.replace("secondary_storage", "remote_storage") for text in (config, stats))
    values = dict(re.findall(r"^(?:\(.*?\) )?(\w+) = ?(.*)$", config, re.MULTILINE))
    counts = {name: int(number) for name, number in re.findall(r"^(\w+)\t(\d+)$", stats, re.MULTILINE)}
    return Ccache(
        folder=Path(values.get("cache_dir", "")),
        limit_gib=_size(values, "max_size"),
        used_gib=counts.get("cache_size_kibibyte", 0) / 2**20,
        hits=counts.get("direct_cache_hit", 0) + counts.get("preprocessed_cache_hit", 0),
        misses=counts.get("cache_miss", 0),
        base_dir=values.get("base_dir", ""),
        hash_dir=values.get("hash_dir", "true") == "true",
        remote=bool(values.get("remote_storage")),
        remote_hits=counts.get("remote_storage_hit", 0),
        remote_misses=counts.get("remote_storage_miss", 0),
        remote_errors=counts.get("remote_storage_error", 0) + counts.get("remote_storage_timeout", 0),
    )


def _size(values: Mapping[str, str], key: str) -> float:
    """Return a size in GiB."""
    # `5.0G` up to 4.7, `5.0 GB` or `5.0 GiB` since; no unit means bytes.
    match = re.match(r"([\d.]+)\s*([KMG]i?)?", values.get(key, "").replace("k", "K"))
    return float(match[1]) * _UNITS[match[2] or ""] / _GIB if match else 0.0


_INPUT = re.compile(r"^(?P<object>.+)\.(?P<time>\d{8}_\d{6}_\d{6})\.ccache-input-text$")
_INPUT_PLAIN = re.compile(r"^(?P<object>.+)\.(?P<time>)ccache-input-text$")  # before 4.4
_MODE = re.compile(r"^=== (.+) ===$")
_KEYS = "### "
_RESULT = re.compile(r"\] Result: (\w+)$", re.MULTILINE)
_HITS = ("direct_cache_hit", "preprocessed_cache_hit")


@dataclass(frozen=True)
class Compile:
    """One compile, as ccache saw it.

    Attributes:
        object: absolute path of the object file.
        hit: whether the cache had it; None if it does not say (it was not cacheable).
        inputs: section (`COMMON`), name (`cwd`), value; in the order in which they were hashed.
    """

    object: Path
    hit: bool | None
    inputs: tuple[tuple[str, str, str], ...]

    def values(self, name: str) -> list[str]:
        """Return all values of one name, from the first section that has it."""
        # The direct and the preprocessor mode hash some inputs both: each section lists them.
        section = next((where for where, key, _ in self.inputs if key == name), "")
        return [value for where, key, value in self.inputs if key == name and where == section]


def read_inputs(folder: Path) -> tuple[Compile, ...]:
    """Return the last compile of each object in a folder that was `CCACHE_DEBUGDIR`.

    ccache writes its inputs there under `CCACHE_DEBUG=1`, and changes nothing else in that mode:
    https://ccache.dev/manual/4.7.5.html#_cache_debugging
    """
    newest: dict[str, tuple[str, Path]] = {}
    for path in _files(folder):
        match = _INPUT.match(str(path)) or _INPUT_PLAIN.match(str(path))
        # An object that was compiled twice has two sets of files: the last counts.
        if match and match["time"] >= newest.get(match["object"], ("", path))[0]:
            newest[match["object"]] = (match["time"], path)
    return tuple(
        Compile(
            Path("/") / Path(name).relative_to(folder),
            _hit(path),
            parse_inputs(untrusted.read_bytes(path).decode("utf-8", "replace")),
        )
        for name, (_, path) in sorted(newest.items())
    )


def parse_inputs(text: str) -> tuple[tuple[str, str, str], ...]:
    """Return the inputs in one `ccache-input-text`."""
    inputs: list[tuple[str, str, str]] = []
    mode, name, lines = "", "", list[str]()
    # A heading at the end closes the last input.
    for line in [*text.splitlines(), "=== end ==="]:
        match = _MODE.match(line)
        if match or line.startswith(_KEYS):
            if name:
                inputs.append((mode, name, "\n".join(lines)))
            name, lines = ("", []) if match else (line.removeprefix(_KEYS), [])
            mode = match[1] if match else mode
        elif name:
            lines.append(line)
    return tuple(inputs)


def _files(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        yield from (Path(root) / name for name in names if name.endswith("ccache-input-text"))


def _hit(path: Path) -> bool | None:
    log = path.with_name(path.name.replace("ccache-input-text", "ccache-log"))
    results = set(_RESULT.findall(untrusted.text_if_any(log)))
    if results.intersection(_HITS):
        return True
    # A compile that could not be cached has neither result.
    return False if "cache_miss" in results else None


_REDIS_PORT = 6379
_SERVER_ERROR = 500  # what a server answers from here on is its own trouble


@dataclass(frozen=True)
class StorageProbe:
    """The result of a check.

    Attributes:
        seconds: the time from the call to the answer.
        trouble: why it cannot be used; empty if it can.
    """

    seconds: float
    trouble: str = ""


def ask_storage(remote: str, *, write: bool = False, timeout: float) -> StorageProbe:
    """Connect to a remote storage, and send a greeting.

    Args:
        remote: `redis://`, `http://` or `file://`, without a password.
        write: whether this machine may write there; checked for a folder only.
        timeout: seconds.
    """
    # Before a build, since a storage that does not answer slows each of its compiles down.
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
    return StorageProbe(time.monotonic() - start, trouble)


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
        # The inline form of Redis' protocol. One that wants a password answers -NOAUTH: it is reachable.
        connection.sendall(b"PING\r\n")
        answer = connection.recv(200).decode("utf-8", errors="replace").strip()
    return "" if answer == "+PONG" else f"it answers {answer.lstrip('-+') or 'nothing'}"


def _http(parts: SplitResult, timeout: float) -> str:
    with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)) as connection:
        connection.request("HEAD", parts.path or "/")
        status = connection.getresponse().status
    # Anything else below 500 is an answer: a storage may have nothing at its root, or refuse HEAD.
    if status in (401, 403):
        return f"it requires a login (HTTP {status})"
    return f"it answers HTTP {status}" if status >= _SERVER_ERROR else ""
