"""The runner: the only code that starts long processes or changes files."""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, singledispatchmethod
from itertools import groupby
from pathlib import Path
from typing import IO

from tritonsmith.errors import InterruptedRunError, OwnershipError, StepError
from tritonsmith.plan import archive, download, ownership, process
from tritonsmith.plan.git_remote import GitRemote
from tritonsmith.plan.steps import (
    NINJA_STATUS,
    Copy,
    Download,
    Extract,
    GitFetch,
    Link,
    MakeDir,
    Move,
    Plan,
    Recover,
    Remove,
    Run,
    Step,
    Uninstall,
    Write,
    cache_entries,
    store_entry,
    uninstall,
)
from tritonsmith.plan.steps.cache_entries import RemoveEntries
from tritonsmith.plan.steps.ninja import BuildUsed
from tritonsmith.plan.steps.ninja_objects import BuildObjects
from tritonsmith.plan.steps.store_entry import StoreEntryStep
from tritonsmith.ui import redact
from tritonsmith.ui.progress import PhaseProgress

_NINJA = re.compile(r"^\[(\d+)/(\d+)\]\s*(.*)$")
_OURS = re.compile(
    r"^\.(.+)\.tritonsmith$|^(.+)\.partial$"
)  # names of files that get another when they are whole
_COMPARED = 1 << 18  # bytes
_LOG_MODE = 0o600  # what programs say is for who ran them
_KEPT_LINES = 4000  # of a failing command, for the search for its first error


class CommandFailedError(StepError):
    """A program of the plan ended with an error.

    Attributes:
        step: the step.
        code: its exit code.
        output: the last lines that it printed.
        log: the run's log file.
    """

    def __init__(self, step: Step, code: int, output: tuple[str, ...], log: Path) -> None:
        super().__init__(
            f"{step.title} failed with exit code {code}",
            where=log,
            why="\n".join(output[-8:]) or None,
            hints=["the log has the whole command and its output"],
        )
        self.step, self.code, self.output, self.log = step, code, output, log


@dataclass
class Outcome:
    """What a run did.

    Attributes:
        log: the run's log file.
        seconds: wall time per phase, in order; a phase that was skipped whole is absent.
        skipped: steps whose stamp held.
    """

    log: Path
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: int = 0


class Runner:
    """Acts on plans.

    Args:
        log: the file that gets every command, its change of the environment and its output.
        progress: where phases are shown.
        environ: the environment that steps change; the process's own by default.
    """

    def __init__(self, log: Path, progress: PhaseProgress, environ: Mapping[str, str] | None = None) -> None:
        self._log_path = log
        self._log: IO[str]
        self._stamped = False
        self._progress = progress
        self._environ = dict(os.environ if environ is None else environ)

    def run(self, plan: Plan) -> Outcome:
        """Do every step whose stamp does not hold, in order.

        Raises:
            CommandFailedError: a program failed.
            StepError: a file could not be changed, the log and the stamps included.
            InterruptedRunError: ^C; everything finished so far is kept.
        """
        outcome = Outcome(self._log_path)
        self._stamped = any(step.stamp for step in plan.steps)
        todo = [step for step in plan.steps if not (step.stamp and step.stamp.holds())]
        outcome.skipped = len(plan.steps) - len(todo)
        if not todo:
            return outcome
        try:
            self._log_path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _LOG_MODE)
            opened = open(handle, "a", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: PTH123, SIM115
            with opened as self._log, self._progress:  # names of files may hold bytes that are no UTF-8
                self._write_log(f"# {plan.title}")
                self._act_on(todo, outcome)
        except OSError as error:
            raise _explain(error, "log", self._log_path) from error
        return outcome

    def _act_on(self, todo: list[Step], outcome: Outcome) -> None:
        last_of = {step.stamp: step for step in todo if step.stamp}
        for phase, steps in groupby(todo, key=lambda step: step.phase):
            with self._timed(phase, outcome):
                for step in steps:
                    if step.stamp:  # no longer true, even if this fails and the old inputs come back
                        step.stamp.path.unlink(missing_ok=True)
                    self._act(step)
                    if step.stamp and last_of[step.stamp] is step:
                        _write_atomically(step.stamp.path, step.stamp.key)

    @contextmanager
    def _timed(self, phase: str, outcome: Outcome) -> Iterator[None]:
        self._progress.begin(phase)
        began = time.monotonic()
        yield
        seconds = time.monotonic() - began
        outcome.seconds[phase] = outcome.seconds.get(phase, 0.0) + seconds
        self._progress.end(seconds)

    def _act(self, step: Step) -> None:
        self._write_log(f"\n## {step.phase}: {step.title}", *(f"+ {line}" for line in step.shell()))
        try:
            self._do(step)
        except KeyboardInterrupt:
            self._write_log("interrupted")
            raise self._interrupted(step) from None
        except OSError as error:
            with suppress(OSError):  # the log's disk may be the full one
                self._write_log(f"failed: {error}")
            raise _explain(error, step.phase, step.title) from error

    def _interrupted(self, step: Step) -> InterruptedRunError:
        """What ^C leaves: a build goes on, and so does a plan that has stamps; the rest begins anew."""
        builds = isinstance(step, (BuildUsed, Download)) or step.title.startswith("ninja")
        if builds or self._stamped:
            what, then = "interrupted; what was built so far is kept", "it goes on from here"
        else:
            what, then = "interrupted", "it begins anew"
        return InterruptedRunError(what, where=self._log_path, hints=[f"run the same command again: {then}"])

    @singledispatchmethod
    def _do(self, step: Step) -> None:
        raise TypeError(f"the runner has no way to do a {type(step).__name__}")

    @_do.register
    def _(self, step: Run) -> None:
        change = dict(step.env)
        if step.path:
            change["PATH"] = os.pathsep.join((*map(str, step.path), self._environ.get("PATH", os.defpath)))
        code, lines = self._stream(step.argv, step.cwd, change, self._ninja if step.ninja else self._line)
        if code:
            raise CommandFailedError(step, code, lines, self._log_path)

    @_do.register
    def _(self, step: BuildUsed) -> None:
        self._ninja_run(step, step.refresh)
        self._ninja_run(step, step.argv(step.targets()))

    @_do.register
    def _(self, step: BuildObjects) -> None:
        if argv := step.argv():
            self._ninja_run(step, argv)

    def _ninja_run(self, step: BuildUsed | BuildObjects, argv: tuple[str, ...]) -> None:
        code, lines = self._stream(argv, step.tree, {"NINJA_STATUS": NINJA_STATUS}, self._ninja)
        if code:
            raise CommandFailedError(step, code, lines, self._log_path)

    @_do.register
    def _(self, step: GitFetch) -> None:
        step.repository.parent.mkdir(parents=True, exist_ok=True)
        where, quiet = step.repository.parent, {"GIT_TERMINAL_PROMPT": "0"}
        code, lines = self._stream(("git", "init", "--quiet", str(step.repository)), where, quiet, self._line)
        if code:
            raise CommandFailedError(step, code, lines, self._log_path)
        failures: list[str] = []
        for remote in map(GitRemote.of, step.urls):
            argv = step.fetch_argv(remote.url)
            code, lines = self._stream(argv, where, quiet | dict(remote.env), self._line)
            if code == 0:
                remote.tidy(step.repository)
                return
            failures.append(f"{remote.url}: {_said(lines) or f'exit code {code}'}")
        raise StepError(
            f"none of the remotes gave commit {step.commit}",
            where=step.repository,
            why="\n".join(failures),
            hints=[
                "check the network; behind a proxy set https_proxy",
                "name sources that you have: --source PATH for Triton, --llvm-source PATH_OR_URL for LLVM",
            ],
        )

    @_do.register
    def _(self, step: Download) -> None:
        download.fetch(step.url, step.dest, sha256=step.sha256, progress=self._bytes(step.title))

    @_do.register
    def _(self, step: Extract) -> None:
        if step.sha256 and (found := download.sha256_of(step.archive)) != step.sha256.lower():
            raise StepError(
                "the archive is not the one that was promised",
                where=step.archive,
                why=f"sha256 is    {found}\nit should be {step.sha256.lower()}",
            )
        ownership.remove(step.dest.with_name(f"{step.dest.name}.partial"), step.root)
        step.dest.parent.mkdir(parents=True, exist_ok=True)
        progress = self._bytes(step.title)
        archive.extract(step.archive, step.dest, only=step.only, strip=step.strip, progress=progress)

    @_do.register
    def _(self, step: MakeDir) -> None:
        step.path.mkdir(parents=True, exist_ok=True)

    @_do.register
    def _(self, step: Write) -> None:
        step.path.parent.mkdir(parents=True, exist_ok=True)
        if not step.path.is_file() or step.path.read_bytes() != step.text.encode():
            _write_atomically(step.path, step.text)

    @_do.register
    def _(self, step: Link) -> None:
        if step.path.exists() and not step.path.is_symlink():
            raise OwnershipError(
                "will not replace a file or folder by a link", where=step.path, hints=["move it away"]
            )
        step.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = step.path.with_name(f".{step.path.name}.tritonsmith")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(step.target)
        fresh.replace(step.path)

    @_do.register
    def _(self, step: Copy) -> None:
        copy = _copy_changed if step.root is None else partial(_copy_inside, step.root.resolve())
        if step.root:
            _check_inside(step.root.resolve(), step.dest)
        step.dest.parent.mkdir(parents=True, exist_ok=True)
        if step.tree:
            shutil.copytree(step.source, step.dest, copy_function=copy, dirs_exist_ok=True)
        else:
            copy(str(step.source), str(step.dest))

    @_do.register
    def _(self, step: Move) -> None:
        step.source.replace(step.dest)

    @_do.register
    def _(self, step: Remove) -> None:
        for path in step.paths:
            ownership.remove(path, step.root)

    @_do.register
    def _(self, step: Uninstall) -> None:
        uninstall.remove(step.journal, step.stash, step.root)

    @_do.register
    def _(self, step: Recover) -> None:
        uninstall.recover(step.stash, step.root)

    @_do.register
    def _(self, step: RemoveEntries) -> None:
        cache_entries.remove(step, self._progress.update)

    @_do.register
    def _(self, step: StoreEntryStep) -> None:
        store_entry.run(step, self._progress.update)

    def _stream(
        self, argv: tuple[str, ...], cwd: Path, change: Mapping[str, str | None], show: Callable[[str], None]
    ) -> tuple[int, tuple[str, ...]]:
        environ = self._environ | {name: value for name, value in change.items() if value is not None}
        for name, value in change.items():
            if value is None:
                environ.pop(name, None)
        kept: deque[str] = deque(maxlen=_KEPT_LINES)
        hide = redact.SecretLines()

        def on_line(said: str) -> None:
            line = hide(said)
            kept.append(line)
            self._log.write(f"{line}\n")
            show(line)

        code = process.stream(argv, cwd=cwd, env=environ, on_line=on_line)
        self._write_log(f"exit code {code}")
        return code, tuple(kept)

    def _line(self, line: str) -> None:
        if line.strip():
            self._progress.update(0, None, line.strip())

    def _ninja(self, line: str) -> None:
        if match := _NINJA.match(line):
            self._progress.update(int(match[1]), int(match[2]), match[3])

    def _bytes(self, title: str) -> Callable[[int, int | None], None]:
        shown = redact.hidden(title)  # before the screen cuts it

        def show(done: int, total: int | None) -> None:
            self._progress.update(done, total, shown)

        return show

    def _write_log(self, *lines: str) -> None:
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        self._log.write(redact.hidden("".join(f"{line}\n" for line in (*lines, f"# at {now}"))))
        self._log.flush()


def _said(lines: tuple[str, ...]) -> str:
    """Git's own error among its output; advice may follow it."""
    told = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    return (told or lines or ("",))[-1]


def _write_atomically(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.tritonsmith")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _copy_changed(source: str, dest: str) -> str:
    """Copy one file unless it is the same already: an untouched header rebuilds nothing."""
    if not (Path(dest).is_file() and _same_content(source, dest)):
        shutil.copy(source, dest)
    return dest


def _copy_inside(root: Path, source: str, dest: str) -> str:
    _check_inside(root, Path(dest))
    return _copy_changed(source, dest)


def _check_inside(root: Path, path: Path) -> None:
    """Follows every link, also one at the path itself, through which a copy would write."""
    if not path.resolve().is_relative_to(root):
        raise OwnershipError(
            "will not write through a link that leads out of the folder",
            where=path,
            why=f"it leads to {path.resolve()}; the folder is {root}",
            hints=["remove the link if it is none of yours"],
        )


def _same_content(one: str, other: str) -> bool:
    """As `filecmp`, which reads 8 KiB at a time: ptxas alone has 30 MB, and this runs on every build."""
    if Path(one).stat().st_size != Path(other).stat().st_size:
        return False
    with open(one, "rb", buffering=0) as first, open(other, "rb", buffering=0) as second:  # noqa: PTH123
        while True:
            left, right = first.read(_COMPARED), second.read(_COMPARED)
            if left != right:
                return False
            if not left:
                return True


def _explain(error: OSError, doing: str, what: object) -> StepError:
    hints = {
        errno.ENOSPC: "free some disk space, or set TRITONSMITH_HOME to a larger disk",
        errno.EACCES: "check the permissions of that folder, or set TRITONSMITH_HOME to one of your own",
        errno.EROFS: "that file system is read-only: set TRITONSMITH_HOME to a writable folder",
        errno.ENOENT: "a program or a folder that the step needs is missing: run `invoke doctor`",
    }
    hint = hints.get(error.errno or 0)
    return StepError(
        f"{doing}: {error.strerror or error}",
        where=_meant(error) or what,
        hints=[hint] if hint else [],
    )


def _meant(error: OSError) -> str | None:
    """The file that was to be written, where the error names the one beside it that becomes it."""
    if error.filename is None:
        return None
    path = Path(os.fsdecode(error.filename))
    return str(path.with_name(_OURS.sub(r"\1\2", path.name)))
