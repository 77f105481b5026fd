"""The results that rehearsals keep, in the workspace: a folder for each release, or environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler import output_lock
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import Plan, Remove, files, locks

RELEASES, OTHERS = "releases", "rehearsed"


@dataclass(frozen=True)
class KeptResults:
    """The compiles of one Triton that are kept.

    Attributes:
        folder: of it.
        kernels: how many results.
        bytes: of all files.
    """

    folder: Path
    kernels: int
    bytes: int


def find(space: Workspace) -> tuple[KeptResults, ...]:
    """All that there is."""
    parents = (space.root / "kernels" / name for name in (RELEASES, OTHERS))
    folders = [folder for parent in parents for folder in sorted(parent.glob("*")) if folder.is_dir()]
    return tuple(_survey(folder) for folder in folders)


def _survey(folder: Path) -> KeptResults:
    sizes = [path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()]
    return KeptResults(folder, sum(1 for one in folder.iterdir() if one.is_dir()), sum(sizes))


def plan(found: Iterable[KeptResults], space: Workspace) -> Plan:
    """Remove it."""
    paths = tuple(one.folder for one in found)
    return Plan("clear what rehearse keeps", (Remove(paths, space.root, phase="clear"),) if paths else ())


@contextmanager
def held(folders: Sequence[Path], space: Workspace, purpose: str) -> Iterator[None]:
    """Lock results for the body of a `with`.

    Raises:
        LockedError: a rehearsal uses them.
    """
    space.claim()
    with ExitStack() as stack:
        for folder in sorted(set(folders)):
            place = output_lock.scratch(folder, space)
            files.make_folder(place)
            busy, hints = f"in the results of {folder.name}", ["wait for it to end"]
            stack.enter_context(locks.hold(place / "lock", purpose=purpose, busy=busy, hints=hints))
        yield
