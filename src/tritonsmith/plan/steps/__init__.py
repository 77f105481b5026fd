"""The vocabulary of plans: frozen steps that say what will happen, down to the last argument.

A step knows how to print itself as shell; only `tritonsmith.plan.runner` knows how to act on it.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable
from dataclasses import KW_ONLY, asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path

from tritonsmith.plan.git_remote import GitRemote
from tritonsmith.plan.steps.uninstall import Journal

NINJA_STATUS = "[%f/%t] "  # what the runner reads the progress from


@dataclass(frozen=True)
class Stamp:
    """A file that says that a step is done: present, and its whole content equals `key`.

    Attributes:
        path: the file.
        key: of the step's inputs.
        made: what the step makes, if the stamp lies beside it: somebody may have deleted it since.
        again: do the step even if this was done.
    """

    path: Path
    key: str
    made: Path | None = None
    again: bool = False

    def holds(self) -> bool:
        """Whether the step was completed with exactly these inputs, and what it made is still there."""
        try:
            gone = self.made is not None and not self.made.exists()
            return not self.again and not gone and self.path.read_text(encoding="utf-8") == self.key
        except (OSError, UnicodeDecodeError):
            return False


@dataclass(frozen=True)
class Step:
    """What every step has.

    Attributes:
        phase: the progress bar and the line of the time table that it belongs to.
        stamp: when it holds, the step is skipped; written when the step succeeds.
    """

    _: KW_ONLY
    phase: str
    stamp: Stamp | None = None

    def shell(self) -> list[str]:
        """The step as lines of POSIX shell that a person could paste."""
        raise NotImplementedError  # pragma: no cover - abstract

    @property
    def title(self) -> str:
        """A few words for the progress bar and the log."""
        return self.phase


@dataclass(frozen=True)
class Run(Step):
    """Run a program, without a shell.

    Attributes:
        argv: program and arguments.
        cwd: working directory; created by an earlier step if need be.
        env: change of the environment, name to value; None removes a variable.
        path: folders put before PATH.
        ninja: the program prints Ninja's `[done/total]`, which drives the progress bar.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: tuple[tuple[str, str | None], ...] = ()
    path: tuple[Path, ...] = ()
    ninja: bool = False

    def shell(self) -> list[str]:
        prefix = [f"-u {name}" for name, value in self.env if value is None]
        prefix += [f"{name}={shlex.quote(value)}" for name, value in self.env if value is not None]
        if self.path:
            prefix.append(f'PATH={_quote(":".join(map(str, self.path)))}:"$PATH"')
        command = shlex.join(self.argv)
        if prefix:
            command = f"env {' '.join(prefix)} {command}"
        return [f"(cd {_quote(self.cwd)} && {command})"]

    @property
    def title(self) -> str:
        return Path(self.argv[0]).name


@dataclass(frozen=True)
class GitFetch(Step):
    """Fetch one commit by its hash into a repository of the tool's own.

    Attributes:
        repository: a folder of the tool's own; initialised if it does not exist.
        urls: remotes in the order in which they are tried.
        commit: 40 hex digits, or a ref where a branch was asked for.
        blobless: leave file contents to be fetched on checkout (`--filter=blob:none`).
    """

    repository: Path
    urls: tuple[str, ...]
    commit: str
    blobless: bool = True

    def fetch_argv(self, url: str) -> tuple[str, ...]:
        """The command that fetches from one remote, whose URL has no secrets (`GitRemote`)."""
        blobs = ("--filter=blob:none",) if self.blobless else ()
        return ("git", "-C", str(self.repository), "fetch", "--depth=1", *blobs, "--", url, self.commit)

    def shell(self) -> list[str]:
        tries = " || ".join(map(self._try, map(GitRemote.of, self.urls)))
        return [shlex.join(("git", "init", "--quiet", str(self.repository))), tries]

    def _try(self, remote: GitRemote) -> str:
        change = [f"{name}={value}" for name, value in remote.env]
        return shlex.join((*(("env", *change) if change else ()), *self.fetch_argv(remote.url)))


@dataclass(frozen=True)
class Download(Step):
    """Download a file, resuming a partial one, and verify it before it gets its name.

    Attributes:
        url: http(s) or file URL.
        sha256: 64 hex digits.
        dest: the finished file; `DEST.partial` while it is incomplete or unverified.
    """

    url: str
    sha256: str
    dest: Path

    def shell(self) -> list[str]:
        partial = _quote(f"{self.dest}.partial")
        return [
            _make_parent(self.dest),
            f"curl --fail --location --continue-at - --output {partial} {shlex.quote(self.url)}",
            f"echo {shlex.quote(f'{self.sha256}  {self.dest}.partial')} | sha256sum --check",
            f"mv {partial} {_quote(self.dest)}",
        ]

    @property
    def title(self) -> str:
        return f"download {self.url.rsplit('/', 1)[-1]}"


@dataclass(frozen=True)
class Extract(Step):
    """Extract a tar archive into a folder that appears only when it is complete.

    Attributes:
        archive: `.tar`, `.tar.gz`, `.tar.xz` ...
        dest: must not exist before.
        root: the marked folder that `dest` lies in, so that an older `DEST.partial` may go.
        only: entries below the archive's first component to keep (all, if empty).
        strip: leading path components to drop.
        sha256: verified first, if given.
    """

    archive: Path
    dest: Path
    root: Path
    only: tuple[str, ...] = ()
    strip: int = 1
    sha256: str | None = None

    def shell(self) -> list[str]:
        partial = f"{self.dest}.partial"
        globs = " ".join(shlex.quote("*/" * self.strip + name) for name in self.only)
        lines = [f"rm -rf -- {_quote(partial)}", f"mkdir -p {_quote(partial)}"]
        if self.sha256:
            lines.insert(0, f"echo {shlex.quote(f'{self.sha256}  {self.archive}')} | sha256sum --check")
        options = f"--no-same-owner --strip-components={self.strip} -C {_quote(partial)}"
        wildcards = f" --wildcards --no-wildcards-match-slash {globs}" if globs else ""
        lines.append(f"tar -xf {_quote(self.archive)} {options}{wildcards}")
        lines.append(f"mv {_quote(partial)} {_quote(self.dest)}")
        return lines

    @property
    def title(self) -> str:
        return f"extract {self.archive.name}"


@dataclass(frozen=True)
class MakeDir(Step):
    """Create a folder and its parents; no error if it is there."""

    path: Path

    def shell(self) -> list[str]:
        return [f"mkdir -p {_quote(self.path)}"]


@dataclass(frozen=True)
class Write(Step):
    """Write a text file, atomically, unless it holds that very text (its time stamp stays then)."""

    path: Path
    text: str

    def shell(self) -> list[str]:
        parent, path = _make_parent(self.path), _quote(self.path)
        *lines, rest = self.text.split("\n")
        if rest or not lines:
            return [parent, f"printf %s {shlex.quote(self.text)} > {path}"]
        end = "EOF"
        while end in lines:
            end += "_"
        return [parent, f"cat > {path} <<'{end}'", *lines, end]


@dataclass(frozen=True)
class Link(Step):
    """Make `path` a symbolic link to `target`, replacing an older link, never a file or a folder."""

    path: Path
    target: Path

    def shell(self) -> list[str]:
        path = _quote(self.path)
        return [
            _make_parent(self.path),
            f"[ -L {path} ] || [ ! -e {path} ]",
            f"ln -sfn {_quote(self.target)} {path}",
        ]


@dataclass(frozen=True)
class Copy(Step):
    """Copy a file, or merge a folder into another; files that are the same already stay untouched.

    Attributes:
        source: what is copied.
        dest: its new path, not the folder that it goes into.
        tree: it is a folder.
        root: a folder that nothing may be written outside of: a link in it that leads out is refused.
    """

    source: Path
    dest: Path
    tree: bool = False
    root: Path | None = None

    def shell(self) -> list[str]:
        folder = self.dest if self.tree else self.dest.parent
        source = f"-RL {_quote(self.source)}/." if self.tree else _quote(self.source)
        return [f"mkdir -p {_quote(folder)}", f"cp {source} {_quote(self.dest)}"]


@dataclass(frozen=True)
class Move(Step):
    """Rename `source` to `dest`: how a finished folder gets its name, or a file its backup name."""

    source: Path
    dest: Path

    def shell(self) -> list[str]:
        return [f"mv {_quote(self.source)} {_quote(self.dest)}"]


@dataclass(frozen=True)
class Remove(Step):
    """Remove paths below a folder that the tool marked as its own; links are unlinked, not followed.

    Attributes:
        paths: what goes; those that do not exist are passed over.
        root: the marked folder that all of them must lie in.
    """

    paths: tuple[Path, ...]
    root: Path

    def shell(self) -> list[str]:
        return [f"rm -rf -- {' '.join(_quote(path) for path in self.paths)}"]


@dataclass(frozen=True)
class Uninstall(Step):
    """Remove files from a folder that is not the tool's own, all or nothing: `plan/steps/uninstall.py`.

    Attributes:
        journal: files that go, files that lose lines, folders that go if that empties them.
        stash: a new folder on the same file system, where files wait until all of them are moved.
        root: everything must lie below it.
    """

    journal: Journal
    stash: Path
    root: Path

    def shell(self) -> list[str]:
        texts = dict(self.journal.edits)
        lines = [f"mkdir {_quote(self.stash)}"]
        for path, place in self.journal.stashed(self.stash):
            lines.append(f"mv {_quote(path)} {_quote(place)}")
            if path in texts:  # with its old mode
                lines.append(f"cp -p {_quote(place)} {_quote(path)}")
                lines.append(f"printf %s {shlex.quote(texts[path])} > {_quote(path)}")
        return [*lines, f"rm -rf -- {_quote(self.stash)}", *map(_remove_empty, self.journal.deepest_first)]


@dataclass(frozen=True)
class Recover(Uninstall):
    """The end of an `Uninstall` that was killed: put everything back, or delete what was committed.

    Attributes:
        committed: everything had been moved.
    """

    committed: bool

    def shell(self) -> list[str]:
        edited = dict(self.journal.edits)
        lines = []
        for path, place in [] if self.committed else reversed(self.journal.stashed(self.stash)):
            option = "-f" if path in edited else "-n"  # what came since stays
            there = f"[ ! -e {_quote(place)} ] && [ ! -L {_quote(place)} ]"
            lines.append(f"{there} || mv {option} {_quote(place)} {_quote(path)}")
        emptied = self.journal.deepest_first if self.committed else ()
        return [*lines, f"rm -rf -- {_quote(self.stash)}", *map(_remove_empty, emptied)]


@dataclass(frozen=True)
class Plan:
    """What a task will do, in order. `--dry-run` prints it; the runner acts on the same object."""

    title: str
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.title, self.steps + other.steps, self.notes + other.notes)

    @property
    def phases(self) -> tuple[str, ...]:
        """Phase names in the order of their first step."""
        return tuple(dict.fromkeys(step.phase for step in self.steps))

    def shell(self) -> str:
        """The whole plan as a POSIX shell script."""
        lines = [
            "#!/bin/sh",
            _comment(self.title),
            *(_comment(f"note: {note}") for note in self.notes),
            "set -eu",
        ]
        phase, stamp = None, None
        for step in self.steps:
            if step.phase != phase:
                phase = step.phase
                lines += ["", _comment(phase)]
            if step.stamp != stamp:
                stamp = step.stamp
                once = stamp if stamp and not stamp.again else None
                lines.append(f"# until done, as {once.path} tells:" if once else "# always:")
            lines += step.shell()
        return "\n".join(lines) + "\n"


def digest(*parts: object) -> str:
    """A short, stable key for inputs: 16 hex digits of the SHA-256 of their JSON."""
    encoded = json.dumps(parts, sort_keys=True, default=_plain)
    return hashlib.sha256(encoded.encode()).hexdigest()[:16]


def _plain(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def step_key(step: Step) -> str:
    """A key that changes whenever anything in the step changes, its stamp aside."""
    values = {field.name: getattr(step, field.name) for field in fields(step) if field.name != "stamp"}
    return digest(type(step).__name__, values)


def stamped(steps: Iterable[Step], path: Path, made: Path | None = None) -> tuple[Step, ...]:
    """Give a sequence one stamp: all of it is skipped once its last step has succeeded.

    Args:
        steps: steps that make one thing together.
        path: the stamp's file, beside that thing.
        made: that thing; without it the stamp does not hold.
    """
    sequence = tuple(steps)
    stamp = Stamp(path, digest(*(step_key(step) for step in sequence)), made)
    return tuple(replace(step, stamp=stamp) for step in sequence)


def _quote(path: Path | str) -> str:
    return shlex.quote(str(path))


def _make_parent(path: Path) -> str:
    return f"mkdir -p {_quote(path.parent)}"


def _remove_empty(folder: Path) -> str:
    return f"rmdir {_quote(folder)} 2> /dev/null || true"


def _comment(text: str) -> str:
    return "\n".join(f"# {line}" for line in text.split("\n"))
