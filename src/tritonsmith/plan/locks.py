"""Locks that name their holder: of an environment, of an entry of the store."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from tritonsmith import untrusted
from tritonsmith.errors import LockedError, SmithError
from tritonsmith.ui import redact

_GRACE = 20.0  # seconds for what a killed run started to end
_MOMENT = 0.5  # seconds
_held: list[FileLock] = []
_HINTS = ("wait for it to end, or stop it with ^C in its terminal", "use another --env")


@contextmanager
def hold(
    path: Path,
    *,
    purpose: str,
    busy: str = "in this environment",
    hints: Iterable[str] = _HINTS,
    patience: float = 0.0,
) -> Iterator[None]:
    """Hold the lock at `path` for the body of a `with`.

    Args:
        path: the lock's file; its folder must exist. `PATH.holder` names the holder.
        purpose: of the lock: the command line.
        busy: what another holder is busy with, to follow "another run is busy".
        hints: what to try then.
        patience: seconds to wait for another holder that lives.

    Raises:
        LockedError: another process holds the lock; the error names that process.
        SmithError: the file of the lock cannot be written.
    """
    holder = path.with_name(f"{path.name}.holder")
    lock = FileLock(path, timeout=0)
    try:
        _acquire(lock, holder, patience)
    except Timeout:
        raise LockedError(
            f"another run is busy {busy}",
            where=path.parent,
            why=_describe(holder),
            hints=hints,
        ) from None
    except OSError as error:
        raise SmithError("cannot write the lock", where=path, why=error.strerror) from error
    _held.append(lock)
    try:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with suppress(OSError):  # held without a name
            told = {"pid": os.getpid(), "purpose": purpose, "since": now}
            holder.write_text(json.dumps(redact.data(told)), encoding="utf-8")
        yield
    finally:
        holder.unlink(missing_ok=True)
        _held.remove(lock)
        lock.release()


def hold_folder(handle: int, where: Path, busy: str) -> None:
    """Hold a folder until its descriptor is closed; a network file system without locks does without.

    Raises:
        LockedError: another process holds it; `busy` says what that run is doing.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LockedError(f"another run is {busy}", where=where, hints=["wait for it to end"]) from None
    except OSError:
        pass


def holder(path: Path) -> str:
    """Who holds the lock at `path` now, as a sentence; empty if no known process holds it."""
    name = path.with_name(f"{path.name}.holder")
    try:
        pid = int(json.loads(name.read_text(encoding="utf-8"))["pid"])
        os.kill(pid, 0)  # sends nothing; it may have been killed, and its name left behind
    except PermissionError:
        return _describe(name)  # somebody else's
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return ""
    return _describe(name)


def inherited() -> tuple[int, ...]:
    """Descriptors of the held locks, for a child process, which keeps them if this process is killed.

    A process that releases a lock releases it for all.
    """
    found = (lock._context.lock_file_fd for lock in _held)  # noqa: SLF001 - there is no other way to it
    return tuple(one for one in found if one is not None)


def _acquire(lock: FileLock, holder: Path, patience: float) -> None:
    """Take the lock; wait briefly for child processes of a killed run, and where nobody is named.

    That is so while a lock is taken or given back, and where its file was removed meanwhile, which filelock
    notices: its next try takes a new file.
    """
    try:
        lock.acquire()
    except Timeout:
        named, least = holder.exists(), _MOMENT
        if named and _lives(holder):
            if not patience:
                raise
            print(f"waiting: {_describe(holder)}", file=sys.stderr)
        elif named:
            least = _GRACE
        lock.acquire(timeout=max(patience, least))


def _lives(holder: Path) -> bool:
    """Whether the process that took the lock still exists; true if that is unknown."""
    try:
        os.kill(int(untrusted.read_json(holder)["pid"]), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return True
    return True


def _describe(holder: Path) -> str:
    try:
        seen = untrusted.read_json(holder)
        if not _lives(holder):
            return f"`{seen['purpose']}` was killed; its child processes still run, and end by themselves"
        return f"process {seen['pid']} runs `{seen['purpose']}` since {seen['since']}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"note: cannot read {holder}: {error}", file=sys.stderr)
        return "its holder is unknown"
