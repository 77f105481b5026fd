"""An output folder: its scratch folder, and the lock that allows one writer at a time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import files, locks


def scratch(out: Path, space: Workspace) -> Path:
    """Where the requests, results and caches of an output folder go; the same whatever links lead there."""
    digest = hashlib.sha256(os.fsencode(out.resolve())).hexdigest()[:16]
    return space.root / "kernels" / "work" / digest


@contextmanager
def held(out: Path, space: Workspace, task: str) -> Iterator[None]:
    """Lock an output folder and its scratch folder for the body of a `with`.

    Args:
        out: the output folder; where it lies outside the workspace, other workspaces may write to it, too,
            so it is made, with a lock in it.
        space: the workspace, which is claimed.
        task: what for.

    Raises:
        LockedError: another process holds it.
        UsageError: it cannot be made.
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
    with ExitStack() as stack:
        for path in paths:
            lock = locks.hold(
                path,
                purpose=f"{task} --out {out}",
                busy="in this output folder",
                hints=[
                    "wait for it to end, or stop it with ^C in its terminal",
                    "choose another folder: --out DIR",
                ],
            )
            stack.enter_context(lock)
        yield
