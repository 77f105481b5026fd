"""The tasks that Invoke reads, and the program that parses their command line."""

from invoke.program import Program

from tritonsmith.cli import interruptible

with interruptible():
    from tritonsmith.cli.program import SmithProgram
    from tritonsmith.cli.tasks import namespace, task

task.end_at_closed_pipe()


_parse_tasks = Program.parse_tasks


def _adopt(program: Program) -> None:
    """Continue the run of Invoke, which has just loaded this file, as `tritonsmith` would; it has no hook.

    Invoke itself knows neither the modes of a command nor a help that names words and kinds of values.
    """
    setattr(Program, "parse_tasks", _parse_tasks)  # noqa: B010 - a type checker refuses an assignment
    program.__class__ = SmithProgram
    program.collection = program.scoped_collection = (
        namespace  # of which Invoke took a copy, less its methods
    )
    program.parse_tasks()


setattr(Program, "parse_tasks", _adopt)  # noqa: B010

__all__ = ["namespace"]
