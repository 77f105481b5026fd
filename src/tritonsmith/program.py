"""`tritonsmith TASK`: the same tasks as `invoke TASK`, from any folder, with exit code 2 for usage errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from invoke.exceptions import Exit, ParseError
from invoke.parser import Parser
from invoke.program import Program
from invoke.vendor.lexicon import Lexicon

from tritonsmith import __version__
from tritonsmith.errors import EXIT_INTERRUPTED, EXIT_USAGE, did_you_mean
from tritonsmith.tasks import namespace, start_page
from tritonsmith.tasks import task as tasks_task
from tritonsmith.ui import console, redact


class _OneParse(Lexicon):
    """The parser contexts of the tasks for one command line: Invoke copies all of them before it parses."""

    def __deepcopy__(self, _memo: dict[int, Any]) -> _OneParse:
        return self


class SmithProgram(Program):
    """Invoke's program with this project's exit code and hints for a wrong command line."""

    def _make_parser(self) -> Parser:
        parser = super()._make_parser()
        parser.contexts.__class__ = _OneParse
        return parser

    def parse_core(self, argv: list[str] | None) -> None:
        """Parse the options before the tasks; see `invoke.Program`."""
        with _usage_errors():
            super().parse_core(argv)

    def parse_tasks(self) -> None:
        """Parse the tasks and their flags; see `invoke.Program`."""
        with _usage_errors():
            super().parse_tasks()

    def no_tasks_given(self) -> None:
        """Print the start page instead of Invoke's own flags."""
        for line in start_page.lines():
            console.write(line)
        raise Exit


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except ParseError as error:
        lines = [f"error: {error}", *(f"  - {hint}" for hint in _hints(error))]
        raise Exit(redact.hidden("\n".join(lines)), code=EXIT_USAGE) from None


def _hints(error: ParseError) -> tuple[str, ...]:
    """Suggestions: flags of the task, or names of tasks."""
    match = re.match(r"No idea what '(.+)' is", str(error))
    if match is None:
        task = error.context.name if error.context else None
        return (f"its options: tritonsmith --help {task or 'TASK'}",)
    wrong = match[1]
    if wrong.startswith("-"):
        task = error.context.name if error.context else None
        where = f"tritonsmith --help {task}" if task else "tritonsmith --help"
        known = error.context.flag_names() if error.context else ()
        return (*did_you_mean(wrong, known)[:1], f"help on the flags: {where}")
    names = namespace.task_names
    return did_you_mean(wrong, {*names, *chain.from_iterable(names.values())})


def main() -> None:
    """The console entry point."""
    tasks_task.end_with_reader()
    try:
        SmithProgram(name="tritonsmith", namespace=namespace, version=__version__).run()
    except SystemExit as end:
        if isinstance(end.__context__, KeyboardInterrupt):  # before a task began: Invoke exits with 1
            sys.exit(EXIT_INTERRUPTED)
        raise
