"""How the build tasks print what they did."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tritonsmith.errors import SmithError
from tritonsmith.ui import console, redact
from tritonsmith.ui.printable import printable

if TYPE_CHECKING:
    from tritonsmith.builder.llvm.providers.interface import ProviderChoice
    from tritonsmith.envs.session import Session
    from tritonsmith.kernels.compile.run import PreparedCompile
    from tritonsmith.plan import Plan

_MANY = 100  # points of a compile whose script nobody reads
_WORTH_A_TABLE = 1.0  # seconds; what was done already takes some tenths


def plan(what: Plan, rest: str = "") -> None:
    """A plan as a shell script, on standard output, to the letter: rich would expand its tabs.

    As bytes: names of files need not be UTF-8. A secret is not shown, and that is said in the script.

    Args:
        what: the plan.
        rest: what the steps after these depend on.
    """
    script = what.shell()
    shown = redact.hidden(script)
    if shown != script:
        shown = shown.replace(
            "\n", f"\n# note: {redact.MARK} stands for a secret; put it in before you run this\n", 1
        )
    sys.stdout.flush()
    if sys.stdout.isatty() and printable(shown) != shown:
        console.warn(
            "names with control characters are shown, not printed: to run this script, take it from a file"
        )
        shown = printable(shown)
    sys.stdout.buffer.write(os.fsencode(shown))
    if rest:
        console.warn(f"the rest depends on {rest}")


def compile_of(what: PreparedCompile, *, everything: bool = False) -> None:
    """The plan of a compile; of very many points a summary, as comments of a shell script.

    Args:
        what: the compile.
        everything: the whole script, however many points it has.
    """
    from tritonsmith.kernels.compile import points

    if everything or len(what.wanted) <= _MANY:
        plan(what.plan)
        return
    lines = [f"{len(what.wanted)} points of {what.kernel} into {what.out}", *points.summary(what.wanted)]
    lines.append(console.typed("the script with all of them: invoke kernel.compile ... --dry-run --all"))
    console.write("\n".join(f"# {printable(line)}" for line in lines))


def choice(taken: ProviderChoice) -> None:
    """Which provider was taken, and why each other was not."""
    for name, reason in taken.refused:
        console.note(f"not {name}: {reason}")
    console.note(f"taken: {taken.provider}, {taken.prefix}")


def warnings(texts: tuple[str, ...]) -> None:
    """What may hurt later."""
    for text in dict.fromkeys(texts):
        console.warn(text)


def notes(texts: tuple[str, ...]) -> None:
    """What is done otherwise than before, and why."""
    for text in texts:
        console.note(text)


def done(what: str, running: Session, following: str = "") -> None:
    """The end of a task: times, the result, and what to type next."""
    if sum(running.seconds.values()) >= _WORTH_A_TABLE:
        from tritonsmith.ui import tables

        console.out().print(tables.phases(running.seconds))
    console.out().print(what, markup=False)
    if following:
        console.out().print(console.typed(f"next: {following}"), markup=False)


def debuggers(build: Path) -> None:
    """How a debugger finds sources and split debug info, where compiles were made to be shared."""
    from tritonsmith.builder.debugger_init import GDB

    init = build / GDB
    if init.is_file():
        console.note(
            f"gdb: gdb -ix {shlex.quote(str(init))} --args {shlex.quote(str(build / 'bin' / 'triton-opt'))}"
        )


def agreed(question: str, *, yes: bool) -> bool:
    """Whether a person agrees, on a terminal, or has agreed beforehand by `--yes`.

    Raises:
        SmithError: there is no terminal to ask on.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise SmithError(
            "this changes files, and there is no terminal to ask on",
            hints=["--yes to agree", "--dry-run to look"],
        )
    console.err().print(f"{question} [y/N] ", end="", markup=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
