"""Read the pins of any PyTorch commit from its repository, and update `configs/pytorch-pins.toml` by them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit
from tomlkit.items import AoT, Table

from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, StepError
from tritonsmith.core.plan import GitFetch, MakeDir, Plan, Write, digest, locks
from tritonsmith.core.plan.steps.fetch import GitRemote
from tritonsmith.core.text import version_key
from tritonsmith.facts import checkout, git_history, pytorch_pins
from tritonsmith.facts.pytorch_pins import CHANNELS, READ, UNKNOWN, WHEEL, PinFile

if TYPE_CHECKING:
    from git import Repo


PHASE = "PyTorch's pins"
# The file comes from whatever repository the user names, and its content becomes an argument of git.
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_FETCHED = "FETCH_HEAD"


@dataclass(frozen=True)
class LivePin:
    """The pin of one channel.

    Attributes:
        channel: `cuda`, `rocm`, `xpu`, `cpu` or `windows`.
        title: the channel's display name.
        commit: the commit of Triton.
        version: the version of Triton; empty if no file has it.
        file: the file that names the commit.
        same_as: the channel whose file applies if this one has none; empty otherwise.
        llvm: the LLVM commit that Triton pins at that commit; empty if unknown.
        llvm_from: its source: the Triton clone or the table.
    """

    channel: str
    title: str
    commit: str
    version: str
    file: str
    same_as: str = ""
    llvm: str = ""
    llvm_from: str = ""


@dataclass(frozen=True)
class Reading:
    """The pins of one commit of PyTorch.

    Attributes:
        repository: the URL or path that was read.
        ref: the tag, branch or commit as given.
        commit: the commit of PyTorch.
        committed: its date, ISO 8601.
        pins: one pin per channel that has one there.
    """

    repository: str
    ref: str
    commit: str
    committed: str
    pins: tuple[LivePin, ...]

    def pin(self, channel: str) -> LivePin | None:
        """Return the pin of a channel; None if it has none."""
        return next((pin for pin in self.pins if pin.channel == channel), None)


def default_repository() -> str:
    """Return the URL of PyTorch's own repository."""
    return str(configs.load(pytorch_pins.CONFIG)["repository"])


def is_url(repository: str) -> bool:
    """Report whether a repository is named by a URL; everything else is a path."""
    return "://" in repository or repository.startswith("git@")


def plan_fetch(repository: str, ref: str, space: Workspace) -> Plan:
    """Plan to fetch a tag, branch or full commit of a URL without file contents; no steps for a path."""
    if not is_url(repository):
        return Plan(f"read {ref} of {repository}, read-only")
    folder = _folder(repository, space)
    return Plan(
        f"read the pins of {ref} of {repository}",
        (MakeDir(space.sources, phase=PHASE), GitFetch(folder, (repository,), ref, phase=PHASE)),
        notes=("then only the few files below .ci/docker and .github are fetched and read",),
    )


def read(repository: str, ref: str, space: Workspace, triton: Path | None = None) -> Reading:
    """Read the pins at a commit of PyTorch; nothing is checked out.

    Args:
        repository: URL or path. A URL is fetched without history and file contents into a repository of the
            tool's own.
        ref: tag, branch or commit.
        space: the workspace.
        triton: a clone of Triton, for the LLVM at each commit; None for none.

    Raises:
        SmithError: the repository, the ref or the pin file is missing, or the network fails.
    """
    if not is_url(repository):
        path = Path(repository).expanduser().absolute()
        with git_history.opened(path) as clone:
            return _read(clone, str(path), ref, ref, triton)
    with _fetched(repository, ref, space) as clone:
        return _read(clone, repository, ref, _FETCHED, triton)


def _folder(url: str, space: Workspace) -> Path:
    # Without the login, as a new token must not fetch everything again, and no folder may be named after it.
    bare = GitRemote.of(url).url
    name = bare.rstrip("/").rpartition("/")[2].removesuffix(".git") or "pytorch"
    return space.sources / f"pins-{re.sub(r'[^A-Za-z0-9._-]', '_', name)}-{digest(bare)[:8]}"


@contextmanager
def _fetched(url: str, ref: str, space: Workspace) -> Iterator[Repo]:
    """Open the tool's own repository with the ref as FETCH_HEAD, which only one run at a time may move."""
    space.claim()
    # FETCH_HEAD is one name for all runs.
    with locks.hold(space.root / "pins.lock", purpose=f"pins --live --ref {ref}"):
        try:
            space.run(plan_fetch(url, ref, space), "pins")
        except StepError as error:
            raise _unreachable(url, ref, error) from error
        with git_history.opened(_folder(url, space)) as clone:
            # The fetch left out file contents: git gets each on first use, and needs the login again.
            clone.git.update_environment(**dict(GitRemote.of(url).env))
            yield clone


def _unreachable(url: str, ref: str, error: StepError) -> SmithError:
    return SmithError(
        f"cannot read {ref!r} of this repository",
        where=url,
        why=error.why or error.what,
        hints=[
            "check the network; behind a proxy set https_proxy",
            f"check that this tag, branch or full commit exists: git ls-remote {url} '{ref}'",
            "use a local clone: --repository PATH",
            "offline, use the table: invoke pins --pytorch VERSION",
        ],
    )


def _read(clone: Repo, repository: str, name: str, ref: str, triton: Path | None) -> Reading:
    commit = git_history.resolve(clone, ref)
    if not commit:
        raise FactError(
            f"this repository has no tag, branch or commit {name!r}",
            where=repository,
            hints=["fetch it: git fetch origin --tags", "or read upstream's repository: omit --repository"],
        )
    pins: dict[str, LivePin] = {}
    for file in pytorch_pins.pin_files():
        if pin := _own_pin(clone, commit, file):
            pins[file.channel] = pin
        # The channels come in the order of the table: the one that is read instead has been read by now.
        elif other := pins.get(file.otherwise):
            about = {"channel": file.channel, "title": file.title, "same_as": other.channel}
            pins[file.channel] = replace(other, **about)
    # Every PyTorch since 2.0 has CUDA's file, whichever other channels have one.
    if "cuda" not in pins:
        raise _no_pin(repository, commit)
    committed = clone.commit(commit).committed_datetime.isoformat()
    return Reading(repository, name, commit, committed, _with_llvm(pins.values(), triton))


def _own_pin(clone: Repo, commit: str, file: PinFile) -> LivePin | None:
    # The file has moved over the years: the first path that exists at this commit is the one that counts.
    for path in file.commit:
        text = git_history.text_at(clone, commit, path)
        if text is not None:
            named = _checked(text, path, commit)
            return LivePin(file.channel, file.title, named, _version(clone, commit, file), path)
    return None


def _version(clone: Repo, commit: str, file: PinFile) -> str:
    texts = (git_history.text_at(clone, commit, path) for path in file.version)
    return next((text.strip() for text in texts if text is not None), "")


def _checked(text: str, path: str, commit: str) -> str:
    if _COMMIT.fullmatch(text.strip()):
        return text.strip()
    raise FactError(
        "this pin file does not contain a commit",
        where=f"{path} at {commit[:12]}",
        why=f"content: {text.strip()[:60]!r}",
        hints=["report this: PyTorch may have changed the format of its pins"],
    )


def _no_pin(repository: str, commit: str) -> FactError:
    (cuda,) = (file for file in pytorch_pins.pin_files() if file.channel == "cuda")
    return FactError(
        "no file at this commit pins Triton",
        where=f"{commit[:12]} of {repository}",
        why=f"looked for {' and '.join(cuda.commit)}",
        hints=["is this a PyTorch repository?", "PyTorch before 2.0 pins no Triton"],
    )


def _with_llvm(pins: Iterable[LivePin], triton: Path | None) -> tuple[LivePin, ...]:
    """Add the LLVM to each pin."""
    if triton is None:
        return tuple(_from_table(pin) for pin in pins)
    with git_history.opened(triton) as clone:
        # The clone comes first: it has Triton's own pin file at that very commit.
        return tuple(_from_clone(pin, clone) or _from_table(pin) for pin in pins)


def _from_clone(pin: LivePin, clone: Repo) -> LivePin | None:
    if not (commit := git_history.resolve(clone, pin.commit)):
        return None
    llvm = git_history.llvm_at(clone, commit)
    return replace(pin, llvm=llvm, llvm_from="the Triton clone") if llvm else None


def _from_table(pin: LivePin) -> LivePin:
    llvm, _grade = pytorch_pins.llvm_at(pin.commit)
    return replace(pin, llvm=llvm, llvm_from="the table") if llvm else pin


TABLE_PHASE = "table of pins"
_SHORT = 10
_STALE = ("commit", "grade", "candidates", "same-file", "note", "source")  # replaced by the new reading
_PIN = ("version", "requires", "same-file", "commit", "grade", "candidates")
_ORDER = (*_PIN, "llvm", "llvm-grade", "how", "note", "source")


@dataclass(frozen=True)
class Revision:
    """A changed table.

    Attributes:
        text: new text of the whole file.
        changes: a line for each pin that changed.
    """

    text: str
    changes: tuple[str, ...]


def table_file() -> Path:
    """Return the table's file, in the running checkout of this tool.

    Raises:
        SmithError: the tool runs from an installed package.
    """
    # In a wheel the table is package data, and has no project file beside its folder.
    folder = configs.data_dir("configs")
    if not (folder.parent / "pyproject.toml").is_file():
        raise SmithError(
            "the table can only be updated in a checkout of tritonsmith",
            where=folder,
            why="this is an installed package; an upgrade would overwrite the table",
            hints=[
                "clone tritonsmith and run the command there: ./bootstrap pins ...",
                "or use the output of --json",
            ],
        )
    return folder / f"{pytorch_pins.CONFIG}.toml"


def plan_table(file: Path, revision: Revision) -> Plan:
    """Plan to write the table."""
    steps = (Write(file, revision.text, phase=TABLE_PHASE),) if revision.changes else ()
    return Plan(f"write {file}", steps, notes=revision.changes)


def revise(text: str, version: str, reading: Reading) -> Revision:
    """Update the text of the table from the pins at one release's own tag."""
    # tomlkit and not a dump: comments, order and quotes of a table that people edit must stay.
    document = tomlkit.parse(text)
    rows = document["release"]
    assert isinstance(rows, AoT)  # noqa: S101 - the file's shape, held by a test
    row = next((row for row in rows if row["pytorch"] == version), None)
    if row is None:
        row = _new_row(version)
        # In order, because people read the file, too.
        rows.insert(sum(version_key(entry["pytorch"]) < version_key(version) for entry in rows), row)
    changes = [
        f"{version} {pytorch_pins.titles()[channel]}: {change}"
        for channel in CHANNELS
        if (pin := reading.pin(channel)) and (change := _put_pin(row, channel, pin, reading))
    ]
    return Revision(_spaced(tomlkit.dumps(document)) if changes else text, tuple(changes))


def _spaced(text: str) -> str:
    """Normalize to one empty line between rows."""
    return re.sub(r"\n+(\[\[?release\b)", r"\n\n\1", text).rstrip("\n") + "\n"


def _new_row(version: str) -> Table:
    row = tomlkit.table()
    row.add("pytorch", version)
    row.add(tomlkit.nl())
    for name in ("cuda", "rocm", WHEEL):
        row.add(name, _table({"grade": UNKNOWN}))
    return row


def _table(values: dict[str, Any]) -> Table:
    """Return a table followed by an empty line."""
    table = tomlkit.table()
    for key, value in values.items():
        table.add(key, value)
    table.add(tomlkit.nl())
    return table


def _put_pin(row: Any, channel: str, pin: LivePin, reading: Reading) -> str:
    """Change one channel of a row; return a description of the change, or nothing."""
    before = row.get(channel)
    old = dict(before.unwrap()) if before is not None else {}
    new = {key: value for key, value in old.items() if key not in _STALE}
    new["grade"] = READ
    new["source"] = [f"pytorch {reading.ref} = {reading.commit}, {pin.file}"]
    if pin.same_as:
        new["same-file"] = True
        for key in ("version", "llvm", "llvm-grade"):
            new.pop(key, None)
    else:
        new["commit"] = pin.commit
        if pin.version:
            new["version"] = pin.version
        _put_llvm(new, old, pin)
    # A note explains one pin, by hand; it would be wrong beside another.
    if "note" in old and _same_pin(old, new):
        new["note"] = old["note"]
    if new == old:
        return ""
    kept = {key: before.item(key) for key in old} if before is not None else {}  # with their quotes
    table = _table({key: kept[key] if new[key] == old.get(key) else new[key] for key in _ORDER if key in new})
    if before is not None:
        row[channel] = table
    else:
        # Before the wheel, as in every row.
        wheel = row[WHEEL]
        row.remove(WHEEL)
        row.add(channel, table)
        row.add(WHEEL, wheel)
    return f"{_in_words(old)} -> {_in_words(new)}"


def _put_llvm(new: dict[str, Any], old: dict[str, Any], pin: LivePin) -> None:
    """Set the LLVM at the pin: as just read, as known before for this commit, or nothing."""
    if pin.llvm:
        new["llvm"] = pin.llvm
        new["llvm-grade"] = "read-at-commit"
    # One of the candidates was right, and all of them have the same LLVM: so it is known now.
    elif pin.commit in old.get("candidates", ()) and old.get("llvm-grade") == "same-at-every-candidate":
        new["llvm-grade"] = "read-at-commit"
    elif not _same_pin(old, new):
        new.pop("llvm", None)
        new.pop("llvm-grade", None)


def _same_pin(old: dict[str, Any], new: dict[str, Any]) -> bool:
    return all(old.get(key) == new.get(key) for key in ("commit", "same-file"))


def _in_words(channel: dict[str, Any]) -> str:
    text = "the same file as CUDA" if channel.get("same-file") else str(channel.get("commit", ""))[:_SHORT]
    return f"{text} ({channel['grade']})" if text and "grade" in channel else text or UNKNOWN


def readings(
    versions: Iterable[str], repository: str, space: Workspace, triton: Path | None = None
) -> tuple[dict[str, Reading], tuple[str, ...]]:
    """Read the tags of several releases.

    Args:
        versions: releases of PyTorch.
        repository: a URL or path, as for `read`.
        space: the workspace.
        triton: a clone of Triton, for the LLVM at each commit; None for none.

    Returns:
        The reading of each release's tag, and the releases whose tag could not be read.

    Raises:
        SmithError: the first tag could not be read, so the repository is at fault.
    """
    by_version: dict[str, Reading] = {}
    missing: list[str] = []
    for version in versions:
        try:
            by_version[version] = read(repository, f"v{version}", space, triton)
        # One tag may not exist yet; if already the first cannot be read, none can.
        except SmithError:
            if not by_version:
                raise
            missing.append(version)
    return by_version, tuple(missing)


def revise_all(text: str, by_version: Mapping[str, Reading]) -> Revision:
    """Update the table from the tags of several releases."""
    changes: list[str] = []
    for version, reading in by_version.items():
        revision = revise(text, version, reading)
        text = revision.text
        changes += revision.changes
    return Revision(text, tuple(changes))


def prepare_update(
    versions: Iterable[str], repository: str, space: Workspace, triton: Path | None = None
) -> tuple[Plan, tuple[str, ...], tuple[str, ...]]:
    """Plan an update of the table from the tags of several releases.

    Returns:
        The plan, its changes in words, and the releases whose tag could not be read.

    Raises:
        SmithError: the first tag could not be read, so the repository is at fault.
    """
    file = table_file()
    by_version, missing = readings(versions, repository, space, triton)
    revision = revise_all(untrusted.read_bytes(file).decode(), by_version)
    return plan_table(file, revision), revision.changes, missing


def version_of(text: str) -> tuple[str, str]:
    """Return the version of a release in the table, or of one that is newer than the table, and a note.

    Raises:
        UsageError: the text is neither.
    """
    plain = text.removeprefix("v")
    # A whole version needs no row: the tag of a release that is newer than the table can be read all the
    # same.
    if re.fullmatch(r"\d+\.\d+\.\d+", plain):
        return plain, ""
    match = pytorch_pins.find(text)
    return match.release.version, match.note


def clone_of(source: Path | None) -> Path | None:
    """Return the clone of Triton that a flag names, or that contains the current folder."""
    if source:
        return source
    around = checkout.enclosing(Path.cwd())
    # A source archive has no history to search.
    return around if around is not None and (around / ".git").exists() else None


def require_clone(source: Path | None) -> Path:
    """Return the clone of Triton, as `clone_of`.

    Raises:
        FactError: there is none.
    """
    if clone := clone_of(source):
        return clone
    hints = ["run this in a clone, or give one: --source PATH"]
    raise FactError("no clone of Triton found", where=Path.cwd(), hints=hints)


def execute(what: Plan, space: Workspace) -> None:
    """Run the plan.

    Raises:
        SmithError: the file cannot be written.
    """
    space.claim()
    space.run(what, "pins", quiet=True)
