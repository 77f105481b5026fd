"""`tritonsmith TASK`: the same tasks as `invoke TASK`, from any folder, with exit code 2 for usage."""

from __future__ import annotations

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
            for hint in did_you_mean(_first_unknown(given), namespace.task_names):
                print(f"  - {hint}", file=sys.stderr)
            sys.exit(EXIT_USAGE)
        super().run(given, exit)


def _first_unknown(argv: list[str]) -> str:
    return next((word for word in argv[1:] if not word.startswith("-")), "")


def main() -> None:
    """Console entry."""
    SmithProgram(name="tritonsmith", namespace=namespace, version=__version__).run()
