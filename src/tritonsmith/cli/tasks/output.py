"""Output that tasks share: scripts of plans, the chosen LLVM, notes, the result, and questions."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from tritonsmith.cli.tasks.options import ENV
from tritonsmith.core import redact
from tritonsmith.core.errors import SmithError
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
_MANY = 100  # points of a compile whose script is too long to read
_WORTH_A_TABLE = 1.0  # seconds: a run that finds everything done takes some tenths


def plan(what: Plan, rest: str = "", *, about: Iterable[str] = ()) -> None:
    """Print a plan as a shell script below its summary; a terminal shows only the summary of a long plan.

    Args:
        what: the plan.
        rest: what the following steps depend on.
        about: lines for the summary: what is removed, or how much time it takes.
    """
    title, *phases = what.summary()
    # The shebang has to stay the first line of the script.
    head, _, body = what.shell().partition("\n")
    long = body.count("\n") > _SCREENFUL
    summary = "".join(f"# {printable(line)}\n" for line in (*list(about)[:_ABOUT], *(phases if long else ())))
    script = f"{head}\n{summary}{body}"
    if long and sys.stdout.isatty():
        print(f"# {printable(redact.hidden(title))}\n{redact.hidden(summary)}", end="")
        length = script.count("\n")
        print(f"# the whole script has {length} lines: add `| less`, or `> plan.sh`")
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
    # Verbatim, as rich would expand tabs; and as bytes, since names of files need not be UTF-8.
    sys.stdout.buffer.write(os.fsencode(shown))
    if rest:
        console.warn(f"the rest depends on {rest}")


def time_of(what: Plan, receipt: Path, measured: float | None = None) -> list[str]:
    """Return a line for a summary with the time that the open phases took before; none if that is not known.

    Args:
        what: the plan.
        receipt: file of the last run of the same task.
        measured: CPU seconds that the same work took on another machine, for a first run.
    """
    from tritonsmith.core.envs import receipts

    last = receipts.read(receipt) or {}
    recorded = last.get("seconds")
    # What is stamped takes no time now, whatever it took before.
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
    """Print JSON verbatim."""
    # `console.out().print_json` hides what looks like a secret, and so would change kernels, IR and options.
    # JSON with the user's own paths and settings goes through that.
    console.write(dumps(what, indent=indent))


def lines(texts: Iterable[str]) -> None:
    """Print lines of a result as they are."""
    for text in texts:
        console.out().print(text, markup=False)


def blocks(renderables: Iterable[object]) -> None:
    """Print the tables and texts of a result, one below the other."""
    for renderable in renderables:
        console.out().print(renderable)


def choice(chosen: ProviderChoice) -> None:
    """Print the chosen provider, and why the others were rejected."""
    for name, reason in chosen.refused:
        console.note(f"not {name}: {reason}")
    console.note(f"chosen: {chosen.provider}, {chosen.prefix}")


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
    # A next command without flags is easier to read, and to type.
    return env if env != ENV.default else ""


def debuggers(build: Path) -> None:
    """Print the call of gdb that finds sources and split debug info after a build with a shared cache."""
    from tritonsmith.compiler.debugger_init import GDB

    # There is none if the paths in the debug info need no map and LLVM's printers are not on this machine.
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
    # Without a terminal, an answer would be read from a script's input, or the run would wait for ever.
    if not sys.stdin.isatty():
        raise SmithError(
            "this changes files, but there is no terminal to ask in",
            hints=["--yes to agree", "--dry-run to see the plan"],
        )
    # On stderr: `> file` must not hide the question.
    console.err().print(f"{question} [y/N] ", end="", markup=False)
    # Enter alone is a no: the question is about removing or replacing something.
    return sys.stdin.readline().strip().lower() in ("y", "yes")
