"""Locate Triton's caches, and recognize their entries by name and content in every version's layout.

Caches are Triton's own, its dumps and overrides, those of the tool's environments, and TorchInductor's. A
scan opens no file, so 100,000 entries take as long as `find` takes; `read_metadata` and the like do.
"""

from __future__ import annotations

import getpass
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from packaging.version import InvalidVersion, Version

from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.untrusted import TRASH, CacheIndex

RECORD = "tritonsmith-filled.json"  # in a cache that `cache.fill` has filled
_NO_SPELLING = (re.compile(r"(?!)"), "")  # matches no name
RootKind = Literal["jit", "dump", "override", "env", "inductor", "named"]


@dataclass(frozen=True)
class Root:
    """A folder whose subfolders are entries.

    Attributes:
        kind: `jit` is Triton's own cache, `env` that of an environment of the tool's, `named` was asked for.
        path: as the variable or the default names it.
        source: its origin: a variable, a default, an environment.
        current: whether a Triton started here would use it.
    """

    kind: RootKind
    path: Path
    source: str
    current: bool = False

    @cached_property
    def real(self) -> Path:
        """The resolved path: the folder may be a link to another disk."""
        return self.path.resolve()

    @property
    def label(self) -> str:
        """A few words for a table: `jit`, `env wheel`, `inductor 0`."""
        part = {"env": self.path.parent.name, "inductor": self.path.name}.get(self.kind, "")
        return f"{self.kind} {part}".rstrip()


def find(environ: Mapping[str, str], space: Workspace) -> tuple[Root, ...]:
    """Return all existing caches of this user and in the workspace, and Triton's own in any case."""
    roots: dict[Path, Root] = {}
    folders = sorted((space.root / "envs").glob("*/triton-cache"))
    tools = (Root("env", path, f"environment {path.parent.name}") for path in folders)
    for root in (*_own(environ), *tools, *_inductor(environ)):
        # By the resolved path: a variable may name the default, which comes after it.
        if root.current or root.path.is_dir():
            roots.setdefault(root.real, root)
    return tuple(roots.values())


def inductor_folder(environ: Mapping[str, str]) -> Path:
    """Return TorchInductor's cache folder: torch/_inductor/runtime/cache_dir_utils.py at 9a48faad96."""
    if named := environ.get("TORCHINDUCTOR_CACHE_DIR"):
        return Path(named).absolute()
    try:
        user = re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
    except (KeyError, OSError):  # a number without a name, as in containers: TorchInductor itself gives up
        user = str(os.getuid())
    return _temporary(environ) / f"torchinductor_{user}"


def _temporary(environ: Mapping[str, str]) -> Path:
    """Return the folder that `tempfile.gettempdir` finds in such an environment."""
    # That function itself writes a file into each candidate, and remembers the answer for the whole process.
    named = (environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    places = [Path(place) for place in (*named, "/tmp", "/var/tmp", "/usr/tmp") if place]  # noqa: S108
    return next((place for place in places if os.access(place, os.W_OK)), places[0])


def _own(environ: Mapping[str, str]) -> Iterator[Root]:
    """Yield Triton's own folders."""
    # Before 3.2 Triton has neither TRITON_HOME (f962f4be78, #4152) nor variables for dumps.
    home = Path(environ.get("HOME") or Path.home())
    parents = [(home, "the default")]
    if named := environ.get("TRITON_HOME", "").strip():
        parents.insert(0, (Path(named).absolute(), "TRITON_HOME"))
    kinds: tuple[tuple[RootKind, str, str], ...] = (
        ("jit", "cache", "TRITON_CACHE_DIR"),
        ("dump", "dump", "TRITON_DUMP_DIR"),
        ("override", "override", "TRITON_OVERRIDE_DIR"),
    )
    for kind, folder, variable in kinds:
        candidates = [(parent / ".triton" / folder, source) for parent, source in parents]
        if named := environ.get(variable, "").strip():
            # The defaults stay in the list: their entries still fill the disk, though nothing reads them.
            candidates.insert(0, (Path(named).absolute(), variable))
        for number, (path, source) in enumerate(candidates):
            yield Root(kind, path, source, current=kind == "jit" and number == 0)


def _inductor(environ: Mapping[str, str]) -> Iterator[Root]:
    """Yield one folder per device, in the layout of Triton's own, unless TRITON_CACHE_DIR is set."""
    variable = "TORCHINDUCTOR_CACHE_DIR"
    source = variable if environ.get(variable) else "TorchInductor's default"
    for path in sorted((inductor_folder(environ) / "triton").glob("*")):
        yield Root("inductor", path, source)


Kind = Literal["kernel", "launcher", "autotune", "dump", "override", "unfinished"]


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One compile, one launcher, or one autotuner's result.

    Attributes:
        root: the cache that it lies in.
        name: the name of its folder.
        era: the era of that name in `configs/triton-cache.toml`; empty for a bundle of TorchInductor's.
        kind: the kind of entry.
        kernel: name of the kernel, launcher or autotuned function; empty if unknown.
        files: number of files.
        bytes: size of all files.
        changed: time of the last addition or removal of a file, in nanoseconds since 1970.
        temporary: names of unfinished files, with the process ids of their writers.
        empty: names of files without content.
    """

    root: Root
    name: str
    era: str
    kind: Kind
    kernel: str
    files: int
    bytes: int
    changed: int
    temporary: tuple[tuple[str, int], ...] = ()
    empty: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path of its folder."""
        return f"{self.root.real}/{self.name}"


@dataclass(frozen=True)
class Content:
    """The contents of a cache.

    Attributes:
        root: the cache.
        entries: the entries that were examined.
        total: number of entries, examined or not.
        strangers: names of other things, with the reason why they are no entries.
        trash: whether an interrupted run left entries that it had moved aside.
        readable: the folder could be listed.
    """

    root: Root
    entries: tuple[CacheEntry, ...] = ()
    total: int = 0
    strangers: tuple[tuple[str, str], ...] = ()
    trash: bool = False
    readable: bool = True

    @property
    def bytes(self) -> int:
        """The size of the examined entries."""
        return sum(entry.bytes for entry in self.entries)


@dataclass(frozen=True)
class Era:
    """Triton versions with the same form of entry names.

    Attributes:
        name: the name of the spelling.
        length: the length of a name.
        pattern: regular expression of a whole name.
        since: first release.
        until: last release; empty if it is still so.
    """

    name: str
    length: int
    pattern: str
    since: str
    until: str = ""

    @property
    def versions(self) -> str:
        """The releases in words: `3.0-3.1`, `3.3+`."""
        if not self.until:
            return f"{self.since}+"
        return self.since if self.since == self.until else f"{self.since}-{self.until}"

    def holds(self, version: str) -> bool:
        """Return whether a version spells names so; a version of unknown form may."""
        # All patches of a line spell names alike, so two numbers are enough.
        try:
            release = Version(version).release[:2]
        except InvalidVersion:
            return True
        above = Version(self.since).release <= release
        return above and (not self.until or release <= Version(self.until).release)


@cache
def eras() -> tuple[Era, ...]:
    """Return all spellings, oldest first."""
    return tuple(configs.as_dataclass(Era, row) for row in configs.load("triton-cache")["era"])


def era_of(entry: CacheEntry) -> Era | None:
    """Return the spelling of an entry's name; None for a bundle of TorchInductor's."""
    return next((era for era in eras() if era.name == entry.era), None)


def index() -> CacheIndex:
    """Return the name of the file by which Triton finds the others of an entry."""
    table = configs.load("triton-cache")["entry"]
    return CacheIndex(table["index"], table["blank"])


def scan(root: Root, limit: int | None = None) -> Content:
    """Scan a cache: examine at most `limit` entries, and count the others by the length of their names."""
    try:
        names = os.listdir(root.real)  # noqa: PTH208 - 100,000 Paths take longer than the rest
    except FileNotFoundError:
        return Content(root)
    except OSError:
        return Content(root, readable=False)
    folder, known = str(root.real), _spellings()
    entries: list[CacheEntry] = []
    strangers: list[tuple[str, str]] = []
    uncounted = 0
    for name in names:
        if limit is not None and len(entries) >= limit:
            # By the length alone: a sample of a large cache is for an estimate, not for a deletion.
            uncounted += len(name) in known
            continue
        # The length alone tells the spelling: 32 md5, 64 sha256 in hex, 43 base64url (3.2, may begin with
        # `-`), 52 base32 (3.3 and later).
        pattern, era = known.get(len(name), _NO_SPELLING)
        entry = _look(root, folder, name, era) if pattern.fullmatch(name) else "not an entry name"
        if isinstance(entry, CacheEntry):
            entries.append(entry)
        elif entry and name != RECORD and not name.startswith(TRASH):
            strangers.append((name, entry))
    trash = any(name.startswith(TRASH) for name in names)
    return Content(root, tuple(entries), len(entries) + uncounted, tuple(strangers), trash)


def _look(root: Root, folder: str, name: str, era: str) -> CacheEntry | str:
    """Return the entry, or why it is none; empty if it has gone."""
    path = f"{folder}/{name}"
    sizes: dict[str, int] = {}
    folders: list[str] = []
    try:
        # The time is read before the content: what is written from now on gives a later time, and a
        # removal by this one is refused.
        about = os.lstat(path)
        if not stat.S_ISDIR(about.st_mode):
            return "a link" if stat.S_ISLNK(about.st_mode) else "not a folder"
        with os.scandir(path) as inside:
            for part in inside:
                if part.is_dir(follow_symlinks=False):
                    folders.append(part.name)
                else:
                    sizes[part.name] = part.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or "unreadable"
    shape = classify(sizes, folders, era)
    if isinstance(shape, str):
        return shape
    empty = tuple(part for part in shape.finished if not sizes[part]) if 0 in sizes.values() else ()
    kind = root.kind if root.kind in ("dump", "override") else shape.kind
    size = sum(sizes.values())
    return CacheEntry(
        root, name, era, kind, shape.kernel, len(sizes), size, about.st_mtime_ns, shape.temporary, empty
    )


@dataclass(frozen=True)
class Shape:
    """The kind and the names of a folder's files.

    Attributes:
        kind: the kind of entry.
        kernel: its name.
        temporary: unfinished files, with the process ids of their writers.
        finished: names of the other files, without locks.
    """

    kind: Kind
    kernel: str
    temporary: tuple[tuple[str, int], ...]
    finished: tuple[str, ...]


def classify(files: Iterable[str], folders: Iterable[str], era: str) -> Shape | str:
    """Return the kind of a folder with the name of an entry, or why it is no entry.

    Args:
        files: names of the files in it.
        folders: names of the folders in it.
        era: of its own name; empty for a bundle of TorchInductor's.
    """
    known = _names()
    temporary: list[tuple[str, int]] = []
    rest: list[str] = []
    for name in files:
        if "tmp.pid_" in name and (match := known.temporary.fullmatch(name)):
            temporary.append((name, int(match[1])))
        elif name != known.lock:
            rest.append(name)
    for name in folders:
        match = known.temporary.fullmatch(name)
        if match is None:
            return f"holds a folder {name!r}"
        temporary.append((name, int(match[1])))
    outcome = _by_files(rest, known, era)
    if isinstance(outcome, str):
        return outcome
    kind, kernel = outcome
    return Shape(kind if era else "unfinished", kernel, tuple(temporary), tuple(rest))


def _by_files(files: list[str], known: _Names, era: str) -> tuple[Kind, str] | str:
    if not files:
        return "unfinished", ""
    # The index `__grp__KERNEL.json` is written last, so an entry with one is complete.
    stems = [name[len(known.index) :].removesuffix("json") for name in files if name.startswith(known.index)]
    if stems:
        # Anything else was put there by a person or another program, and is not ours to delete.
        own = (known.index, *stems)
        for name in files:
            if not name.startswith(own):
                return f"holds {name!r}"
        return "kernel", stems[0].rstrip(".")
    if all(name.endswith(known.libraries) for name in files):
        return "launcher", files[0].partition(".")[0]
    if all(name.endswith(known.autotune) for name in files):
        return "autotune", files[0].removesuffix(known.autotune)
    return _by_stages(files, known, era)


def _by_stages(files: list[str], known: _Names, era: str) -> tuple[Kind, str] | str:
    """Classify files without an index: an interrupted compile, a dump, or an entry of 2.0, which had none."""
    parts = [name.rpartition(".") for name in files]
    stems = {stem for stem, _, suffix in parts if suffix in known.stages}
    for name, (stem, _, suffix) in zip(files, parts, strict=True):
        if suffix not in known.stages and not (suffix == "json" and stem in stems):
            return f"holds {name!r}"
    kernel = min(stems)
    # 2.0 wrote no index: there the metadata came last.
    finished = era == "md5" and f"{kernel}.json" in files
    return "kernel" if finished else "unfinished", kernel


@dataclass(frozen=True)
class _Names:
    """The table `[entry]` of the configuration, ready to compare with."""

    index: str
    temporary: re.Pattern[str]
    lock: str
    autotune: str
    libraries: tuple[str, ...]
    stages: frozenset[str]


@cache
def _names() -> _Names:
    table = configs.load("triton-cache")["entry"]
    return _Names(
        table["index"],
        re.compile(table["temporary"]),
        table["lock"],
        table["autotune"],
        tuple(f".{suffix}" for suffix in table["libraries"]),
        frozenset(table["stages"]),
    )


def _spellings() -> dict[int, tuple[re.Pattern[str], str]]:
    """Return pattern and era by the length of a name; the era is empty for TorchInductor's bundles."""
    bundle = configs.load("triton-cache")["bundle"]
    known = {era.length: (re.compile(era.pattern), era.name) for era in eras()}
    return known | {bundle["length"]: (re.compile(bundle["pattern"]), "")}


@dataclass(frozen=True)
class Metadata:
    """The contents of an entry's `KERNEL.json`.

    Attributes:
        target: `cuda:90:32`; empty if it has none.
        version: version of the Triton that made it; empty before 3.3 (47e409060c, #5912).
        options: options that differ from the backend's defaults, as name and value.
    """

    target: str = ""
    version: str = ""
    options: tuple[tuple[str, str], ...] = ()


def read_metadata(entry: CacheEntry) -> Metadata:
    """Read it; all fields are empty for an entry that is no kernel, or cannot be read."""
    if entry.kind != "kernel":
        return Metadata()
    table = _json(Path(entry.path) / f"{entry.kernel}.json")
    if not isinstance(table, dict):
        return Metadata()
    target = _target(table)
    return Metadata(target, str(table.get("triton_version", "")), _options(table, target))


def entry_stages(entry: CacheEntry) -> tuple[str, ...]:
    """Return the suffixes of its files, in the order of the pipeline; those of other backends come last."""
    if entry.kind == "launcher":
        return ("so",)
    known = configs.load("triton-cache")["entry"]["stages"]
    unfinished = {name for name, _ in entry.temporary}
    try:
        names = set(os.listdir(entry.path)) - unfinished  # noqa: PTH208 - names are all that is wanted
    except OSError:
        return ()
    stem = f"{entry.kernel}."
    here = {name.removeprefix(stem) for name in names if name.startswith(stem)} - {"json"}
    return (*(name for name in known if name in here), *sorted(here.difference(known)))


def dangling_stages(entry: CacheEntry) -> tuple[str, ...]:
    """Return missing files that the index names; such an entry is recompiled, or fails to load."""
    folder = Path(entry.path)
    index = configs.load("triton-cache")["entry"]["index"]
    table = _json(folder / f"{index}{entry.kernel}.json")
    children = table.get("child_paths", {}) if isinstance(table, dict) else {}
    paths = children.values() if isinstance(children, dict) else children
    # The index has absolute paths since 3.0: entries of a cache that was moved or copied dangle, and
    # name files of the old place.
    return tuple(str(path) for path in paths if not os.path.lexists(folder / str(path)))


def _json(path: Path) -> Any:
    try:
        return untrusted.read_json(path)
    except (OSError, ValueError):
        return None


def _target(table: dict[str, Any]) -> str:
    """Return the target: a GPUTarget since 3.0, a descriptor in 2.2, `arch` and `device_type` in 2.1."""
    target = table.get("target")
    if isinstance(target, dict) and "backend" in target:
        return f"{target['backend']}:{target.get('arch')}:{target.get('warp_size')}"
    arch = target.get("capability") if isinstance(target, dict) else table.get("arch")
    device = table.get("device_type")
    return f"{device}:{arch}:32" if device == "cuda" and isinstance(arch, int) else ""


def _options(table: dict[str, Any], target: str) -> tuple[tuple[str, str], ...]:
    # Metadata list every option of the backend, some 30; only those that somebody has set tell entries apart.
    known = configs.load("triton-cache")
    defaults = known["defaults"].get(target.partition(":")[0], {})
    changed = {name: table[name] for name, value in defaults.items() if table.get(name, value) != value}
    changed |= {name: table[name] for name in known["unset"]["options"] if table.get(name) is not None}
    return tuple((name, str(value)) for name, value in changed.items())
