"""Add a worktree to the user's clone or to the tool's own, with a record and an environment of its name.

A worktree is three things in the workspace:
worktrees/NAME.json     its record, with the repository; written first, removed last
worktrees/NAME.toml     its env file, which inherits from another environment
worktrees/NAME/         the worktree itself, if the clone is the tool's
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.build.llvm import setup_mlir
from tritonsmith.build.triton import commands, source
from tritonsmith.build.triton.source import TritonSource
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs import settings as settings_
from tritonsmith.core.envs.receipts import Session
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import MakeDir, Move, Plan, Run, Step, Write, digest, files, locks
from tritonsmith.core.plan.steps.fetch import GitRemote
from tritonsmith.facts import checkout, git, git_worktrees, llvm_tree

SCHEMA = 1
PHASE = "worktree"
_NAME = re.compile(r"\w[\w.+-]*")
_HASH = re.compile(r"[0-9a-f]{40}")
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # not allowed in a TOML string
_SHOWN = 12  # digits of a commit in a name
_ANOTHER_FETCHES = 900.0  # seconds to wait for another run's fetch: Triton's history over a slow line


@dataclass(frozen=True)
class WorktreeRecord:
    """The record of a worktree.

    Attributes:
        name: name of the worktree and of its environment.
        path: its folder, absolute.
        repository: git's folder of its repository, absolute.
        ref: ref for which it was added.
        commit: commit of that ref then, 40 hex digits.
        env: name or path of the environment that it inherits from.
        made: time of creation, in seconds since 1970.
    """

    name: str
    path: str
    repository: str
    ref: str
    commit: str
    env: str
    made: int

    @property
    def folder(self) -> Path:
        """The folder of the worktree."""
        return Path(self.path)

    @property
    def partial(self) -> Path:
        """The temporary folder during addition and deletion."""
        return self.folder.with_name(f".{self.folder.name}.tritonsmith")

    def render(self) -> str:
        """Return the record's text."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2) + "\n"

    def env_text(self, *, wheel: bool, flags: Mapping[str, Any] | None = None) -> str:
        """Return the env file's text.

        Args:
            wheel: whether the inherited environment uses a wheel.
            flags: settings of that environment's last build that its file lacks.
        """
        triton = {"triton.source": self.path, **({"triton.wheel": ""} if wheel else {}), **(flags or {})}
        lines = [f"# worktree of Triton at {' '.join(self.ref.split())}", f"inherits = {_toml(self.env)}"]
        for section in dict.fromkeys(key.partition(".")[0] for key in triton):
            lines += ["", f"[{section}]"]
            lines += [
                f"{key.partition('.')[2]} = {_toml(value)}"
                for key, value in triton.items()
                if key.startswith(f"{section}.")
            ]
        return "\n".join(lines) + "\n"

    def git(self, *arguments: str) -> Step:
        """Return a step that runs git in the repository, without its hooks."""
        # `git worktree add` would run the repository's post-checkout hook, which is code of whoever set it up
        # and may expect a person.
        argv = ("git", "-C", self.repository, "-c", "core.hooksPath=/dev/null", *arguments)
        return Run(argv, cwd=Path(self.repository), phase=PHASE)


def _toml(value: str | bool | tuple[str, ...]) -> str:
    # TOML writes texts, lists and booleans like JSON.
    return json.dumps(value, ensure_ascii=False)


def file(space: Workspace, name: str) -> Path:
    """Return the path of a worktree's record."""
    return space.worktrees / f"{name}.json"


def env_file(space: Workspace, name: str) -> Path:
    """Return the path of a worktree's env file."""
    return space.worktrees / f"{name}.toml"


def records(space: Workspace) -> tuple[WorktreeRecord, ...]:
    """Return all worktrees that the tool remembers, by name.

    Raises:
        FactError: a record cannot be read.
    """
    return tuple(_read(path) for path in sorted(space.worktrees.glob("*.json")))


def find(space: Workspace, name: str) -> WorktreeRecord:
    """Find a worktree by its name or its folder.

    Raises:
        FactError: its record cannot be read.
        UsageError: there is no such worktree.
    """
    known = {record.name: record for record in records(space)}
    place = untrusted.real(Path(name).expanduser().absolute())
    for record in known.values():
        # A word without a slash is a name, even in a folder that has a file of that name.
        if name == record.name or ("/" in name and place == record.folder):
            return record
    hints = did_you_mean(name, known) if known else ("there is none yet: `invoke worktree add REF`",)
    raise UsageError(f"no worktree named {name!r}", where=space.worktrees, hints=hints)


def _read(path: Path) -> WorktreeRecord:
    try:
        data: dict[str, Any] = untrusted.read_json(path)
        record: WorktreeRecord = untrusted.typed(WorktreeRecord, data)
        if f"{record.name}.json" != path.name or not record.folder.is_absolute():
            raise untrusted.UnreadableError("it is the record of another worktree")
    except (OSError, ValueError) as error:
        raise FactError(
            "cannot read the record of this worktree",
            where=path,
            why=str(error),
            hints=["`git worktree list` shows the worktree itself; delete the record by hand"],
        ) from error
    return record


@dataclass(frozen=True)
class WorktreeRequest:
    """A worktree to add.

    Attributes:
        ref: a branch, tag or commit, or a release such as 3.4.0.
        name: name of the worktree and its environment; empty to derive it from the ref.
        path: its folder; None for one beside the clone, or in the workspace if the clone is the tool's.
        branch: name of a new branch to create; empty for none.
        env: the environment that it inherits from.
    """

    ref: str
    name: str = ""
    path: Path | None = None
    branch: str = ""
    env: str = "dev"


@dataclass(frozen=True)
class TritonClone:
    """The repository to which worktrees are added.

    Attributes:
        repository: git's folder; the tool's own may not exist yet.
        root: the main worktree, or the bare clone, beside which new ones go; None for the tool's own clone.
        fetch: plan that updates the tool's own clone; empty for the user's, which is never fetched.
    """

    repository: Path
    root: Path | None
    fetch: Plan = field(default_factory=lambda: Plan("the clone is there"))


@dataclass(frozen=True)
class PreparedWorktree:
    """A worktree and the plan that adds it, which is empty if it already exists."""

    record: WorktreeRecord
    plan: Plan


def clone_of(settings: Settings, space: Workspace, cwd: Path) -> TritonClone:
    """Return an environment's clone: its checkout's, the one around `cwd`, or the tool's own of its URL.

    Raises:
        FactError: there is no clone, or it is not under git.
    """
    located = source.locate(settings, space, cwd)
    if located.root == space.sources / f"triton-{settings.name}":
        return own_clone(settings.triton.source, space)
    repository = git_worktrees.repository_of(located.root)
    top = (located.root / ".git").exists() or repository == located.root.resolve()
    # An enclosing repository, the user's notes for example, is not Triton's.
    if repository is None or not top:
        raise FactError(
            "this folder is not in a git repository",
            where=located.root,
            why=git.head(located.root, dirt=False).problem or None,  # perhaps another user owns it
            hints=["give a clone of Triton: --source PATH_OR_URL"],
        )
    main = repository.parent if repository.name == ".git" else located.root
    return TritonClone(repository, main)


def own_clone(url: str, space: Workspace) -> TritonClone:
    """Return the tool's own clone: all branches and tags, but only the file contents that are checked out."""
    remote = GitRemote.of(url)
    root = space.sources / f"triton-clone-{digest(remote.url)[:8]}"
    settings = {
        "remote.origin.url": remote.url,
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        # A partial clone: git fetches the content of a file when it is checked out.
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
    }
    inside = ("git", "-C", str(root))
    # Not `git clone`: these commands can be repeated after a run that was killed. Nor do branches go to
    # refs/heads, as in a mirror: git refuses to fetch into a branch that a worktree has checked out.
    commands = [
        ("git", "init", "--quiet", "--bare", str(root)),
        *((*inside, "config", *setting) for setting in settings.items()),
        (*inside, "fetch", "--filter=blob:none", "--tags", "origin"),
    ]
    steps = (
        MakeDir(space.sources, phase="Triton's clone"),
        *(Run(argv, cwd=space.sources, env=remote.env, phase="Triton's clone") for argv in commands),
    )
    return TritonClone(root, None, Plan(f"clone {remote.url}", steps))


def fetch(clone: TritonClone, space: Workspace, task: str) -> None:
    """Update the tool's own clone, after any other run that is doing so: git does not wait for its locks.

    Raises:
        SmithError: git failed.
        LockedError: the other run takes too long.
    """
    space.claim()
    files.make_folder(space.sources)
    with locks.hold(
        clone.repository.with_name(f".{clone.repository.name}.lock"),
        purpose=task,
        busy="fetching this clone",
        hints=["wait for it to end, or stop it"],
        patience=_ANOTHER_FETCHES,
    ):
        space.run(clone.fetch, task)


def resolve(clone: TritonClone, ref: str) -> str:
    """Return the commit that a ref names in a clone; empty if there is none."""
    repository = clone.repository
    # Releases are tagged `v3.4.0`, and everybody calls them 3.4.0.
    return git_worktrees.commit_of(repository, ref) or git_worktrees.commit_of(repository, f"v{ref}")


def up_to_date(clone: TritonClone, ref: str) -> bool:
    """Report whether a clone need not be fetched for a ref: it is the user's, or has that exact commit."""
    # A branch or a tag may have moved since the last fetch; a commit cannot.
    return not clone.fetch.steps or bool(_HASH.fullmatch(ref) and resolve(clone, ref))


def prepare(request: WorktreeRequest, clone: TritonClone, space: Workspace) -> PreparedWorktree:
    """Prepare a worktree and its environment. Leftovers of a killed run are deleted or completed.

    Raises:
        FactError: the clone does not have the ref.
        UsageError: the name or the folder is taken.
    """
    commit = resolve(clone, request.ref)
    if not commit:
        raise _no_ref(request.ref, clone)
    name = _name(request, commit)
    existing = next((known for known in records(space) if known.name == name), None)
    base = settings_.load(request.env, only_shown=True)
    record = WorktreeRecord(
        name=name,
        path=str(_place(request, name, clone, space)),
        repository=str(clone.repository),
        ref=request.ref,
        commit=commit,
        env=str(settings_.find(request.env)) if request.env.endswith(".toml") else request.env,
        made=existing.made if existing else int(time.time()),
    )
    # The same request again completes what a killed run left; another one must not take its name.
    if existing and (existing.path, existing.repository, existing.commit) != (
        record.path,
        record.repository,
        record.commit,
    ):
        raise UsageError(
            f"a worktree named {name!r} already exists",
            where=existing.path,
            why=f"at {existing.ref} ({existing.commit[:_SHOWN]})",
            hints=[
                "give this one another name: --name NAME",
                f"or remove that one: {command('worktree remove', name)}",
            ],
        )
    if not existing:
        _check_name(name, space)
    branch, exists = _branch(request, clone, again=existing is not None)
    checkout = _checkout(record, branch, exists=exists)
    if existing and not checkout and env_file(space, name).is_file():
        return PreparedWorktree(existing, Plan("the worktree is there"))
    flags = commands.flags_of_last_build(request.env)
    # It may not fit this commit: `take_llvm` compares the pins.
    flags.pop("llvm.dir", None)
    text = record.env_text(wheel=bool(base.triton.wheel), flags=flags)
    steps = (
        # The record first: what a killed run leaves can then be completed or removed.
        Write(file(space, name), record.render(), phase=PHASE),
        *checkout,
        Write(env_file(space, name), text, phase=PHASE),
    )
    return PreparedWorktree(record, Plan(f"worktree {name} at {request.ref}", steps))


def _checkout(record: WorktreeRecord, branch: str, *, exists: bool) -> tuple[Step, ...]:
    """Return the steps that check the worktree out, detached without a branch; none if that is done."""
    repository, path, partial = Path(record.repository), record.folder, record.partial
    there = git_worktrees.at(repository, path)
    half = git_worktrees.at(repository, partial)
    rename = record.git("worktree", "repair", record.path)
    if path.is_dir() and there:
        return ()
    # A run was killed between the rename and git's note of it.
    if path.is_dir() and half and not partial.exists():
        return (rename,)
    if there:
        raise UsageError(
            "git has a worktree here, but its folder is gone",
            where=path,
            hints=[
                f"if it was moved: git -C {shlex.quote(str(record.repository))} worktree repair NEW_PATH",
                "or give --path",
            ],
        )
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError("this folder is not empty", where=path, hints=["give another one: --path FOLDER"])
    how = (() if exists else ("-b", branch)) if branch else ("--detach",)
    return (
        *discard(record),
        MakeDir(path.parent, phase=PHASE),
        # Checked out under a temporary name: a run that is killed leaves no folder in
        # which somebody starts to work.
        record.git("worktree", "add", *how, str(partial), branch if exists else record.commit),
        Move(partial, path, phase=PHASE),
        rename,
    )


def discard(record: WorktreeRecord) -> tuple[Step, ...]:
    """Return the steps that delete a killed run's leftovers: nobody works under their temporary name."""
    partial = record.partial
    if not git_worktrees.at(Path(record.repository), partial):
        return ()
    # `--force` twice, for one that an interrupted `add` left locked.
    remove = record.git("worktree", "remove", "--force", "--force", str(partial))
    # git refuses to remove a worktree whose `.git` file is gone, until it has repaired it.
    headless = partial.exists() and not (partial / ".git").exists()
    return (record.git("worktree", "repair"), remove) if headless else (remove,)


def _branch(request: WorktreeRequest, clone: TritonClone, *, again: bool) -> tuple[str, bool]:
    """Return the branch to check out, and whether it exists; empty to detach HEAD.

    Raises:
        UsageError: the new branch exists; `again` tells that a killed run may have created it.
    """
    # A branch that is checked out follows later commits; a tag, or a branch that is taken, gives a detached
    # HEAD.
    name = request.branch or request.ref
    repository = clone.repository
    exists = bool(git_worktrees.commit_of(repository, f"refs/heads/{name}"))
    current = "" if git_worktrees.is_bare(repository) else git_worktrees.branch_of(repository)
    if request.branch and exists and not again:
        hints = [f"to check it out: {command('worktree add', name)}", "or give a new branch another name"]
        raise UsageError(f"the branch {name!r} already exists", where=clone.repository, hints=hints)
    trees = git_worktrees.linked(clone.repository)
    # git checks a branch out in one worktree only.
    taken = {current, *(tree.branch for tree in trees)}
    if request.branch or (exists and name not in taken):
        return name, exists
    return "", False


def _name(request: WorktreeRequest, commit: str) -> str:
    if request.name:
        if not _NAME.fullmatch(request.name) or request.name.endswith((".toml", ".json")):
            raise UsageError(f"not a valid name: {request.name!r}", hints=["letters, digits and . + - _"])
        return request.name
    ref = commit[:_SHOWN] if commit.startswith(request.ref) else request.ref
    slug = re.sub(r"[^\w.+-]+", "-", ref).strip("-.")
    return f"wt-{slug}"


def _place(request: WorktreeRequest, name: str, clone: TritonClone, space: Workspace) -> Path:
    """Return the folder, with links resolved, because git records the resolved path."""
    if request.path:
        place = request.path.expanduser().absolute()
    elif clone.root is None:
        place = space.worktrees / name
    else:
        place = clone.root.with_name(f"{clone.root.name.removesuffix('.git')}-{name}")
    place = place.parent.resolve() / place.name
    if _UNWRITABLE.search(str(place)):
        raise UsageError("an env file cannot name this folder", where=ascii(str(place)))
    return place


def _check_name(name: str, space: Workspace) -> None:
    known: Mapping[str, Path] = {env: path for env, path, _ in settings_.available()}
    if name in known:
        raise UsageError(
            f"an environment named {name!r} already exists",
            where=known[name],
            hints=["give the worktree another name: --name NAME"],
        )
    # An environment whose env file was deleted still has its receipts, which would be taken for the
    # worktree's.
    receipts = space.env(name).path / "receipts"
    if receipts.is_dir():
        raise UsageError(
            f"an environment named {name!r} has built something already",
            where=receipts.parent,
            hints=["give the worktree another name: --name NAME"],
        )


def notes(record: WorktreeRecord) -> tuple[str, ...]:
    """Return notes about a worktree that was added."""
    branch = git_worktrees.branch_of(record.folder)
    at = f"on branch {branch}" if branch else f"detached at {record.commit[:_SHOWN]}"
    return (f"worktree of {record.repository}, {at}",)


def _no_ref(ref: str, clone: TritonClone) -> FactError:
    where = clone.root or clone.repository
    git_there = f"git -C {shlex.quote(str(where))}"
    hints = [f"fetch it there: {git_there} fetch origin {shlex.quote(ref)}"]
    if (clone.repository / "shallow").is_file():
        hints.insert(0, f"its history is shallow: {git_there} fetch --unshallow")
    return FactError(f"this clone has no commit {ref!r}", where=where, hints=hints)


def take_llvm(record: WorktreeRecord, running: Session) -> bool:
    """Give the environment an existing LLVM; return False if there is none, or not all of it.

    This is the store's LLVM at the pin, or the installed one that the inherited environment uses for the
    same pin.

    Args:
        record: the worktree.
        running: session that holds the environment's lock.
    """
    llvm = settings.load(record.name).llvm
    if llvm.dir:
        return llvm_tree.is_tree(Path(llvm.dir))
    provider = llvm.provider
    if provider not in ("auto", "store"):
        return False
    # The store first: its LLVM is at the pin of this commit, and needs no flag to be accepted.
    if _take(record, running, {"llvm.provider": "store"}):
        return True
    prefix, pin_then = _installed(running.space.env(settings.load(record.env).name))
    pin = checkout.read(record.folder).pin
    if provider == "store" or not prefix or not pin or pin_then != pin.commit:
        return False
    return _take(record, running, {"llvm.provider": "system", "llvm.dir": prefix, "llvm.any-commit": True})


def _installed(env: EnvDir) -> tuple[str, str]:
    """Return an environment's installed LLVM, by its last build or `setup-mlir`, and its pin, or blanks."""
    built = receipts.succeeded(env)
    if named := (built.get("settings") or {}).get("llvm.dir"):
        return str(named), str(built.get("pin"))
    receipt = receipts.read(env.receipt("setup-mlir"))
    return (receipt["prefix"], receipt["pin"]) if receipt and receipt["provider"] == "system" else ("", "")


def _take(record: WorktreeRecord, running: Session, flags: Mapping[str, Any]) -> bool:
    """Use the LLVM that these settings provide, if that takes no work."""
    chosen = settings.load(record.name, flags)
    located = TritonSource(Path(record.path), Plan("Triton's sources are present"))
    try:
        prepared, choice = setup_mlir.prepare(chosen, running.space, located)
    except FactError:
        return False
    if choice.plan.steps:
        return False
    commands.execute(prepared, Session("setup-mlir", running.space, running.env, running.log))
    return True
