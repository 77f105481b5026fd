"""Read the pins of any PyTorch commit from its repository: a local clone, or a URL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, StepError
from tritonsmith.core.plan import GitFetch, MakeDir, Plan, digest, locks
from tritonsmith.core.plan.git_remote import GitRemote
from tritonsmith.facts import git_history, pytorch_pins
from tritonsmith.facts.pytorch_pins import PinFile

if TYPE_CHECKING:
    from git import Repo

PHASE = "PyTorch's pins"
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_FETCHED = "FETCH_HEAD"


@dataclass(frozen=True)
class LivePin:
    """The pin of one channel.

    Attributes:
        channel: `cuda`, `rocm`, `xpu`, `cpu` or `windows`.
        title: the channel's display name.
        commit: commit of Triton.
        version: version of Triton; empty if no file has it.
        file: the file that names the commit.
        same_as: channel whose file applies if this one has none; empty otherwise.
        llvm: LLVM commit that Triton pins at that commit; empty if unknown.
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
        repository: URL or path that was read.
        ref: tag, branch or commit as given.
        commit: commit of PyTorch.
        committed: its date, ISO 8601.
        pins: one per channel that has a pin there.
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


def fetch(repository: str, ref: str, space: Workspace) -> Plan:
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
            space.run(fetch(url, ref, space), "pins")
        except StepError as error:
            raise _unreachable(url, ref, error) from error
        with git_history.opened(_folder(url, space)) as clone:
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


def _read(clone: Repo, repository: str, asked: str, ref: str, triton: Path | None) -> Reading:
    commit = git_history.resolve(clone, ref)
    if not commit:
        raise FactError(
            f"this repository has no tag, branch or commit {asked!r}",
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
    if "cuda" not in pins:
        raise _no_pin(repository, commit)
    committed = clone.commit(commit).committed_datetime.isoformat()
    return Reading(repository, asked, commit, committed, _with_llvm(pins.values(), triton))


def _own_pin(clone: Repo, commit: str, file: PinFile) -> LivePin | None:
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
    """Add the LLVM to each pin; the clone takes precedence, because it has Triton's own pin."""
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
