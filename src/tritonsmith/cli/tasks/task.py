"""The decorator of all tasks: declared options, and errors as exit codes."""

from __future__ import annotations

import functools
import io
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from invoke.context import Context

from tritonsmith.cli.tasks import crash_report, option_fields
from tritonsmith.cli.tasks.option_task import WIDE, OptionTask
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan.stopping import stoppable


def task(
    *,
    name: str | None = None,
    tables: bool = False,
    reads_outputs: bool = False,
) -> Callable[[Callable[..., Any]], OptionTask]:
    """Declare a task whose parameters are its options, and whose body may raise this project's errors.

    A `SmithError` becomes its message and exit code, ^C becomes 130, anything else a log file and 3.

    Args:
        name: if it is not the body's.
        tables: it prints some, and so it takes `--wide`.
        reads_outputs: it compiles into folders and reads them: no other run may write there until it ends.
    """

    def decorate(body: Callable[..., Any]) -> OptionTask:
        @functools.wraps(body)
        def guarded(context: Context, **given: Any) -> Any:
            _heed_interrupts()
            _outlive_readers()
            if tables:
                _widen(bool(given.get(WIDE.name)))
            _print_anything()
            _write_bytecode()
            try:
                with stoppable(), _outputs_kept() if reads_outputs else nullcontext():
                    _need_folder()
                    result = body(context, **option_fields.bind(made.options, given))
                    if sys.stdout:  # None where the shell closed it: >&-
                        sys.stdout.flush()
            except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - see there
                raise crash_report.end(error) from None
            return result

        made = OptionTask(guarded, name=name, positional=(), auto_shortflags=False)
        made.tables = tables
        return made

    return decorate


def _outputs_kept() -> AbstractContextManager[None]:
    from tritonsmith.compiler import output_folder

    return output_folder.kept()


def _widen(wide: bool) -> None:
    if wide or "tritonsmith.core.ui.tables" in sys.modules:
        from tritonsmith.core.ui import tables

        tables.widen(wide=wide)


def _heed_interrupts() -> None:
    """Handle SIGINT, which a script's `tritonsmith TASK &` ignores, and so would every compiler it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_with_reader() -> None:
    """Let a closed pipe end this process silently before any task runs, as in `--list | head`."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _outlive_readers() -> None:
    """Raise an error at a closed pipe: a task has things to tidy up, and writes to children that may end."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _print_anything() -> None:
    """Replace unsupported characters with `?` on an ASCII stream, instead of raising an exception."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _write_bytecode() -> None:
    """Turn bytecode on, which Invoke turns off: every import would be compiled on every run."""
    sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)


def _need_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the current folder no longer exists", hints=["change to an existing folder: cd ~"]
        ) from None
