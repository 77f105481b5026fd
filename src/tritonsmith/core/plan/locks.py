"""Hold the lock of an environment or of a store's entry, which names its holder."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tritonsmith.core import redact, untrusted
from tritonsmith.core.errors import LockedError, SmithError
from tritonsmith.core.plan import stopping

_GRACE = 20.0  # seconds for what a killed run started to end
_MOMENT = 0.5  # seconds
_STEP = 4.0  # seconds between the signals that stop what a killed run left at work
_held: list[FileLock] = []
_notes: dict[Path, dict[str, Any]] = {}  # the files that name this process as a holder, and their content
_noting = threading.Lock()  # kernels are compiled in threads, each of which holds locks and starts programs
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
        purpose: the purpose of the lock: the command line.
        busy: what another holder is busy with, to follow "another run is busy".
        hints: remedies for that case.
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
        with _noting:
            _notes[holder] = redact.data({"pid": os.getpid(), "purpose": purpose, "since": now})
            _write(holder)
        yield
    finally:
        with _noting:
            _notes.pop(holder, None)  # there is none where it was interrupted before
            # The note goes before the lock is released: the next holder may have written its own by then.
            holder.unlink(missing_ok=True)
        _held.remove(lock)
        lock.release()


def hold_folder(handle: int, where: Path, busy: str, *, wait: bool = False) -> None:
    """Hold a folder until its descriptor is closed; a network file system without locks does without.

    With `wait`, another run that holds it is waited for.

    Raises:
        LockedError: another process holds it; `busy` says what that run is doing.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LockedError(f"another run is {busy}", where=where, hints=["wait for it to end"]) from None
    except OSError:
        pass


def holder(path: Path) -> str:
    """Return the holder of the lock at `path` as a sentence; empty if no known process holds it."""
    name = path.with_name(f"{path.name}.holder")
    try:
        pid = int(json.loads(name.read_text(encoding="utf-8"))["pid"])
        # Signal 0 sends nothing. The process may have been killed and have left its note behind.
        os.kill(pid, 0)
    except PermissionError:
        return _describe(name)  # somebody else's
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return ""
    return _describe(name)


def inherited() -> tuple[int, ...]:
    """Return the descriptors of the held locks, for a child, which keeps them if this process is killed.

    A process that releases a lock releases it for all.
    """
    # `flock` belongs to the open file, not to the process: it is released when the last copy of
    # the descriptor is closed.
    handles = (lock._context.lock_file_fd for lock in _held)  # noqa: SLF001 - there is no other way to it
    return tuple(handle for handle in handles if handle is not None)


def note_child(pid: int, program: str) -> None:
    """Note a process group beside the held locks: if this process is killed, the next run stops the group.

    Args:
        pid: the process id of the group's leader.
        program: its name, for messages.
    """
    with _noting:
        child = {"pid": pid, "started": _started(pid), "program": program} if _notes else {}
        for holder, content in _notes.items():
            # The note would grow by a line for each of thousands of compiles.
            living = [
                process
                for process in content.get("children", ())
                if _started(process["pid"]) == process["started"]
            ]
            content["children"] = [*living, child]
            _write(holder)


def _write(holder: Path) -> None:
    # The note is for messages only. A full disk must not keep a build from starting.
    with suppress(OSError):
        holder.write_text(json.dumps(_notes[holder]), encoding="utf-8")


def _started(pid: int) -> str:
    """Return the start time of a process, which tells it from a later one with its number; empty if none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
    import psutil  # noqa: PLC0415 - where there is no /proc

    try:
        return str(psutil.Process(pid).create_time())
    except psutil.Error:
        return ""


def _orphans(holder: Path, lock: Path) -> list[dict[str, Any]]:
    """Return the process groups of a killed holder that still run."""
    orphans = []
    try:
        # In a shared workspace anybody can write a note with any process number; it would make
        # us kill our own processes.
        if holder.stat().st_uid != os.getuid():
            return []
        for child in untrusted.read_json(holder)["children"]:
            pid, now = int(child["pid"]), _started(int(child["pid"]))
            # The kernel gives numbers out again: only number and start time together name a process.
            if child["started"] and now == child["started"]:
                orphans.append(child)
            # The leader may have ended and left compiles in its session. A later session can have the same
            # number, so only processes that inherited the lock's descriptor are taken for its own.
            if child["started"] and now in ("", child["started"]):  # it, or what it has left
                groups = {group for member, group in stopping.session(pid) if _has_open(member, lock)}
                orphans += [{**child, "pid": group} for group in sorted(groups - {pid})]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return orphans


def _has_open(pid: int, path: Path) -> bool:
    """Return whether a process has a file open, such as a lock's, which it inherited."""
    try:
        return any(link.samefile(path) for link in Path(f"/proc/{pid}/fd").iterdir() if link.exists())
    except OSError:
        return False


def _stop_orphans(lock: FileLock, holder: Path) -> bool:
    """Stop a killed holder's processes with increasing force; return whether the lock is now taken."""
    orphans = _orphans(holder, Path(lock.lock_file))
    for orphan in orphans:
        print(
            f"note: {_describe(holder)}: stopping {orphan['program']}, process {orphan['pid']}",
            file=sys.stderr,
        )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL) if orphans else ():
        for orphan in orphans:
            with suppress(OSError):  # it has ended
                os.killpg(int(orphan["pid"]), number)
        with suppress(Timeout):
            # The lock is free once the last process that inherited its descriptor has ended, whatever its
            # number: this waits for exactly that.
            lock.acquire(timeout=_STEP)
            return True
    return False


def _acquire(lock: FileLock, holder: Path, patience: float) -> None:
    """Take the lock; stop child processes of a killed run, and wait briefly where nobody is named."""
    try:
        lock.acquire()
    except Timeout:
        # Nobody is named for a moment while a lock is taken or given back, and where the lock's file was
        # removed meanwhile: filelock notices that, and its next try takes a new file.
        named, least = holder.exists(), _MOMENT
        if named and _lives(holder):
            if not patience:
                raise
            print(f"waiting: {_describe(holder)}", file=sys.stderr)
        elif named:
            if _stop_orphans(lock, holder):
                return
            print(f"waiting: {_describe(holder)}", file=sys.stderr)
            least = _GRACE
        lock.acquire(timeout=max(patience, least))


def _lives(holder: Path) -> bool:
    """Return whether the process that took the lock still exists; true if that is unknown."""
    try:
        os.kill(int(untrusted.read_json(holder)["pid"]), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return True
    return True


def _describe(holder: Path) -> str:
    try:
        note = untrusted.read_json(holder)
        if not _lives(holder):
            return f"`{note['purpose']}` was killed, and its child processes still run"
        return f"process {note['pid']} runs `{note['purpose']}` since {note['since']}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"note: cannot read {holder}: {error}", file=sys.stderr)
        return "its holder is unknown"
