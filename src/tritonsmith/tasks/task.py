"""What all tasks share: the decorator that turns errors into exit codes, and flags over settings."""

from __future__ import annotations

import errno
import functools
import inspect
import io
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from invoke.exceptions import Exit
from invoke.parser.argument import Argument
from invoke.tasks import Task
from invoke.tasks import task as invoke_task

from tritonsmith.errors import (
    EXIT_BROKEN_PIPE,
    EXIT_BUG,
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    SmithError,
    UsageError,
)
from tritonsmith.plan.stopping import stoppable

WIDE = "wide"
_WIDE_HELP = "show tables as wide as they are, though their lines break on the screen"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = frozenset(  # by the machine, whatever we do
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ENAMETOOLONG, errno.ELOOP, errno.EFBIG}
)

P = ParamSpec("P")
R = TypeVar("R")


class HelpfulTask(Task[Any]):
    """A task whose `--help` is no value of its positional argument, which Invoke would take it for."""

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        """The arguments; none of them positional where help is asked for."""
        arguments = super().get_arguments(ignore_unknown_help=ignore_unknown_help)
        if "--help" in sys.argv or "-h" in sys.argv:
            for argument in arguments:
                argument.positional = False
        return arguments


class Words(HelpfulTask):
    """A task whose last words may be left out, as Invoke's positional arguments never may.

    Those of `positional` that have a default are words if the command line has so many.
    """

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        """The arguments, as many of them positional as there are words."""
        arguments = super().get_arguments(ignore_unknown_help=ignore_unknown_help)
        count = self._words(arguments)
        for place, argument in enumerate(one for one in arguments if one.positional):
            if argument.default is not None:
                argument.positional = place < count
                argument.default = None if argument.positional else argument.default
        return arguments

    def _words(self, arguments: Iterable[Argument]) -> int:
        """How many words of the command line are no flags, and no values of flags."""
        words, _ = command_line()
        at = next(
            (number for number, word in enumerate(words) if word.split(".")[-1] == self.name), len(words)
        )
        valued = {f"--{name}" for one in arguments if one.takes_value for name in one.names}
        rest, found = iter(words[at + 1 :]), 0
        for word in rest:
            if not word.startswith("-"):
                found += 1
            elif word in valued | {name.replace("_", "-") for name in valued}:
                next(rest, None)
        return found


def command_line() -> tuple[list[str], list[str]]:
    """The words before `--` and those after it; Invoke joins the latter, and forgets their quotes."""
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def task(*, tables: bool = False, **options: Any) -> Callable[[Callable[P, R]], Any]:
    """`invoke.task` without one-letter flags, whose body may raise this project's errors.

    A `SmithError` becomes its message and exit code, ^C becomes 130, anything else a log file and 3.

    Args:
        tables: it prints some, and so it takes `--wide`.
        options: of `invoke.task`.
    """

    def decorate(body: Callable[P, R]) -> Any:
        @functools.wraps(body)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            _heed_interrupts()
            _outlive_readers()
            if tables:
                _widen(bool(kwargs.pop(WIDE, False)))
            _print_anything()
            _write_bytecode()
            try:
                with stoppable():
                    _need_folder()
                    _check_numbers(kwargs)
                    result = body(*args, **kwargs)
                    if sys.stdout:  # None where the shell closed it: >&-
                        sys.stdout.flush()
            except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - see there
                raise _end(error) from None
            return result

        if tables:
            _add_wide(guarded, body)
            options["help"] = {**options.get("help", {}), WIDE: _WIDE_HELP}
        return invoke_task(auto_shortflags=False, **{"klass": HelpfulTask, **options})(guarded)

    return decorate


def _add_wide(guarded: Any, body: Callable[..., Any]) -> None:
    """One more flag, which the body knows nothing of."""
    seen = inspect.signature(body)
    flag = inspect.Parameter(WIDE, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False)
    guarded.__signature__ = seen.replace(parameters=[*seen.parameters.values(), flag])


def _widen(wide: bool) -> None:
    if wide or "tritonsmith.ui.tables" in sys.modules:
        from tritonsmith.ui import tables

        tables.widen(wide=wide)


def _end(error: BaseException) -> BaseException:
    """What a task ends with whose body raised an error."""
    said_by_rich = isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    if isinstance(error, BrokenPipeError) or said_by_rich:  # `| head` has read enough
        _drop_output()
        return Exit(code=EXIT_BROKEN_PIPE)
    if foreseen := _foreseen(error):
        error = foreseen
    if isinstance(error, SmithError):
        from tritonsmith.ui import console, printable, redact

        text = redact.hidden(console.typed(f"error: {error}"))
        return Exit(printable.printable(text), code=error.exit_code)
    if isinstance(error, KeyboardInterrupt):
        return Exit("interrupted", code=EXIT_INTERRUPTED)
    if isinstance(error, (Exit, SystemExit)):
        return error
    if isinstance(error, OSError) and error.errno in _FULL:
        _drop_output()
        hints = ["free some disk space there, or name another folder: --out, TRITONSMITH_HOME, TMPDIR"]
        told = SmithError(error.strerror or str(error), where=error.filename, hints=hints)
        return Exit(f"error: {told}", code=EXIT_FAILURE)
    return Exit(_report_bug(error), code=EXIT_BUG)  # a bug of ours gets a log, not a wall of text


def _foreseen(error: BaseException) -> SmithError | None:
    """What Python raises where it is the machine that refuses, or a name that is wrong."""
    if isinstance(error, OSError) and error.errno in _REFUSED:
        said = error.strerror or str(error)
        hints = ["whose is it, and what does it allow: `ls -ld`"] if error.filename else []
        return SmithError(f"this machine refuses: {said}", where=error.filename, hints=hints)
    if isinstance(error, RuntimeError) and "home directory" in str(error):  # pathlib's, of `~name`
        return UsageError("there is no such home folder", why=str(error), hints=["write the whole path"])
    return None


def _drop_output() -> None:
    """What is left in the buffer cannot be written: Python's last flush must not fail again."""
    if sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _heed_interrupts() -> None:
    """A script's `tritonsmith TASK &` begins with SIGINT ignored, and so would every compiler it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_with_reader() -> None:
    """Before any task runs, `--list | head` ends this process without a word: a shell shows 141."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _outlive_readers() -> None:
    """A task has things to tidy up, and writes to children that may end: it ends by `_end`."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _print_anything() -> None:
    """A stream in ASCII gets `?` for what it cannot show, where it would end in an exception."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _write_bytecode() -> None:
    """Invoke turns it off, for tasks.py: every module that a task imports would be compiled on every run."""
    sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)


def _need_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the current folder does not exist any more", hints=["go to one that exists: cd ~"]
        ) from None


def tri(yes: bool, no: bool, name: str) -> bool | None:
    """The value of a pair of flags `--NAME` and `--no-NAME`; None if neither is given.

    Raises:
        UsageError: both are.
    """
    if yes and no:
        raise UsageError(f"--{name} and --no-{name} contradict each other", hints=["leave one of them out"])
    return True if yes else False if no else None


def split(text: str) -> tuple[str, ...] | None:
    """`a,b;c` as a tuple; None for an empty text, which stands for "not given"."""
    return tuple(part.strip() for part in text.replace(";", ",").split(",") if part.strip()) or None


def given(text: str) -> str | None:
    """A text flag, or None if it was not given."""
    return text or None


_NUMBERS = {  # flag to an example, in words
    "jobs": "--jobs 4; 0 for as many as fit",
    "timeout": "seconds, --timeout 600; 0 for the usual",
    "limit": "--limit 20; 0 for all",
    "keep-newest": "--keep-newest 2",
    "num-warps": "--num-warps 4",
    "num-stages": "--num-stages 3",
}
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]+)?")
_DIGITS = re.compile(r"[0-9]{1,9}")  # more would be no number of anything, and of 4300 Python makes none


def count(text: str, name: str, *, least: int = 0) -> int | None:
    """A whole number, or None if it was not given; Invoke's own conversion would end in a traceback.

    Args:
        text: the flag's value.
        name: the flag, without its dashes.
        least: the smallest number that makes sense.

    Raises:
        UsageError: not a whole number, or too small a one.
    """
    if not text:
        return None
    if not _DIGITS.fullmatch(text) or int(text) < least:
        raise _no_number(text, name)
    return int(text)


def _no_number(text: str, name: str) -> UsageError:
    example = _NUMBERS.get(name, f"--{name} 4")
    return UsageError(f"--{name} cannot be {text!r}", hints=[f"a whole number: {example}"])


def _check_numbers(values: Mapping[str, object]) -> None:
    """Numbers of any task, so that a wrong one is told where nothing happens to read it, too."""
    for name in _NUMBERS:
        text = values.get(name.replace("-", "_"))
        if not isinstance(text, str):
            continue
        if name != "timeout":
            count(text, name)
        elif text and not _SECONDS.fullmatch(text):  # the tasks of passes take parts of seconds
            raise _no_number(text, name)


def file_of(out: str, name: str) -> Path:
    """The file that `--out` means.

    Args:
        out: a file; or a folder, if it is there or ends with a slash.
        name: of the file in a folder.
    """
    path = Path(out).expanduser().absolute()
    return path / name if out.endswith("/") or path.is_dir() else path


def some(items: Iterable[str]) -> tuple[str, ...] | None:
    """A flag that may be repeated, or None if it was not given."""
    return tuple(items) or None


def _report_bug(error: BaseException) -> str:
    from tritonsmith import __version__

    head = f"tritonsmith {__version__}, Python {sys.version}\n{' '.join(sys.argv)}\n{time.ctime()}"
    text = _redacted(f"{head}\n\n{traceback.format_exc()}")
    log = _bug_log(text)
    where = f"  where: {log}\nThings to try:\n  - report it with that file" if log else text
    return _redacted(f"error: a bug of tritonsmith: {type(error).__name__}: {error}\n") + where


def _bug_log(text: str) -> Path | None:
    """The new log with this text; None if it cannot be written."""
    from tritonsmith.envs import workspace

    try:
        space = workspace.default()
    except SmithError:  # nobody knows the home folder
        return None
    log = space.log("bug")
    if not log.is_absolute():  # older platformdirs: `~` would become a folder here
        return None
    try:
        space.claim()  # or the next run would find files in a folder without a mark
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(text, encoding="utf-8")
    except (OSError, SmithError):
        return None
    return log


def _redacted(text: str) -> str:
    """Without secrets, and without the name of the home folder."""
    from tritonsmith.ui import redact

    text = redact.hidden(text)
    try:
        home = str(Path.home())
    except RuntimeError:  # a container's user without a name, and no HOME
        return text
    return text.replace(home, "~") if home != "/" else text
