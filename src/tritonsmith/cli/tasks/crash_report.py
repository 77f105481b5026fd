"""How a task ends after an error: with a message and an exit code, and after a bug with a log."""

from __future__ import annotations

import errno
import os
import sys
import time
import traceback
from pathlib import Path

from invoke.exceptions import Exit

from tritonsmith.core import redact
from tritonsmith.core.errors import (
    EXIT_BROKEN_PIPE,
    EXIT_BUG,
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    SmithError,
    UsageError,
)
from tritonsmith.core.redact import printable
from tritonsmith.core.ui import console

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = frozenset(  # by the machine, whatever we do
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ENAMETOOLONG, errno.ELOOP, errno.EFBIG}
)


def end(error: BaseException) -> BaseException:
    """Return Invoke's exception to raise instead, with a message and an exit code."""
    said_by_rich = isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    if isinstance(error, BrokenPipeError) or said_by_rich:  # `| head` has read enough
        _drop_output()
        return Exit(code=EXIT_BROKEN_PIPE)
    if foreseen := _foreseen(error):
        error = foreseen
    if isinstance(error, SmithError):
        text = redact.hidden(console.typed(_of_notebooks(f"error: {error}")))
        return Exit(printable(text), code=error.exit_code)
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


def _of_notebooks(text: str) -> str:
    """Name the notebook's cell and line in place of the file that was made from it."""
    if module := sys.modules.get("tritonsmith.compiler.source_tree"):
        return str(module.told(text))
    return text


def _foreseen(error: BaseException) -> SmithError | None:
    """Return the error for an exception that the machine or a wrong name has caused; None for a bug."""
    if isinstance(error, OSError) and error.errno in _REFUSED:
        said = error.strerror or str(error)
        hints = ["check the owner and the permissions: `ls -ld`"] if error.filename else []
        return SmithError(f"the system refused: {said}", where=error.filename, hints=hints)
    if isinstance(error, RuntimeError) and "home directory" in str(error):  # pathlib's, of `~name`
        return UsageError("unknown home folder", why=str(error), hints=["give the full path"])
    return None


def _drop_output() -> None:
    """Drop the buffered output, which cannot be written: Python's last flush must not fail again."""
    if sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_bug(error: BaseException) -> str:
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
    except SmithError:  # nobody knows the home folder
        return None
    log = space.log("bug")
    if not log.is_absolute():  # older platformdirs: `~` would become a folder here
        return None
    try:
        space.claim()  # or the next run would find files in a folder without a mark
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
    except RuntimeError:  # a container's user without a name, and no HOME
        return text
    return text.replace(home, "~") if home != "/" else text
