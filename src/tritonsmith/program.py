"""`tritonsmith TASK`: the same tasks as `invoke TASK`, from any folder, with exit code 2 for usage."""

from __future__ import annotations

import re
import sys

from invoke.exceptions import ParseError
from invoke.program import Program

from tritonsmith import __version__
from tritonsmith.errors import EXIT_USAGE, did_you_mean
from tritonsmith.tasks import namespace


class SmithProgram(Program):
    """Invoke's program with this project's exit code and hints for a wrong command line."""

    def run(self, argv: list[str] | None = None, exit: bool = True) -> None:  # noqa: A002 - Invoke's name
        """Parse and execute; see `invoke.Program.run`."""
        given = sys.argv if argv is None else argv
        try:
            self.create_config()
            self.parse_core(given)
            self.parse_collection()
            self.parse_tasks()
        except ParseError as error:
            print(f"error: {error}", file=sys.stderr)
            for hint in _hints(error):
                print(f"  - {hint}", file=sys.stderr)
            sys.exit(EXIT_USAGE)
        super().run(given, exit)


def _hints(error: ParseError) -> tuple[str, ...]:
    """What would have been right: flags of the task, or names of tasks."""
    match = re.match(r"No idea what '(.+)' is", str(error))
    if match is None:
        return ("what a task takes: tritonsmith --help TASK",)
    wrong = match[1]
    if wrong.startswith("-"):
        task = error.context.name if error.context else None
        where = f"tritonsmith --help {task}" if task else "tritonsmith --help"
        known = error.context.flag_names() if error.context else ()
        return (*did_you_mean(wrong, known)[:1], f"the flags are explained by: {where}")
    return did_you_mean(wrong, namespace.task_names)


def main() -> None:
    """Console entry."""
    SmithProgram(name="tritonsmith", namespace=namespace, version=__version__).run()
