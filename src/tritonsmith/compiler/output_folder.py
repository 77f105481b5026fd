"""Output folders: their names, their scratch folders, and the lock that allows one writer at a time."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import digest, files, locks

_READERS = 60.0  # seconds to wait for another command that compiles the same kernel into a folder of ours


@dataclass(frozen=True)
class _Kept:
    stack: ExitStack
    paths: set[Path] = field(default_factory=set)


_kept: ContextVar[_Kept | None] = ContextVar("kept", default=None)


@contextmanager
def kept() -> Iterator[None]:
    """Keep the locks that `held` takes in the body of the `with` until that body ends.

    A command that compiles into a folder and then reads it is then not disturbed by a command that compiles
    the same kernel for another target.
    """
    with ExitStack() as stack:
        token = _kept.set(_Kept(stack))
        try:
            yield
        finally:
            _kept.reset(token)


@contextmanager
def not_kept() -> Iterator[None]:
    """Give each lock back as soon as its own `with` ends, even in the body of `kept`."""
    token = _kept.set(None)
    try:
        yield
    finally:
        _kept.reset(token)


def scratch(out: Path, space: Workspace) -> Path:
    """Return the scratch folder of an output folder; the same for every link to that folder."""
    # By its digest, because two folders of one name must not share a scratch folder.
    digest = hashlib.sha256(os.fsencode(out.resolve())).hexdigest()[:16]
    return space.root / "kernels" / "work" / digest


@contextmanager
def held(out: Path, space: Workspace, task: str) -> Iterator[None]:
    """Lock an output folder and its scratch folder for the body of a `with`.

    Args:
        out: the output folder. Outside the workspace it is created, with a lock in it, because other
            workspaces may write to it, too.
        space: the workspace, which is claimed.
        task: name of the task, for the message to others.

    Raises:
        LockedError: another process holds it.
        UsageError: it cannot be created.
    """
    work = scratch(out, space)
    files.make_folder(work)
    paths = [work / "lock"]
    if not out.is_relative_to(space.root):
        paths.append(out / ".lock")
        try:
            files.make_folder(out)
        except OSError as error:
            raise UsageError("cannot create the folder of --out", where=out, why=error.strerror) from error
    keeping = _kept.get()
    patience = _READERS if keeping and out.is_relative_to(space.root) else 0.0
    with ExitStack() as stack:
        # A link to a folder whose lock is kept leads to the same lock.
        for path in (path.parent.resolve() / path.name for path in paths):
            if keeping and path in keeping.paths:
                continue
            lock = locks.hold(
                path,
                purpose=f"{task} --out {out}",
                busy="in this output folder",
                hints=[
                    "wait for it to end, or stop it with ^C in its terminal",
                    "choose another folder: --out DIR",
                ],
                patience=patience,
            )
            stack.enter_context(lock)
            if keeping:  # at once: the body may lock the same folder again
                keeping.paths.add(path)
                stack.callback(keeping.paths.discard, path)
        yield
        if keeping:
            keeping.stack.push(stack.pop_all())


_FOREIGN = re.compile(r"[^\w.,=+-]")
_LONGEST = 200  # characters


def folder_name(text: str) -> str:
    """Return a name that every file system accepts, and that cannot leave its folder."""
    name = _FOREIGN.sub("_", text.replace(" -> ", "--")).lstrip(".") or "_"
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{digest(text)}"
