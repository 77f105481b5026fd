"""Delete entries of the store: folders, each with a manifest beside it that marks the entry as complete.

An entry is deleted in this order, under its lock:

1. its manifest is renamed to `.trash-NAME.json`: the entry cannot be found from here on
2. if a user registered meanwhile, the manifest is renamed back, and the entry stays
3. its tree is renamed to `.trash-NAME-PID`, and `.trash-NAME.json` is deleted
4. `.trash-NAME-PID` is deleted

A user of an entry registers first and then checks whether the manifest still exists, so that one of
the two sees the other. A process that is killed between 1 and 3 leaves `.trash-NAME.json`, by which a
`RemoveLeftovers` ends it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import LockedError, OwnershipError, StepError
from tritonsmith.core.plan import files, locks
from tritonsmith.core.plan.steps.base import Step, StepTools
from tritonsmith.core.untrusted import SeenEntry

TRASH = ".trash-"
INCOMING = ".import-"


@dataclass(frozen=True)
class Expect(Step):
    """Fail unless a path exists; `otherwise` is the error, as a sentence."""

    path: Path
    otherwise: str

    def shell(self) -> list[str]:
        return [f"[ -e {shlex.quote(str(self.path))} ] || {{ echo {shlex.quote(self.otherwise)}; exit 1; }}"]

    def act(self, tools: StepTools) -> None:
        tools.update(0, None, self.title)
        if not self.path.exists():
            raise StepError(self.otherwise, where=self.path)

    @property
    def title(self) -> str:
        return f"expect {self.path.name}"


@dataclass(frozen=True)
class Discard(Step):
    """Delete an entry, unless it is in use or has been used since the plan was made.

    Attributes:
        root: the shelf.
        name: of the entry.
        owner: the marked folder that deletions are confined to.
        stale: records of users that count for nothing, as they were when they were looked at.
    """

    root: Path
    name: str
    owner: Path
    stale: tuple[SeenEntry, ...] = ()

    def shell(self) -> list[str]:
        # The shell cannot tell whether somebody has started to use the entry.
        tree, trash = self.root / self.name, self.root / f"{TRASH}{self.name}-$$"
        used, manifest = (shlex.quote(f"{tree}.{ending}") for ending in ("used", "json"))
        moved = f'{shlex.quote(str(self.root))}/"{trash.name}"'
        return [
            f"rm -f -- {manifest} {used}",
            f"[ ! -d {shlex.quote(str(tree))} ] || mv {shlex.quote(str(tree))} {moved}",
            f"rm -rf -- {moved}",
        ]

    def act(self, tools: StepTools) -> None:
        tools.update(0, None, self.title)
        with suppress(LockedError), hold(self.root, self.name):
            _discard(self.root, self.name, self.owner, self.stale)

    @property
    def title(self) -> str:
        return f"delete {self.name}"


@dataclass(frozen=True)
class RemoveLeftovers(Step):
    """Finish what killed runs left: unfinished deletions and failed imports.

    Attributes:
        root: the shelf; it need not exist.
        owner: the marked folder that deletions are confined to.
        stale: records of users that count for nothing, as they were when they were looked at.
        must: fail if a path cannot be deleted, such as one of another user.
    """

    root: Path
    owner: Path
    stale: tuple[SeenEntry, ...] = ()
    must: bool = True

    def shell(self) -> list[str]:
        root = shlex.quote(str(self.root))
        return [f"rm -rf -- {root}/{TRASH}* {root}/{INCOMING}*"]

    def act(self, tools: StepTools) -> None:
        stay: list[str] = []
        for path in leftovers(self.root):
            tools.update(0, None, path.name)
            try:
                _sweep(path, self)
            except OSError as error:
                stay.append(f"{path}: {error.strerror}")
        if stay and self.must:
            raise StepError(
                "cannot delete leftovers of stopped runs",
                where=self.root,
                why="\n".join(stay),
                hints=["their owner can delete them: see `ls -l`, then run `invoke store --gc` as that user"],
            )

    @property
    def title(self) -> str:
        return "delete leftovers of stopped runs"


def tombstone(root: Path, name: str) -> Path:
    """Return the path of an entry's manifest while the entry is being deleted."""
    return root / f"{TRASH}{name}.json"


def _sweep(path: Path, step: RemoveLeftovers) -> None:
    name = path.name.removeprefix(TRASH).removeprefix(INCOMING)
    if path.name.startswith(INCOMING):
        with suppress(LockedError), hold(step.root, name):
            files.remove_owned(path, step.owner)
    elif path.suffix == ".json":
        with suppress(LockedError), hold(step.root, name.removesuffix(".json")):
            _resume(path, name.removesuffix(".json"), step)
    else:
        _delete(path, step.owner)


def leftovers(root: Path) -> tuple[Path, ...]:
    """Return the leftovers of killed runs: unfinished deletions, which leave folders, come first."""
    paths = sorted(root.iterdir()) if root.is_dir() else []
    imports = (path for path in paths if path.name.startswith(INCOMING) and not path.name.endswith(".lock"))
    trash = [path for path in paths if path.name.startswith(TRASH)]
    graves = (path for path in trash if path.suffix == ".json")
    return (*imports, *graves, *(path for path in trash if path.is_dir()))


@contextmanager
def hold(root: Path, name: str, purpose: str = "delete from the store") -> Iterator[None]:
    """Lock an entry for the body of a `with`; the lock's file goes with the entry.

    Raises:
        LockedError: another process holds it; the error names the process.
    """
    lock, entry = root / f"{name}.lock", (root / name, root / f"{name}.json", tombstone(root, name))
    hints = ["wait for it to end, or stop it with ^C in its terminal"]
    with locks.hold(lock, purpose=purpose, busy=f"with {name} in the store of LLVMs", hints=hints):
        yield
        # While it is held: a run that waits for this very file finds that it is gone, and tries again.
        if not any(map(os.path.lexists, entry)):
            lock.unlink(missing_ok=True)


def _resume(grave: Path, name: str, step: RemoveLeftovers) -> None:
    """Finish an interrupted deletion, unless the entry was rebuilt or is in use again."""
    if (step.root / f"{name}.json").exists():
        grave.unlink(missing_ok=True)
    elif grave.exists():
        _discard(step.root, name, step.owner, step.stale)


def _discard(root: Path, name: str, owner: Path, stale: tuple[SeenEntry, ...]) -> None:
    tree, manifest, grave = root / name, root / f"{name}.json", tombstone(root, name)
    files.check_owned(tree, owner)
    if manifest.exists():
        if _claimed(root, name, stale):
            return
        # The manifest goes first, by a rename: from now on nobody starts to use the entry, and a killed run
        # leaves a grave by which the next one finishes the deletion.
        manifest.replace(grave)
    # Somebody may have registered between the first look and the rename. Whoever registers later looks for
    # the manifest after writing the record, and finds none.
    if _claimed(root, name, stale):
        if grave.exists():
            grave.replace(manifest)
        return
    trash = root / f"{TRASH}{name}-{os.getpid()}"
    if tree.is_dir() and not tree.is_symlink():
        tree.rename(trash)
    (root / f"{name}.used").unlink(missing_ok=True)
    grave.unlink(missing_ok=True)
    _delete(trash, owner)


def _delete(trash: Path, owner: Path) -> None:
    """Delete a path, which another run may be deleting as well."""
    try:
        files.remove_owned(trash, owner)
    except OwnershipError:
        raise
    except FileNotFoundError:
        if trash.exists():
            files.remove_owned(trash, owner)


def _claimed(root: Path, name: str, stale: tuple[SeenEntry, ...]) -> bool:
    """Return whether a user's record names the entry, and is not stale or was renewed since."""
    known = {(entry.name, entry.changed) for entry in stale}
    folder = root / "users"
    for record in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        try:
            changed = record.stat().st_mtime_ns
            content = untrusted.read_json(record)
        except (FileNotFoundError, ValueError):
            continue  # removed since, or damaged: it names no entry
        except OSError:
            return True  # it may name this one
        named = isinstance(content, dict) and content.get("entry") == name
        if named and (record.name, changed) not in known:
            return True
    return False
