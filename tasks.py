"""What Invoke reads: the namespace, and how the help of a task looks."""

from invoke.program import Program

from tritonsmith.cli.start import interruptible

with interruptible():
    from tritonsmith.cli.program import SmithProgram
    from tritonsmith.cli.tasks import namespace, task

task.end_with_reader()
# Invoke has no hook for the help of a task, and its own neither names words nor the kinds of values.
setattr(Program, "print_task_help", SmithProgram.print_task_help)  # noqa: B010 - a type checker refuses it

__all__ = ["namespace"]
