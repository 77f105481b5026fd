"""The store: a folder of LLVMs, each with a manifest that is written last, and the users of each.

```
NAME/            the tree           NAME.json   its manifest: without one, it is unfinished
NAME.lock        held during a build, import or deletion; NAME.lock.holder names the holder
NAME.used        when it was last requested
users/           who uses which entry             .trash-NAME, .import-NAME   being deleted, or imported
```
"""

from __future__ import annotations

import getpass
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tritonsmith.build.store import describe_tree, entry
from tritonsmith.build.store import entry as entries
from tritonsmith.build.store.entry import LlvmNeeds, StoreEntry, StoreManifest, StoreMatch
from tritonsmith.core import configs, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, OwnershipError, SmithError, UsageError, did_you_mean
from tritonsmith.core.plan import Remove, Step, Write, digest, files
from tritonsmith.core.plan.steps import store_entry
from tritonsmith.core.plan.steps.store_entry import Expect
from tritonsmith.core.untrusted import SeenEntry
from tritonsmith.facts import build_folder, llvm_tree, machine

PHASE = "store"
MARKER = "tritonsmith-llvm-store"  # distinguishes a store: a workspace has the mark of ownership too
_BEGUN = frozenset({"CACHEDIR.TAG", "tritonsmith-owned", "users"})  # `claim` creates these before the marker
UNFINISHED = "unfinished: `invoke setup-mlir` resumes it, `invoke store --gc` deletes it"
LEAVING = "deletion interrupted: `invoke store --gc` finishes it"
_USER_SCHEMA = 1
_RECEIPTS = (("setup-mlir", "prefix"), ("build-triton", "llvm"), ("install-triton", "llvm"))
_VARIABLES = ("LLVM_DIR", "LLVM_SYSPATH", "MLIR_DIR", "LLVM_LIBRARY_DIR")


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
            files.mark(self.owner)
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

    def find(self, needs: LlvmNeeds) -> StoreMatch:
        """Find the best suitable entry, and why each other is not. Read-only, needs no lock."""
        return entry.choose_entry(self.entries(), needs)

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
        # An unfinished entry has neither of the other files, and its log grows with each object.
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
        problem = f"changed since it was adopted: `{command('store --adopt', tree)}` checks it again"
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
    # In the workspace, its own mark confines deletions; elsewhere the store needs one.
    inside = root != space.root and root.is_relative_to(space.root)
    return Store(root, space.root if inside else root, not machine.why_not_writable(root))


def _is_store(root: Path) -> bool:
    """Report whether a folder is a store or can become one: `claim` may have been interrupted."""
    if not untrusted.is_dir(root):
        return True
    try:  # the folder first, then the marker: another process may be claiming the folder right now
        names = {path.name for path in root.iterdir() if not files.is_begun(path)}
        return names <= _BEGUN or (root / MARKER).is_file()
    except OSError:
        return True  # reading it reports the error


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@dataclass(frozen=True)
class User:
    """An environment that registered as a user of an entry.

    Attributes:
        workspace: its workspace, absolute.
        env: its name.
        checkout: the Triton checkout; may be empty.
        entry: name in the store.
        user: login name.
        host: its machine; its files may not be readable on another one.
        since: time of registration, UTC, ISO 8601.
    """

    workspace: str
    env: str
    checkout: str
    entry: str
    user: str = ""
    host: str = ""
    since: str = ""

    @property
    def file(self) -> str:
        """The file name of the record: one per environment."""
        # One per environment: a record is replaced when the environment changes to another entry.
        return f"{digest(self.workspace, self.env)}.json"


@dataclass(frozen=True)
class Use:
    """A use of an entry.

    Attributes:
        user: the user.
        why: the evidence: `setup-mlir`, `build-triton`, `CMakeCache.txt`; or why it cannot be checked.
    """

    user: User
    why: str

    @property
    def in_words(self) -> str:
        """The user in words: `dev (~/src/triton)`, or the workspace if there is no checkout."""
        where = self.user.checkout or self.user.workspace
        return f"{self.user.env} ({where})" if where else self.user.env


@dataclass(frozen=True)
class Usage:
    """All uses of a store.

    Attributes:
        uses: uses by name of the entry.
        stale: records that no longer count, with their state when read.
    """

    uses: dict[str, tuple[Use, ...]]
    stale: tuple[SeenEntry, ...] = ()

    def of(self, name: str) -> tuple[Use, ...]:
        """Return the uses of an entry."""
        return self.uses.get(name, ())


def this_user(env: EnvDir, checkout: Path | None, entry: str) -> User:
    """Return the record of this user's environment, for a checkout, as a user of an entry."""
    since = datetime.now(UTC).isoformat(timespec="microseconds")
    place = str(checkout) if checkout else ""
    return User(str(env.root), env.name, place, entry, login(), socket.gethostname(), since)


def login() -> str:
    """Return this user's login name; empty if there is none, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""


def register_user(store: Store, user: User) -> tuple[Step, ...]:
    """Return the steps that register a user, and check that the entry was not deleted meanwhile."""
    manifest = store.manifest(user.entry)
    return (
        *announce_user(store, user),
        # A deletion looks for new records after it has removed the manifest, and this looks for the
        # manifest after it has written the record: one of the two sees the other.
        Expect(manifest, f"{user.entry} was just deleted from the store: run the command again", phase=PHASE),
        *store.record_use(user.entry),
    )


def announce_user(store: Store, user: User) -> tuple[Step, ...]:
    """Return the steps that register a user of an entry that does not exist yet."""
    text = json.dumps({"schema": _USER_SCHEMA, **asdict(user)}, indent=2) + "\n"
    return (Write(store.users / user.file, text, phase=PHASE),)


def find_uses(store: Store, space: Workspace, now: float) -> Usage:
    """Find the uses of a store's entries `now`, in seconds since 1970.

    All environments of this user's workspace are checked, registered or not.
    """
    entries = store.entries()
    uses: dict[str, list[Use]] = {}
    stale: list[SeenEntry] = []
    registered = set()
    for record, user in _records(store):
        registered.add((user.workspace, user.env))
        evidence = _judge(record, user, entries, now)
        # Its environment uses another LLVM by now, or is gone; `store --gc` removes the record.
        if user.entry and user.entry not in evidence:
            stale.append(record)
        for name, why in evidence.items():
            uses.setdefault(name, []).append(Use(user, why))
    # An environment may use an entry without a record: a run that was killed did not get to register it.
    for env in _own_envs(space):
        if (str(env.root), env.name) not in registered:
            user = User(str(env.root), env.name, "", "", login())
            for name, why in _unregistered(env, entries):
                uses.setdefault(name, []).append(Use(user, why))
    return Usage({name: tuple(users) for name, users in uses.items()}, tuple(stale))


def _records(store: Store) -> Iterator[tuple[SeenEntry, User]]:
    """Yield the records with their current state; an unreadable one names a user without an entry."""
    for path in sorted(store.users.glob("*.json")) if store.users.is_dir() else []:
        try:
            record = SeenEntry(path.name, path.stat().st_mtime_ns)
            record_data = untrusted.read_json(path)
            yield record, User(**{name: str(record_data[name]) for name in User.__dataclass_fields__})
        except FileNotFoundError:
            continue  # gone by now
        except OSError as error:
            yield SeenEntry(path.name, 0), User("", path.name, "", "", host=str(error.strerror))
        except (ValueError, KeyError, TypeError):
            continue  # damaged: it names nobody


def _judge(record: SeenEntry, user: User, entries: tuple[StoreEntry, ...], now: float) -> dict[str, str]:
    """Return the entries that an environment uses, with the evidence."""
    if not user.entry:
        # A record that cannot be read may name any entry.
        return {entry.name: f"cannot be checked: {user.host}" for entry in entries}
    env = Workspace(Path(user.workspace)).env(user.env)
    try:
        evidence = dict(_confirmed(env, entries))
    except OSError as error:
        return {user.entry: f"cannot be checked: {error.strerror or error}"}
    if user.entry not in evidence:
        # A workspace on another machine's disk is not gone because it is not here.
        elsewhere = user.host != socket.gethostname() and not env.path.is_dir()
        limits = configs.load("store")["gc"]
        half = any(entry.name == user.entry and entry.status == "unfinished" for entry in entries)
        # An unfinished entry has no receipt yet that would name it.
        at_it = half and env.path.is_dir()
        fresh = 86400.0 * limits["unfinished-days"] if at_it else 3600.0 * limits["fresh-hours"]
        if elsewhere:
            evidence[user.entry] = f"can only be checked on {user.host}"
        elif now - record.changed / 1e9 < fresh:
            evidence[user.entry] = "builds it" if at_it else "registered recently"
    return evidence


def _unregistered(env: EnvDir, entries: tuple[StoreEntry, ...]) -> list[tuple[str, str]]:
    """Return the entries that an unregistered environment uses: all, if it cannot be read."""
    try:
        return list(_confirmed(env, entries))
    except OSError as error:
        return [(entry.name, f"cannot be checked: {error.strerror or error}") for entry in entries]


def _confirmed(env: EnvDir, entries: tuple[StoreEntry, ...]) -> Iterator[tuple[str, str]]:
    """Yield the entries that an environment's receipts and build folder name.

    Raises:
        OSError: they exist, but cannot be read.
    """
    named = [(path, why) for why, path in _prefixes(env)]
    for kept in entries:
        tree = kept.path.resolve()
        # CMake's LLVM_DIR and MLIR_DIR lie below the prefix.
        reasons = [why for path, why in named if path == tree or path.is_relative_to(tree)]
        if reasons:
            yield kept.name, reasons[0]


def _prefixes(env: EnvDir) -> Iterator[tuple[str, Path]]:
    for task, key in _RECEIPTS:
        prefix = _receipt(env.receipt(task)).get(key)
        if isinstance(prefix, str):
            yield task, untrusted.real(Path(prefix))
    if cache := build_folder.read_cmake_cache(env.build):
        for variable in _VARIABLES:
            if value := cache.get(variable):
                yield "CMakeCache.txt", untrusted.real(Path(value))


def _receipt(path: Path) -> dict[str, Any]:
    """Return a receipt's content; raise OSError if it is damaged or cannot be read."""
    # `receipts.read` does not distinguish an unreadable receipt from a missing one.
    try:
        data = untrusted.read_json(path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError as error:
        raise OSError(f"{path} is damaged") from error
    return data if isinstance(data, dict) else {}


def _own_envs(space: Workspace) -> list[EnvDir]:
    folder = space.root / "envs"
    return [space.env(path.name) for path in sorted(folder.iterdir())] if folder.is_dir() else []
