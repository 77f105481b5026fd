"""The users of entries: registered environments, confirmed by receipts and build folders."""

from __future__ import annotations

import getpass
import json
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tritonsmith.build.store.entry import StoreEntry
from tritonsmith.build.store.store import PHASE, Store
from tritonsmith.core import configs, untrusted
from tritonsmith.core.cache_entries import SeenEntry
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.plan import Step, Write, digest
from tritonsmith.core.plan.steps.store_entry import Expect
from tritonsmith.facts import cmake_cache

SCHEMA = 1
_RECEIPTS = (("setup-mlir", "prefix"), ("build-triton", "llvm"), ("install-triton", "llvm"))
_VARIABLES = ("LLVM_DIR", "LLVM_SYSPATH", "MLIR_DIR", "LLVM_LIBRARY_DIR")


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


def me(env: EnvDir, checkout: Path | None, entry: str) -> User:
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


def register(store: Store, user: User) -> tuple[Step, ...]:
    """Return the steps that register a user, and check that the entry was not deleted meanwhile."""
    manifest = store.manifest(user.entry)
    return (
        *announce(store, user),
        # A deletion looks for new records after it has removed the manifest, and this looks for the
        # manifest after it has written the record: one of the two sees the other.
        Expect(manifest, f"{user.entry} was just deleted from the store: run the command again", phase=PHASE),
        *store.record_use(user.entry),
    )


def announce(store: Store, user: User) -> tuple[Step, ...]:
    """Return the steps that register a user of an entry that does not exist yet."""
    text = json.dumps({"schema": SCHEMA, **asdict(user)}, indent=2) + "\n"
    return (Write(store.users / user.file, text, phase=PHASE),)


def look(store: Store, space: Workspace, now: float) -> Usage:
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
        if user.entry and user.entry not in evidence:
            stale.append(record)
        for name, why in evidence.items():
            uses.setdefault(name, []).append(Use(user, why))
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
    for entry in entries:
        tree = entry.path.resolve()
        reasons = [why for path, why in named if path == tree or path.is_relative_to(tree)]
        if reasons:
            yield entry.name, reasons[0]


def _prefixes(env: EnvDir) -> Iterator[tuple[str, Path]]:
    for task, key in _RECEIPTS:
        prefix = _receipt(env.receipt(task)).get(key)
        if isinstance(prefix, str):
            yield task, untrusted.real(Path(prefix))
    if cache := cmake_cache.read(env.build):
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
