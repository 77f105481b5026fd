"""The decorator `task`: parameters become flags and words, and errors become messages and exit codes."""

from __future__ import annotations

import errno
import functools
import io
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks import option_fields
from tritonsmith.cli.tasks.option_fields import WIDE, OptionTask
from tritonsmith.core import redact
from tritonsmith.core.errors import (
    EXIT_BROKEN_PIPE,
    EXIT_BUG,
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    SmithError,
    UsageError,
)
from tritonsmith.core.plan.stopping import stoppable
from tritonsmith.core.redact import printable
from tritonsmith.core.ui import console

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
# The machine's refusals: a file of the user's may cause each of them, and none is a bug of ours.
_REFUSED = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ENAMETOOLONG, errno.ELOOP, errno.EFBIG}
)


def task(
    *,
    name: str | None = None,
    tables: bool = False,
    reads_outputs: bool = False,
) -> Callable[[Callable[..., Any]], OptionTask]:
    """Declare a task whose parameters are its options, and whose body may raise this project's errors.

    A `SmithError` becomes its message and exit code, ^C becomes 130, anything else a log file and 3.

    Args:
        name: the task's name, if it differs from the body's.
        tables: the task prints tables, and so it takes `--wide`.
        reads_outputs: the task compiles into folders and reads them: no other run may write there until it
            ends.
    """

    def decorate(body: Callable[..., Any]) -> OptionTask:
        @functools.wraps(body)
        def guarded(context: Context, **values: Any) -> Any:
            _restore_interrupts()
            _ignore_closed_pipes()
            if tables:
                _widen(bool(values.get(WIDE.name)))
            _replace_unprintable_characters()
            try:
                with stoppable(), _kept_outputs() if reads_outputs else nullcontext():
                    _check_current_folder()
                    result = body(context, **option_fields.bind(declared.options, values))
                    # A full disk or a closed pipe shows at the flush. Python's own, at exit, comes too late
                    # for an exit code. There is no stdout where the shell closed it: `>&-`.
                    if sys.stdout:
                        sys.stdout.flush()
            except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - `as_exit` sorts them
                raise as_exit(error) from None
            return result

        declared = OptionTask(guarded, name=name, positional=(), auto_shortflags=False)
        declared.tables = tables
        return declared

    return decorate


def end_at_closed_pipe() -> None:
    """Let a closed pipe end this process silently before any task runs, as in `--list | head`."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def as_exit(error: BaseException) -> BaseException:
    """Return Invoke's exception to raise instead of an error, with a message and an exit code."""
    # rich turns a closed pipe into SystemExit.
    from_rich = isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    if isinstance(error, BrokenPipeError) or from_rich:
        _drop_output()
        return Exit(code=EXIT_BROKEN_PIPE)
    if refusal := _refusal(error):
        error = refusal
    if isinstance(error, SmithError):
        text = redact.hidden(console.typed(_name_notebook_cells(f"error: {error}")))
        return Exit(printable(text), code=error.exit_code)
    if isinstance(error, KeyboardInterrupt):
        return Exit("interrupted", code=EXIT_INTERRUPTED)
    if isinstance(error, (Exit, SystemExit)):
        return error
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        _drop_output()
        hints = ["free some disk space there, or name another folder: --out, TRITONSMITH_HOME, TMPDIR"]
        full = SmithError(error.strerror or str(error), where=error.filename, hints=hints)
        return Exit(f"error: {full}", code=EXIT_FAILURE)
    return Exit(_report_bug(error), code=EXIT_BUG)


def _kept_outputs() -> AbstractContextManager[None]:
    from tritonsmith.compiler import manifest

    return manifest.keep_locks()


def _widen(wide: bool) -> None:
    # Importing rich's tables takes time that a task without a table need not spend. But if they are loaded,
    # the width of an earlier task in this process has to go.
    if wide or "tritonsmith.core.ui.tables" in sys.modules:
        from tritonsmith.core.ui import tables

        tables.widen(wide=wide)


def _restore_interrupts() -> None:
    """Handle SIGINT again, which a script's `tritonsmith TASK &` and all that it starts would ignore."""
    # POSIX has shells start asynchronous lists with SIGINT ignored, and children inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _ignore_closed_pipes() -> None:
    """Raise an error at a closed pipe: a task has things to tidy up, and writes to children that may end."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _replace_unprintable_characters() -> None:
    """Replace unsupported characters with `?` on an ASCII stream, instead of raising an exception."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _check_current_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the current folder no longer exists", hints=["change to an existing folder: cd ~"]
        ) from None


def _name_notebook_cells(text: str) -> str:
    """Name the notebook's cell and line in place of the file that was made from it."""
    # Only a task that has read a kernel can have read a notebook: others do without the import.
    if "tritonsmith.compiler.source_tree" in sys.modules:
        from tritonsmith.compiler import source_tree

        return source_tree.name_cells(text)
    return text


def _refusal(error: BaseException) -> SmithError | None:
    """Return the error for an exception that the machine or a wrong name caused; None for a bug."""
    if isinstance(error, OSError) and error.errno in _REFUSED:
        reason = error.strerror or str(error)
        hints = ["check the owner and the permissions: `ls -ld`"] if error.filename else []
        return SmithError(f"the system refused: {reason}", where=error.filename, hints=hints)
    # pathlib raises a bare RuntimeError for `~name` without such a user.
    if isinstance(error, RuntimeError) and "home directory" in str(error):
        return UsageError("unknown home folder", why=str(error), hints=["give the full path"])
    return None


def _drop_output() -> None:
    """Drop the buffered output, which cannot be written: Python's last flush must not fail again."""
    if sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_bug(error: BaseException) -> str:
    """Write the traceback to a log, and return a message that names it; with the traceback if that fails."""
    from tritonsmith import __version__

    head = f"tritonsmith {__version__}, Python {sys.version}\n{' '.join(sys.argv)}\n{time.ctime()}"
    text = _redacted(f"{head}\n\n{traceback.format_exc()}")
    log = _bug_log(text)
    where = f"  where: {log}\nThings to try:\n  - report it with that file" if log else text
    return _redacted(f"error: a bug of tritonsmith: {type(error).__name__}: {error}\n") + where


def _bug_log(text: str) -> Path | None:
    """Write a new log with this text; None if the log cannot be written."""
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.plan import files

    try:
        space = workspace.default()
    except SmithError:  # the home folder is unknown
        return None
    log = space.log("bug")
    # An older platformdirs leaves `~` in the path where the home folder is unknown, and a folder of that name
    # would appear here.
    if not log.is_absolute():
        return None
    try:
        # Without the mark of a workspace, the next run would refuse the folder: it has files of unknown
        # origin.
        space.claim()
        with files.opened_log(log) as file:
            file.write(text)
    except (OSError, SmithError):
        return None
    return log


def _redacted(text: str) -> str:
    """Remove secrets and the path of the home folder."""
    text = redact.hidden(text)
    try:
        home = str(Path.home())
    except RuntimeError:  # a container's user without a name, and without HOME
        return text
    return text.replace(home, "~") if home != "/" else text
