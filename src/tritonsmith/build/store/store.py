"""The store: a folder of LLVMs, each with its manifest beside it, which is written last.

```
NAME/            the tree           NAME.json   its manifest: without one, it is unfinished
NAME.lock        held during a build, import or deletion; NAME.lock.holder names the holder
NAME.used        when it was last requested
users/           who uses which entry             .trash-NAME, .import-NAME   being deleted, or imported
```
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tritonsmith.build.store import describe_tree, matching
from tritonsmith.build.store import entry as entries
from tritonsmith.build.store.entry import StoreEntry, StoreManifest
from tritonsmith.build.store.matching import LlvmNeeds, StoreMatch
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, OwnershipError, SmithError, UsageError, did_you_mean
from tritonsmith.core.plan import Remove, Step, Write, files, ownership
from tritonsmith.core.plan.steps import store_entry
from tritonsmith.facts import llvm_tree, machine

PHASE = "store"
MARKER = "tritonsmith-llvm-store"  # distinguishes a store: a workspace has the mark of ownership too
_BEGUN = frozenset({"CACHEDIR.TAG", "tritonsmith-owned", "users"})  # `claim` creates these before the marker
UNFINISHED = "unfinished: `invoke setup-mlir` resumes it, `invoke store.gc` deletes it"
LEAVING = "deletion interrupted: `invoke store.gc` finishes it"


@dataclass(frozen=True)
class Store:
    """A store of LLVMs.

    Attributes:
        root: its folder, which need not exist.
        owner: the marked folder that limits deletions: the store itself, or the workspace around it.
        writable: whether it may be changed; a read-only one can still be used.
    """

    root: Path
    owner: Path
    writable: bool = True

    @property
    def users(self) -> Path:
        """The folder of the users' records."""
        return self.root / "users"

    def claim(self) -> None:
        """Create the folder if needed, and mark it, or the workspace around it.

        Raises:
            OwnershipError: the folder has other contents.
            SmithError: the folder is not writable.
        """
        try:
            ownership.mark(self.owner)
            files.make_folder(self.users)
            # Another user's marker cannot be touched, and need not be.
            if not (self.root / MARKER).exists():
                files.write(self.root / MARKER, "")
        except OwnershipError as error:
            hints = ["use a new or empty folder: `store` under [llvm] in the env file, or --store PATH"]
            raise OwnershipError(error.what, where=error.where, why=error.why, hints=hints) from error
        except OSError as error:
            raise SmithError(
                "cannot write to the store",
                where=error.filename or self.root,
                why=error.strerror,
                hints=["docs/store.md explains how to set up a shared store (group, setgid, umask 002)"],
            ) from error

    def path(self, name: str) -> Path:
        """Return the tree of an entry: the value for `LLVM_SYSPATH`."""
        return self.root / name

    def manifest(self, name: str) -> Path:
        """Return the file of an entry's manifest."""
        return self.root / f"{name}.json"

    @contextmanager
    def hold(self, name: str, *, purpose: str) -> Iterator[None]:
        """Lock an entry for the body of a `with`, to build, extend, import or delete it.

        The entry need not exist. `purpose` is the command line of the lock's holder.

        Raises:
            LockedError: another process holds the lock; the error names it.
        """
        self.claim()
        with store_entry.hold(self.root, name, purpose):
            # Who holds the lock is about to build or import here: the next clearing must not go on
            # with an interrupted deletion.
            files.remove((store_entry.tombstone(self.root, name),))
            yield

    def entries(self) -> tuple[StoreEntry, ...]:
        """Return all entries by name; hidden files are not entries.

        Raises:
            SmithError: the folder cannot be read.
        """
        try:
            children = sorted(self.root.iterdir())
        # A file in the way is reported by whoever writes.
        except (FileNotFoundError, NotADirectoryError):
            children = []
        except OSError as error:
            raise SmithError("cannot read the store", where=self.root, why=error.strerror) from error
        # By both: an entry whose tree is gone still has its manifest, and a tree without one is unfinished.
        names = {path.stem for path in children if path.suffix == ".json"}
        names |= {path.name for path in children if path.is_dir() and path != self.users}
        return tuple(self._entry(name) for name in sorted(names) if entries.is_name(name))

    def entry(self, name: str) -> StoreEntry:
        """Return one entry.

        Raises:
            UsageError: the entry does not exist.
        """
        if entries.is_name(name):
            candidate = self._entry(name)
            if candidate.manifest or candidate.status != "gone":
                return candidate
        names = [entry.name for entry in self.entries()]
        hints = did_you_mean(name, names) if names else ("the store is empty: `invoke setup-mlir` fills it",)
        raise UsageError(f"the store has no entry {name!r}", where=self.root, hints=hints)

    def find(self, wanted: LlvmNeeds) -> StoreMatch:
        """Find the best suitable entry, and why each other is not. Read-only, needs no lock."""
        return matching.choose(self.entries(), wanted)

    def publish(self, manifest: StoreManifest) -> tuple[Step, ...]:
        """Return the steps that make a finished tree an entry; they end the plan that builds it."""
        # Last of all steps, and atomically: who finds a manifest finds everything that it names.
        return (Write(self.manifest(manifest.name), manifest.render(), phase=PHASE),)

    def retract(self, name: str) -> tuple[Step, ...]:
        """Return the steps that mark an entry as unfinished again, before it is rebuilt."""
        return (Remove((self.manifest(name),), self.owner, phase=PHASE),)

    def record_use(self, name: str, now: datetime | None = None) -> tuple[Step, ...]:
        """Return the steps that record a request for an entry: the least recently used is deleted first."""
        when = (now or datetime.now(UTC)).isoformat(timespec="seconds")
        return (Write(self.root / f"{name}.used", f"{when}\n", phase=PHASE),)

    def last_used(self, entry: StoreEntry) -> float:
        """Return when an entry was last requested or published, or changed if unfinished; in Unix time."""
        name = entry.name
        ninja = entry.path / ".ninja_log"
        times = [_changed(path) for path in (self.root / f"{name}.used", self.manifest(name), ninja)]
        return max(times) or _changed(entry.path)

    def _entry(self, name: str) -> StoreEntry:
        path, file = self.path(name), self.manifest(name)
        try:
            manifest = entries.parse(untrusted.read_text(file))
        except FileNotFoundError:
            there = path.is_dir() and not path.is_symlink()
            problem = self._why_not(name) if there else "no such entry"
            return StoreEntry(name, path, "unfinished" if there else "gone", None, problem)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            return StoreEntry(name, path, "unreadable", None, f"cannot read its manifest: {why}")
        # A manifest that was copied or renamed describes another tree.
        if manifest.name != name:
            return StoreEntry(name, path, "unreadable", None, f"its manifest belongs to {manifest.name}")
        return _looked_at(manifest, Path(manifest.tree) if manifest.kind == "adopted" else path)

    def _why_not(self, name: str) -> str:
        leaving = store_entry.tombstone(self.root, name).exists()
        return LEAVING if leaving else UNFINISHED


def _looked_at(manifest: StoreManifest, tree: Path) -> StoreEntry:
    """Check an entry that has a manifest: its tree exists, and matches the description."""
    name = manifest.name
    try:
        there = llvm_tree.is_tree(tree)
    except OSError as error:
        return StoreEntry(name, tree, "unreadable", None, f"cannot read {tree}: {error.strerror}")
    if not there:
        return StoreEntry(name, tree, "gone", manifest, f"no LLVM in {tree} any more")
    if manifest.kind == "adopted" and describe_tree.looks(tree) != manifest.looks:
        problem = (
            f"changed since it was adopted: `{command('store.import --in-place', tree)}` checks it again"
        )
        return StoreEntry(name, tree, "changed", manifest, problem)
    return StoreEntry(name, tree, "ready", manifest)


def open_store(space: Workspace, folder: str = "") -> Store:
    """Open the store in a folder, which may begin with `~`; by default the workspace's.

    Raises:
        FactError: the folder is a file, has other contents, or contains the workspace.
    """
    root = Path(folder).expanduser().absolute() if folder else space.llvm
    hints = ["use a store, or a new or empty folder: `store` under [llvm] in the env file, or --store PATH"]
    if untrusted.exists(root) and not untrusted.is_dir(root):
        raise FactError("the store is not a folder", where=root, hints=hints)
    if space.root.resolve().is_relative_to(root.resolve()):
        raise FactError("a store cannot be or contain the workspace", where=root, hints=hints)
    if root != space.llvm and not _is_store(root):
        raise FactError("this folder is not a store of LLVMs", where=root, hints=hints)
    inside = root != space.root and root.is_relative_to(space.root)
    return Store(root, space.root if inside else root, not machine.why_not_writable(root))


def _is_store(root: Path) -> bool:
    """Report whether a folder is a store or can become one: `claim` may have been interrupted."""
    if not untrusted.is_dir(root):
        return True
    try:  # the folder first, then the marker: another process may be claiming the folder right now
        names = {path.name for path in root.iterdir() if not ownership.is_begun(path)}
        return names <= _BEGUN or (root / MARKER).is_file()
    except OSError:
        return True  # reading it reports the error


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
