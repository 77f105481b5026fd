"""The common output of tasks: scripts of plans, the chosen LLVM, remarks, the result and questions.

The decorator of all tasks: declared options, and errors as exit codes.
"""

from __future__ import annotations

import functools
import io
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.context import Context

from tritonsmith.cli.tasks import crash_report, option_fields
from tritonsmith.cli.tasks.option_fields import WIDE, OptionTask
from tritonsmith.cli.tasks.options import ENV
from tritonsmith.core import redact
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.plan.stopping import stoppable
from tritonsmith.core.redact import printable
from tritonsmith.core.text import duration
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.build.llvm.providers import ProviderChoice
    from tritonsmith.compiler.run import PreparedCompile
    from tritonsmith.core.envs.receipts import Session
    from tritonsmith.core.plan import Plan


_SCREENFUL = 40  # lines of a script that a terminal shows whole
_ABOUT = 3  # lines of a summary besides the title, the phases and the hint: ten in all
_MANY = 100  # points of a compile whose script nobody reads
_WORTH_A_TABLE = 1.0  # seconds; what was done already takes some tenths


def plan(what: Plan, rest: str = "", *, about: Iterable[str] = ()) -> None:
    """Print a plan as a shell script below its summary; a terminal shows only the summary of a long plan.

    Verbatim: rich would expand tabs. As bytes: names of files need not be UTF-8. Secrets are hidden, and the
    script says so.

    Args:
        what: the plan.
        rest: what the following steps depend on.
        about: for the summary: what goes, and how much.
    """
    title, *phases = what.summary()
    head, _, body = what.shell().partition("\n")
    long = body.count("\n") > _SCREENFUL
    summary = "".join(f"# {printable(line)}\n" for line in (*list(about)[:_ABOUT], *(phases if long else ())))
    script = f"{head}\n{summary}{body}"
    if long and sys.stdout.isatty():
        print(f"# {printable(redact.hidden(title))}\n{redact.hidden(summary)}", end="")
        lines = script.count("\n")
        print(f"# the whole script has {lines} lines: add `| less`, or `> plan.sh`")
        if rest:
            console.warn(f"the rest depends on {rest}")
        return
    shown = redact.hidden(script)
    if shown != script:
        shown = shown.replace(
            "\n", f"\n# note: {redact.MARK} stands for a secret; insert the secret before you run this\n", 1
        )
    sys.stdout.flush()
    if sys.stdout.isatty() and printable(shown) != shown:
        console.warn("control characters in names are escaped: to run this script, redirect it to a file")
        shown = printable(shown)
    sys.stdout.buffer.write(os.fsencode(shown))
    if rest:
        console.warn(f"the rest depends on {rest}")


def time_of(what: Plan, receipt: Path, measured: float | None = None) -> list[str]:
    """Yield the line of a summary with the time that the open phases took before, if that is known.

    Args:
        what: the plan.
        receipt: of the last run of the same task.
        measured: CPU seconds that the same work took on another machine, for a first run.
    """
    from tritonsmith.core.envs import receipts

    last = receipts.read(receipt) or {}
    recorded = last.get("seconds")
    took = {
        phase: recorded[phase]
        for phase in what.open_phases
        if isinstance(recorded, dict) and isinstance(recorded.get(phase), int | float)
    }
    if sum(took.values()) >= _WORTH_A_TABLE:
        phases = ", ".join(f"{phase} {duration(seconds)}" for phase, seconds in took.items())
        return [f"time of the last run ({str(last.get('finished'))[:10]}): {phases}"]
    if last or not measured or not what.open_phases:
        return []
    return [f"time: {duration(measured)} of CPU time for all of it, measured on another machine"]


def compile_of(what: PreparedCompile, *, everything: bool = False) -> None:
    """Print the plan of a compile; for very many points only a summary, in comments, unless `everything`."""
    from tritonsmith.compiler import request

    if everything or len(what.points) <= _MANY:
        plan(what.plan)
        return
    lines = [
        f"{len(what.points)} points of {what.kernel} into {what.out}",
        *request.summarize_points(what.points),
    ]
    lines.append(console.typed("the script with all of them: invoke kernel.compile ... --dry-run --all"))
    console.write("\n".join(f"# {printable(line)}" for line in lines))


def json(what: object, *, indent: int | None = 2) -> None:
    """Print JSON verbatim, so that kernels, IR and options in it are not changed.

    JSON of the tool's own places goes through `console.out().print_json`, which hides secrets.
    """
    console.write(dumps(what, indent=indent))


def choice(taken: ProviderChoice) -> None:
    """Print the chosen provider, and why the others were rejected."""
    for name, reason in taken.refused:
        console.note(f"not {name}: {reason}")
    console.note(f"chosen: {taken.provider}, {taken.prefix}")


def warnings(texts: Iterable[str]) -> None:
    """Print warnings about later problems, each once."""
    for text in dict.fromkeys(texts):
        console.warn(text)


def notes(texts: Iterable[str]) -> None:
    """Print remarks."""
    for text in texts:
        console.note(text)


def done(what: str, running: Session, following: str = "") -> None:
    """Print the end of a task: times, the result, and the next command."""
    if sum(running.seconds.values()) >= _WORTH_A_TABLE:
        from tritonsmith.core.ui import tables

        console.out().print(tables.phases(running.seconds))
    console.out().print(what, markup=False)
    if following:
        console.out().print(console.typed(f"next: {following}"), markup=False)


def unusual(env: str) -> str:
    """Return the environment for the next command; empty if it is the commands' default."""
    return env if env != ENV.default else ""


def debuggers(build: Path) -> None:
    """Print how a debugger finds sources and split debug info after builds with a shared cache."""
    from tritonsmith.compiler.replay.replayer import GDB

    init = build / GDB
    if init.is_file():
        console.note(
            f"gdb: gdb -ix {shlex.quote(str(init))} --args {shlex.quote(str(build / 'bin' / 'triton-opt'))}"
        )


def agreed(question: str, *, yes: bool) -> bool:
    """Ask the user on the terminal, unless `--yes` has answered the question.

    Raises:
        SmithError: there is no terminal to ask in.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise SmithError(
            "this changes files, but there is no terminal to ask in",
            hints=["--yes to agree", "--dry-run to see the plan"],
        )
    console.err().print(f"{question} [y/N] ", end="", markup=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


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
    from tritonsmith.compiler import manifest

    return manifest.kept()


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
