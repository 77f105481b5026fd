"""What bisects keep in the workspace: answers with their tests, libraries, and where commits are built."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import Plan, Remove, locks
from tritonsmith.lab.bisect import session

_CLONE = re.compile(r"bisect-[0-9a-f]{8}")  # an env that a user named bisect-mine is theirs
_ENV = re.compile(rf"{_CLONE.pattern}-([0-9a-f]{{8}}|unpinned)|bisect-pytest")


@dataclass(frozen=True)
class KeptFolder:
    """A folder.

    Attributes:
        kind: what is in it, in a word.
        folder: its path.
        bytes: of all files.
    """

    kind: str
    folder: Path
    bytes: int


def find(space: Workspace) -> tuple[KeptFolder, ...]:
    """All that there is. Environments of releases (`triton-3.6.0`) belong to other tasks as well."""
    places = (
        ("bisect", space.root / "bisects", re.compile(".*")),
        ("libraries", space.root / "bisect" / "libraries", re.compile(".*")),
        ("builds", space.root / "envs", _ENV),
        ("clone", space.sources, _CLONE),
    )
    return tuple(
        KeptFolder(kind, folder, _size(folder))
        for kind, parent, name in places
        for folder in sorted(parent.glob("*"))
        if folder.is_dir() and name.fullmatch(folder.name)
    )


def plan(found: Iterable[KeptFolder], space: Workspace) -> Plan:
    """Remove it."""
    paths = tuple(one.folder for one in found)
    return Plan("clear what bisect keeps", (Remove(paths, space.root, phase="clear"),) if paths else ())


@contextmanager
def held(found: Sequence[KeptFolder], space: Workspace, purpose: str) -> Iterator[None]:
    """Keep bisects from it for the body of a `with`.

    Raises:
        LockedError: a bisect runs.
    """
    space.claim()
    with ExitStack() as stack:
        for one in found:
            if one.kind == "bisect":
                stack.enter_context(session.locked(one.folder, purpose))
            if one.kind == "clone":
                stack.enter_context(locks.hold(one.folder.with_suffix(".lock"), purpose=purpose))
        yield


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
